//! The limits of x/time/rate of which there is no bucket here: nothing a second, one in centuries, without an
//! end, and a burst of nothing. Our constructor says so, and what was recorded is what they say.

use tollgate::ConfigError;
use tollgate_replay::{Class, Comparison, Direction, Malformed, Op, Replay, Value};

use super::xtime_bucket::Bucket;
use super::xtime_calls::{Asked, limit, recorded};
use super::xtime_theirs::{Said, Theirs};

const NOTHING_TO_COMPARE: &[Direction] = &[Direction::OtherValue];

static ZERO: Class = Class {
    name: "a limit of 0: refused when it is built here",
    directions: NOTHING_TO_COMPARE,
};

/// 0.3.0 counts the burst itself down, and never up again.
static ONCE: Class = Class {
    name: "a limit of 0: its burst is handed out once, refused when it is built here",
    directions: NOTHING_TO_COMPARE,
};

static TOO_HIGH: Class = Class {
    name: "a limit without an end: refused when it is built here",
    directions: NOTHING_TO_COMPARE,
};

static TOO_LOW: Class = Class {
    name: "less than a token a year: refused when it is built here",
    directions: NOTHING_TO_COMPARE,
};

/// 0.3.0 turns a wait of more than 292 years into one in the past, and admits.
static OVERFLOWS: Class = Class {
    name: "less than a token a year: a wait overflows and is none, refused when it is built here",
    directions: NOTHING_TO_COMPARE,
};

static NO_BURST: Class = Class {
    name: "a burst of 0: refused when it is built here",
    directions: NOTHING_TO_COMPARE,
};

pub(super) struct Without {
    theirs: Theirs,
    why: ConfigError,
    said: Option<Said>,
}

impl Without {
    pub(super) fn new(theirs: Theirs, why: ConfigError) -> Self {
        let said = None;
        Self { theirs, why, said }
    }
}

impl Replay for Without {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let t = op.args.u64("t")?;
        let theirs = recorded(op)?;
        let delay = theirs.delay.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
        if let Some(asked) = Asked::of(op)? {
            self.said = Some(asked.said_by(&mut self.theirs, t));
            return Ok(Comparison::decision(op, theirs.ok, Value::Nothing)
                .and("delay_ns", delay, Value::Nothing)
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
        let (limit, burst) = (self.theirs.limit(), self.theirs.configured_burst());
        self.why = match Bucket::new(limit, burst) {
            Err(error) => error,
            Ok(_) => {
                return Err(Malformed(format!(
                    "a bucket of {limit}/s and {burst} in use"
                )));
            }
        };
        self.said = Some(Said {
            ok: false,
            delay: None,
            tokens: self.theirs.tokens_at(t.into()),
        });
        Ok(Comparison::without_decision(op).and("tokens", theirs.tokens, Value::Nothing))
    }

    fn class(&self, op: &Op, _: &Comparison, _: &str) -> Option<&'static Class> {
        let theirs = recorded(op).ok()?;
        if !self.said?.is(&theirs) {
            return None;
        }
        let now = theirs.ok && theirs.delay == Some(0);
        Some(match self.why {
            ConfigError::ZeroPermits if now && self.theirs.is_old() => &ONCE,
            ConfigError::ZeroPermits => &ZERO,
            ConfigError::ZeroBurst => &NO_BURST,
            ConfigError::RateTooHigh { .. } => &TOO_HIGH,
            ConfigError::RateTooLow { .. } | ConfigError::PeriodTooLong { .. } => {
                let overflows = now && self.theirs.is_old() && theirs.tokens < 0.0;
                if overflows { &OVERFLOWS } else { &TOO_LOW }
            }
            _ => return None,
        })
    }
}
