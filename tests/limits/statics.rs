//! A limiter lives in a `static`, whatever its algorithm and clock; one that is to start with less
//! than a full bucket starts when it is first used, or told to. Everything public can be shared
//! between threads and shown in a log.

use std::fmt::Debug;
use std::mem::size_of;
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use tollgate::cell::{Cell, UNSTARTED};
use tollgate::{
    AnyAlgorithm, At, Charged, CoarseClock, ConfigError, Counted, Counts, Denied, FixedWindow,
    Gcra, Granted, Intervals, LeakyBucket, Lease, Leases, Level, Limiter, ManualClock, NoClock,
    ParseAlgorithmError, Quota, Rounding, Sharded, ShardedAt, SlidingLog, SlidingWindow,
    SlottedWindow, SystemClock, Tick, TokenBucket, Upkeep,
};

/// `?` does not work where constants are made, `match` does.
const fn bucket(quota: Quota) -> TokenBucket {
    match TokenBucket::new(quota) {
        Ok(bucket) => bucket,
        Err(_) => panic!("no quota"),
    }
}

const fn gcra(interval: Duration, tolerance: Duration) -> Gcra {
    match Gcra::from_interval(interval, tolerance) {
        Ok(gcra) => gcra,
        Err(_) => panic!("no interval"),
    }
}

/// Any constructor's answer.
macro_rules! made {
    ($made:expr) => {
        match $made {
            Ok(made) => made,
            Err(_) => panic!("it can't be had"),
        }
    };
}

const HOUR: Duration = Duration::from_secs(3600);
const FIVE: Quota = Quota::per_hour(5);

#[test]
fn on_the_systems_clock() {
    static SHORT: Limiter<TokenBucket> = match Limiter::token_bucket(FIVE) {
        Ok(gate) => gate,
        Err(_) => panic!("no quota"),
    };
    static BUCKET: Limiter<TokenBucket> = Limiter::new(bucket(FIVE));
    static GCRA: Limiter<Gcra> = Limiter::new(gcra(HOUR, Duration::from_secs(4 * 3600)));

    for gate in [&SHORT, &BUCKET] {
        assert_eq!(gate.take_up_to(9).n(), 5);
        assert!(gate.try_acquire().is_err());
    }
    assert_eq!(GCRA.take_up_to(9).n(), 5);
    assert!(GCRA.try_acquire().is_err());
    assert_eq!(SHORT.quota(), FIVE);
}

#[test]
fn every_other_algorithm_on_the_systems_clock() {
    static METER: Limiter<LeakyBucket> = Limiter::new(made!(LeakyBucket::meter(FIVE)));
    static QUEUE: Limiter<LeakyBucket> = Limiter::new(made!(LeakyBucket::queue(FIVE)).free(2));
    static DAILY: Limiter<FixedWindow> =
        Limiter::new(made!(FixedWindow::new(Quota::per_day(5))).offset(HOUR));
    static FIRST: Limiter<FixedWindow> =
        Limiter::new(made!(made!(FixedWindow::new(FIVE)).opened_by_first_hit()));
    static SLIDING: Limiter<SlidingWindow> =
        Limiter::new(made!(SlidingWindow::new(FIVE)).rounding(Rounding::Down));
    static STEPS: Limiter<Intervals> = Limiter::new(made!(Intervals::new(FIVE.burst(9))));
    static GREEDY: Limiter<Intervals> = Limiter::new(made!(made!(Intervals::new(FIVE)).greedy()));
    static ANY: Limiter<AnyAlgorithm> =
        Limiter::new(AnyAlgorithm::SlidingWindow(made!(SlidingWindow::new(FIVE))));

    assert_eq!((METER.take_up_to(9).n(), QUEUE.take_up_to(9).n()), (5, 5));
    assert_eq!((FIRST.take_up_to(9).n(), GREEDY.take_up_to(9).n()), (5, 5));
    assert_eq!((SLIDING.take_up_to(9).n(), ANY.take_up_to(9).n()), (5, 5));
    assert_eq!((DAILY.take_up_to(9).n(), STEPS.take_up_to(10).n()), (5, 9));
    assert_eq!(QUEUE.refund(2), 2);
    let waits = QUEUE.try_acquire().expect("refunded").delay();
    // Three are in it before this one, and two of them were free.
    assert!(waits > HOUR / 5 / 2 && waits <= HOUR / 5, "{waits:?}");
}

