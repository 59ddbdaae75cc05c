//! The program that `scripts/instructions` counts: it makes one kind of request, a given number of
//! times.
//!
//! Each row is a wrapper that is not inlined and makes one request. callgrind counts only from its
//! entry to its return, so start-up, calibration and the loop are not counted. A row checks its
//! answers: a row named "denied" that is granted is an error.
//!
//! ```text
//! instructions              lists the rows
//! instructions 1000         each row makes this many requests
//! instructions 1000 undo    only this row does
//! ```
//!
//! After each row the program calls [`row_is_over`], at which callgrind writes its count.

mod algorithms;
mod composed;
mod keyed;
mod many;

use std::hint::black_box;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::Duration;

use tollgate::algorithm::{Algorithm, Debt, Gauge, GiveBack, Reserve};
use tollgate::clock::{Clock, CoarseClock, NoClock, SleepClock};
use tollgate::leases::Lease;
use tollgate::{Gcra, Granted, Leases, Limiter, Quota, Tick, TokenBucket, TryAcquire};
use tollgate_versus::{Ask, AskAt};

type Governor = governor::DefaultDirectRateLimiter;

/// More permits than any row takes.
const PLENTY: u64 = 1 << 40;

/// The wrappers. callgrind recognizes them by `counted_` in their names.
mod counted {
    use super::*;

    #[inline(never)]
    pub(super) fn counted_acquire<A: Algorithm, C: Clock>(limiter: &Limiter<A, C>) -> bool {
        limiter.try_acquire().is_ok()
    }

    #[inline(never)]
    pub(super) fn counted_wait<A: Reserve, C: SleepClock>(limiter: &Limiter<A, C>) -> bool {
        limiter.blocking_acquire().is_ok()
    }

    #[inline(never)]
    pub(super) fn counted_acquire_n<A: Algorithm, C: Clock>(
        limiter: &Limiter<A, C>,
        n: u64,
    ) -> bool {
        limiter.try_acquire_n(n).is_ok()
    }

    #[inline(never)]
    pub(super) fn counted_acquire_at<A: Algorithm, C>(limiter: &Limiter<A, C>, now: Tick) -> bool {
        limiter.try_acquire_n_at(1, now).is_ok()
    }

    #[inline(never)]
    pub(crate) fn counted_remaining_at<A: Algorithm, C>(limiter: &Limiter<A, C>, now: Tick) -> u64 {
        limiter
            .try_acquire_n_at(1, now)
            .map_or(u64::MAX, |granted| granted.remaining())
    }

    #[inline(never)]
    pub(crate) fn counted_retry_at<A: Algorithm, C>(
        limiter: &Limiter<A, C>,
        now: Tick,
    ) -> Option<Duration> {
        limiter.try_acquire_n_at(1, now).err()?.retry_after()
    }

    #[inline(never)]
    pub(super) fn counted_take_at<A: Algorithm, C>(
        limiter: &Limiter<A, C>,
        n: u64,
        now: Tick,
    ) -> u64 {
        limiter.at(now).take_up_to(n).n()
    }

    #[inline(never)]
    pub(super) fn counted_undo_at<A: GiveBack, C>(
        limiter: &Limiter<A, C>,
        granted: Granted,
        now: Tick,
    ) -> u64 {
        limiter.at(now).undo(granted)
    }

    #[inline(never)]
    pub(super) fn counted_charge_at<A: Debt, C>(limiter: &Limiter<A, C>, n: u64, now: Tick) -> u64 {
        limiter.at(now).charge(n).n()
    }

    #[inline(never)]
    pub(crate) fn counted_delay_at<A: Algorithm, C>(
        limiter: &Limiter<A, C>,
        now: Tick,
    ) -> Option<Duration> {
        Some(limiter.try_acquire_n_at(1, now).ok()?.delay())
    }

    #[inline(never)]
    pub(crate) fn counted_level_at<A: Gauge, C>(limiter: &Limiter<A, C>, now: Tick) -> u64 {
        limiter.at(now).level().ceil()
    }

