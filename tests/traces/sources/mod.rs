//! The recorded limiters. An adapter for each translates units and arguments, and nothing else: an
//! adapter that repeated the recorded limiter's mistakes would test itself.

mod classes;
mod first_hit;
mod flexible_theirs;
mod gcra;
mod limits_fixed_window;
mod limits_moving_window;
mod limits_sliding_window;
mod log_limiter;
mod nginx;
mod npm_limiter;
mod pyrate;
mod rate_limiter_flexible;
mod redis_bucket;
mod shenyu_concurrent;
mod shenyu_leaky;
mod shenyu_log;
mod token_bucket_pypi;
mod xtime;
mod xtime_bucket;
mod xtime_theirs;
mod xtime_without;

use tollgate_replay::{Header, Malformed, Replay, Source};

/// The result of an adapter for a header.
type Begun = Result<Box<dyn Replay>, Malformed>;

/// The start of the source's name, its algorithm, and the function that replays its traces.
struct Adapter(&'static str, &'static str, fn(&Header) -> Begun);

impl Source for Adapter {
    fn knows(&self, header: &Header) -> bool {
        header.source.starts_with(self.0) && header.algorithm == self.1
    }

    fn begin(&self, header: &Header) -> Begun {
        self.2(header)
    }
}

/// Returns all adapters.
pub(crate) const fn all() -> &'static [&'static dyn Source] {
    &[
        &Adapter("governor ", "gcra", gcra::governor),
        &Adapter("limits ", "fixed-window", limits_fixed_window::begin),
        &Adapter("limits ", "moving-window", limits_moving_window::begin),
        &Adapter(
            "limits ",
            "sliding-window-counter",
            limits_sliding_window::begin,
        ),
        &Adapter("nginx ", "nginx_limit_req", nginx::begin),
        &Adapter("npm limiter ", "token_bucket", npm_limiter::begin),
        &Adapter("throttled/", "gcra", gcra::throttled),
        &Adapter("pyrate-limiter ", "gcra", pyrate::gcra),
        &Adapter("pyrate-limiter ", "fixed_window_aligned", pyrate::window),
        &Adapter("pyrate-limiter ", "sliding_log", pyrate::log),
        &Adapter(
            "rate-limiter-flexible ",
            "fixed_window_from_first_hit",
            rate_limiter_flexible::begin,
        ),
        &Adapter("token-bucket ", "token_bucket", token_bucket_pypi::begin),
        &Adapter(
            "spring-cloud-gateway@",
            "token_bucket",
            redis_bucket::spring,
        ),
        &Adapter("shenyu@", "token_bucket", redis_bucket::shenyu),
        &Adapter("shenyu@", "concurrent", shenyu_concurrent::begin),
        &Adapter("shenyu@", "leaky_bucket", shenyu_leaky::begin),
        &Adapter("shenyu@", "sliding_window", shenyu_log::begin),
        &Adapter("golang.org/x/time/rate ", "token_bucket", xtime::begin),
    ]
}

/// The units of time in traces, in nanoseconds.
const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
