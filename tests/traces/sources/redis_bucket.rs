//! Two token bucket scripts on redis, in whole seconds and doubles: Spring Cloud Gateway's and
//! ShenYu's.
//!
//! Their variants name the source of the time, which makes no difference. Only `backwards` matters.

use std::ops::RangeInclusive;

use tollgate::error::QuotaError;
use tollgate_replay::{LevelLimiter, TIE as NEAR, is_tie, quota};

use super::classes::{FAILS_OPEN, NO_CAPACITY, TIE, UNLIMITED, WENT_BACK};
use super::{Begun, SECOND};
use tollgate_replay::prelude::*;

/// The exact error of ShenYu's script.
const EXPIRY_OF_0: &str = "invalid expire time in 'setex' command";

pub(super) fn spring(header: &Header) -> Begun {
    if TokenBucket::new(quota(&header.config)?) == Err(QuotaError::ZeroBurst) {
        return Ok(Box::new(NoBucket));
    }
    begin(header, |bucket| Box::new(Unlimited(bucket)))
}

pub(super) fn shenyu(header: &Header) -> Begun {
    begin(header, |bucket| Box::new(Failing(bucket)))
}

/// If the expiry is 0, no state is printed, and ours continues with its own.
fn begin(header: &Header, without_state: fn(LevelLimiter) -> Box<dyn Replay>) -> Begun {
    let (rate, capacity) = (header.config.f64("rate")?, header.config.u64("capacity")?);
    let bucket = LevelLimiter::new(&header.config)?;
    if 2.0 * capacity as f64 / rate < 1.0 {
        return Ok(without_state(bucket));
    }
    Ok(Box::new(Stored {
        bucket,
        may_go_back: header.variant.as_deref() == Some("backwards"),
        before: None,
        last: None,
    }))
}

/// The state that a call printed.
#[derive(Clone, Copy)]
pub(super) struct State {
    pub(super) t: u64,
    pub(super) level: f64,
}

/// The ordinary case.
struct Stored {
    bucket: LevelLimiter,
    may_go_back: bool,
    /// The states printed by the call before the last one, and by the last.
    before: Option<State>,
    last: Option<State>,
}

impl Replay for Stored {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let (n, t) = asked(op)?;
        let (ok, level) = (op.result.flag("ok")?, op.result.f64("stored")?);
        let left = op.result.u64("tokens_left")?;
        let ours = self.bucket.ask(n, t.saturating_mul(SECOND));
        self.before = self.last.replace(State { t, level });
        Ok(Comparison::decision(ok, ours.answer.ok())
            .and("tokens_left", left, ours.answer.remaining)
            .and("stored before", before(level, ok, n), ours.before)
            .and("stored_t", op.result.u64("stored_t")?, t))
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        let (n, t) = asked(op).ok()?;
        let now = self.last?;
        // Every reported value must match the stored one.
        let left = op.result.u64("tokens_left").ok()?;
        let fits = match field {
            "ok" | "stored before" => true,
            "tokens_left" => whole(now.level).contains(&left),
            _ => false,
        };
        if fits && self.may_go_back && self.went_back(t, comparison) {
            return Some(&WENT_BACK);
        }
        let tie = match field {
            "ok" => is_tie(before(now.level, op.result.flag("ok").ok()?, n), n),
            // It follows the decision, and is truncated to whole permits.
            "tokens_left" => is_tie(now.level, now.level.round() as u64),
            _ => false,
        };
        (fits && tie && comparison.agrees_on("stored before")).then_some(&TIE)
    }

    fn take_over(&mut self, _: &Op) -> Result<bool, Malformed> {
        let Some(State { t, level }) = self.last else {
            return Ok(false);
        };
        self.bucket.hold(level, t.saturating_mul(SECOND))?;
        Ok(true)
    }
}

impl Stored {
    /// Returns whether the levels are the expected ones after time went back.
    fn went_back(&self, t: u64, comparison: &Comparison) -> bool {
        let before = self.before.filter(|last| t < last.t);
        let levels = before.zip(comparison.levels("stored before"));
        levels.is_some_and(|(last, (theirs, ours))| {
            let short = (last.t - t) as f64 * self.bucket.rate() + NEAR;
            theirs == last.level && ours < theirs && ours >= theirs - short
        })
    }
}

struct Unlimited(LevelLimiter);

impl Replay for Unlimited {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let (n, t) = asked(op)?;
        let ours = self.0.ask(n, t.saturating_mul(SECOND)).answer;
        let theirs = &op.result;
        Ok(Comparison::decision(theirs.flag("ok")?, ours.ok())
            .and("tokens_left", theirs.u64("tokens_left")?, ours.remaining)
            .and("stored", theirs.optional_u64("stored")?, Value::Nothing))
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        let capacity = self.0.capacity();
        let n = op.args.u64("n").ok()?;
        let (ok, left) = (n <= capacity, capacity.checked_sub(n).unwrap_or(capacity));
        let full = op.result.flag("ok").ok()? == ok && op.result.u64("tokens_left").ok()? == left;
        (full && field != "stored" && comparison.agrees_on("stored")).then_some(&UNLIMITED)
    }
}

struct Failing(LevelLimiter);

impl Replay for Failing {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let (n, t) = asked(op)?;
        let error = op.result.text("error")?;
        if error != EXPIRY_OF_0 {
            return Err(Malformed(format!("another error: {error}")));
        }
        let ours = self.0.ask(n, t.saturating_mul(SECOND)).answer;
        // The script's caller turns an error into an admission with -1 left.
        Ok(Comparison::decision(true, ours.ok())
            .and("tokens_left", -1_i64, ours.remaining)
            .and("stored", op.result.optional_u64("stored")?, Value::Nothing))
    }

    fn class(&self, _: &Op, _: &Comparison, field: &str) -> Option<&'static Class> {
        (field != "stored").then_some(&FAILS_OPEN)
    }
}

/// A capacity of 0: ours has no such bucket.
struct NoBucket;

impl Replay for NoBucket {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        asked(op)?;
        let theirs = &op.result;
        Ok(Comparison::decision(theirs.flag("ok")?, Value::Nothing)
            .and("tokens_left", theirs.u64("tokens_left")?, Value::Nothing)
            .and("stored", theirs.optional_u64("stored")?, Value::Nothing))
    }

    fn class(&self, op: &Op, _: &Comparison, field: &str) -> Option<&'static Class> {
        let empty = match field {
            "ok" => op.result.flag(field).ok()? == (op.args.u64("n").ok()? == 0),
            "tokens_left" => op.result.u64(field).ok()? == 0,
            _ => false,
        };
        empty.then_some(&NO_CAPACITY)
    }
}

/// Returns the whole permits that may be reported for a level: two numbers if it is close to a tie.
pub(super) fn whole(level: f64) -> RangeInclusive<u64> {
    (level - NEAR) as u64..=(level + NEAR) as u64
}

/// Returns the permits and the second of a call.
pub(super) fn asked(op: &Op) -> Result<(u64, u64), Malformed> {
    op.must_be("acquire")?;
    Ok((op.args.u64("n")?, op.args.u64("t")?))
}
