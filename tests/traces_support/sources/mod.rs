//! The recorded limiters that are replayed.

mod governor;
mod pyrate;
mod redis_bucket;
mod shenyu;
mod spring;
mod throttled;
mod token_bucket_pypi;

use super::runner::Source;

/// All that are known.
pub(crate) const fn all() -> &'static [&'static dyn Source] {
    &[
        &governor::Governor,
        &throttled::Throttled,
        &pyrate::Pyrate,
        &token_bucket_pypi::TokenBucketPyPi,
        &spring::Spring,
        &shenyu::ShenYu,
    ]
}
