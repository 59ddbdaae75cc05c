//! The recorded limiters that are replayed.

mod first_hit;
mod flexible_theirs;
mod governor;
#[cfg(feature = "wide")]
mod guava;
mod limits_fixed_window;
mod limits_moving_window;
mod limits_sliding_window;
mod log_gate;
mod nginx;
mod npm_limiter;
mod pyrate;
mod pyrate_rates;
mod pyrate_window;
mod rate_limiter_flexible;
mod redis_bucket;
mod shenyu;
mod shenyu_concurrent;
mod shenyu_leaky;
mod shenyu_log;
mod spring;
mod throttled;
mod token_bucket_pypi;
mod xtime;
mod xtime_bucket;
mod xtime_calls;
mod xtime_classes;
mod xtime_theirs;
mod xtime_without;

use tollgate_replay::Source;

/// All that are known.
pub(crate) const fn all() -> &'static [&'static dyn Source] {
    &[
        &governor::Governor,
        #[cfg(feature = "wide")]
        &guava::Guava,
        &limits_fixed_window::LimitsFixedWindow,
        &limits_moving_window::LimitsMovingWindow,
        &limits_sliding_window::LimitsSlidingWindow,
        &nginx::Nginx,
        &npm_limiter::NpmLimiter,
        &throttled::Throttled,
        &pyrate::Pyrate,
        &pyrate_window::PyrateWindow,
        &pyrate_window::PyrateLog,
        &rate_limiter_flexible::RateLimiterFlexible,
        &token_bucket_pypi::TokenBucketPyPi,
        &spring::Spring,
        &shenyu::ShenYu,
        &shenyu_concurrent::ShenYuConcurrent,
        &shenyu_leaky::ShenYuLeaky,
        &shenyu_log::ShenYuLog,
        &xtime::XTime,
    ]
}
