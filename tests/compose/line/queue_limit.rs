//! A line that is bounded by the permits that wait decides as .NET's `QueueLimit` does (oldest
//! first): nine cases, three for each of three limiters of four permits that come back with time.
//!
//! .NET's sliding window of four segments is a `SlottedWindow` of four slots.

use tollgate::compose::{AllDenied, BoxMember, Line};

use crate::support::*;

type Limits = Arc<All<BoxMember<'static, ManualClock>, ManualClock>>;
type Acquire = Polled<'static, Result<(), AllDenied>>;

/// The limiters of .NET that replenish with time.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Gets one permit a second.
    TokenBucket,
    /// Begins anew every four seconds.
    FixedWindow,
    /// Is four seconds long, and moves on each second.
    SlidingWindow,
}

/// A limiter with a bounded line, and the callers in line.
struct Queue {
    clock: ManualClock,
    line: Arc<Line<Limits>>,
    /// Each caller in line, with its name.
    waiters: Vec<(char, Acquire)>,
    /// Each granted caller, and the second of its grant.
    granted: Vec<(char, u64)>,
}

impl Queue {
    fn before(
        clock: ManualClock,
        limiter: BoxMember<'static, ManualClock>,
        max_waiting: u64,
    ) -> Self {
        let limits = Arc::new(All::new(limiter).expect("a limit"));
        let line = Arc::new(Line::new(limits).max_waiting_permits(max_waiting));
        Self {
            clock,
            line,
            waiters: Vec::new(),
            granted: Vec::new(),
        }
    }

    /// Makes a limiter without a permit. Those of the sliding window were taken in two seconds.
    fn emptied(kind: Kind, queue_limit: u64) -> Self {
        let clock = ManualClock::new();
        let four = Quota::per(4, Duration::from_secs(4));
        let on = clock.clone();
        let limiter: BoxMember<'static, ManualClock> = match kind {
            Kind::TokenBucket => {
                let bucket = TokenBucket::new(four).expect("a quota");
                Box::new(Limiter::with_clock(bucket, on))
            }
            Kind::FixedWindow => {
                let window = FixedWindow::new(four).expect("a quota");
                Box::new(Limiter::with_clock(window, on))
            }
            Kind::SlidingWindow => {
                Box::new(SlottedWindow::with_clock(four, 4, on).expect("a quota"))
            }
        };
        let queue = Self::before(clock, limiter, queue_limit);
        let first = match kind {
            Kind::SlidingWindow => 2,
            _ => 4,
        };
        drop(queue.line.try_acquire_n(first).expect("it is full"));
        if first < 4 {
            queue.clock.advance(Duration::from_secs(1));
            drop(queue.line.try_acquire_n(4 - first).expect("two are left"));
        }
        queue
    }

    /// Asks for permits. Returns whether the caller stands in line.
    fn ask(&mut self, name: char, n: u64) -> Result<bool, AllDenied> {
        let (line, clock) = (Arc::clone(&self.line), self.clock.clone());
        let mut acquire = Polled::new(async move {
            let timed = line.with_timer(&clock);
            timed.acquire_n(n).await.map(drop)
        });
        match acquire.poll() {
            Poll::Ready(answer) => answer.map(|()| false),
            Poll::Pending => {
                self.waiters.push((name, acquire));
                Ok(true)
            }
        }
    }

    fn waits(&mut self, name: char, n: u64) {
        assert_eq!(self.ask(name, n), Ok(true), "{name} does not wait");
    }

    /// Asserts that this request is refused at once, and changes nothing.
    fn is_refused(&mut self, n: u64, waiting: u64, max_waiting: u64) {
        let before = (self.line.waiting(), self.clock.sleepers());
        let denied = self.ask('-', n).expect_err("the line is full");
        let expected = format!(
            "line is full: {waiting} permits wait, and {n} more would exceed {max_waiting}"
        );
        assert_eq!(denied.to_string(), expected);
        assert!(matches!(denied, AllDenied::LineFull { requested, .. } if requested == n));
        assert_eq!((denied.is_permanent(), denied.retry_after()), (false, None));
        assert_eq!((self.line.waiting(), self.clock.sleepers()), before);
        assert_eq!(self.line.waiting_permits(), waiting);
    }

    /// Drops a caller's future, and polls the callers that are woken.
    fn cancels(&mut self, name: char) {
        let waiter = self.waiters.iter().position(|(waiter, _)| *waiter == name);
        drop(self.waiters.remove(waiter.expect("it waits")));
        self.poll_woken();
    }

    fn poll_woken(&mut self) {
        let is_woken = |(_, acquire): &(char, Acquire)| acquire.was_woken();
        while let Some(woken) = self.waiters.iter().position(is_woken) {
            if let Poll::Ready(answer) = self.waiters[woken].1.poll() {
                assert_eq!(answer, Ok(()));
                let second = self.clock.now().as_nanos() / SECOND;
                self.granted.push((self.waiters.remove(woken).0, second));
            }
        }
    }

    /// Moves the clock by seconds until one more caller is granted.
    fn until_granted(&mut self) {
        let granted = self.granted.len();
        while self.granted.len() == granted {
            let now = self.clock.now().as_nanos() / SECOND;
            assert!(now < 20, "a caller is not granted");
            self.clock.advance(Duration::from_secs(1));
            self.poll_woken();
        }
    }

    fn ends_empty(&mut self, granted: &[(char, u64)], available: u64) {
        while !self.waiters.is_empty() {
            self.until_granted();
        }
        assert_eq!(self.granted, granted);
        assert_eq!((self.line.waiting(), self.line.waiting_permits()), (0, 0));
        assert_eq!(self.line.inner().available(), available);
    }
}

