//! Spring Cloud Gateway's script on redis, whole seconds.
//!
//! Its variants say where the time comes from, which is the same time; only `backwards` matters,
//! and is in [`redis_bucket`](super::redis_bucket).

use tollgate::{ConfigError, TokenBucket};

use super::redis_bucket::{RedisBucket, asked, nanos};
use tollgate_replay::{
    Class, Comparison, Direction, Header, LevelGate, Malformed, Op, Replay, Source, Value, quota,
};

/// The script's keys expire after `2 * capacity / rate` seconds, rounded down; where that is 0
/// nothing is stored and every call finds a full bucket.
static UNLIMITED: Class = Class {
    name: "an expiry of 0: never limited there, limited here",
    directions: &[Direction::TheyAdmitMore, Direction::OtherValue],
};

/// A bucket of capacity 0 refuses everything but `n` = 0 there; here it is refused when it is
/// built.
static NO_CAPACITY: Class = Class {
    name: "a capacity of 0: refused when it is built here",
    directions: &[Direction::OtherValue],
};

pub(crate) struct Spring;

impl Source for Spring {
    fn knows(&self, header: &Header) -> bool {
        header.source.starts_with("spring-cloud-gateway@") && header.algorithm == "token_bucket"
    }

    fn begin(&self, header: &Header) -> Result<Box<dyn Replay>, Malformed> {
        let (rate, capacity) = (header.config.f64("rate")?, header.config.u64("capacity")?);
        if TokenBucket::new(quota(&header.config)?) == Err(ConfigError::ZeroBurst) {
            return Ok(Box::new(NoBucket));
        }
        if 2.0 * capacity as f64 / rate < 1.0 {
            let bucket = LevelGate::new(&header.config)?;
            return Ok(Box::new(Unlimited { bucket }));
        }
        Ok(Box::new(Stored(RedisBucket::new(header)?)))
    }
}

/// The ordinary case.
struct Stored(RedisBucket);

impl Replay for Stored {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        self.0.call(op)
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        self.0.class(op, comparison, field)
    }

    fn take_over(&mut self, _: &Op) -> Result<bool, Malformed> {
        self.0.take_over()
    }
}

/// There the expiry is 0 and no state is printed: we go on with our own.
struct Unlimited {
    bucket: LevelGate,
}

impl Replay for Unlimited {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let (n, t) = asked(op)?;
        let ours = self.bucket.ask(n, nanos(t)).answer;
        let theirs = &op.result;
        Ok(Comparison::decision(op, theirs.flag("ok")?, ours.ok())
            .and("tokens_left", theirs.u64("tokens_left")?, ours.remaining)
            .and("stored", theirs.optional_u64("stored")?, Value::Nothing))
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        let capacity = self.bucket.capacity();
        let n = op.args.u64("n").ok()?;
        let (ok, left) = (n <= capacity, capacity.checked_sub(n).unwrap_or(capacity));
        let full = op.result.flag("ok").ok()? == ok && op.result.u64("tokens_left").ok()? == left;
        (full && field != "stored" && comparison.agrees_on("stored")).then_some(&UNLIMITED)
    }
}

/// A capacity of 0: there is nothing to ask here.
struct NoBucket;

impl Replay for NoBucket {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        asked(op)?;
        let theirs = &op.result;
        Ok(Comparison::decision(op, theirs.flag("ok")?, Value::Nothing)
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
