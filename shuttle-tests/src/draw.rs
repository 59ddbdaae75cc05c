//! Random choices of the models. They come from the schedule's random numbers, so a seed repeats
//! them too.

use shuttle::rand::{Rng, thread_rng};

/// Returns a number below `end`.
pub fn below(end: u64) -> u64 {
    thread_rng().gen_range(0..end)
}

/// Returns true with probability `1 / times`.
pub fn one_in(times: u64) -> bool {
    below(times) == 0
}

/// Returns a random element of `all`.
pub fn one_of<T: Copy>(all: &[T]) -> T {
    all[below(all.len() as u64) as usize]
}
