//! Each algorithm keeps its bound over every interval, whatever threads do: 2 to 8 of them with skewed
//! ticks, a million operations and more on each algorithm, give-backs, charges and resets among them.
//! And the check can find a single permit too many.

mod buckets;
mod exactly;
mod late;
mod one_too_many;
mod windows;
mod work;