#[test]
fn windows_on_a_clock_whose_start_is_known() {
    static CLOCK: CoarseClock = CoarseClock::new();
    // It started at a quarter past ten: an hourly window has three quarters of an hour to go.
    static GATE: Limiter<FixedWindow, &CoarseClock> = Limiter::unstarted(
        made!(FixedWindow::new(FIVE))
            .aligned_to_unix(Duration::from_secs(20_000 * 86_400 + 36_900)),
        &CLOCK,
    );

    assert_eq!(GATE.take_up_to(9).reset_after(), 3 * HOUR / 4);
    CLOCK.advance_to(Tick::ZERO.saturating_add(3 * HOUR / 4));
    assert_eq!(GATE.available(), 5);
}

#[test]
fn on_a_coarse_clock_that_is_a_static_itself() {
    static CLOCK: CoarseClock = CoarseClock::new();
    static GATE: Limiter<Gcra, &CoarseClock> =
        Limiter::unstarted(gcra(HOUR, Duration::ZERO), &CLOCK);

    CLOCK.advance_to(Tick::from_nanos(7));
    assert_eq!(GATE.now(), Tick::from_nanos(7));
    assert_eq!(
        GATE.try_acquire().map(|granted| granted.at()),
        Ok(Tick::from_nanos(7))
    );
    assert_eq!(GATE.time_until(1), Some(HOUR));
    CLOCK.advance_to(Tick::from_nanos(7).saturating_add(HOUR));
    assert!(GATE.try_acquire().is_ok());
}

#[test]
fn threads_share_a_static() {
    static GATE: Limiter<TokenBucket, NoClock> = Limiter::unstarted(bucket(FIVE), NoClock);

    let threads = [0, 1, 2, 3]
        .map(|id| thread::spawn(move || GATE.at(Tick::from_nanos(id)).take_up_to(3).n()));
    let taken: u64 = threads
        .into_iter()
        .map(|t| t.join().expect("no panic"))
        .sum();
    assert_eq!(taken, 5);
}

#[test]
fn an_empty_start_counts_from_the_first_verb() {
    static CLOCK: CoarseClock = CoarseClock::new();
    static GATE: Limiter<TokenBucket, &CoarseClock> =
        Limiter::unstarted(bucket(FIVE.initial(0)), &CLOCK);
    let hours = |n: u32| Tick::ZERO.saturating_add(n * HOUR);

    CLOCK.advance_to(hours(100));
    // It has stood there for a hundred hours, and is empty all the same.
    assert_eq!(GATE.available(), 0);
    CLOCK.advance_to(hours(101));
    assert_eq!(GATE.available(), 5);
}

#[test]
fn an_empty_start_counts_from_where_it_is_told_to() {
    static CLOCK: CoarseClock = CoarseClock::new();
    static GATE: Limiter<TokenBucket, &CoarseClock> =
        Limiter::unstarted(bucket(FIVE.initial(1)), &CLOCK);
    let minutes = |n: u32| Tick::ZERO.saturating_add(n * HOUR / 60);

    GATE.start();
    CLOCK.advance_to(minutes(12));
    assert_eq!(GATE.available(), 2);
    // Starting is done once.
    GATE.start();
    GATE.at(minutes(24)).start();
    assert_eq!(GATE.at(minutes(24)).available(), 3);
    // A reset is a fresh limiter, and fresh is full.
    GATE.reset();
    assert_eq!(GATE.available(), 5);
}

#[test]
fn with_a_clock_of_its_own_it_starts_when_it_is_made() {
    let clock = ManualClock::at(Tick::from_nanos(1 << 50));
    let gate = Limiter::with_clock(bucket(FIVE.initial(0)), clock.clone());
    clock.advance(HOUR / 5);
    assert_eq!(gate.available(), 1);
}

#[test]
fn a_limiter_without_a_start_to_wait_for_is_full_at_once() {
    let gate = Limiter::unstarted(bucket(FIVE.initial(5)), NoClock);
    assert_eq!(gate.at(Tick::MAX).available(), 5);
}

/// What allocates is made when it is first used. A lease of a `static` can go to any thread.
#[test]
fn what_has_many_words_lives_in_a_static_as_well() {
    static SHARDS: LazyLock<Sharded<TokenBucket>> =
        LazyLock::new(|| made!(Sharded::new(bucket(FIVE))));
    static SLOTS: LazyLock<SlottedWindow> = LazyLock::new(|| made!(SlottedWindow::new(FIVE, 60)));
    static LOG: LazyLock<SlidingLog> = LazyLock::new(|| made!(SlidingLog::new(FIVE)));
    static LEASES: LazyLock<Leases<TokenBucket>> =
        LazyLock::new(|| made!(Limiter::with_leases(bucket(FIVE), 2)));

    let threads = [0; 4].map(|_| {
        let mut lease = LEASES.lease(1);
        thread::spawn(move || {
            let leased = (0..9).filter(|_| lease.try_acquire().is_ok()).count() as u64;
            let taken = SHARDS.take_up_to(3).n();
            [
                taken,
                SLOTS.take_up_to(3).n(),
                LOG.take_up_to(3).n(),
                leased,
            ]
        })
    });
    let mut sums = [0; 4];
    for thread in threads {
        let taken = thread.join().expect("no panic");
        sums = std::array::from_fn(|i| sums[i] + taken[i]);
    }
    // Of the limit of five two are set aside for leases.
    assert_eq!(sums, [5, 5, 5, 3]);
    assert_eq!(LEASES.lent(), 0);
}

