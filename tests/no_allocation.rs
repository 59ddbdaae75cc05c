//! No decision allocates: every verb, granted and denied, on every clock, and the reading and
//! writing of what it says into memory that is there.

#![allow(unsafe_code)] // A global allocator can't be had without; it only counts and passes on.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Write;
use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use tollgate::{
    Algorithm, AnyAlgorithm, Clock, CoarseClock, Concurrency, Counted, Debt, FixedWindow, Gate,
    Gcra, Intervals, LeakyBucket, Leases, Limiter, ManualClock, NoClock, Quota, Rebase, Requota,
    Rounding, Sharded, SlidingLog, SlidingWindow, SlottedWindow, SystemClock, Tick, TokenBucket,
};

thread_local! {
    /// How often this thread has allocated. Tests run beside each other, each in its own.
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

impl Counting {
    fn count() {
        // A thread that is ending has no counter any more, and makes no decisions either.
        let _ = ALLOCATED.try_with(|allocated| allocated.set(allocated.get() + 1));
    }
}

// SAFETY: every call is passed on to the system's allocator as it came, and counting touches
// nothing but a constant-initialised, thread-local integer, which never allocates.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count();
        // SAFETY: the caller's promises about `layout` are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: `ptr` came from `System` with this `layout`, since all of ours do.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count();
        // SAFETY: as above, and `size` is the caller's promise.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often `work` allocates.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATED.with(Cell::get);
    work();
    ALLOCATED.with(Cell::get) - before
}

