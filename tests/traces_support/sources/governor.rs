//! governor, GCRA, nanoseconds since its creation.
//!
//! It keeps the interval in whole nanoseconds: that interval is our argument. Nothing else is
//! translated, and nothing differs.

use std::time::Duration;

use tollgate::{Denied, Gcra};

use tollgate_replay::{Comparison, Gate, Header, Malformed, Op, Replay, Source};

pub(crate) struct Governor;

impl Source for Governor {
    fn knows(&self, header: &Header) -> bool {
        header.source.starts_with("governor ") && header.algorithm == "gcra"
    }

    fn begin(&self, header: &Header) -> Result<Box<dyn Replay>, Malformed> {
        let interval = header.config.u64("replenish_interval_ns")?;
        let tolerance = interval.saturating_mul(header.config.positive("burst")? - 1);
        let gate = Gate::new(Gcra::from_interval(
            Duration::from_nanos(interval),
            Duration::from_nanos(tolerance),
        ))?;
        Ok(Box::new(GovernorTrace { gate }))
    }
}

struct GovernorTrace {
    gate: Gate<Gcra>,
}

impl Replay for GovernorTrace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        if op.name != "check" && op.name != "check_n" {
            return Err(op.unknown());
        }
        let ours = self.gate.ask(op.args.u64("n")?, op.args.u64("t")?);
        let limit = match ours.decision {
            Err(Denied::Never { limit, .. }) => Some(limit),
            _ => None,
        };
        // It prints what applies, and our answer must have nothing where it prints nothing.
        let theirs = &op.result;
        let remaining = theirs.optional_u64("remaining")?;
        let insufficient = theirs.optional_u64("insufficient_capacity")?;
        let wait = theirs.optional_u64("wait_ns")?;
        Ok(Comparison::decision(op, theirs.flag("ok")?, ours.ok())
            .and("remaining", remaining, ours.ok().then_some(ours.remaining))
            .and("insufficient_capacity", insufficient, limit)
            .and("wait_ns", wait, ours.retry_ns()))
    }
}
