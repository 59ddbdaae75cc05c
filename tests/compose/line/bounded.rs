//! A line holds exactly as many permits that wait as it is told, whatever the limit before which it
//! stands.

use std::sync::Mutex;
use std::task::{Wake, Waker};

use tollgate::compose::{AllDenied, BoxMember, Line};

use super::{Limits, Tested, rate};
use crate::support::*;

type Limit = BoxMember<'static, ManualClock>;

/// Returns each kind of limit, with ten permits a second and a burst of ten.
fn limits(clock: &ManualClock) -> Vec<(&'static str, Limit)> {
    let quota = Quota::per_second(10);
    macro_rules! limiter {
        ($algorithm:expr) => {
            Box::new(Limiter::with_clock(
                $algorithm.expect("a quota"),
                clock.clone(),
            ))
        };
    }
    let windows = SlottedWindow::with_clock(quota, 10, clock.clone());
    let log = SlidingLog::with_clock(quota, clock.clone());
    vec![
        ("token bucket", limiter!(TokenBucket::new(quota))),
        ("gcra", limiter!(Gcra::new(quota))),
        ("leaky meter", limiter!(LeakyBucket::meter(quota))),
        ("fixed window", limiter!(FixedWindow::new(quota))),
        ("sliding window", limiter!(SlidingWindow::new(quota))),
        ("intervals", limiter!(Intervals::new(quota))),
        ("slots", Box::new(windows.expect("a quota"))),
        ("log", Box::new(log.expect("a quota"))),
    ]
}

/// Fills a line with callers for one permit each, and returns how many wait.
fn fill(line: &Line<&All<Limit, ManualClock>>, clock: &ManualClock) -> u64 {
    let on = line.with_timer(clock);
    let mut waiting = Vec::new();
    loop {
        let mut one = Box::pin(on.acquire());
        match poll(one.as_mut()) {
            Poll::Pending => waiting.push(one),
            Poll::Ready(Ok(granted)) => panic!("not emptied: {granted:?}"),
            Poll::Ready(Err(AllDenied::LineFull { .. })) => break waiting.len() as u64,
            Poll::Ready(Err(denied)) => panic!("{denied}"),
        }
        assert!(waiting.len() < 100_000, "the line has no bound");
    }
}

#[test]
fn a_line_before_each_kind_of_limit_holds_exactly_its_bound() {
    for bound in [0, 1, 5, 300] {
        let clock = ManualClock::new();
        for (name, limit) in limits(&clock) {
            let limit = All::new(limit).expect("a limit");
            let line = Line::new(&limit).max_waiting_permits(bound);
            drop(line.try_acquire_n(10).expect("it is full"));
            assert_eq!(fill(&line, &clock), bound, "{name}");
            // All of them have been dropped.
            assert_eq!((line.waiting(), line.waiting_permits()), (0, 0), "{name}");
        }
    }
}

#[test]
fn a_line_holds_exactly_its_bound_at_every_rate() {
    for n in [1, 7, 300, 999_999_937, 3_000_000_000] {
        for (burst, bound) in [(1, 0), (1, 1), (1, 100), (4, 3), (4, 1000), (6, 10_000)] {
            let clock = ManualClock::new();
            let limit: Limit = Box::new(rate(Quota::per_second(n).burst(burst), &clock));
            let limit = All::new(limit).expect("a limit");
            let line = Line::new(&limit).max_waiting_permits(bound);
            drop(line.try_acquire_n(burst).expect("it is full"));
            assert_eq!(fill(&line, &clock), bound, "{n} a second, {burst} at once");
        }
    }
}

#[test]
fn a_request_waits_for_the_largest_of_its_costs() {
    let clock = ManualClock::new();
    let [requests, tokens] = [10, 1000].map(|n| rate(Quota::per_second(n), &clock));
    let limits = All::new((&requests, &tokens)).expect("two limits");
    let line = Line::new(&limits).max_waiting_permits(1500);
    drop(line.try_acquire_each([1, 1000]).expect("it is full"));
    let on = line.with_timer(&clock);
    let first = that_waits(on.acquire_each([1, 800]));
    assert_eq!(line.waiting_permits(), 800);
    let denied = ready(pin!(on.acquire_each([1, 701]))).expect_err("it waits");
    let expected = "line is full: 800 permits wait, and 701 more would exceed 1500";
    assert_eq!(denied.to_string(), expected);
    let _second = that_waits(on.acquire_each([9, 700]));
    drop(first);
    assert_eq!(line.waiting_permits(), 700);
}

#[test]
fn a_caller_whose_time_runs_out_makes_room() {
    let clock = ManualClock::new();
    let inside = Concurrency::new(1).expect("a limit");
    let limits = All::new((rate(Quota::per_second(10), &clock), &inside)).expect("two limits");
    let line = Line::new(&limits).max_waiting_permits(1);
    let granted = line.try_acquire().expect("both have room");
    let on = line.with_timer(&clock);
    let mut short = that_waits(on.acquire_timeout(1, Duration::from_secs(1)));
    let is_full = || matches!(ready(pin!(on.acquire())), Err(AllDenied::LineFull { .. }));
    assert!(is_full());
    clock.set(tick(SECOND));
    let answer = ready(short.as_mut());
    assert!(matches!(answer, Err(AllDenied::Member { .. })));
    assert_eq!(line.waiting_permits(), 0);
    let mut next = that_waits(on.acquire());
    assert!(is_full());
    drop(granted);
    assert!(matches!(poll(next.as_mut()), Poll::Ready(Ok(_))));
    assert_eq!(line.waiting_permits(), 0);
}

