//! token-bucket (PyPI), microseconds.
//!
//! It keeps the time in seconds and its level in permits as doubles, so that at an exact boundary
//! it decides as they happen to be rounded.

use tollgate_replay::{
    Class, Comparison, Direction, Header, LevelGate, Malformed, Op, Replay, Source, before, is_tie,
};

/// The level was within a millionth of a permit of what was asked for, and both agree on the level.
/// We decide exactly.
static TIE: Class = Class {
    name: "doubles at a tie",
    directions: &[Direction::TheyAdmitMore, Direction::TheyAdmitLess],
};

pub(crate) struct TokenBucketPyPi;

impl Source for TokenBucketPyPi {
    fn knows(&self, header: &Header) -> bool {
        header.source.starts_with("token-bucket ") && header.algorithm == "token_bucket"
    }

    fn begin(&self, header: &Header) -> Result<Box<dyn Replay>, Malformed> {
        let bucket = LevelGate::new(&header.config)?;
        Ok(Box::new(PyPiTrace { bucket }))
    }
}

struct PyPiTrace {
    bucket: LevelGate,
}

impl PyPiTrace {
    fn nanos(op: &Op) -> Result<u64, Malformed> {
        Ok(op.args.u64("t")?.saturating_mul(1000))
    }

    fn level_before(op: &Op) -> Result<f64, Malformed> {
        let result = &op.result;
        let (ok, after) = (result.flag("ok")?, result.f64("tokens")?);
        Ok(before(after, ok, op.args.u64("n")?))
    }
}

impl Replay for PyPiTrace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        if op.name != "consume" {
            return Err(op.unknown());
        }
        let ours = self.bucket.ask(op.args.u64("n")?, Self::nanos(op)?);
        Ok(
            Comparison::decision(op, op.result.flag("ok")?, ours.answer.ok()).and(
                "tokens before",
                Self::level_before(op)?,
                ours.before,
            ),
        )
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        let level = Self::level_before(op).ok()?;
        let tie = is_tie(level, op.args.u64("n").ok()?);
        (field == "ok" && tie && comparison.agrees_on("tokens before")).then_some(&TIE)
    }

    fn take_over(&mut self, op: &Op) -> Result<bool, Malformed> {
        self.bucket
            .hold(op.result.f64("tokens")?, Self::nanos(op)?)?;
        Ok(true)
    }
}
