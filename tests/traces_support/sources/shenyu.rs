//! ShenYu's token bucket script on redis, whole seconds and doubles.
//!
//! Its variants say where the time comes from, which is the same time; only `backwards` matters,
//! and is in [`redis_bucket`](super::redis_bucket).

use super::redis_bucket::{RedisBucket, asked, nanos};
use tollgate_replay::{
    Class, Comparison, Direction, Header, LevelGate, Malformed, Op, Replay, Source, Value,
};

/// The error of the script, to the word.
const EXPIRY_OF_0: &str = "invalid expire time in 'setex' command";

/// The script's keys expire after `2 * capacity / rate` seconds, rounded down; where that is 0
/// the script fails, and what calls it then admits everything. We decide.
static FAILS_OPEN: Class = Class {
    name: "an expiry of 0: the script fails and admits everything",
    directions: &[Direction::TheyAdmitMore, Direction::OtherValue],
};

pub(crate) struct ShenYu;

impl Source for ShenYu {
    fn knows(&self, header: &Header) -> bool {
        header.source.starts_with("shenyu@") && header.algorithm == "token_bucket"
    }

    fn begin(&self, header: &Header) -> Result<Box<dyn Replay>, Malformed> {
        let (rate, capacity) = (header.config.f64("rate")?, header.config.u64("capacity")?);
        if 2.0 * capacity as f64 / rate < 1.0 {
            let bucket = LevelGate::new(&header.config)?;
            return Ok(Box::new(Failing { bucket }));
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

/// There the script fails and no state is printed: we go on with our own.
struct Failing {
    bucket: LevelGate,
}

impl Replay for Failing {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let (n, t) = asked(op)?;
        let error = op.result.text("error")?;
        if error != EXPIRY_OF_0 {
            return Err(Malformed(format!("another error: {error}")));
        }
        let ours = self.bucket.ask(n, nanos(t)).answer;
        // What its caller makes of an error: admitted, with -1 left.
        Ok(Comparison::decision(op, true, ours.ok())
            .and("tokens_left", -1_i64, ours.remaining)
            .and("stored", op.result.optional_u64("stored")?, Value::Nothing))
    }

    fn class(&self, _: &Op, _: &Comparison, field: &str) -> Option<&'static Class> {
        (field != "stored").then_some(&FAILS_OPEN)
    }
}