/// Requests are refused at once if the permits that wait and those that they ask for are more than
/// the bound.
fn refuses_what_exceeds_the_bound(kind: Kind) {
    let mut queue = Queue::emptied(kind, 3);
    queue.waits('a', 2);
    queue.is_refused(2, 2, 3);
    queue.waits('b', 1);
    queue.is_refused(1, 3, 3);
    queue.is_refused(4, 3, 3);

    // All permits of a request count, even if some are there.
    let mut queue = Queue::emptied(kind, 3);
    queue.clock.set(tick(8 * SECOND));
    drop(queue.line.try_acquire_n(3).expect("there are four"));
    queue.waits('a', 3);
    assert_eq!(queue.line.inner().available(), 1);
    queue.is_refused(1, 3, 3);

    // Without room, only what is there is granted.
    let mut queue = Queue::emptied(kind, 0);
    queue.is_refused(1, 0, 0);
    queue.clock.set(tick(8 * SECOND));
    assert_eq!(queue.ask('a', 3), Ok(false));
    queue.is_refused(2, 0, 0);
    assert_eq!(queue.ask('b', 1), Ok(false));
}

/// As permits come back, callers are granted in order, and each makes room for its permits.
fn grants_in_order(kind: Kind, granted: [(char, u64); 3], available: u64) {
    let mut queue = Queue::emptied(kind, 3);
    queue.waits('a', 2);
    queue.waits('b', 1);
    queue.until_granted();
    queue.waits('c', 2);
    let waiting = queue.line.waiting_permits();
    queue.is_refused(2, waiting, 3);
    queue.ends_empty(&granted, available);
}

/// A caller that gives up makes room for its permits, also if it is the first in line. Requests
/// that can never be granted, and requests for no permits, need no room.
fn cancelled_waits_make_room(kind: Kind, granted: [(char, u64); 3], available: u64) {
    let mut queue = Queue::emptied(kind, 3);
    queue.waits('a', 2);
    queue.waits('b', 1);
    queue.is_refused(1, 3, 3);
    queue.cancels('b');
    queue.waits('c', 1);
    queue.is_refused(1, 3, 3);
    queue.cancels('a');
    assert_eq!(queue.line.waiting_permits(), 1);
    queue.is_refused(3, 1, 3);
    queue.waits('d', 2);
    queue.is_refused(1, 3, 3);
    let denied = queue.ask('e', 5).expect_err("more than the limit");
    assert!(denied.is_permanent());
    queue.waits('f', 0);
    queue.ends_empty(&granted, available);
}

#[test]
fn each_limiter_refuses_what_exceeds_the_bound() {
    for kind in [Kind::TokenBucket, Kind::FixedWindow, Kind::SlidingWindow] {
        println!("{kind:?}");
        refuses_what_exceeds_the_bound(kind);
    }
}

#[test]
fn each_limiter_grants_in_order() {
    for (kind, [a, b, c], available) in [
        (Kind::TokenBucket, [2, 3, 5], 0),
        (Kind::FixedWindow, [4, 4, 8], 2),
        (Kind::SlidingWindow, [4, 5, 8], 1),
    ] {
        println!("{kind:?}");
        grants_in_order(kind, [('a', a), ('b', b), ('c', c)], available);
    }
}

#[test]
fn cancelled_waits_for_each_limiter_make_room() {
    for (kind, [c, d, f], available) in [
        (Kind::TokenBucket, [1, 3, 3], 0),
        (Kind::FixedWindow, [4, 4, 4], 1),
        (Kind::SlidingWindow, [4, 5, 5], 1),
    ] {
        println!("{kind:?}");
        cancelled_waits_make_room(kind, [('c', c), ('d', d), ('f', f)], available);
    }
}
