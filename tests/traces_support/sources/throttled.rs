//! throttled (Go), GCRA, nanoseconds.
//!
//! Its interval is a whole number of nanoseconds, which is our argument, and its capacity one
//! above `max_burst`. It says -1 where there is no wait. Its TAT is null before the first
//! admission; one in the past means a full limiter, and so is compared as the time to full.

use std::time::Duration;

use tollgate::Gcra;

use tollgate_replay::{Class, Comparison, Direction, Gate, Header, Malformed, Op, Replay, Source};

/// More than the capacity is answered with a full limiter, whatever the state: `remaining` is the
/// capacity and `reset_after` 0. We answer with the limiter as it is. The decision, and the TAT, are
/// the same.
static ABOVE_CAPACITY: Class = Class {
    name: "asked above the capacity, it reports a full limiter",
    directions: &[Direction::OtherValue],
};

pub(crate) struct Throttled;

impl Source for Throttled {
    fn knows(&self, header: &Header) -> bool {
        header.source.starts_with("throttled/") && header.algorithm == "gcra"
    }

    fn begin(&self, header: &Header) -> Result<Box<dyn Replay>, Malformed> {
        let interval = header.config.u64("emission_interval_ns")?;
        let tolerance = interval.saturating_mul(header.config.u64("max_burst")?);
        let gate = Gate::new(Gcra::from_interval(
            Duration::from_nanos(interval),
            Duration::from_nanos(tolerance),
        ))?;
        Ok(Box::new(ThrottledTrace { gate }))
    }
}

struct ThrottledTrace {
    gate: Gate<Gcra>,
}

impl Replay for ThrottledTrace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        if op.name != "rate_limit" {
            return Err(op.unknown());
        }
        let now = op.args.u64("t")?;
        let ours = self.gate.ask(op.args.u64("n")?, now);
        let theirs = &op.result;
        let wait = match theirs.i64("retry_after_ns")? {
            -1 => None,
            wait => Some(wait),
        };
        let to_full = theirs
            .optional_u64("tat")?
            .map_or(0, |tat| tat.saturating_sub(now));
        Ok(Comparison::decision(op, theirs.flag("ok")?, ours.ok())
            .and("limit", theirs.u64("limit")?, self.gate.capacity())
            .and("remaining", theirs.u64("remaining")?, ours.remaining)
            .and(
                "reset_after_ns",
                theirs.u64("reset_after_ns")?,
                ours.reset_ns,
            )
            .and("retry_after_ns", wait, ours.retry_ns())
            .and("tat", to_full, ours.reset_ns))
    }

    fn class(&self, op: &Op, _: &Comparison, field: &str) -> Option<&'static Class> {
        let full = match field {
            "remaining" => op.result.u64(field).ok()? == self.gate.capacity(),
            "reset_after_ns" => op.result.u64(field).ok()? == 0,
            _ => false,
        };
        let above = op.args.u64("n").ok()? > self.gate.capacity();
        (full && above).then_some(&ABOVE_CAPACITY)
    }
}
