//! Computes what x/time/rate itself answers, from its documentation and source, in its doubles and
//! whole nanoseconds.
//!
//! Only the conditions of classes use it. A difference has a class if the recorded values equal
//! these, up to the last bit of a double. Otherwise it is a failure. Our answers come only from our
//! limiter.

use std::collections::BTreeMap;

use tollgate_replay::prelude::*;

/// The longest wait, which stands for an infinite one.
const LONGEST: i128 = i64::MAX as i128;

/// The year 1 on its clock: further back than it can subtract.
const LONG_AGO: i128 = -(1 << 80);

/// Its answer to a call.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Said {
    /// Whether it admits the call.
    pub(super) ok: bool,
    /// The caller's wait. `None` for a refusal, [`Said::NEVER`] for an infinite wait.
    pub(super) delay: Option<i128>,
    /// The tokens after the call.
    pub(super) tokens: f64,
}

impl Said {
    pub(super) const NEVER: i128 = LONGEST;

    /// Returns whether both are the same answer. A double may be off by its last bit.
    pub(super) fn is(&self, other: &Self) -> bool {
        let near = 1e-15 * self.tokens.abs().max(1.0);
        (self.ok, self.delay) == (other.ok, other.delay)
            && (self.tokens - other.tokens).abs() <= near
    }

    pub(super) fn delay_ns(&self) -> Option<i64> {
        self.delay.map(|ns| ns.try_into().unwrap_or(i64::MAX))
    }
}

/// Permits reserved there.
#[derive(Debug, Clone, Copy)]
struct Reserved {
    tokens: f64,
    to_act: i128,
    limit: f64,
}

/// Its whole state.
#[derive(Debug)]
pub(super) struct Theirs {
    /// Whether it is version 0.3.0, not 0.13.
    pub(super) old: bool,
    pub(super) limit: f64,
    pub(super) burst: u64,
    /// The configured burst. Version 0.3.0 decrements its own.
    pub(super) configured_burst: u64,
    tokens: f64,
    /// The tick up to which it has counted. A caller with an earlier tick gets the same tokens.
    pub(super) last: i128,
    last_event: i128,
    reserved: BTreeMap<u64, Reserved>,
}

impl Theirs {
    pub(super) fn new(old: bool, limit: f64, burst: u64) -> Self {
        Self {
            old,
            limit,
            burst,
            configured_burst: burst,
            tokens: if old { 0.0 } else { burst as f64 },
            last: LONG_AGO,
            last_event: LONG_AGO,
            reserved: BTreeMap::new(),
        }
    }

    /// Returns when a reservation that it granted may be used.
    pub(super) fn to_act(&self, id: u64) -> Option<i128> {
        self.reserved.get(&id).map(|reserved| reserved.to_act)
    }

    pub(super) fn tokens_at(&self, t: i128) -> f64 {
        let tokens = self.tokens + made(t - self.last.min(t), self.limit);
        tokens.min(self.burst as f64)
    }

    /// Takes `n` tokens if they are available within `max`.
    pub(super) fn take(&mut self, t: i128, n: u64, max: i128, id: Option<u64>) -> Said {
        let (ok, wait, tokens) = self.decide(t, n, max);
        if let Some(id) = id {
            self.reserved.remove(&id);
            let (to_act, limit) = (t + wait, self.limit);
            let reserved = Reserved {
                tokens,
                to_act,
                limit,
            };
            self.reserved.extend(ok.then_some((id, reserved)));
        }
        Said {
            ok,
            delay: ok.then_some(wait.max(0)),
            tokens: self.tokens_at(t),
        }
    }

    /// Returns the time that it takes to make these tokens, truncated to whole nanoseconds. An
    /// overflow gives the longest time or, in 0.3.0, a time far in the past.
    fn time_of(&self, tokens: f64, limit: f64) -> i128 {
        let ns = (tokens / limit) * 1e9;
        if limit <= 0.0 {
            LONGEST
        } else if ns.abs() < 9_223_372_036_854_775_808.0 {
            ns as i128
        } else if self.old || ns < 0.0 {
            -LONGEST - 1
        } else {
            LONGEST
        }
    }

