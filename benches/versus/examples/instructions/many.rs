//! The rows of the multiword limiters: shards, leases, slots and logs, and counted ones.

use std::hint::black_box;
use std::time::Duration;

use tollgate::algorithm::{Algorithm, Settings};
use tollgate::clock::{NoClock, SystemClock};
use tollgate::{
    Adjustable, AnyAlgorithm, Counted, Leases, Limiter, Quota, Sharded, Tick, TokenBucket,
};
use tollgate_versus::{
    Ask, AskAt, DAY, Late, SHORT, SLOTS, START, before_start, full_log, slots, taken_slots,
    wide_slots,
};

use crate::algorithms::fixed;
use crate::counted::{counted_ask, counted_ask_at, counted_lease, counted_limiter};
use crate::{PLENTY, Row, bucket, dry, started, times, wide};

/// Returns a limiter whose quota can be changed.
fn adjustable<A: Algorithm + Settings + Clone>(algorithm: A) -> Adjustable<A, NoClock> {
    Adjustable::starting_at(algorithm, NoClock, START)
}

/// Enough shards to need several words.
const SHARDS: usize = 2;

/// Makes requests with the limiter's clock.
fn asked(limiter: impl Ask, allowed: bool, count: u64) -> u64 {
    let limiter = black_box(limiter);
    ready(|| limiter.is_allowed(), allowed);
    times(count, || counted_ask(&limiter) == allowed)
}

/// Makes requests at one tick.
fn told(limiter: impl AskAt, allowed: bool, count: u64) -> u64 {
    told_each(limiter, 0, allowed, count)
}

/// Makes requests at ticks that are `step` nanoseconds apart, in a window that has begun.
fn told_each(limiter: impl AskAt, step: u64, allowed: bool, count: u64) -> u64 {
    let limiter = black_box(limiter);
    let mut now = black_box(START.saturating_add(Duration::from_nanos(step)));
    ready(|| limiter.is_allowed_at(now), allowed);
    times(count, || {
        now = now.saturating_add(Duration::from_nanos(step));
        counted_ask_at(&limiter, now) == allowed
    })
}

/// Makes one request, so that a window has begun; or requests until no permit remains.
fn ready(mut ask: impl FnMut() -> bool, allowed: bool) {
    if allowed {
        assert!(ask());
    } else {
        while ask() {}
    }
}

fn shards(shards: usize, quota: Quota) -> Sharded<TokenBucket, NoClock> {
    let limiter = Sharded::starting_at(bucket(quota), shards, NoClock, START);
    limiter.expect("a quota that can be split")
}

fn sharded(quota: Quota) -> Sharded<TokenBucket> {
    Sharded::with_shards(bucket(quota), SHARDS, SystemClock).expect("a quota that can be split")
}

/// Requests one permit through a view.
struct ByView(Sharded<TokenBucket, NoClock>);

impl AskAt for ByView {
    #[inline(always)]
    fn is_allowed_at(&self, now: Tick) -> bool {
        self.0.at(now).try_acquire().is_ok()
    }
}

/// Requests two permits, so a denial reads all shards.
struct ForTwo(Sharded<TokenBucket, NoClock>);

impl AskAt for ForTwo {
    #[inline(always)]
    fn is_allowed_at(&self, now: Tick) -> bool {
        self.0.at(now).try_acquire_n(2).is_ok()
    }
}

/// Returns a quota of one permit for each shard in a year.
fn few(shards: usize) -> Quota {
    dry().burst(shards as u64)
}

/// Takes permits from this thread's lease of `size` permits.
fn leased(quota: Quota, size: u64, allowed: bool, count: u64) -> u64 {
    let limiter =
        Leases::with_clock(bucket(quota), size, SystemClock).expect("a total that can be lent");
    let mut lease = limiter.lease(size);
    // The next draw is as large.
    let _ = lease.try_acquire_n(size / 2);
    ready(|| lease.try_acquire().is_ok(), allowed);
    times(count, || counted_lease(&mut lease) == allowed)
}