    #[inline(never)]
    pub(crate) fn counted_limiter<G: TryAcquire<Clock: Clock>>(limiter: &G) -> bool {
        limiter.try_acquire().is_ok()
    }

    #[inline(never)]
    pub(crate) fn counted_ask(limiter: &impl Ask) -> bool {
        limiter.is_allowed()
    }

    #[inline(never)]
    pub(crate) fn counted_ask_at(limiter: &impl AskAt, now: Tick) -> bool {
        limiter.is_allowed_at(now)
    }

    #[inline(never)]
    pub(crate) fn counted_lease(lease: &mut Lease<&Leases<TokenBucket>>) -> bool {
        lease.try_acquire().is_ok()
    }

    #[inline(never)]
    pub(super) fn counted_governor(limiter: &Governor) -> bool {
        limiter.check().is_ok()
    }
}
use counted::*;

/// Returns a quota that does not run dry within a run.
fn wide() -> Quota {
    Quota::per_second(1_000_000).burst(PLENTY)
}

/// Returns a quota that stays dry for a year after one permit.
fn dry() -> Quota {
    Quota::per(1, Duration::from_secs(365 * 86_400)).burst(1)
}

/// Returns governor's limiters with the largest burst, which has 32 bits, and with a burst of one.
fn governors() -> (Governor, Governor) {
    let wide = governor::Quota::per_second(NonZeroU32::MAX);
    let dry = governor::Quota::with_period(Duration::from_secs(365 * 86_400));
    (
        Governor::direct(wide),
        Governor::direct(dry.expect("a period").allow_burst(NonZeroU32::MIN)),
    )
}

/// Makes `count` requests, and returns how many answers match the row's name.
fn times(count: u64, mut asked: impl FnMut() -> bool) -> u64 {
    (0..count).filter(|_| black_box(asked())).count() as u64
}

fn with_clock<A: Algorithm, C: Clock>(algorithm: A, clock: C, allowed: bool, count: u64) -> u64 {
    let limiter = black_box(Limiter::with_clock(algorithm, clock));
    if !allowed {
        assert!(limiter.try_acquire().is_ok());
    }
    times(count, || counted_acquire(&limiter) == allowed)
}

fn at_tick<A: Algorithm>(algorithm: A, now: Tick, allowed: bool, count: u64) -> u64 {
    let (limiter, now) = (started(algorithm), black_box(now));
    if !allowed {
        assert!(limiter.try_acquire_n_at(1, now).is_ok());
    }
    times(count, || counted_acquire_at(&limiter, now) == allowed)
}

/// Returns a limiter whose word is initialized, as after its first use.
fn started<A: Algorithm>(algorithm: A) -> Limiter<A, NoClock> {
    let limiter = Limiter::unstarted(algorithm, NoClock);
    limiter.at(Tick::ZERO).start();
    black_box(limiter)
}

fn coarse(allowed: bool, count: u64) -> u64 {
    static CLOCK: CoarseClock = CoarseClock::new();
    CLOCK.refresh();
    let quota = if allowed { wide() } else { dry() };
    with_clock(bucket(quota), &CLOCK, allowed, count)
}

fn bucket(quota: Quota) -> TokenBucket {
    TokenBucket::new(quota).expect("a quota that fits")
}

fn gcra(quota: Quota) -> Gcra {
    Gcra::new(quota).expect("a quota that fits")
}

const SOON: Tick = Tick::from_nanos(1);

