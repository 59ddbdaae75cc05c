//! rate-limiter-flexible's in-memory limiter, in milliseconds: a
//! [`FixedWindow`](tollgate::FixedWindow) that the first hit opens.
//!
//! | theirs | ours |
//! |---|---|
//! | `consume`, also when it refuses | `try_acquire_n`, otherwise `charge` |
//! | `penalty`, `reward`, `delete` | `charge`, `refund`, `reset` |
//! | `block`, and a configured block at the hit that exceeds the limit | a limiter of that length, charged above its limit, until it ends |
//! | a duration of 0: no end, -1 | a window of a thousand days, longer than any trace |
//!
//! The rest of a window is truncated to milliseconds here.

use tollgate_replay::prelude::*;

use super::classes::{COUNTS_ON, END, NOTHING_TAKEN, SPREADS};
use super::first_hit::{FirstHit, Seen};
use super::flexible_theirs::{ENDLESS, Theirs, Window};
use super::{Begun, MILLISECOND};

pub(super) fn begin(header: &Header) -> Begun {
    let config = &header.config;
    let points = config.positive("points")?;
    let duration = match config.u64("duration_s")? {
        0 => ENDLESS,
        seconds => Duration::from_secs(seconds),
    };
    Ok(Box::new(FlexibleTrace {
        window: FirstHit::new(points, duration)?,
        block: None,
        theirs: Theirs {
            points,
            duration,
            block: Duration::from_secs(config.u64("block_duration_s")?),
            evenly: config.flag("exec_evenly")?,
        },
        before: Seen::default(),
        last: None,
        now: None,
    }))
}

struct FlexibleTrace {
    window: FirstHit,
    /// Decides while a block is active.
    block: Option<FirstHit>,
    theirs: Theirs,
    /// Our state before the last call.
    before: Seen,
    /// Their window before the last call, and after it.
    last: Option<Window>,
    now: Option<Window>,
}

impl Replay for FlexibleTrace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let t = op.args.u64("t")?;
        self.before = self.look(t);
        let (comparison, blocked) = self.act(op, t)?;
        self.last = self.now.take().filter(|window| window.is_open(t));
        self.now = self.theirs.after(self.last, op)?;
        if op.name == "delete" || op.result.get("none").is_some() {
            return Ok(comparison);
        }
        let (theirs, ours) = (&op.result, self.current().seen());
        let opened = ours.left_ns > 0 && self.before.left_ns == 0 || blocked;
        let left = match &self.block {
            None if self.theirs.duration == ENDLESS && ours.left_ns > 0 => -1,
            _ => (ours.left_ns / MILLISECOND) as i64,
        };
        Ok(comparison
            .and("remaining", theirs.u64("remaining")?, ours.remaining)
            .and("ms_before_next", theirs.i64("ms_before_next")?, left)
            .and("consumed", theirs.i64("consumed")?, ours.count)
            .and("first", theirs.flag("first")?, opened && op.name != "block"))
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        // Every recorded answer must match their state.
        if !self.theirs.says(self.last, self.now, op).ok()? {
            return None;
        }
        if self.is_at_the_end() {
            return Some(&END);
        }
        if self.is_nothing_taken() {
            return Some(&NOTHING_TAKEN);
        }
        if ["delay_ms", "ms_before_next"].contains(&field) {
            return (op.result.i64("delay_ms").ok()? > 0).then_some(&SPREADS);
        }
        let (theirs, ours) = comparison.numbers("consumed")?;
        let beyond = theirs == ours + i128::from(self.current().seen().uncounted);
        (field == "consumed" && beyond).then_some(&COUNTS_ON)
    }

    fn take_over(&mut self, _: &Op) -> Result<bool, Malformed> {
        if !self.is_at_the_end() && !self.is_nothing_taken() {
            return Ok(false);
        }
        self.window.reset();
        self.block = None;
        let Some(now) = self.now else { return Ok(true) };
        let (count, opened) = (now.consumed.max(0) as u64, now.opened_ms * MILLISECOND);
        if now.length == self.theirs.duration {
            self.window.hold(count, opened);
        } else {
            let mut block = FirstHit::new(self.theirs.points, now.length)?;
            block.hold(count, opened);
            self.block = Some(block);
        }
        Ok(true)
    }
}

impl FlexibleTrace {
    fn current(&self) -> &FirstHit {
        self.block.as_ref().unwrap_or(&self.window)
    }

    /// Reads the state at this time. A block that has ended is removed, together with the window.
    fn look(&mut self, t_ms: u64) -> Seen {
        if let Some(block) = &mut self.block {
            let seen = block.look(t_ms * MILLISECOND);
            if seen.left_ns > 0 {
                return seen;
            }
            self.block = None;
            self.window.reset();
        }
        self.window.look(t_ms * MILLISECOND)
    }

    /// Makes the call, and returns whether it began a block.
    fn act(&mut self, op: &Op, t: u64) -> Result<(Comparison, bool), Malformed> {
        let (theirs, open) = (&op.result, self.before.left_ns > 0);
        let nothing = Comparison::without_decision();
        let window = self.block.as_mut().unwrap_or(&mut self.window);
        match op.name.as_str() {
            "consume" => return self.consume(op, t),
            "penalty" => window.charge(op.args.u64("n")?),
            "reward" => window.refund(op.args.u64("n")?),
            "block" => self.block(op.args.u64("n")?, self.theirs.points + 1, t)?,
            "get" if theirs.get("none").is_some() => {
                return Ok((nothing.and("none", theirs.flag("none")?, !open), false));
            }
            "get" => {}
            "delete" => {
                self.block = None;
                self.window.reset();
                return Ok((nothing.and("deleted", theirs.flag("deleted")?, open), false));
            }
            _ => return Err(op.unknown()),
        }
        Ok((nothing, false))
    }

    fn consume(&mut self, op: &Op, t: u64) -> Result<(Comparison, bool), Malformed> {
        let (n, points, block) = (op.args.u64("n")?, self.theirs.points, self.theirs.block);
        let window = self.block.as_mut().unwrap_or(&mut self.window);
        let ok = window.hit(n, t * MILLISECOND);
        let count = window.seen().count + window.seen().uncounted;
        let one_too_many = !ok && self.before.count <= points && !block.is_zero();
        if one_too_many {
            self.block(block.as_secs(), count, t)?;
        }
        let comparison = Comparison::decision(op.result.flag("ok")?, ok);
        // A window grants without a delay.
        let comparison = comparison.and("delay_ms", op.result.i64("delay_ms")?, 0_u64);
        Ok((comparison, one_too_many))
    }

    /// Creates a limiter with a window of `seconds` in which `count` permits are taken at once.
    fn block(&mut self, seconds: u64, count: u64, t: u64) -> Result<(), Malformed> {
        let mut block = FirstHit::new(self.theirs.points, Duration::from_secs(seconds))?;
        block.look(t * MILLISECOND);
        block.charge(count);
        self.block = Some(block);
        Ok(())
    }

    /// Returns whether their count was zero or below, before or after the call.
    fn is_nothing_taken(&self) -> bool {
        let windows = [self.last, self.now];
        windows.iter().flatten().any(|it| it.consumed <= 0)
    }

    /// Returns whether their window ends at this millisecond, and ours is about to end.
    fn is_at_the_end(&self) -> bool {
        self.last.is_none() && self.before.is_ending
    }
}
