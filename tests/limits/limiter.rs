//! A limiter with any algorithm and clock works in a `static`. One that starts with less than a
//! full bucket starts at its first use, or explicitly. Everything public is `Send`, `Sync` and
//! `Debug`.

use std::mem::size_of;
use std::sync::LazyLock;

use tollgate::algorithm::{Level, Rounding};
use tollgate::clock::{CoarseClock, SystemClock, Upkeep};
use tollgate::const_unwrap;
use tollgate::error::{
    ComposeError, LimiterError, ParseAlgorithmError, ParseQuotaError, QuotaError,
};
use tollgate::leases::Lease;
use tollgate::sharded::ShardedView;
use tollgate::stats::LimiterStats;
use tollgate::store::{AtomicWord, UNSTARTED, View, WordCell, WordStore};
use tollgate::traits::ReserveLimiter;

use crate::support::*;

const HOUR: Duration = Duration::from_secs(3600);
const FIVE: Quota = Quota::per_hour(5);
const BUCKET: TokenBucket = const_unwrap!(TokenBucket::new(FIVE));

fn hours(n: u32) -> Tick {
    Tick::ZERO.saturating_add(n * HOUR)
}

#[test]
fn every_algorithm_works_in_a_static_on_the_system_clock() {
    static SHORT: Limiter<TokenBucket> = const_unwrap!(Limiter::token_bucket(FIVE));
    static TOKENS: Limiter<TokenBucket> = Limiter::new(BUCKET);
    static GCRA: Limiter<Gcra> = Limiter::new(const_unwrap!(Gcra::from_interval(
        HOUR,
        Duration::from_secs(4 * 3600)
    )));
    static METER: Limiter<LeakyBucket> = Limiter::new(const_unwrap!(LeakyBucket::meter(FIVE)));
    static QUEUE: Limiter<LeakyBucket> =
        Limiter::new(const_unwrap!(LeakyBucket::queue(FIVE)).free(2));
    static DAILY: Limiter<FixedWindow> =
        Limiter::new(const_unwrap!(FixedWindow::new(Quota::per_day(5))).offset(HOUR));
    static FIRST: Limiter<FixedWindow> = Limiter::new(const_unwrap!(
        const_unwrap!(FixedWindow::new(FIVE)).opened_by_first_hit()
    ));
    static SLIDING: Limiter<SlidingWindow> =
        Limiter::new(const_unwrap!(SlidingWindow::new(FIVE)).rounding(Rounding::Down));
    static STEPS: Limiter<Intervals> = Limiter::new(const_unwrap!(Intervals::new(FIVE.burst(9))));
    static GREEDY: Limiter<Intervals> =
        Limiter::new(const_unwrap!(const_unwrap!(Intervals::new(FIVE)).greedy()));
    static ANY: Limiter<AnyAlgorithm> = Limiter::new(AnyAlgorithm::SlidingWindow(const_unwrap!(
        SlidingWindow::new(FIVE)
    )));

    let fives = [
        SHORT.take_up_to(9),
        TOKENS.take_up_to(9),
        GCRA.take_up_to(9),
        METER.take_up_to(9),
        QUEUE.take_up_to(9),
        DAILY.take_up_to(9),
        FIRST.take_up_to(9),
        GREEDY.take_up_to(9),
        SLIDING.take_up_to(9),
    ];
    assert_eq!(fives.map(|taken| taken.n()), [5; 9]);
    assert_eq!((ANY.take_up_to(9).n(), STEPS.take_up_to(10).n()), (5, 9));
    assert!(SHORT.try_acquire().is_err() && GCRA.try_acquire().is_err());
    assert_eq!(SHORT.quota(), FIVE);
    assert_eq!(QUEUE.refund(2), 2);
    let waits = QUEUE.try_acquire().expect("refunded").delay();
    // Three requests come before this one, and two of them were free.
    assert!(!waits.is_zero() && waits <= HOUR / 5, "{waits:?}");
}

#[test]
fn a_limiter_and_its_coarse_clock_work_in_statics() {
    static CLOCK: CoarseClock = CoarseClock::new();
    static GCRA: Limiter<Gcra, &CoarseClock> = Limiter::unstarted(
        const_unwrap!(Gcra::from_interval(HOUR, Duration::ZERO)),
        &CLOCK,
    );
    // The clock started at a quarter past ten, so an hourly window has three quarters of an hour
    // left.
    static WINDOW: Limiter<FixedWindow, &CoarseClock> = Limiter::unstarted(
        const_unwrap!(FixedWindow::new(FIVE))
            .aligned_to_unix(Duration::from_secs(20_000 * 86_400 + 36_900)),
        &CLOCK,
    );

    assert_eq!(WINDOW.take_up_to(9).reset_after(), 3 * HOUR / 4);
    let now = Tick::ZERO.saturating_add(3 * HOUR / 4);
    CLOCK.advance_to(now);
    assert_eq!(WINDOW.available(), 5);
    assert_eq!(GCRA.now(), now);
    assert_eq!(GCRA.try_acquire().map(|granted| granted.at()), Ok(now));
    assert_eq!(GCRA.time_until(1), Some(HOUR));
    CLOCK.advance_to(now.saturating_add(HOUR));
    assert!(GCRA.try_acquire().is_ok());
}

