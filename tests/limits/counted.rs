//! `Counted` counts exactly the answers, from one thread and from a work-stealing pool. At a
//! standing tick a pool of any size gets exactly the limit.

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use tollgate::compose::Shadow;
use tollgate::stats::LimiterStats;
use tollgate::traits::{DebtLimiter, GiveBackLimiter};
use tollgate::{Keyed, TryAcquire};

use crate::support::*;

/// Returns the statistics of one answer.
fn of(outcome: Result<&Granted, &Denied>) -> LimiterStats {
    let mut counts = LimiterStats::default();
    match outcome {
        Ok(granted) => {
            counts.granted = 1;
            counts.permits = granted.n();
        }
        Err(_) => counts.denied = 1,
    }
    counts
}

fn and(mut counts: LimiterStats, other: LimiterStats) -> LimiterStats {
    counts.granted += other.granted;
    counts.permits += other.permits;
    counts.denied += other.denied;
    counts.returned += other.returned;
    counts.charged += other.charged;
    counts
}

#[test]
fn each_verb_counts_what_it_answers() {
    let (mut random, clock) = (Random(0x0070_11a7_e901), ManualClock::new());
    let limiter = Limiter::with_clock(algorithm("token-bucket 1/us burst 20"), clock.clone());
    let limiter = Counted::new(limiter);
    let (mut right, mut granted) = (LimiterStats::default(), None);
    for _ in 0..5000 {
        let (n, now) = (random.below(24), clock.now());
        let mut this = LimiterStats::default();
        match random.below(14) {
            0 => clock.set(now.saturating_add(Duration::from_nanos(700 * n))),
            1 => this = of(limiter.try_acquire().as_ref()),
            2 => this = of(limiter.try_acquire_n_at(1, now).as_ref()),
            3 => this = of(TryAcquire::try_acquire_n_at(&limiter, n, now).as_ref()),
            4 => this = of(Ok(&limiter.take_up_to(n))),
            5 => this.returned = limiter.refund(n),
            6 => this.returned = granted.take().map_or(0, |granted| limiter.undo(granted)),
            7 => this.charged = limiter.charge(n).n(),
            8 => this.returned = limiter.refund_at(n, now),
            9 => this.charged = limiter.charge_at(n, now).n(),
            10 => {
                let rolled_back = granted.take().map(|it| limiter.roll_back_at(it, now));
                this.returned = rolled_back.unwrap_or(0);
            }
            _ => {
                let outcome = limiter.try_acquire_n(n);
                this = of(outcome.as_ref());
                granted = outcome.ok().or(granted);
            }
        }
        right = and(right, this);
        assert_eq!(limiter.stats(), right);
        assert_eq!(limiter.available(), limiter.limiter().available());
    }
    let each = [right.granted, right.denied, right.returned, right.charged];
    assert!(each.iter().all(|count| *count > 100), "{right:?}");
    assert!(format!("{limiter:?}").starts_with("Counted"));
    assert_eq!(limiter.limiter().clock().now(), clock.now());
}

/// Returns the requests that were granted, their permits, and the requests that were denied.
fn requests(stats: LimiterStats) -> (u64, u64, u64) {
    (stats.granted, stats.permits, stats.denied)
}

/// A request for no permits is a request, whatever is asked: it is granted, or denied in debt.
#[test]
fn a_request_for_no_permits_is_a_request() {
    let bucket = || TokenBucket::new(Quota::per_hour(5)).expect("a bucket");
    let clock = ManualClock::new();
    for limiter in limiters() {
        let limiter = Counted::new(limiter);
        assert_eq!(limiter.try_acquire_n(0).map(|it| it.n()), Ok(0));
        assert_eq!(limiter.take_up_to(0).n(), 0);
        assert!(limiter.try_acquire_n(3).is_ok());
        assert_eq!(requests(limiter.stats()), (3, 3, 0));
        // A request that takes up to as many as there are is granted, also if there are none.
        assert_eq!(limiter.take_up_to(LIMIT).n(), LIMIT - 3);
        assert_eq!(limiter.take_up_to(1).n(), 0);
        assert_eq!(requests(limiter.stats()), (5, LIMIT, 0));
    }
    let limiter = Counted::new(Limiter::with_clock(bucket(), clock.clone()));
    limiter.charge(6);
    assert!(limiter.try_acquire_n(0).is_err());
    assert_eq!(requests(limiter.stats()), (0, 0, 1));
    limiter.limiter().reset();
    assert!(limiter.reserve(0).is_ok());
    assert_eq!(requests(limiter.stats()), (1, 0, 1));

    let places = Concurrency::new(1).expect("a place").counted();
    drop(places.try_enter_n(0).expect("it weighs nothing"));
    drop(places.enter_n(0).wait().expect("it weighs nothing"));
    assert_eq!(places.stats().map(requests), Some((2, 0, 0)));

    let leases = Leases::with_clock(bucket(), 4, clock.clone());
    let leases = Counted::new(leases.expect("permits to lend"));
    let mut lease = leases.with_same_counters(leases.limiter().lease(2));
    assert!(lease.try_acquire_n(0).is_ok());
    assert!(leases.try_acquire_n(0).is_ok());
    assert_eq!(requests(leases.stats()), (2, 0, 0));
}

