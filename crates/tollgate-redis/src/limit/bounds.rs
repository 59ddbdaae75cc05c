//! The bounds within which scripts count exactly.

use std::time::Duration;

/// 50 years of microseconds: the longest span that the scripts accept.
pub(crate) const SPAN: u64 = 50 * 36_525 * 24 * 36 * 1_000_000;

/// 50 years.
pub(crate) const MAX_SPAN: Duration = Duration::from_micros(SPAN);

/// The largest `n` of a reduced rate. Scripts multiply two such numbers in a double.
pub(crate) const MAX_N: u64 = 1 << 26;

/// The largest burst.
pub(crate) const MAX_BURST: u64 = (1 << 53) - 1;