#[test]
fn an_empty_start_counts_from_the_first_verb() {
    static CLOCK: CoarseClock = CoarseClock::new();
    static LIMITER: Limiter<TokenBucket, &CoarseClock> =
        Limiter::unstarted(const_unwrap!(TokenBucket::new(FIVE.initial(0))), &CLOCK);

    CLOCK.advance_to(hours(100));
    // It has existed for a hundred hours, and is still empty.
    assert_eq!(LIMITER.available(), 0);
    CLOCK.advance_to(hours(101));
    assert_eq!(LIMITER.available(), 5);
}

#[test]
fn an_empty_start_counts_from_an_explicit_start() {
    let clock = ManualClock::at(hours(7));
    let bucket = TokenBucket::new(FIVE.initial(1)).expect("a bucket");
    let limiter = Limiter::unstarted(bucket, clock.clone());
    limiter.start();
    clock.advance(HOUR / 5);
    assert_eq!(limiter.available(), 2);
    // A limiter starts only once.
    limiter.start();
    clock.advance(HOUR / 5);
    limiter.at(clock.now()).start();
    assert_eq!(limiter.available(), 3);
    // A reset limiter is fresh, and a fresh one is full.
    limiter.reset();
    assert_eq!(limiter.available(), 5);
    // With its own clock, a limiter starts when it is created.
    let limiter = Limiter::with_clock(bucket, clock.clone());
    clock.advance(HOUR / 5);
    assert_eq!(limiter.available(), 2);
    // A limiter that need not start is full at once.
    let full = TokenBucket::new(FIVE.initial(5)).expect("a bucket");
    let limiter = Limiter::unstarted(full, NoClock);
    assert_eq!(limiter.at(Tick::MAX).available(), 5);
}

/// Types that allocate are created at first use. A lease of a `static` can move to any thread.
#[test]
fn threads_share_a_static() {
    static LIMITER: Limiter<TokenBucket, NoClock> = Limiter::unstarted(BUCKET, NoClock);
    static SHARDS: LazyLock<Sharded<TokenBucket>> =
        LazyLock::new(|| Sharded::new(BUCKET).expect("a limiter"));
    static SLOTS: LazyLock<SlottedWindow> =
        LazyLock::new(|| SlottedWindow::new(FIVE, 60).expect("a limiter"));
    static LOG: LazyLock<SlidingLog> = LazyLock::new(|| SlidingLog::new(FIVE).expect("a limiter"));
    static LEASES: LazyLock<Leases<TokenBucket>> =
        LazyLock::new(|| Leases::new(BUCKET, 2).expect("a limiter"));

    let threads = || {
        [(); 4].map(|()| {
            let mut lease = LEASES.lease(1);
            thread::spawn(move || {
                let leased = (0..9).filter(|_| lease.try_acquire().is_ok()).count() as u64;
                [
                    LIMITER.at(Tick::ZERO).take_up_to(3).n(),
                    SHARDS.take_up_to(3).n(),
                    SLOTS.take_up_to(3).n(),
                    LOG.take_up_to(3).n(),
                    leased,
                ]
            })
        })
    };
    let taken = deadline("threads that ask limiters", move || {
        threads().map(|thread| thread.join().expect("no panic"))
    });
    let sums: [u64; 5] = std::array::from_fn(|i| taken.iter().map(|taken| taken[i]).sum());
    // Two of the limit of five are set aside for leases.
    assert_eq!(sums, [5, 5, 5, 5, 3]);
    assert_eq!(LEASES.lent(), 0);
}

/// The traits required of every public type.
fn is_shared<T: Send + Sync + Debug + 'static>() {}

/// The traits required of every algorithm.
fn has_every_verb<A: crate::support::subject::Every>() {}