/// Memory that is there, to write into.
struct Page {
    bytes: [u8; 256],
    len: usize,
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

/// Every verb on a bucket of five an hour, granted and denied, and all that can be asked of the
/// answers. How many were granted, how many denied.
macro_rules! every_verb {
    ($gate:expr) => {{
        let gate = $gate;
        let (mut granted, mut denied) = (0, 0);
        for n in [0, 1, 2, 2, 1, 0, 6, u64::MAX] {
            match gate.try_acquire_n(n) {
                Ok(grant) => {
                    black_box((grant.n(), grant.at(), grant.mark()));
                    black_box((grant.remaining(), grant.reset_after(), grant.delay()));
                    granted += 1;
                }
                Err(no) => {
                    let mut page = Page {
                        bytes: [0; 256],
                        len: 0,
                    };
                    write!(page, "{no}, {no:?}").expect("it fits");
                    black_box((no.retry_after(), no.is_permanent(), no.requested()));
                    denied += 1;
                }
            }
            let level = gate.level();
            black_box((gate.available(), gate.time_until(n), level.as_f64()));
            black_box((level.floor(), level.ceil(), level.is_zero()));
        }
        assert_eq!(gate.refund(2), 2);
        let last = gate.try_acquire().expect("it was refunded");
        assert_eq!(gate.undo(last), 1);
        assert_eq!(gate.take_up_to(9).n(), 2);
        assert_eq!(gate.take_up_to(9).n(), 0);
        let charged = gate.charge(7);
        assert_eq!(charged.debt(), 7);
        black_box((charged.clear_after(), charged.n(), charged.at()));
        assert!(gate.try_acquire_n(0).is_err());
        gate.reset();
        assert!(gate.try_acquire().is_ok());
        (granted, denied)
    }};
}

/// Runs every verb on the limiter and on its view at the clock's tick.
macro_rules! assert_none_allocates {
    ($gate:expr) => {{
        let gate = &$gate;
        let allocated = allocations(|| {
            assert_eq!(every_verb!(gate), (5, 3));
            let now = Tick::from_nanos(77);
            gate.reset();
            assert_eq!(every_verb!(gate.at(now)), (5, 3));
            black_box((gate.at(now).is_idle(), gate.at(now).now()));
            gate.at(now).start();
            black_box((
                gate.try_acquire_at(now).is_ok(),
                gate.try_acquire_n_at(2, now).is_ok(),
            ));
        });
        assert_eq!(allocated, 0);
    }};
}

const FIVE: Quota = Quota::per_hour(5);

fn bucket() -> TokenBucket {
    TokenBucket::new(FIVE).expect("a bucket")
}

#[test]
fn the_allocator_counts() {
    assert_eq!(allocations(|| drop(black_box(Box::new(7)))), 1);
    assert_eq!(allocations(|| drop(black_box(vec![1, 2]))), 1);
    assert!(allocations(|| drop(black_box(format!("{:?}", bucket())))) > 0);
}

#[test]
fn nothing_on_the_systems_clock() {
    // The first reading calibrates the clock.
    SystemClock.now();
    assert_none_allocates!(Limiter::new(bucket()));
    assert_none_allocates!(Limiter::gcra(FIVE).expect("a gcra"));
}

#[test]
fn nothing_on_a_coarse_clock() {
    static CLOCK: CoarseClock = CoarseClock::new();
    CLOCK.refresh();
    assert_none_allocates!(Limiter::with_clock(bucket(), &CLOCK));
    let allocated = allocations(|| {
        CLOCK.refresh();
        CLOCK.advance_to(Tick::from_nanos(1));
        black_box((CLOCK.age(), CLOCK.staleness(), CLOCK.now()));
    });
    assert_eq!(allocated, 0);
}

#[test]
fn nothing_on_a_manual_clock() {
    let clock = ManualClock::new();
    assert_none_allocates!(Limiter::with_clock(bucket(), clock.clone()));
    let gcra = Gcra::from_interval(Duration::from_secs(720), Duration::from_secs(4 * 720));
    assert_none_allocates!(Limiter::with_clock(gcra.expect("a gcra"), clock.clone()));
    let allocated = allocations(|| {
        clock.advance(Duration::from_secs(1));
        clock.set(Tick::ZERO);
    });
    assert_eq!(allocated, 0);
}

#[test]
fn nothing_when_a_limiter_is_made_and_started() {
    SystemClock.now();
    let allocated = allocations(|| {
        let bucket = TokenBucket::new(FIVE.initial(0)).expect("a bucket");
        let gate = Limiter::unstarted(bucket, NoClock);
        assert!(gate.try_acquire_at(Tick::ZERO).is_err());
        let gate = Limiter::with_clock(bucket, SystemClock);
        assert!(gate.try_acquire().is_err());
        assert!(TokenBucket::new(FIVE.burst(0)).is_err());
        assert!("5/h burst many".parse::<Quota>().is_err());
        assert_eq!("5/h".parse(), Ok(FIVE));
    });
    assert_eq!(allocated, 0);
}

/// The others, each with five an hour.
fn others() -> [AnyAlgorithm; 8] {
    let windows = FixedWindow::new(FIVE).expect("windows");
    let sliding = SlidingWindow::new(FIVE).expect("a window");
    let intervals = Intervals::new(FIVE).expect("a bucket");
    [
        LeakyBucket::meter(FIVE).expect("a meter").into(),
        LeakyBucket::queue(FIVE).expect("a queue").free(1).into(),
        windows.offset(Duration::from_secs(7)).into(),
        windows.opened_by_first_hit().expect("a quantum").into(),
        sliding.into(),
        sliding.rounding(Rounding::Down).aligned_to_utc().into(),
        intervals.into(),
        intervals.greedy().expect("a quantum").into(),
    ]
}

#[test]
fn nothing_by_any_other_algorithm() {
    for algorithm in others() {
        assert_none_allocates!(Limiter::with_clock(algorithm, ManualClock::new()));
    }
    let windows = FixedWindow::new(FIVE).expect("windows");
    assert_none_allocates!(Limiter::with_clock(windows, ManualClock::new()));
    let sliding = SlidingWindow::new(FIVE).expect("a window");
    assert_none_allocates!(Limiter::with_clock(sliding, ManualClock::new()));
    let intervals = Intervals::new(FIVE).expect("a bucket");
    assert_none_allocates!(Limiter::with_clock(intervals, ManualClock::new()));
    let queue = LeakyBucket::queue(FIVE).expect("a queue");
    assert_none_allocates!(Limiter::with_clock(queue, ManualClock::new()));
}

#[test]
fn nothing_when_a_window_rolls_over() {
    for algorithm in others() {
        let gate = Limiter::unstarted(algorithm, NoClock);
        let allocated = allocations(|| {
            for turn in 0..50 {
                // Forwards by half an hour, and sometimes back.
                let now = gate.at(Tick::from_nanos(1_800_000_000_000 * (turn - turn % 7 / 3)));
                black_box((now.take_up_to(2).n(), now.try_acquire_n(4).is_ok()));
                black_box((now.charge(3).debt(), now.level().ceil(), now.refund(1)));
            }
        });
        assert_eq!(allocated, 0, "{algorithm}");
    }
}

#[test]
fn nothing_when_an_algorithm_is_read_written_and_changed() {
    let all = others();
    let allocated = allocations(|| {
        for algorithm in all {
            let mut page = Page {
                bytes: [0; 256],
                len: 0,
            };
            write!(page, "{algorithm}").expect("it fits");
            let text = std::str::from_utf8(&page.bytes[..page.len]).expect("text");
            assert_eq!(text.parse(), Ok(algorithm));
            assert!("gcra 5/h free 2".parse::<AnyAlgorithm>().is_err());
            assert!("fixed-window 5/h burst 6".parse::<AnyAlgorithm>().is_err());
            let (then, now) = (Tick::from_nanos(1), Tick::from_nanos(2));
            let (word, _) = algorithm.charge(0, then, 3);
            let next = algorithm.with_quota(Quota::per_minute(9)).expect("a quota");
            black_box((
                algorithm.carry_over(word, now, &next),
                algorithm.rebase(word, then, now),
            ));
            assert_eq!(algorithm.available(word, then), 2);
        }
    });
    assert_eq!(allocated, 0);
}

/// Those that can be split in four, each with ten an hour.
fn in_parts() -> [AnyAlgorithm; 7] {
    let ten = Quota::per_hour(10);
    let windows = FixedWindow::new(ten).expect("windows");
    let intervals = Intervals::new(ten).expect("a bucket");
    [
        TokenBucket::new(ten).expect("a bucket").into(),
        LeakyBucket::meter(ten).expect("a meter").into(),
        windows.into(),
        windows.opened_by_first_hit().expect("a quantum").into(),
        SlidingWindow::new(ten).expect("a window").into(),
        intervals.into(),
        intervals.greedy().expect("a quantum").into(),
    ]
}

/// From the own part, from a sibling and from several, all there is and more.
#[test]
fn nothing_by_shards() {
    SystemClock.now();
    let gate = Sharded::new(bucket()).expect("a bucket");
    // The first decision of a thread gives it a number.
    assert_eq!(allocations(|| assert_eq!(every_verb!(&gate), (5, 3))), 0);
    for algorithm in in_parts() {
        let gate = Sharded::with_shards(algorithm, 4, ManualClock::new()).expect("four parts");
        let allocated = allocations(|| {
            for turn in 0..200 {
                // Forwards by minutes, and sometimes back.
                let now = Tick::from_nanos(300_000_000_000 * (turn - turn % 7 / 3));
                gate.clock().set(now);
                let view = gate.at(now).from_shard(turn as usize);
                let granted = match turn % 4 {
                    0 => view.try_acquire().ok(),
                    1 => view.try_acquire_n(4).ok(),
                    2 => gate.try_acquire_n(10).ok(),
                    _ => Some(view.take_up_to(turn)),
                };
                black_box((view.available(), view.level().ceil(), view.is_idle()));
                black_box((gate.available(), gate.level().floor(), gate.time_until(9)));
                black_box((view.time_until(10), gate.try_acquire_n(11).is_ok()));
                match (granted, turn % 11) {
                    (Some(granted), 0..=4) => black_box(view.undo(granted)),
                    (Some(granted), 5) => black_box(gate.undo(granted)),
                    (_, 6) => black_box(gate.refund(3)),
                    (_, 7) => gate.charge(5).debt(),
                    _ => 0,
                };
            }
            gate.reset();
            assert_eq!(gate.take_up_to(u64::MAX).n(), 10);
        });
        assert_eq!(allocated, 0, "{algorithm}");
    }
}

#[test]
fn nothing_by_leases() {
    for algorithm in in_parts() {
        let gate = Leases::with_clock(algorithm, 5, ManualClock::new()).expect("leases");
        let allocated = allocations(|| {
            let (mut lease, mut second) = (gate.lease(3), gate.lease(9));
            for turn in 0..200 {
                let now = Tick::from_nanos(300_000_000_000 * (turn - turn % 7 / 3));
                gate.limiter().clock().set(now);
                black_box((lease.try_acquire().is_ok(), second.try_acquire_n(2).is_ok()));
                black_box((lease.try_acquire_n(7).is_ok(), gate.try_acquire().is_ok()));
                black_box((lease.held(), second.size(), gate.lent()));
                match turn % 5 {
                    0 => black_box(lease.give_back()),
                    1 => black_box(gate.lease(1).size()),
                    _ => 0,
                };
            }
        });
        assert_eq!(allocated, 0, "{algorithm}");
    }
}

/// In the same slot, in the next one, in one that is behind, and after a gap.
#[test]
fn nothing_by_slots() {
    let gate = SlottedWindow::with_clock(FIVE, 60, ManualClock::new()).expect("a window");
    let allocated = allocations(|| {
        for turn in 0..300 {
            let now = Tick::from_nanos(25_000_000_000 * (turn * turn / 9 - turn % 7 / 3));
            gate.clock().set(now);
            let granted = match turn % 3 {
                0 => gate.try_acquire().ok(),
                1 => gate.try_acquire_n_at(4, now).ok(),
                _ => Some(gate.take_up_to(turn)),
            };
            black_box((gate.available(), gate.counted(), gate.time_until(5)));
            black_box((gate.try_acquire_n(0).is_ok(), gate.try_acquire_n(6).is_ok()));
            match (granted, turn % 11) {
                (Some(granted), 0..=4) => black_box(gate.undo(granted)),
                (_, 5) => black_box(gate.refund(3)),
                (_, 6) => gate.charge(3).debt(),
                _ => 0,
            };
        }
    });
    assert_eq!(allocated, 0);
}

#[test]
fn nothing_by_a_log() {
    let gate = SlidingLog::with_clock(FIVE, ManualClock::new()).expect("a log");
    let allocated = allocations(|| {
        for turn in 0..300 {
            let now = Tick::from_nanos(600_000_000_000 * (turn - turn % 7 / 3));
            gate.clock().set(now);
            black_box(match turn % 3 {
                0 => gate.try_acquire().is_ok(),
                1 => gate.try_acquire_n_at(4, now).is_ok(),
                _ => gate.take_up_to(turn).n() > 0,
            });
            black_box((gate.available(), gate.time_until(5), gate.time_until(6)));
            black_box((gate.try_acquire_n(0).is_ok(), gate.try_acquire_n(6).is_ok()));
        }
    });
    assert_eq!(allocated, 0);
}

#[test]
fn nothing_when_it_is_counted() {
    let counted = Counted::new(Limiter::with_clock(bucket(), ManualClock::new()));
    let shards = Sharded::with_shards(bucket(), 2, ManualClock::new()).expect("two parts");
    let shards = Counted::new(shards);
    let gates: [&dyn Gate<Clock = ManualClock>; 2] = [&counted, &shards];
    let allocated = allocations(|| {
        for gate in gates {
            for n in [0, 1, 2, 2, 1, 0, 6, u64::MAX] {
                black_box(gate.try_acquire_n_at(n, Tick::ZERO).is_ok());
            }
            black_box((
                gate.take_up_to_at(2, Tick::ZERO).n(),
                gate.available_at(Tick::ZERO),
            ));
        }
        let granted = shards.take_up_to(1);
        black_box((
            shards.undo(granted),
            shards.refund(2),
            shards.charge(3).debt(),
        ));
        let (counts, other) = (counted.counts(), shards.counts());
        assert_eq!((counts.granted, counts.denied, counts.permits), (3, 3, 5));
        assert_eq!((other.returned, other.charged), (2, 3));
    });
    assert_eq!(allocated, 0);
}

#[cfg(feature = "wide")]
#[test]
fn nothing_where_the_quota_can_be_changed() {
    use tollgate::{Adjustable, Keep};

    let gate = Adjustable::with_clock(AnyAlgorithm::from(bucket()), ManualClock::new());
    let quotas = [1, 5, 9].map(Quota::per_hour);
    let mut granted = 0;
    let allocated = allocations(|| {
        for quota in quotas {
            for keep in [Keep::AsIs, Keep::Scaled, Keep::Fresh] {
                gate.set_quota(quota, keep).expect("a quota");
                for n in [0, 1, 2, 2, u64::MAX] {
                    granted += u64::from(gate.try_acquire_n(n).is_ok());
                }
                let took = gate.take_up_to(2);
                black_box((gate.undo(took), gate.refund(1), gate.charge(2).debt()));
                black_box((gate.available(), gate.level().ceil(), gate.time_until(1)));
                black_box((gate.quota(), gate.version()));
            }
            gate.reset();
        }
    });
    assert_eq!(allocated, 0);
    assert!(granted >= 9, "{granted}");
}

/// Keys that are new, there, idle, evicted and without room, by every verb, also after the quota has been changed (the
/// first change makes room for what is kept of changes).
#[cfg(feature = "keyed")]
#[test]
fn nothing_by_a_table_of_keys() {
    use tollgate::{Denied, Keep, Keyed, Overflow};

    for overflow in [Overflow::Evict, Overflow::Deny, Overflow::Admit] {
        let plans = [5, 7].map(|n| TokenBucket::new(Quota::per_hour(n)).expect("a bucket"));
        let gate = Keyed::with_plans(plans, 1, ManualClock::new()).expect("a table");
        let gate = gate.with_overflow(overflow);
        let mut outcomes = [Err(Denied::busy(1)); 40];
        for changed in [false, true] {
            if changed {
                gate.set_quota(Quota::per_hour(6), Keep::AsIs)
                    .expect("a quota");
            }
            let allocated = allocations(|| {
                for key in 0..6_000_u64 {
                    gate.clock().advance(Duration::from_secs(key % 3));
                    black_box((
                        gate.try_acquire(&key).is_ok(),
                        gate.try_acquire_n(&key, 2).is_ok(),
                    ));
                    let view = gate.plan(key as usize % 2).key(&key);
                    let took = view.take_up_to(key % 4);
                    black_box((view.available(), view.level().ceil(), view.time_until(2)));
                    black_box((view.undo(took), view.refund(1), view.charge(key % 3)));
                    match key % 64 {
                        0 => drop(black_box(view.forget())),
                        1 => drop(black_box(gate.ban_for(&key, Duration::from_secs(9)))),
                        2 => view.reset(),
                        3 => drop(black_box(view.reserve(1).map(|kept| kept.cancel()))),
                        4 if changed => {
                            let quota = Quota::per_hour(5 + key % 7);
                            let done = gate.set_quota(quota, Keep::Scaled);
                            done.expect("a quota");
                        }
                        5 => {
                            let keys = [key; 40];
                            let many = gate.check_many(&keys, &mut outcomes);
                            many.expect("as long as the keys");
                        }
                        _ => {}
                    }
                }
                black_box((
                    gate.stats(),
                    gate.len(),
                    gate.plan(9).try_acquire("key").is_ok(),
                ));
            });
            assert_eq!(allocated, 0, "{overflow:?} {changed}");
        }
        let stats = gate.stats();
        assert!(
            stats.taken_over > 100 && stats.evicted + stats.no_room > 100,
            "{stats:?}"
        );
    }
}

#[test]
fn reservations_and_waiting_for_what_is_there_allocate_nothing() {
    let clock = ManualClock::new();
    let bucket = TokenBucket::new(Quota::per_second(10).burst(2)).expect("a quota");
    let gate = Limiter::with_clock(bucket, clock.clone());
    let mut came_back = 0;
    let count = allocations(|| {
        for _ in 0..100 {
            let taken = gate
                .acquire()
                .and_then(|_| gate.acquire_timeout(1, Duration::ZERO));
            assert!(taken.is_ok());
            let first = gate.reserve(2).expect("it will be there");
            let second = gate.reserve_within(1, Duration::from_secs(1));
            let second = second.expect("it will be there");
            assert!(gate.reserve_within(1, Duration::ZERO).is_err());
            came_back += second.cancel().came_back + first.settle(1).came_back;
            clock.advance(Duration::from_secs(1));
        }
    });
    assert_eq!((count, came_back), (0, 200));
}

/// As long as nobody waits. A waiter allocates its place in line.
#[test]
fn nothing_by_those_who_enter_and_leave() {
    let gate = Arc::new(Concurrency::new(3).expect("a limit"));
    let allocated = allocations(|| {
        for n in [1, 2, 3, 0, 1, 4] {
            let one = gate.try_enter_n(n);
            let other = gate.try_enter_owned(n);
            let third = gate.try_enter_ahead(1);
            black_box((one.is_ok(), other.is_ok(), third.is_ok()));
            black_box((gate.inside(), gate.waiting(), gate.peak(), gate.limit()));
        }
        black_box(gate.enter_n(2).wait().is_ok());
        black_box(gate.enter().wait_timeout(Duration::MAX).is_ok());
        let mut enter = pin!(gate.enter_owned(3));
        let polled = enter.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_ready() && gate.inside() == 3);
        black_box(gate.enter().wait_timeout(Duration::ZERO).is_err());
        black_box(gate.set_limit(2).is_ok() && gate.reset_peak() == 3);
    });
    assert_eq!(allocated, 0);
}
