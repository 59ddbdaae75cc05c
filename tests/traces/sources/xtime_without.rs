//! The limits of x/time/rate that our constructor refuses: zero, one in centuries, infinity, and a
//! burst of zero. Our constructor must refuse them, and the recorded values must be the ones that
//! x/time/rate computes.

use tollgate::error::QuotaError;

use super::classes::{NO_BURST, ONCE, OVERFLOWS, TOO_HIGH, TOO_LOW, ZERO};
use super::xtime_bucket::Bucket;
use super::xtime_theirs::{Asked, Said, Theirs, limit, recorded};
use tollgate_replay::prelude::*;

pub(super) struct Without {
    theirs: Theirs,
    why: QuotaError,
    said: Option<Said>,
}

impl Without {
    pub(super) fn new(theirs: Theirs, why: QuotaError) -> Self {
        let said = None;
        Self { theirs, why, said }
    }
}

impl Replay for Without {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let t = op.args.u64("t")?;
        let theirs = recorded(op)?;
        if let Some(asked) = Asked::of(op)? {
            self.said = Some(asked.said_by(&mut self.theirs, t));
            return Ok(Comparison::decision(theirs.ok, Value::Nothing)
                .and("delay_ns", theirs.delay_ns(), Value::Nothing)
                .and("tokens", theirs.tokens, Value::Nothing));
        }
        match op.name.as_str() {
            "tokens_at" => {}
            "cancel" => {
                self.theirs.cancel(t.into(), op.args.u64("id")?);
            }
            "set_limit" => self.theirs.set_limit(t.into(), limit(&op.args)?),
            "set_burst" => self.theirs.set_burst(t.into(), op.args.u64("burst")?),
            _ => return Err(op.unknown()),
        }
        let (limit, burst) = (self.theirs.limit, self.theirs.configured_burst);
        let none = Bucket::new(limit, burst).err();
        let in_use = || Malformed(format!("a bucket of {limit}/s and {burst} in use"));
        self.why = none.ok_or_else(in_use)?;
        let tokens = self.theirs.tokens_at(t.into());
        self.said = Some(Said {
            tokens,
            ..Said::default()
        });
        Ok(Comparison::without_decision().and("tokens", theirs.tokens, Value::Nothing))
    }

    fn class(&self, op: &Op, _: &Comparison, _: &str) -> Option<&'static Class> {
        let theirs = recorded(op).ok()?;
        if !self.said?.is(&theirs) {
            return None;
        }
        let now = theirs.ok && theirs.delay == Some(0);
        Some(match self.why {
            QuotaError::ZeroPermits if now && self.theirs.old => &ONCE,
            QuotaError::ZeroPermits => &ZERO,
            QuotaError::ZeroBurst => &NO_BURST,
            QuotaError::RateTooHigh { .. } => &TOO_HIGH,
            QuotaError::RateTooLow { .. } | QuotaError::PeriodTooLong { .. } => {
                let overflows = now && self.theirs.old && theirs.tokens < 0.0;
                if overflows { &OVERFLOWS } else { &TOO_LOW }
            }
            _ => return None,
        })
    }
}
