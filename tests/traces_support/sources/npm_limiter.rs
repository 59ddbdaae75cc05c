//! The token bucket of limiter (npm), microseconds and doubles: it starts empty.
//!
//! A call for more than it holds is refused before the bucket is filled up to the time of the call, and prints
//! the content of the call before; so the content is compared at the time at which it was filled up last. A
//! wait is rounded up to milliseconds.

use std::time::Duration;

use tollgate::cell::{Cell, UNSTARTED};
use tollgate::{At, Quota, Requota, Tick, TokenBucket};
use tollgate_replay::{
    Class, Comparison, Direction, Fields, Header, Malformed, Op, Replay, Source, before, in_nanos,
};

/// The wait was within a nanosecond of whole milliseconds, and both agree on the content. We decide exactly.
static TIE: Class = Class {
    name: "doubles at a tie",
    directions: &[Direction::OtherValue],
};

pub(crate) struct NpmLimiter;

impl Source for NpmLimiter {
    fn knows(&self, header: &Header) -> bool {
        header.source.starts_with("npm limiter ") && header.algorithm == "token_bucket"
    }

    fn begin(&self, header: &Header) -> Result<Box<dyn Replay>, Malformed> {
        let t0 = header.time_zero()?;
        let (config, size) = (&header.config, header.config.positive("bucket_size")?);
        let quota = quota(config)?.burst(size).initial(0);
        let algorithm = TokenBucket::new(quota)
            .map_err(|error| Malformed(format!("can't be built: {error}")))?;
        let cell = Cell::new(UNSTARTED);
        At::new(&algorithm, &cell, micros(t0)).start();
        Ok(Box::new(NpmTrace {
            algorithm,
            cell,
            filled: micros(t0),
            retry_ns: None,
        }))
    }
}

fn quota(config: &Fields) -> Result<Quota, Malformed> {
    let period = Duration::from_millis(config.positive("interval_ms")?);
    Ok(Quota::per(config.positive("tokens_per_interval")?, period))
}

struct NpmTrace {
    algorithm: TokenBucket,
    cell: Cell,
    /// When theirs was filled up last.
    filled: Tick,
    /// What we said last.
    retry_ns: Option<u64>,
}

impl Replay for NpmTrace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        if op.name != "try_remove" {
            return Err(op.unknown());
        }
        let (n, now) = (op.args.u64("n")?, micros(op.args.u64("t")?));
        let size = self.algorithm.quota().burst_size();
        if n <= size {
            self.filled = now;
        }
        let level = At::new(&self.algorithm, &self.cell, self.filled).level();
        let view = At::new(&self.algorithm, &self.cell, now);
        let foretold = view.time_until(n);
        let decision = view.try_acquire_n(n);
        let wait = match decision {
            Ok(_) => Some(Duration::ZERO),
            Err(denied) => denied.retry_after(),
        };
        assert_eq!(foretold, wait, "time_until({n}) and try_acquire_n({n})");
        self.retry_ns = decision.err().and(wait).map(in_nanos);
        let theirs = &op.result;
        let ok = theirs.flag("ok")?;
        let content = before(theirs.f64("content")?, ok, n);
        let wait_ms = self.retry_ns.map(|ns| ns.div_ceil(MILLISECOND));
        Ok(Comparison::decision(op, ok, decision.is_ok())
            .and("wait_ms", theirs.optional_u64("wait_ms")?, wait_ms)
            .and("content before", content, size as f64 - level.as_f64()))
    }

    fn class(&self, _: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        let (theirs, ours) = comparison.numbers("wait_ms")?;
        let beyond = self.retry_ns? % MILLISECOND;
        let tie = beyond <= 1 || beyond == MILLISECOND - 1;
        let same = comparison.agrees_on("ok") && comparison.agrees_on("content before");
        (field == "wait_ms" && same && tie && (theirs - ours).abs() == 1).then_some(&TIE)
    }
}

const MILLISECOND: u64 = 1_000_000;

fn micros(t: u64) -> Tick {
    Tick::from_nanos(t.saturating_mul(1000))
}
