//! token-bucket (PyPI), in microseconds.
//!
//! It keeps the time in seconds and its level in permits as doubles, so at an exact boundary its
//! decision depends on their rounding.

use tollgate_replay::prelude::*;
use tollgate_replay::{LevelLimiter, is_tie};

use super::classes::PYPI_TIE;
use super::{Begun, MICROSECOND};

pub(super) fn begin(header: &Header) -> Begun {
    Ok(Box::new(PyPiTrace(LevelLimiter::new(&header.config)?)))
}

struct PyPiTrace(LevelLimiter);

fn level_before(op: &Op) -> Result<f64, Malformed> {
    let (ok, after) = (op.result.flag("ok")?, op.result.f64("tokens")?);
    Ok(before(after, ok, op.args.u64("n")?))
}

impl Replay for PyPiTrace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        op.must_be("consume")?;
        let ours = self.0.ask(op.args.u64("n")?, op.t_ns(MICROSECOND)?);
        let decision = Comparison::decision(op.result.flag("ok")?, ours.answer.ok());
        Ok(decision.and("tokens before", level_before(op)?, ours.before))
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        let tie = is_tie(level_before(op).ok()?, op.args.u64("n").ok()?);
        (field == "ok" && tie && comparison.agrees_on("tokens before")).then_some(&PYPI_TIE)
    }

    fn take_over(&mut self, op: &Op) -> Result<bool, Malformed> {
        self.0
            .hold(op.result.f64("tokens")?, op.t_ns(MICROSECOND)?)?;
        Ok(true)
    }
}
