//! The moving window of limits (PyPI), in microseconds: a [`SlidingLog`](tollgate::SlidingLog).
//!
//! It uses two kinds of window. A hit counts entries that are at most a window old. The printed
//! values (`in_window`, `remaining`, `reset`, and the answer to a test) count only younger entries,
//! as ours does. The entries in the window and the remaining permits are compared as they were
//! before the call, to show that both limiters were in one state even if they decide differently.

use tollgate_replay::prelude::*;

use super::classes::{FIRST_EVER, STILL_COUNTS};
use super::log_limiter::{Entries, LogLimiter};
use super::{Begun, MICROSECOND};

pub(super) fn begin(header: &Header) -> Begun {
    let window = Duration::from_micros(header.config.positive("window_us")?);
    Ok(Box::new(MovingTrace {
        limiter: LogLimiter::new(header.config.positive("limit")?, window)?,
        theirs: Entries::new(),
    }))
}

struct MovingTrace {
    limiter: LogLimiter,
    /// The entries that they admitted, in our ticks.
    theirs: Entries,
}

impl Replay for MovingTrace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let t_ns = op.t_ns(MICROSECOND)?;
        self.limiter.set_time(t_ns);
        if op.name == "clear" {
            self.theirs.clear();
            self.limiter.hold(Entries::new())?;
            return Ok(Comparison::without_decision());
        }
        let before = (self.limiter.counted(), self.limiter.available());
        let mut taken = 0;
        let comparison = match op.name.as_str() {
            "stats" => Comparison::without_decision(),
            "test" => {
                let ours = self.limiter.has(op.args.u64("n")?);
                Comparison::decision(op.result.flag("ok")?, ours)
            }
            "hit" => {
                let (n, ok) = (op.args.u64("n")?, op.result.flag("ok")?);
                let ours = self.limiter.ask(n, t_ns).ok();
                if ok {
                    taken = n;
                    self.theirs.push((t_ns, n));
                }
                Comparison::decision(ok, ours)
            }
            _ => return Err(op.unknown()),
        };
        let theirs = &op.result;
        let in_window = theirs.u64("in_window")?.checked_sub(taken);
        let remaining = theirs.u64("remaining")? + taken;
        let reset = self.limiter.expires_in();
        let reset = reset.unwrap_or(self.limiter.window_ns());
        Ok(comparison
            .and("in_window before", in_window, before.0)
            .and("remaining before", remaining, before.1)
            .and("reset", theirs.u64("reset")?, (t_ns + reset) / 1000))
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        let same = ["in_window before", "remaining before"];
        if !same.iter().all(|field| comparison.agrees_on(field)) {
            return None;
        }
        let t_ns = op.t_ns(MICROSECOND).ok()?;
        match field {
            "ok" => {
                let old = self.taken_at(t_ns.checked_sub(self.limiter.window_ns())?);
                let remaining = op.result.u64("remaining").ok()?;
                let fits = op.args.u64("n").ok()? + old > remaining;
                (op.name == "hit" && old > 0 && fits).then_some(&STILL_COUNTS)
            }
            "reset" => {
                let (first, _) = self.theirs.first()?;
                let reset = op.result.u64("reset").ok()? * 1000;
                let is_first = reset == first + self.limiter.window_ns() && reset <= t_ns;
                (is_first && op.result.u64("in_window").ok()? == 0).then_some(&FIRST_EVER)
            }
            _ => None,
        }
    }

    /// Runs after we admitted a hit that they refused.
    fn take_over(&mut self, _: &Op) -> Result<bool, Malformed> {
        self.limiter.follow(&self.theirs)
    }
}

impl MovingTrace {
    /// Returns the number of permits that they admitted at this tick.
    fn taken_at(&self, t_ns: u64) -> u64 {
        let then = self.theirs.iter().filter(|(t, _)| *t == t_ns);
        then.map(|(_, n)| n).sum()
    }
}