pub(crate) static MANY: &[Row] = &[
    ("adjustable-allowed", |count| {
        asked(Adjustable::new(bucket(wide())), true, count)
    }),
    ("adjustable-denied", |count| {
        asked(Adjustable::new(bucket(dry())), false, count)
    }),
    ("adjustable-at-allowed", |count| {
        told(adjustable(bucket(wide())), true, count)
    }),
    ("adjustable-at-denied", |count| {
        told(adjustable(bucket(dry())), false, count)
    }),
    ("adjustable-fixed-at-allowed", |count| {
        told(adjustable(fixed(Quota::per_minute(500_000))), true, count)
    }),
    ("adjustable-any-at-allowed", |count| {
        told(adjustable(AnyAlgorithm::from(bucket(wide()))), true, count)
    }),
    ("sharded-allowed", |count| {
        asked(sharded(wide()), true, count)
    }),
    ("sharded-denied", |count| {
        asked(sharded(few(SHARDS)), false, count)
    }),
    ("sharded-at-allowed", |count| {
        told(shards(SHARDS, wide()), true, count)
    }),
    ("sharded-at-denied", |count| {
        told(shards(SHARDS, few(SHARDS)), false, count)
    }),
    ("sharded-view-allowed", |count| {
        told(ByView(shards(SHARDS, wide())), true, count)
    }),
    ("sharded-view-denied", |count| {
        told(ByView(shards(SHARDS, few(SHARDS))), false, count)
    }),
    ("sharded-16-at-denied", |count| {
        told(shards(16, few(16)), false, count)
    }),
    ("sharded-2-at-denied", |count| {
        told(ForTwo(shards(SHARDS, few(SHARDS))), false, count)
    }),
    ("sharded-16-2-at-denied", |count| {
        told(ForTwo(shards(16, few(16))), false, count)
    }),
    // The thread's own shard is empty, and each permit comes from its sibling.
    ("sharded-at-sibling", |count| {
        let limiter = black_box(shards(SHARDS, wide()));
        assert!(limiter.at(START).try_acquire_n(PLENTY / 2).is_ok());
        times(count, || counted_ask_at(&limiter, START))
    }),
    // One in 64 draws from the limiter.
    ("lease", |count| leased(wide(), 64, true, count)),
    ("lease-held", |count| leased(wide(), 1 << 30, true, count)),
    ("lease-drawing", |count| leased(wide(), 1, true, count)),
    ("lease-denied", |count| {
        leased(dry().burst(128).initial(0), 64, false, count)
    }),
    ("slots-allowed", |count| {
        asked(slots(wide_slots(), Late), true, count)
    }),
    ("slots-denied", |count| {
        asked(taken_slots(Late), false, count)
    }),
    ("slots-at-allowed", |count| {
        told(slots(wide_slots(), NoClock), true, count)
    }),
    ("slots-at-denied", |count| {
        told(taken_slots(NoClock), false, count)
    }),
    // All permits were taken in the newest slot.
    ("slots-at-denied-burst", |count| {
        told(slots(Quota::per(SLOTS, DAY), NoClock), false, count)
    }),
    // Each decision is in another slot.
    ("slots-at-roll-over", |count| {
        let limiter = slots(Quota::per(4000, Duration::from_micros(SLOTS)), NoClock);
        before_start(SLOTS, limiter.slot_length(), |tick| {
            limiter.is_allowed_at(tick)
        });
        told_each(limiter, 1000, true, count)
    }),
    ("log-allowed", |count| {
        asked(full_log(SHORT, Late), true, count)
    }),
    ("log-denied", |count| {
        asked(full_log(DAY, Late), false, count)
    }),
    ("log-at-allowed", |count| {
        told_each(full_log(SHORT, NoClock), 1, true, count)
    }),
    ("log-at-denied", |count| {
        told(full_log(DAY, NoClock), false, count)
    }),
    // Through the trait's method.
    ("limiter-allowed", |count| {
        let limiter = black_box(Limiter::with_clock(bucket(wide()), SystemClock));
        times(count, || counted_limiter(&limiter))
    }),
    ("counted-allowed", |count| {
        asked(
            Counted::new(Limiter::with_clock(bucket(wide()), SystemClock)),
            true,
            count,
        )
    }),
    ("counted-denied", |count| {
        asked(
            Counted::new(Limiter::with_clock(bucket(dry()), SystemClock)),
            false,
            count,
        )
    }),
    ("counted-at-allowed", |count| {
        told(Counted::new(started(bucket(wide()))), true, count)
    }),
    ("counted-at-denied", |count| {
        told(Counted::new(started(bucket(dry()))), false, count)
    }),
];
