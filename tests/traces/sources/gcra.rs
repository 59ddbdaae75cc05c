//! governor and throttled (Go): GCRA in nanoseconds. Their interval is a whole number of
//! nanoseconds, which is our argument.
//!
//! For governor nothing else is translated, and nothing differs. throttled's capacity is
//! `max_burst` plus one. It prints -1 for no wait. Its TAT is null before the first admission. A
//! TAT in the past means a full limiter, so the time until full is compared instead.

use tollgate_replay::prelude::*;

use super::Begun;
use super::classes::ABOVE_CAPACITY;

fn limiter(interval: u64, intervals: u64) -> Result<ReplayedLimiter<Gcra>, Malformed> {
    let tolerance = interval.saturating_mul(intervals);
    let [interval, tolerance] = [interval, tolerance].map(Duration::from_nanos);
    ReplayedLimiter::new(Gcra::from_interval(interval, tolerance))
}

pub(super) fn governor(header: &Header) -> Begun {
    let interval = header.config.u64("replenish_interval_ns")?;
    let burst = header.config.positive("burst")?;
    Ok(Box::new(Governor(limiter(interval, burst - 1)?)))
}

pub(super) fn throttled(header: &Header) -> Begun {
    let interval = header.config.u64("emission_interval_ns")?;
    let max_burst = header.config.u64("max_burst")?;
    Ok(Box::new(Throttled(limiter(interval, max_burst)?)))
}

struct Governor(ReplayedLimiter<Gcra>);

impl Replay for Governor {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        if op.name != "check" && op.name != "check_n" {
            return Err(op.unknown());
        }
        let ours = self.0.ask(op.args.u64("n")?, op.args.u64("t")?);
        let limit = match ours.decision {
            Err(Denied::Never { limit, .. }) => Some(limit),
            _ => None,
        };
        // It prints only the values that apply. Where it prints none, our answer must be `Nothing`.
        let theirs = &op.result;
        let remaining = theirs.optional_u64("remaining")?;
        let insufficient = theirs.optional_u64("insufficient_capacity")?;
        let wait = theirs.optional_u64("wait_ns")?;
        Ok(Comparison::decision(theirs.flag("ok")?, ours.ok())
            .and("remaining", remaining, ours.ok().then_some(ours.remaining))
            .and("insufficient_capacity", insufficient, limit)
            .and("wait_ns", wait, ours.retry_ns()))
    }
}

struct Throttled(ReplayedLimiter<Gcra>);

impl Replay for Throttled {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        op.must_be("rate_limit")?;
        let now = op.args.u64("t")?;
        let (ours, theirs) = (self.0.ask(op.args.u64("n")?, now), &op.result);
        let wait = Some(theirs.i64("retry_after_ns")?).filter(|&wait| wait != -1);
        let tat = theirs.optional_u64("tat")?;
        let to_full = tat.map_or(0, |tat| tat.saturating_sub(now));
        let reset = theirs.u64("reset_after_ns")?;
        Ok(Comparison::decision(theirs.flag("ok")?, ours.ok())
            .and("limit", theirs.u64("limit")?, self.0.capacity())
            .and("remaining", theirs.u64("remaining")?, ours.remaining)
            .and("reset_after_ns", reset, ours.reset_ns)
            .and("retry_after_ns", wait, ours.retry_ns())
            .and("tat", to_full, ours.reset_ns))
    }

    fn class(&self, op: &Op, _: &Comparison, field: &str) -> Option<&'static Class> {
        let full = match field {
            "remaining" => op.result.u64(field).ok()? == self.0.capacity(),
            "reset_after_ns" => op.result.u64(field).ok()? == 0,
            _ => false,
        };
        let above = op.args.u64("n").ok()? > self.0.capacity();
        (full && above).then_some(&ABOVE_CAPACITY)
    }
}
