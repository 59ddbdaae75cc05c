//! What threads do is drawn from the schedule's own numbers, so that a seed brings it again, too.

use shuttle::rand::{Rng, thread_rng};

/// A number below `end`.
///
/// # Panics
///
/// If there is none.
pub fn below(end: u64) -> u64 {
    thread_rng().gen_range(0..end)
}

/// True one time in so many.
///
/// # Panics
///
/// If that is zero.
pub fn one_in(times: u64) -> bool {
    below(times) == 0
}

/// One of these.
///
/// # Panics
///
/// If there are none.
pub fn one_of<T: Copy>(all: &[T]) -> T {
    all[below(all.len() as u64) as usize]
}
