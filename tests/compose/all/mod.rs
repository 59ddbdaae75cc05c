//! Compositions of limits: what they take, what a denial leaves, and which input they refuse.

mod bad_input;
mod beside_reservations;
mod counted;
mod denials;
mod denials_write_nothing;
mod every_member;
mod known_failures;
mod lost_races;
mod members;
mod panics;
mod reserve;
mod reserve_model;
mod same_limit;
pub(crate) mod scripted;
mod user_members;

use tollgate::compose::AllDenied;
use tollgate::outcome::Settled;

use crate::support::*;

type Bucket = Limiter<TokenBucket, ManualClock>;

/// A bucket of `n` permits that gets one more each second.
fn algorithm(n: u64) -> TokenBucket {
    TokenBucket::new(Quota::per(1, Duration::from_secs(1)).burst(n)).expect("a quota")
}

fn bucket(n: u64, clock: &ManualClock) -> Bucket {
    Limiter::with_clock(algorithm(n), clock.clone())
}

/// Makes a bucket for each number of permits, and their clock.
fn full<const N: usize>(permits: [u64; N]) -> (ManualClock, [Bucket; N]) {
    let clock = ManualClock::new();
    let buckets = permits.map(|n| bucket(n, &clock));
    (clock, buckets)
}

/// The same, of buckets that fill in a second.
fn rates<const N: usize>(permits: [u64; N]) -> (ManualClock, [Bucket; N]) {
    let clock = ManualClock::new();
    let buckets = permits.map(|n| per_second(n, &clock));
    (clock, buckets)
}

/// Returns a bucket of `n` permits, full, that fills in a second.
fn per_second(n: u64, clock: &ManualClock) -> Bucket {
    let bucket = TokenBucket::new(Quota::per_second(n)).expect("a quota");
    Limiter::with_clock(bucket, clock.clone())
}

/// Returns what a grant gave back and what it was charged, settled with a cost for each member.
fn settled(settled: Result<Settled, AllDenied>) -> (u64, u64) {
    let settled = settled.expect("a cost for each");
    (settled.returned, settled.charged)
}

const fn secs(n: u64) -> Option<Duration> {
    Some(Duration::from_secs(n))
}