#[test]
fn everything_public_is_send_and_sync_and_debug() {
    has_every_verb::<TokenBucket>();
    has_every_verb::<Gcra>();
    has_every_verb::<LeakyBucket>();
    has_every_verb::<FixedWindow>();
    has_every_verb::<SlidingWindow>();
    has_every_verb::<Intervals>();
    is_shared::<Limiter<TokenBucket>>();
    is_shared::<Limiter<Gcra, ManualClock>>();
    is_shared::<Limiter<Gcra, &'static CoarseClock>>();
    is_shared::<Limiter<Gcra, NoClock>>();
    is_shared::<View<WordStore<'static, TokenBucket>>>();
    is_shared::<(TokenBucket, Gcra, Quota, WordCell)>();
    is_shared::<(LeakyBucket, FixedWindow, SlidingWindow, Intervals)>();
    is_shared::<(AnyAlgorithm, Level, Rounding, ParseAlgorithmError)>();
    is_shared::<Limiter<AnyAlgorithm, ManualClock>>();
    is_shared::<(SystemClock, CoarseClock, ManualClock, NoClock)>();
    is_shared::<(Tick, Upkeep)>();
    is_shared::<(Granted, Denied, Charged)>();
    is_shared::<(QuotaError, LimiterError, ComposeError, ParseQuotaError)>();
    is_shared::<Sharded<TokenBucket>>();
    is_shared::<Sharded<AnyAlgorithm, &'static CoarseClock>>();
    is_shared::<ShardedView<'static, FixedWindow>>();
    is_shared::<Leases<TokenBucket, ManualClock>>();
    is_shared::<Lease<&'static Leases<TokenBucket>>>();
    is_shared::<Lease<Arc<Leases<AnyAlgorithm, ManualClock>>>>();
    is_shared::<(SlottedWindow, SlottedWindow<ManualClock>)>();
    is_shared::<(SlidingLog, SlidingLog<NoClock>)>();
    is_shared::<(Counted<Sharded<Gcra>>, LimiterStats)>();
}

#[test]
fn the_sizes_of_the_limiters_stay_small() {
    assert_eq!(size_of::<SystemClock>(), 0);
    assert_eq!(size_of::<NoClock>(), 0);
    assert_eq!(size_of::<WordCell>(), 8);
    assert_eq!(size_of::<Tick>(), 8);
    let limiter = size_of::<Limiter<TokenBucket>>();
    assert_eq!(limiter, size_of::<Limiter<TokenBucket, NoClock>>());
    assert_eq!(limiter, size_of::<WordCell>() + size_of::<TokenBucket>());
    // In bytes. With the word beside it, each takes two or three cache lines.
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
        assert!(size <= most, "{name} takes {size} bytes");
    }
    let limiter = size_of::<Limiter<AnyAlgorithm>>();
    assert_eq!(limiter, size_of::<WordCell>() + size_of::<AnyAlgorithm>());
}

#[test]
fn the_debug_of_a_limiter_shows_its_algorithm_and_clock() {
    let limiter = Limiter::unstarted(BUCKET, NoClock);
    let expected =
        "Limiter { algorithm: token-bucket 5/h, cell: WordCell(unstarted), clock: NoClock }";
    assert_eq!(format!("{limiter:?}"), expected);
    let actual = format!("{:?}", WordCell::new(UNSTARTED));
    assert_eq!(actual, "WordCell(unstarted)");
    limiter.at(Tick::ZERO).start();
    assert_eq!(
        format!("{limiter:?}"),
        "Limiter { algorithm: token-bucket 5/h, cell: WordCell(0), clock: NoClock }"
    );
    let second = Tick::ZERO.saturating_add(Duration::from_secs(1));
    assert_eq!(format!("{second:?}"), "Tick(1s)");
    let clock = format!("{:?}", ManualClock::at(second));
    assert_eq!(clock, "ManualClock(Tick(1s))");
}

/// The first attempt alone answers for a started limiter, and does nothing before that.
#[test]
fn the_first_attempt_answers_only_a_started_limiter() {
    let bucket = TokenBucket::new(Quota::per_hour(5).initial(2)).expect("a bucket");
    let (limiter, now) = (Limiter::unstarted(bucket, NoClock), tick(7));
    assert!(limiter.reserve_fast_at(1, now).is_none());
    limiter.at(now).start();
    let granted = [1, 2, 1].map(|n| limiter.reserve_fast_at(n, now).map(|granted| granted.n()));
    assert_eq!(granted, [Some(1), None, Some(1)]);
}

/// Two limiters that refer to one word are one limit.
#[test]
fn two_limiters_on_one_word_are_one() {
    let word = WordCell::new(UNSTARTED);
    let bucket = TokenBucket::new(FIVE.initial(3)).expect("a bucket");
    let [one, other] = [(); 2].map(|()| Limiter::with_cell(bucket, NoClock, &word));
    let now = tick(7);
    assert_eq!(one.at(now).available(), 3);
    assert!(one.at(now).try_acquire_n(2).is_ok());
    assert_eq!(other.at(now).available(), 1);
    assert!(other.at(now).try_acquire_n(2).is_err());
    one.reset();
    assert_eq!(other.at(now).available(), 5);
    let by_reference: &dyn AtomicWord = &&word;
    assert_eq!(by_reference.load(), 0);
    assert_eq!((by_reference.swap(9), by_reference.swap(8)), (0, 9));
}