#[test]
fn a_request_for_no_permits_of_a_key_is_a_request() {
    let bucket = || TokenBucket::new(Quota::per_hour(5)).expect("a bucket");
    let table = Keyed::with_clock(bucket(), 9, ManualClock::new()).expect("a table");
    let table = Counted::new(table);
    assert!(table.key("ann").try_acquire_n(0).is_ok());
    assert!(table.key("bob").try_acquire_n(0).is_ok());
    assert!(table.key("cid").with_plan(0).try_acquire_n(0).is_ok());
    assert_eq!(requests(table.stats()), (3, 0, 0));
}

/// Each member of a composition counts each request once, whatever it is asked for.
#[test]
fn a_request_for_no_permits_of_a_composition_is_a_request() {
    let clock = ManualClock::new();
    let bucket = || Limiter::with_clock(algorithm("token-bucket 5/h"), clock.clone());
    let [one, two] = [(); 2].map(|()| Counted::new(bucket()));
    let trial = Shadow::new(bucket());
    let all = All::new((&one, &two, &trial)).expect("members");
    assert!(all.try_acquire_each([0, 2, 0]).is_ok());
    assert!(all.try_acquire_n(0).is_ok());
    assert_eq!(requests(one.stats()), (2, 0, 0));
    assert_eq!(requests(two.stats()), (2, 2, 0));
    assert_eq!(requests(trial.stats()), (2, 0, 0));
    // A member in debt denies it. Another in debt is on trial.
    trial.inner().charge(6);
    assert!(all.try_acquire_n(0).is_ok());
    assert_eq!(requests(trial.stats()), (2, 0, 1));
    one.limiter().charge(6);
    assert!(all.try_acquire_n(0).is_err());
    assert_eq!(requests(one.stats()), (3, 0, 1));
    assert_eq!(requests(two.stats()), (3, 2, 0));
}

#[test]
fn counts_of_huge_numbers_wrap() {
    let bucket = algorithm("token-bucket 1/1ns");
    let limiter = Counted::new(Limiter::with_clock(bucket, ManualClock::new()));
    let mut charged = 0_u64;
    for _ in 0..3 {
        limiter.limiter().reset();
        charged = charged.wrapping_add(limiter.charge(u64::MAX).n());
    }
    assert_eq!(limiter.stats().charged, charged);
}

type AnyLimiter = Box<dyn TryAcquire<Clock = ManualClock> + Sync>;

const LIMIT: u64 = 500;

fn limiters() -> Vec<AnyLimiter> {
    let (clock, quota) = (ManualClock::new(), Quota::per_minute(LIMIT));
    let slots = SlottedWindow::with_clock(quota, 60, clock.clone()).expect("slots");
    let log = SlidingLog::with_clock(quota, clock.clone()).expect("a log");
    let mut limiters: Vec<AnyLimiter> = vec![
        Box::new(Limiter::with_clock(
            algorithm("gcra 500/min"),
            clock.clone(),
        )),
        Box::new(slots),
        Box::new(log),
    ];
    // One shard is a whole limiter too.
    for shards in [1, 2, 5, 16] {
        for kind in [
            "token-bucket",
            "fixed-window",
            "sliding-window",
            "intervals",
        ] {
            let algorithm = algorithm(&format!("{kind} 500/min"));
            let limiter = Sharded::with_shards(algorithm, shards, clock.clone());
            limiters.push(Box::new(limiter.expect("a permit for each part")));
        }
    }
    limiters
}

/// The number of limiters at the front that are not sharded.
const WHOLE: usize = 7;

/// limitador checks first and then adds, and grants 1001 of 1000. Here requests for one permit get
/// all permits and not one more. Requests for one to seven leave the rest available. (If requests
/// for several permits collide in shards, some of the rest may become available only later.)
#[test]
fn a_thread_pool_of_any_size_gets_exactly_the_limit() {
    deadline("a pool", || {
        for threads in [1, 2, 3, 4, 7, 16] {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build();
            let pool = pool.expect("threads can be started");
            for most in [1, 7] {
                for (place, limiter) in limiters().into_iter().enumerate() {
                    let limiter = Counted::new(limiter);
                    let came = pool.install(|| {
                        let requests = (0..4 * LIMIT).into_par_iter();
                        let each = requests.map(|i| {
                            let outcome = limiter.try_acquire_n(1 + i % most);
                            let denied = outcome.as_ref().err();
                            assert!(
                                denied.is_none_or(|denied| denied.retry_after().is_some()),
                                "{place}: {outcome:?}"
                            );
                            of(outcome.as_ref())
                        });
                        each.reduce(LimiterStats::default, and)
                    });
                    let of_this = format!("{place}, {threads} threads, {most}");
                    assert_eq!(limiter.stats(), came, "{of_this}");
                    assert_eq!(came.granted + came.denied, 4 * LIMIT);
                    let left = limiter.available();
                    if place < WHOLE || threads == 1 || most == 1 {
                        assert_eq!(came.permits + left, LIMIT, "{of_this}");
                    }
                    if place < WHOLE || threads == 1 {
                        assert!(left == 0 || most > 1, "{of_this}");
                    }
                    assert!(came.permits + left <= LIMIT, "{of_this}");
                    limiter.limiter().clock().advance(Duration::from_secs(120));
                    assert_eq!(limiter.available(), LIMIT, "{of_this}");
                }
            }
        }
    });
}