#[test]
fn a_thread_is_refused_at_once() {
    deadline("a thread that is refused", || {
        let clock = ManualClock::new();
        let limit = All::new(rate(Quota::per_second(10), &clock)).expect("a limit");
        let line = Line::new(&limit).max_waiting_permits(2);
        drop(line.blocking_acquire_n(10).expect("it is full"));
        let second = Duration::from_secs(1);
        for denied in [
            line.blocking_acquire_n(3).err(),
            line.blocking_acquire_each([3]).err(),
            line.blocking_acquire_timeout(3, second).err(),
            line.blocking_acquire_each_timeout([3], second).err(),
        ] {
            assert!(
                matches!(denied, Some(AllDenied::LineFull { .. })),
                "{denied:?}"
            );
        }
        assert_eq!((line.waiting(), line.waiting_permits()), (0, 0));
    });
}

/// The first in line waits in the member's own line, which is bounded too.
#[test]
fn the_bound_of_a_concurrency_holds_for_lines_before_it() {
    let clock = ManualClock::new();
    let inside = Concurrency::new(2).expect("a limit").max_waiting_permits(1);
    let inside = Arc::new(inside);
    let limits = All::new((rate(Quota::per_second(10), &clock), Arc::clone(&inside)));
    let limits = limits.expect("two limits");
    let line = Line::new(&limits);
    let outside = inside.try_enter_owned(2).expect("room");
    let mut other = inside.enter_owned(1);
    assert!(poll(Pin::new(&mut other)).is_pending());
    let on = line.with_timer(&clock);
    let denied = ready(pin!(on.acquire())).expect_err("it waits in a full line");
    assert_eq!(denied.member(), Some(1));
    assert_eq!(denied.denied(), Some(Denied::line_full(1, 1, 1)));
    drop(other);
    let mut first = that_waits(on.acquire());
    assert_eq!((inside.waiting_permits(), line.waiting_permits()), (1, 1));
    drop(outside);
    assert!(poll(first.as_mut()).is_ready());
    assert_eq!((inside.waiting_permits(), line.waiting_permits()), (0, 0));
}

/// Waits with three permits when it is woken, and notes whether it may, and how many permits waited
/// before.
struct Comes {
    clock: ManualClock,
    line: Arc<Line<Limits>>,
    noted: Mutex<Vec<(u64, bool)>>,
}

impl Wake for Comes {
    fn wake(self: Arc<Self>) {
        let waiting = self.line.waiting_permits();
        let on = self.line.with_timer(&self.clock);
        let may_wait = poll(pin!(on.acquire_n(3))).is_pending();
        let mut noted = self.noted.lock().expect("no panic");
        noted.push((waiting, may_wait));
    }
}

/// The first in line leaves, and its permits make room before the next caller wakes: some executors
/// run a task inside the call that wakes it.
#[test]
fn a_caller_that_leaves_has_made_room_when_the_next_one_wakes() {
    for leaves in ["dropped", "late", "granted", "denied"] {
        let tested = Tested::new(Quota::per_second(1).burst(3), 3);
        let (clock, inside) = (tested.clock, tested.inside);
        let line = Arc::new(tested.line.max_waiting_permits(4));
        let outside = inside.try_enter_owned(3).expect("room");
        let on = line.with_timer(&clock);
        let mut first = that_waits(on.acquire_timeout(3, Duration::from_secs(1)));
        let mut second = Box::pin(on.acquire());
        let comes = Arc::new(Comes {
            clock: clock.clone(),
            line: Arc::clone(&line),
            noted: Mutex::default(),
        });
        assert!(poll_by(second.as_mut(), &Waker::from(Arc::clone(&comes))).is_pending());
        match leaves {
            "dropped" => drop(first),
            "late" => {
                clock.set(tick(SECOND));
                assert!(matches!(poll(first.as_mut()), Poll::Ready(Err(_))));
            }
            "granted" => {
                drop(outside);
                assert!(matches!(poll(first.as_mut()), Poll::Ready(Ok(_))));
            }
            _ => {
                assert_eq!((inside.set_limit(2), inside.set_limit(3)), (Ok(3), Ok(2)));
                assert!(matches!(poll(first.as_mut()), Poll::Ready(Err(_))));
            }
        }
        let noted = std::mem::take(&mut *comes.noted.lock().expect("no panic"));
        assert_eq!(noted, [(1, true)], "{leaves}");
        assert_eq!((line.waiting(), line.waiting_permits()), (1, 1), "{leaves}");
        drop(second);
        assert_eq!((line.waiting(), line.waiting_permits()), (0, 0), "{leaves}");
    }
}
