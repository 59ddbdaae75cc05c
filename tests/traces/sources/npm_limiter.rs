//! The token bucket of limiter (npm), in microseconds and doubles. It starts empty.
//!
//! A call for more than the bucket size is refused before the bucket is refilled up to the time of
//! the call, and prints the content of the previous call. So the content is compared at the time of
//! the last refill. A wait is rounded up to milliseconds.

use tollgate::Limiter;
use tollgate::clock::NoClock;
use tollgate_replay::check_forecast;
use tollgate_replay::prelude::*;

use super::classes::NPM_TIE;
use super::{Begun, MICROSECOND, MILLISECOND};

pub(super) fn begin(header: &Header) -> Begun {
    let (config, t0) = (&header.config, header.time_zero()?);
    let period = Duration::from_millis(config.positive("interval_ms")?);
    let quota = Quota::per(config.positive("tokens_per_interval")?, period);
    let quota = quota.burst(config.positive("bucket_size")?).initial(0);
    let algorithm = TokenBucket::new(quota);
    let algorithm = algorithm.map_err(|error| Malformed(format!("can't be built: {error}")))?;
    let limiter = Limiter::unstarted(algorithm, NoClock);
    let filled = Tick::from_nanos(t0.saturating_mul(MICROSECOND));
    limiter.at(filled).start();
    Ok(Box::new(NpmTrace {
        limiter,
        filled,
        retry_ns: None,
    }))
}

struct NpmTrace {
    limiter: Limiter<TokenBucket, NoClock>,
    /// The time of their last refill.
    filled: Tick,
    /// Our last answer.
    retry_ns: Option<u64>,
}

impl Replay for NpmTrace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        op.must_be("try_remove")?;
        let (n, now) = (op.args.u64("n")?, Tick::from_nanos(op.t_ns(MICROSECOND)?));
        let size = self.limiter.quota().burst_size();
        if n <= size {
            self.filled = now;
        }
        let level = self.limiter.at(self.filled).level();
        let view = self.limiter.at(now);
        let foretold = view.time_until(n);
        let decision = view.try_acquire_n(n);
        check_forecast(n, foretold, &decision);
        let denied = decision.as_ref().err();
        let wait = denied.and_then(|denied| denied.retry_after());
        self.retry_ns = wait.map(in_nanos);
        let theirs = &op.result;
        let ok = theirs.flag("ok")?;
        let content = before(theirs.f64("content")?, ok, n);
        let wait_ms = self.retry_ns.map(|ns| ns.div_ceil(MILLISECOND));
        Ok(Comparison::decision(ok, decision.is_ok())
            .and("wait_ms", theirs.optional_u64("wait_ms")?, wait_ms)
            .and("content before", content, size as f64 - level.as_f64()))
    }

    fn class(&self, _: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        let (theirs, ours) = comparison.numbers("wait_ms")?;
        let beyond = self.retry_ns? % MILLISECOND;
        let tie = beyond <= 1 || beyond == MILLISECOND - 1;
        let same = comparison.agrees_on("ok") && comparison.agrees_on("content before");
        (field == "wait_ms" && same && tie && (theirs - ours).abs() == 1).then_some(&NPM_TIE)
    }
}
