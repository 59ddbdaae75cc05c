//! No decision allocates: every verb, granted and denied, on every clock. Neither does formatting
//! an answer into existing memory.

#[path = "support/allocations.rs"]
mod allocations;
#[path = "support/deadline.rs"]
mod deadline;
#[path = "support/prelude.rs"]
mod prelude;

use std::fmt::Write;
use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Waker};

use tollgate::algorithm::{Debt, Rebase};
use tollgate::clock::{CoarseClock, SystemClock};
use tollgate::compose::{Line, Member, Named};
use tollgate::keyed::{Overflow, SeededHasher};
use tollgate::{Adjustable, Keep, Keyed, TryAcquire};

use allocations::allocated;
use prelude::*;

/// Counts the allocations of `work`.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = allocated();
    work();
    allocated() - before
}

/// A fixed buffer to write into.
struct Page {
    bytes: [u8; 256],
    len: usize,
}

impl Page {
    const fn new() -> Self {
        let bytes = [0; 256];
        Self { bytes, len: 0 }
    }
}

impl Write for Page {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.len + text.len();
        let room = self.bytes.get_mut(self.len..end).ok_or(std::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// Numbered ticks that advance by `minutes`, and sometimes go back.
fn turns(minutes: u64) -> impl Iterator<Item = (u64, Tick)> {
    let tick = move |turn| Tick::from_nanos(60_000_000_000 * minutes * (turn - turn % 7 * 2 / 3));
    (0..200).map(move |turn| (turn, tick(turn)))
}

/// Every kind of algorithm, each with `n` permits an hour.
fn all(n: u64) -> [AnyAlgorithm; 10] {
    let texts = [
        "token-bucket N/h",
        "leaky-meter N/h",
        "fixed-window N/h",
        "fixed-window N/h first-hit",
        "sliding-window N/h",
        "intervals N/h",
        "intervals N/h greedy",
        "gcra 1/12min tolerance 48min",
        "leaky-queue N/h free 1",
        "sliding-window N/h origin 0s rounding down",
    ];
    texts.map(|text| text.replace('N', &n.to_string()).parse().expect(text))
}

const FIVE: Quota = Quota::per_hour(5);

fn bucket() -> TokenBucket {
    TokenBucket::new(FIVE).expect("a bucket")
}

/// Calls every verb of a limiter with five permits an hour, granted and denied, and every method of
/// the answers.
macro_rules! every_verb {
    ($limiter:expr) => {{
        let limiter = $limiter;
        for (n, fits) in [0, 1, 2, 2, 1, 0, 6, u64::MAX]
            .into_iter()
            .zip(*b"11110100")
        {
            match limiter.try_acquire_n(n) {
                Ok(grant) => {
                    assert_eq!(fits, b'1');
                    black_box((grant.n(), grant.at(), grant.mark()));
                    black_box((grant.remaining(), grant.reset_after(), grant.delay()));
                }
                Err(no) => {
                    assert_eq!(fits, b'0');
                    write!(Page::new(), "{no}, {no:?}").expect("it fits");
                    black_box((no.retry_after(), no.is_permanent(), no.requested()));
                }
            }
            let level = limiter.level();
            black_box((limiter.available(), limiter.time_until(n), level.as_f64()));
            black_box((level.floor(), level.ceil(), level.is_zero()));
        }
        assert_eq!(limiter.refund(2), 2);
        let last = limiter.try_acquire().expect("it was refunded");
        assert_eq!(limiter.undo(last), 1);
        let actual = (limiter.take_up_to(9).n(), limiter.take_up_to(9).n());
        assert_eq!(actual, (2, 0));
        let charged = limiter.charge(7);
        assert_eq!(charged.debt(), 7);
        black_box((charged.clear_after(), charged.n(), charged.at()));
        assert!(limiter.try_acquire_n(0).is_err());
        limiter.reset();
        assert!(limiter.try_acquire().is_ok());
    }};
}

#[test]
fn the_allocator_counts() {
    assert_eq!(allocations(|| drop(black_box(Box::new(7)))), 1);
    assert_eq!(allocations(|| drop(black_box(vec![1, 2]))), 1);
    assert!(allocations(|| drop(black_box(format!("{:?}", bucket())))) > 0);
}

#[test]
fn a_limiter_on_any_clock_does_not_allocate() {
    static COARSE: CoarseClock = CoarseClock::new();
    let manual = ManualClock::new();
    // The first reading calibrates the clock.
    SystemClock.now();
    COARSE.refresh();
    for algorithm in all(5) {
        for clock in [&SystemClock as &dyn Clock, &COARSE, &manual] {
            let allocated = allocations(|| {
                let limiter = Limiter::with_clock(algorithm, clock);
                every_verb!(&limiter);
                let now = Tick::from_nanos(77);
                limiter.reset();
                every_verb!(limiter.at(now));
                black_box((limiter.at(now).is_idle(), limiter.at(now).now()));
                limiter.at(now).start();
                black_box(limiter.try_acquire_n_at(1, now).is_ok());
                black_box(limiter.try_acquire_n_at(2, now).is_ok());
                // Windows roll over between the ticks.
                for (_, now) in turns(30) {
                    let now = limiter.at(now);
                    black_box((now.take_up_to(2).n(), now.try_acquire_n(4).is_ok()));
                    black_box((now.charge(3).debt(), now.level().ceil(), now.refund(1)));
                }
            });
            assert_eq!(allocated, 0, "{algorithm}");
        }
    }
    let allocated = allocations(|| {
        COARSE.refresh();
        COARSE.advance_to(Tick::from_nanos(1));
        black_box((COARSE.age(), COARSE.staleness(), COARSE.now()));
        manual.advance(Duration::from_secs(1));
        manual.set(Tick::ZERO);
    });
    assert_eq!(allocated, 0);
}

#[test]
fn making_limiters_and_parsing_or_changing_algorithms_does_not_allocate() {
    SystemClock.now();
    let all = all(5);
    let allocated = allocations(|| {
        let bucket = TokenBucket::new(FIVE.initial(0)).expect("a bucket");
        let limiter = Limiter::unstarted(bucket, NoClock);
        assert!(limiter.try_acquire_n_at(1, Tick::ZERO).is_err());
        assert!(Limiter::new(bucket).try_acquire().is_err());
        assert!(TokenBucket::new(FIVE.burst(0)).is_err());
        assert!("5/h burst many".parse::<Quota>().is_err());
        assert_eq!("5/h".parse(), Ok(FIVE));
        for algorithm in all {
            let mut page = Page::new();
            write!(page, "{algorithm}").expect("it fits");
            let text = std::str::from_utf8(&page.bytes[..page.len]).expect("text");
            assert_eq!(text.parse(), Ok(algorithm));
            assert!("gcra 5/h free 2".parse::<AnyAlgorithm>().is_err());
            assert!("fixed-window 5/h burst 6".parse::<AnyAlgorithm>().is_err());
            let [then, now] = [1, 2].map(Tick::from_nanos);
            let (word, _) = algorithm.charge(0, then, 3);
            let next = algorithm.with_quota(Quota::per_minute(9)).expect("a quota");
            black_box(algorithm.carry_over(word, now, &next));
            black_box(algorithm.rebase(word, then, now));
            assert_eq!(algorithm.available(word, then), 2);
        }
    });
    assert_eq!(allocated, 0);
}

/// Requests take from the thread's own shard, from another shard and from several, and ask for more
/// than is available.
#[test]
fn shards_and_leases_do_not_allocate() {
    // The first reading calibrates the clock.
    SystemClock.now();
    let limiter = Sharded::new(bucket()).expect("a bucket");
    assert_eq!(allocations(|| every_verb!(&limiter)), 0);
    for algorithm in &all(10)[..7] {
        let limiter = Sharded::with_shards(*algorithm, 4, ManualClock::new()).expect("four parts");
        let allocated = allocations(|| {
            // The first decision of a thread assigns its `thread_index`.
            for (turn, now) in turns(5) {
                limiter.clock().set(now);
                let view = limiter.at(now).from_shard(turn as usize);
                let granted = match turn % 4 {
                    0 => view.try_acquire().ok(),
                    1 => view.try_acquire_n(4).ok(),
                    2 => limiter.try_acquire_n(10).ok(),
                    _ => Some(view.take_up_to(turn)),
                };
                black_box((view.available(), view.level().ceil(), view.is_idle()));
                black_box((
                    limiter.available(),
                    limiter.level().floor(),
                    limiter.time_until(9),
                ));
                black_box((view.time_until(10), limiter.try_acquire_n(11).is_ok()));
                match (granted, turn % 11) {
                    (Some(granted), 0..=4) => black_box(view.undo(granted)),
                    (Some(granted), 5) => black_box(limiter.undo(granted)),
                    (_, 6) => black_box(limiter.refund(3)),
                    (_, 7) => limiter.charge(5).debt(),
                    _ => 0,
                };
            }
            limiter.reset();
            assert_eq!(limiter.take_up_to(u64::MAX).n(), 10);
        });
        assert_eq!(allocated, 0, "{algorithm}");
        let limiter = Leases::with_clock(*algorithm, 5, ManualClock::new()).expect("leases");
        let allocated = allocations(|| {
            let (mut lease, mut second) = (limiter.lease(3), limiter.lease(9));
            for (turn, now) in turns(5) {
                limiter.limiter().clock().set(now);
                black_box((lease.try_acquire().is_ok(), second.try_acquire_n(2).is_ok()));
                black_box((
                    lease.try_acquire_n(7).is_ok(),
                    limiter.try_acquire().is_ok(),
                ));
                black_box((lease.held(), second.size(), limiter.lent()));
                match turn % 5 {
                    0 => black_box(lease.give_back()),
                    1 => black_box(limiter.lease(1).size()),
                    _ => 0,
                };
            }
        });
        assert_eq!(allocated, 0, "{algorithm}");
    }
}

/// Requests count in the same slot, in the next one, in an earlier one, and after a gap.
#[test]
fn slots_logs_and_counted_limiters_do_not_allocate() {
    let slots = SlottedWindow::with_clock(FIVE, 60, ManualClock::new()).expect("a window");
    let log = SlidingLog::with_clock(FIVE, ManualClock::new()).expect("a log");
    let counted = Counted::new(Limiter::with_clock(bucket(), ManualClock::new()));
    let shards = Sharded::with_shards(bucket(), 2, ManualClock::new()).expect("two parts");
    let shards = Counted::new(shards);
    let limiters: [&dyn TryAcquire<Clock = ManualClock>; 4] = [&slots, &log, &counted, &shards];
    let allocated = allocations(|| {
        for (turn, now) in turns(1).chain(turns(10)) {
            for limiter in limiters {
                limiter.clock().set(now);
                black_box(match turn % 3 {
                    0 => limiter.try_acquire().is_ok(),
                    1 => limiter.try_acquire_n_at(4, now).is_ok(),
                    _ => limiter.take_up_to_at(turn, now).n() > 0,
                });
                black_box((limiter.available_at(now), limiter.try_acquire_n(0).is_ok()));
                black_box(limiter.try_acquire_n(6).is_ok());
            }
            black_box((slots.level().ceil(), slots.time_until(5)));
            black_box((shards.undo(shards.take_up_to(1)), shards.refund(2)));
            black_box(shards.charge(1).debt());
            black_box((log.time_until(5), log.time_until(6), counted.stats()));
            black_box(match turn % 11 {
                0..=4 => slots.undo(slots.take_up_to(2)) + counted.undo(counted.take_up_to(2)),
                5 => slots.refund(3) + counted.refund(3),
                6 => slots.charge(3).debt() + counted.charge(3).debt(),
                _ => 0,
            });
        }
    });
    assert_eq!(allocated, 0);
}

/// Calls the verbs of a composition of two members with five permits each: granted, undone, settled
/// and dropped, and denied after `empty` is emptied.
macro_rules! composed {
    ($all:expr, $empty:expr) => {{
        let (all, empty) = (&$all, &$empty);
        let granted = all.try_acquire_n(2).expect("two of five");
        black_box((granted.tightest(), granted.remaining(), granted.delay()));
        black_box((granted.reset_after(), granted.member(1).is_some()));
        assert!(granted.undo() >= 4);
        let mut granted = all.try_acquire_each([1, 3]).expect("they have it");
        assert_eq!(granted.settle([1, 0]).expect("a cost for each").lost, 0);
        drop(all.try_acquire().expect("they have it"));
        let mut estimated = all.try_acquire().expect("they have it");
        assert!(estimated.settle([1]).is_err()); // one cost for two members
        let actual = estimated.settle([1, 1]).expect("a cost for each").charged;
        assert_eq!(actual, 0);
        black_box((all.available(), all.time_until(1), all.check_n(9).is_ok()));
        let denied = all.try_acquire_n(6).map(drop).expect_err("five at most");
        write!(Page::new(), "{denied}").expect("it fits");
        black_box(empty.take_up_to(u64::MAX).n());
        assert!(all.try_acquire().is_err() && all.try_acquire_each([1, 1]).is_err());
        assert!(all.try_acquire_each([1]).is_err());
        black_box(all.at(all.now()).try_acquire_each([0, 1]).is_ok());
        empty.reset();
    }};
}

#[test]
fn compositions_in_tuples_and_arrays_do_not_allocate() {
    let clock = ManualClock::new();
    for algorithm in all(5) {
        let limiter = || Limiter::with_clock(algorithm, clock.clone());
        let (one, other) = (limiter(), limiter());
        let log = SlidingLog::with_clock(FIVE, clock.clone()).expect("a log");
        let inside = Concurrency::new(5).expect("a limit");
        let keys = Keyed::with_clock(bucket(), 100, clock.clone()).expect("a table");
        let key = keys.key("alice");
        let boxed: [Box<dyn Member<ManualClock> + Send + Sync>; 2] =
            [Box::new(limiter()), Box::new(limiter())];
        let boxed = All::new(boxed).expect("two limits");
        let allocated = allocations(|| {
            let all = All::new((&one, &other)).expect("two limits");
            composed!(all, one);
            one.reset();
            other.reset();
            composed!(All::new([&one, &other]).expect("two limits"), other);
            one.reset();
            other.reset();
            let mixed = All::new((&one, &inside, [&other])).expect("three limits");
            drop(mixed.try_acquire().expect("they have it"));
            assert!(boxed.try_acquire().is_ok());
            one.reset();
            let named = (Named::new("one", &one), [key]);
            composed!(All::new(named).expect("two limits"), one);
            one.reset();
            key.reset();
            let inner = All::new((&inside, &one)).expect("two limits");
            drop(inner.try_acquire().expect("they have it"));
            composed!(inner, one);
            let last = All::new((&log, (&other, All::new([&one]).expect("a limit"))));
            let last = last.expect("three limits");
            drop(last.try_acquire().expect("they have it"));
            assert!(last.try_acquire_n(5).is_err());
            assert!(All::new([&log; 65]).is_err());
            assert_eq!(last.check_n(1), Ok(()));
        });
        assert_eq!(allocated, 0, "{algorithm}");
    }
}

#[test]
fn adjustable_limiters_do_not_allocate() {
    for algorithm in all(5) {
        let limiter = Adjustable::with_clock(algorithm, ManualClock::new());
        let mut granted = 0;
        let allocated = allocations(|| {
            for (quota, keep) in [1, 5, 9]
                .map(Quota::per_hour)
                .into_iter()
                .flat_map(|quota| {
                    [Keep::AsIs, Keep::Scaled, Keep::Used, Keep::Fresh].map(|keep| (quota, keep))
                })
            {
                limiter.set_quota(quota, keep).expect("a quota");
                for n in [0, 1, 2, 2, u64::MAX] {
                    granted += u64::from(limiter.try_acquire_n(n).is_ok());
                }
                let took = limiter.take_up_to(2);
                black_box((
                    limiter.undo(took),
                    limiter.refund(1),
                    limiter.charge(2).debt(),
                ));
                black_box((
                    limiter.available(),
                    limiter.level().ceil(),
                    limiter.time_until(1),
                ));
                black_box((limiter.quota(), limiter.version()));
            }
            limiter.reset();
        });
        assert_eq!(allocated, 0);
        assert!(granted >= 6, "{granted}");
    }
}

/// Covers keys that are new, present, idle, evicted and without room, some with their own
/// algorithms, by every verb, and also after a change of the quota. The first change allocates the
/// history of changes.
#[test]
fn a_keyed_table_does_not_allocate() {
    for overflow in [Overflow::Evict, Overflow::Deny, Overflow::Admit] {
        let plans = [5, 7].map(|n| TokenBucket::new(Quota::per_hour(n)).expect("a bucket"));
        let limiter = Keyed::with_plans(plans, 1, ManualClock::new()).expect("a table");
        let limiter = limiter
            .with_hasher(SeededHasher::new([1, 2]))
            .with_overflow(overflow)
            .with_overrides(100)
            .expect("two plans");
        for key in (0..3_000_u64).step_by(50) {
            let own = limiter.key(&key).set_quota(Quota::per_hour(9));
            own.expect("one is left");
        }
        let mut outcomes = [const { Err(Denied::busy(1)) }; 40];
        for changed in [false, true] {
            if changed {
                let set = limiter.set_quota(Quota::per_hour(6), Keep::AsIs);
                set.expect("a quota");
            }
            let allocated = allocations(|| {
                for key in 0..3_000_u64 {
                    limiter.clock().advance(Duration::from_secs(key % 3));
                    black_box(limiter.try_acquire(&key).is_ok());
                    black_box(limiter.try_acquire_n(&key, 2).is_ok());
                    let view = limiter.key(&key).with_plan(key as usize % 2);
                    let took = view.take_up_to(key % 4);
                    black_box((view.available(), view.level().ceil(), view.time_until(2)));
                    black_box((view.undo(took), view.refund(1), view.charge(key % 3)));
                    match key % 64 {
                        0 => drop(black_box(view.remove())),
                        1 => drop(black_box(limiter.key(&key).ban_for(Duration::from_secs(9)))),
                        2 => view.reset(),
                        3 => drop(black_box(view.reserve(1).map(|kept| kept.cancel()))),
                        4 if changed => {
                            let quota = Quota::per_hour(5 + key % 7);
                            limiter.set_quota(quota, Keep::Scaled).expect("a quota");
                        }
                        5 => {
                            let many = limiter.try_acquire_batch(&[key; 40], &mut outcomes);
                            many.expect("as long as the keys");
                        }
                        _ => {}
                    }
                }
                black_box((limiter.stats(), limiter.len()));
                black_box(limiter.key("key").with_plan(9).try_acquire().is_ok());
            });
            assert_eq!(allocated, 0, "{overflow:?} {changed}");
        }
        let stats = limiter.stats();
        assert!(stats.expired > 100, "{stats:?}");
        assert!(stats.evicted + stats.no_room > 100, "{stats:?}");
    }
}

/// Holds as long as no caller waits. A waiter of a concurrency limit allocates its place in the
/// queue.
#[test]
fn callers_that_need_not_wait_do_not_allocate() {
    deadline::deadline("permits and places that are there", || {
        let clock = ManualClock::new();
        let bucket = TokenBucket::new(Quota::per_second(10).burst(2)).expect("a quota");
        let limiter = Limiter::with_clock(bucket, clock.clone());
        let mut came_back = 0;
        let allocated = allocations(|| {
            for _ in 0..100 {
                assert!(
                    limiter.blocking_acquire().is_ok()
                        && limiter.blocking_acquire_timeout(1, Duration::ZERO).is_ok()
                );
                let first = limiter.reserve(2).expect("it will be there");
                let second = limiter.reserve_within(1, Duration::from_secs(1));
                let second = second.expect("it will be there");
                assert!(limiter.reserve_within(1, Duration::ZERO).is_err());
                came_back += second.cancel().returned + first.settle(1).1.returned;
                clock.advance(Duration::from_secs(1));
            }
        });
        assert_eq!((allocated, came_back), (0, 200));

        let inside = Concurrency::new(3).expect("a limit");
        let all = All::new((&limiter, &inside)).expect("two limits");
        let line = Line::new(&all);
        let allocated = allocations(|| {
            for _ in 0..100 {
                assert!(line.try_acquire().is_ok() && line.blocking_acquire_each([1, 2]).is_ok());
                assert!(line.try_acquire().is_err());
                clock.advance(Duration::from_secs(1));
            }
        });
        assert_eq!((allocated, line.waiting()), (0, 0));

        let limiter = Arc::new(Concurrency::new(3).expect("a limit"));
        let allocated = allocations(|| {
            for n in [1, 2, 3, 0, 1, 4] {
                let one = limiter.try_enter_n(n);
                let other = limiter.try_enter_owned(n);
                let third = limiter.try_enter_ahead(1);
                black_box((one.is_ok(), other.is_ok(), third.is_ok()));
                black_box((
                    limiter.inside(),
                    limiter.waiting(),
                    limiter.peak(),
                    limiter.limit(),
                ));
            }
            assert!(limiter.enter_n(2).wait().is_ok());
            assert!(limiter.enter().wait_timeout(Duration::MAX).is_ok());
            let mut enter = pin!(limiter.enter_owned(3));
            let polled = enter.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_ready() && limiter.inside() == 3);
            assert!(limiter.enter().wait_timeout(Duration::ZERO).is_err());
            black_box(limiter.set_limit(2).is_ok() && limiter.reset_peak() == 3);
        });
        assert_eq!(allocated, 0);
    });
}

#[test]
fn overrides_that_are_set_and_taken_away_allocate_nothing() {
    for max in [1_u64, 3, 7, 14, 100, 448, 1000] {
        let bucket = TokenBucket::new(Quota::per_hour(5)).expect("a bucket");
        let limiter = Keyed::with_clock(bucket, 10, ManualClock::new()).expect("a table");
        let limiter = limiter.with_overrides(max as usize).expect("one plan");
        let set = |key, permits| {
            let own = limiter.key(&key).set_quota(Quota::per_hour(permits));
            own.expect("one is left");
        };
        let allocated = allocations(|| {
            for permits in [9, 8] {
                (0..max).for_each(|key| set(key, permits));
            }
            for key in 0..20 * max {
                assert!(limiter.key(&key).remove_override(), "{key}");
                set(key + max, 7);
            }
        });
        assert_eq!(allocated, 0, "{max}");
    }
}