/// What is asked of everything public.
fn is_shared<T: Send + Sync + Debug + 'static>() {}

#[test]
fn everything_public_is_send_and_sync_and_debug() {
    is_shared::<Limiter<TokenBucket>>();
    is_shared::<Limiter<Gcra, ManualClock>>();
    is_shared::<Limiter<Gcra, &'static CoarseClock>>();
    is_shared::<Limiter<Gcra, NoClock>>();
    is_shared::<At<'static, TokenBucket>>();
    is_shared::<(TokenBucket, Gcra, Quota, Cell)>();
    is_shared::<(LeakyBucket, FixedWindow, SlidingWindow, Intervals)>();
    is_shared::<(AnyAlgorithm, Level, Rounding, ParseAlgorithmError)>();
    is_shared::<Limiter<AnyAlgorithm, ManualClock>>();
    is_shared::<(SystemClock, CoarseClock, ManualClock, NoClock)>();
    is_shared::<(Tick, Upkeep)>();
    is_shared::<(Granted, Denied, Charged)>();
    is_shared::<(ConfigError, tollgate::ParseQuotaError)>();
    is_shared::<Sharded<TokenBucket>>();
    is_shared::<Sharded<AnyAlgorithm, &'static CoarseClock>>();
    is_shared::<ShardedAt<'static, FixedWindow>>();
    is_shared::<Leases<TokenBucket, ManualClock>>();
    is_shared::<Lease<&'static Leases<TokenBucket>>>();
    is_shared::<Lease<Arc<Leases<AnyAlgorithm, ManualClock>>>>();
    is_shared::<(SlottedWindow, SlottedWindow<ManualClock>)>();
    is_shared::<(SlidingLog, SlidingLog<NoClock>)>();
    is_shared::<(Counted<Sharded<Gcra>>, Counts)>();
    #[cfg(feature = "history")]
    is_shared::<(tollgate::history::History, tollgate::history::Log)>();
}

#[test]
fn what_is_small_stays_small() {
    assert_eq!(size_of::<SystemClock>(), 0);
    assert_eq!(size_of::<NoClock>(), 0);
    assert_eq!(size_of::<Cell>(), 8);
    assert_eq!(size_of::<Tick>(), 8);
    let gate = size_of::<Limiter<TokenBucket>>();
    assert_eq!(gate, size_of::<Limiter<TokenBucket, NoClock>>());
    assert_eq!(gate, size_of::<Cell>() + size_of::<TokenBucket>());
}

#[test]
fn no_algorithm_is_larger_than_it_was() {
    // In bytes; with the word beside it each is two or three cache lines.
    let sizes = [
        ("TokenBucket", size_of::<TokenBucket>(), 120),
        ("Gcra", size_of::<Gcra>(), 120),
        ("LeakyBucket", size_of::<LeakyBucket>(), 136),
        ("FixedWindow", size_of::<FixedWindow>(), 176),
        ("SlidingWindow", size_of::<SlidingWindow>(), 176),
        ("Intervals", size_of::<Intervals>(), 184),
        ("AnyAlgorithm", size_of::<AnyAlgorithm>(), 192),
    ];
    for (name, size, most) in sizes {
        println!("{name}: {size} bytes");
        assert!(size <= most, "{name} takes {size} bytes");
    }
    let gate = size_of::<Limiter<AnyAlgorithm>>();
    assert_eq!(gate, size_of::<Cell>() + size_of::<AnyAlgorithm>());
}

#[test]
fn a_limiter_shows_what_it_is() {
    let gate = Limiter::unstarted(bucket(FIVE), NoClock);
    assert!(format!("{gate:?}").starts_with("Limiter { cell: Cell(unstarted), algorithm: "));
    assert_eq!(format!("{:?}", Cell::new(UNSTARTED)), "Cell(unstarted)");
    gate.at(Tick::ZERO).start();
    assert!(format!("{gate:?}").starts_with("Limiter { cell: Cell(0), algorithm: "));
    let second = Tick::ZERO.saturating_add(Duration::from_secs(1));
    assert_eq!(format!("{second:?}"), "Tick(1s)");
    assert_eq!(
        format!("{:?}", ManualClock::at(second)),
        "ManualClock(Tick(1s))"
    );
}
