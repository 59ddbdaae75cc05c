//! The map of keys: never more than its capacity, idle keys leave and get no second burst for it, whoever decides
//! late or comes with whatever tick; and what a key's own code does wrong leaves the map whole.

mod algorithms;
mod bad_input;
mod capacity;
mod churn;
mod idle;
mod interrupted;
mod panics;
mod threads;
mod verbs;

use std::time::Duration;

use tollgate::{KeyedMap, ManualClock, Quota, Tick, TokenBucket};

type Map = KeyedMap<u64, TokenBucket, ManualClock>;

/// Two permits at once, one more every 10 ns.
fn bucket() -> TokenBucket {
    TokenBucket::new(Quota::per(1, Duration::from_nanos(10)).burst(2)).expect("a quota")
}

fn map(capacity: usize) -> (Map, ManualClock) {
    let clock = ManualClock::new();
    let map = KeyedMap::with_clock(bucket(), capacity, clock.clone()).expect("a map");
    (map, clock)
}

fn tick(nanos: u64) -> Tick {
    Tick::from_nanos(nanos)
}

/// splitmix64: a repeatable stream.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Low numbers often and high ones seldom, much as by Zipf's law.
    fn zipf(&mut self, end: u64) -> u64 {
        let below = self.below(end) + 1;
        self.below(below)
    }
}
