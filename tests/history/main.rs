//! Each algorithm keeps its bound over every interval, whatever threads do: 2 to 8 of them with skewed
//! ticks, a million operations and more on each algorithm, give-backs, charges and resets among them. So do
//! shards, leases, slots and logs, with 2 to 16 threads, which stop in the middle of what they do. And the check
//! can find a single permit too many.

mod buckets;
mod exactly;
mod interrupted;
mod late;
mod leases;
mod many_words;
mod one_too_many;
mod one_too_many_spread;
mod sharded;
mod verbs;
mod windows;
mod work;