type Row = (&'static str, fn(u64) -> u64);

static ROWS: [Row; 19] = [
    ("bucket-allowed", |count| {
        with_clock(bucket(wide()), tollgate::clock::SystemClock, true, count)
    }),
    ("bucket-denied", |count| {
        with_clock(bucket(dry()), tollgate::clock::SystemClock, false, count)
    }),
    ("gcra-allowed", |count| {
        with_clock(gcra(wide()), tollgate::clock::SystemClock, true, count)
    }),
    ("gcra-denied", |count| {
        with_clock(gcra(dry()), tollgate::clock::SystemClock, false, count)
    }),
    ("bucket-n-allowed", |count| {
        let limiter = Limiter::with_clock(bucket(wide()), tollgate::clock::SystemClock);
        let n = black_box(3);
        times(count, || counted_acquire_n(&limiter, n))
    }),
    ("bucket-waits-allowed", |count| {
        let limiter = Limiter::with_clock(bucket(wide()), tollgate::clock::SystemClock);
        times(count, || counted_wait(&limiter))
    }),
    ("bucket-at-allowed", |count| {
        at_tick(bucket(wide()), SOON, true, count)
    }),
    ("bucket-at-denied", |count| {
        at_tick(bucket(dry()), SOON, false, count)
    }),
    ("gcra-at-allowed", |count| {
        at_tick(gcra(wide()), SOON, true, count)
    }),
    ("gcra-at-denied", |count| {
        at_tick(gcra(dry()), SOON, false, count)
    }),
    ("coarse-allowed", |count| coarse(true, count)),
    ("coarse-denied", |count| coarse(false, count)),
    ("at-allowed-remaining", |count| {
        let (limiter, now) = (started(bucket(wide())), black_box(Tick::from_nanos(1)));
        times(count, || counted_remaining_at(&limiter, now) < PLENTY)
    }),
    ("at-denied-retry-after", |count| {
        let (limiter, now) = (started(bucket(dry())), black_box(Tick::from_nanos(1)));
        assert!(limiter.try_acquire_n_at(1, now).is_ok());
        let year = Some(Duration::from_secs(365 * 86_400));
        times(count, || counted_retry_at(&limiter, now) == year)
    }),
    ("take-up-to", |count| {
        let (limiter, now) = (started(bucket(wide())), black_box(Tick::from_nanos(1)));
        times(count, || counted_take_at(&limiter, 3, now) == 3)
    }),
    ("undo", |count| {
        let (limiter, now) = (started(bucket(wide())), black_box(Tick::from_nanos(1)));
        times(count, || match limiter.try_acquire_n_at(1, now) {
            Ok(granted) => counted_undo_at(&limiter, granted, now) == 1,
            Err(_) => false,
        })
    }),
    ("charge", |count| {
        let (limiter, now) = (started(bucket(wide())), black_box(Tick::from_nanos(1)));
        times(count, || counted_charge_at(&limiter, 3, now) == 3)
    }),
    ("governor-allowed", |count| {
        let (limiter, _) = governors();
        times(count, || counted_governor(&limiter))
    }),
    ("governor-denied", |count| {
        let (_, limiter) = governors();
        assert!(limiter.check().is_ok());
        times(count, || !counted_governor(&limiter))
    }),
];

fn all() -> impl Iterator<Item = &'static Row> {
    let rows = ROWS.iter().chain(algorithms::EACH).chain(algorithms::READ);
    let rows = rows.chain(many::MANY).chain(keyed::KEYED);
    rows.chain(composed::COMPOSED)
}

/// Marks the end of a row for callgrind.
#[inline(never)]
fn row_is_over(name: &str) {
    black_box(name);
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(count) = arguments.next() else {
        for (name, _) in all() {
            println!("{name}");
        }
        return ExitCode::SUCCESS;
    };
    let wanted = arguments.next();
    let rows = all().filter(|(name, _)| wanted.as_deref().is_none_or(|wanted| wanted == *name));
    let Ok(count) = count.parse() else {
        eprintln!("not a number: {count}");
        return ExitCode::FAILURE;
    };
    let mut wrong = 0;
    for (name, row) in rows {
        let right = row(count);
        row_is_over(name);
        if right != count {
            eprintln!("{name}: only {right} of {count} answers match the row's name");
            wrong += 1;
        }
    }
    match wrong {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