    /// Returns the decision, the wait, and the tokens that can be returned.
    fn decide(&mut self, t: i128, n: u64, max: i128) -> (bool, i128, f64) {
        if self.limit == f64::INFINITY {
            return (true, 0, n as f64);
        }
        if self.old && self.limit == 0.0 {
            let ok = self.burst >= n;
            self.burst -= if ok { n } else { 0 };
            return (ok, 0, self.burst as f64);
        }
        let tokens = self.tokens_at(t) - n as f64;
        let wait = if tokens < 0.0 {
            self.time_of(-tokens, self.limit)
        } else {
            0
        };
        let ok = n <= self.burst && wait <= max;
        if ok {
            self.tokens = tokens;
            self.last = t;
            self.last_event = t + wait;
        }
        (ok, wait, n as f64)
    }

    /// Gives back the tokens that were not reserved after this reservation, unless its time has
    /// passed. Returns their number as it was before the burst capped it.
    pub(super) fn cancel(&mut self, t: i128, id: u64) -> f64 {
        let reserved = self
            .reserved
            .get(&id)
            .filter(|it| it.tokens != 0.0 && it.to_act >= t);
        let Some(&Reserved {
            tokens,
            to_act,
            limit,
        }) = reserved
        else {
            return 0.0;
        };
        let back = tokens - made(self.last_event - to_act, limit);
        if self.limit == f64::INFINITY || back <= 0.0 {
            return 0.0;
        }
        self.tokens = (self.tokens_at(t) + back).min(self.burst as f64);
        self.last = t;
        if to_act == self.last_event {
            let before = to_act + self.time_of(-tokens, limit);
            if before >= t {
                self.last_event = before;
            }
        }
        back
    }

    pub(super) fn set_limit(&mut self, t: i128, limit: f64) {
        self.tokens = self.tokens_at(t);
        self.last = t;
        self.limit = limit;
    }

    pub(super) fn set_burst(&mut self, t: i128, burst: u64) {
        self.tokens = self.tokens_at(t);
        self.last = t;
        (self.burst, self.configured_burst) = (burst, burst);
    }
}

/// Returns the tokens that it makes in `ns` nanoseconds.
fn made(ns: i128, limit: f64) -> f64 {
    if limit <= 0.0 || ns == 0 {
        return 0.0;
    }
    let ns = ns.clamp(-LONGEST - 1, LONGEST);
    let seconds = (ns / 1_000_000_000) as f64 + (ns % 1_000_000_000) as f64 / 1e9;
    seconds * limit
}

/// Returns a limit in tokens a second.
pub(super) fn limit(fields: &Fields) -> Result<f64, Malformed> {
    match fields.get("limit").and_then(|value| value.as_str()) {
        Some("Inf") => Ok(f64::INFINITY),
        _ => fields.f64("limit"),
    }
}

/// A call that asks for permits.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) n: u64,
    /// `None` for a call that does not wait.
    pub(super) max_ns: Option<u64>,
    pub(super) id: Option<u64>,
}

impl Asked {
    /// Returns `None` if the call asks for nothing.
    pub(super) fn of(op: &Op) -> Result<Option<Self>, Malformed> {
        let (max_ns, id) = match op.name.as_str() {
            "allow_n" => (None, None),
            "reserve_n" => (Some(u64::MAX), Some(op.args.u64("id")?)),
            "reserve_within" => (Some(op.args.u64("max_ns")?), Some(op.args.u64("id")?)),
            _ => return Ok(None),
        };
        let n = op.args.u64("n")?;
        Ok(Some(Self { n, max_ns, id }))
    }

    pub(super) fn said_by(&self, theirs: &mut Theirs, t: u64) -> Said {
        let max = i128::from(self.max_ns.unwrap_or(0)).min(Said::NEVER);
        theirs.take(t.into(), self.n, max, self.id)
    }
}

/// Returns the recorded answer.
pub(super) fn recorded(op: &Op) -> Result<Said, Malformed> {
    let tokens = op.result.f64("tokens")?;
    let ok = match op.result.get("ok") {
        Some(_) => op.result.flag("ok")?,
        None => false,
    };
    let delay = match op.result.get("delay_ns") {
        None => ok.then_some(0),
        Some(value) if value.as_str() == Some("Inf") => ok.then_some(Said::NEVER),
        Some(_) => Some(op.result.u64("delay_ns")?.into()),
    };
    Ok(Said { ok, delay, tokens })
}
