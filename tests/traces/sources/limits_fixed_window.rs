//! The fixed window of limits (PyPI), in microseconds: a [`FixedWindow`](tollgate::FixedWindow)
//! that the first hit opens.
//!
//! It also counts the hits that it refuses. `reset` is the window's end, or now if none is open,
//! truncated to microseconds here. Their time is a double with a precision of a quarter of a
//! microsecond.

use tollgate_replay::prelude::*;

use super::classes::{COUNTS_ON, END, OPENED_BY_0};
use super::first_hit::{FirstHit, Seen};
use super::{Begun, MICROSECOND};

pub(super) fn begin(header: &Header) -> Begun {
    let window = Duration::from_micros(header.config.u64("window_us")?);
    Ok(Box::new(LimitsTrace {
        window: FirstHit::new(header.config.u64("limit")?, window)?,
        before: Seen::default(),
        end: 0,
        last_end: 0,
        empty_end: 0,
    }))
}

struct LimitsTrace {
    window: FirstHit,
    /// Our state before the last call.
    before: Seen,
    /// The end of their window, as printed by the last call and by the one before.
    end: u64,
    last_end: u64,
    /// The end of the last window that a hit of 0 opened there.
    empty_end: u64,
}

impl Replay for LimitsTrace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let (t, t_ns) = (op.args.u64("t")?, op.t_ns(MICROSECOND)?);
        self.before = self.window.look(t_ns);
        let comparison = match op.name.as_str() {
            "clear" => {
                self.window.reset();
                return Ok(Comparison::without_decision());
            }
            "stats" => Comparison::without_decision(),
            "test" | "hit" => {
                let n = op.args.u64("n")?;
                let ours = match op.name.as_str() {
                    "test" => self.window.test(n),
                    _ => self.window.hit(n, t_ns),
                };
                Comparison::decision(op.result.flag("ok")?, ours)
            }
            _ => return Err(op.unknown()),
        };
        let (theirs, ours) = (&op.result, self.window.seen());
        let (reset, count) = (theirs.u64("reset")?, theirs.u64("count")?);
        if op.name == "hit" && op.args.u64("n")? == 0 && count == 0 {
            self.empty_end = t + self.window.window.as_micros() as u64;
        }
        self.last_end = std::mem::replace(&mut self.end, reset);
        Ok(comparison
            .and("remaining", theirs.u64("remaining")?, ours.remaining)
            .and("reset", reset, t + ours.left_ns / MICROSECOND)
            .and("count", count, ours.count))
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        if self.is_at_the_end(op) {
            return self.is_fresh(op).ok()?.then_some(&END);
        }
        let (theirs, ours) = comparison.numbers("count")?;
        if field == "reset" {
            let empty = theirs == 0 && op.result.u64(field).ok()? == self.empty_end;
            return empty.then_some(&OPENED_BY_0);
        }
        let beyond = theirs == ours + i128::from(self.window.seen().uncounted);
        (field == "count" && beyond).then_some(&COUNTS_ON)
    }

    fn take_over(&mut self, op: &Op) -> Result<bool, Malformed> {
        let is_end = self.is_at_the_end(op);
        if is_end {
            self.window
                .hold(op.result.u64("count")?, op.t_ns(MICROSECOND)?);
        }
        Ok(is_end)
    }
}

impl LimitsTrace {
    /// Returns whether their window ends at this microsecond, and ours is about to end.
    fn is_at_the_end(&self, op: &Op) -> bool {
        let t = op.args.u64("t").ok();
        t == Some(self.last_end) && self.before.is_ending
    }

    /// Returns whether they answered without an open window.
    fn is_fresh(&self, op: &Op) -> Result<bool, Malformed> {
        let (t, limit, theirs) = (op.args.u64("t")?, self.window.limit, &op.result);
        let n = op.args.optional_u64("n")?.unwrap_or(0);
        let hits = if op.name == "hit" { n } else { 0 };
        let window = self.window.window.as_micros() as u64;
        let end = if hits > 0 { t + window } else { t };
        let ok = op.name == "stats" || theirs.flag("ok")? == (n <= limit);
        Ok(ok
            && theirs.u64("count")? == hits
            && theirs.u64("reset")? == end
            && theirs.u64("remaining")? == limit.saturating_sub(hits))
    }
}
