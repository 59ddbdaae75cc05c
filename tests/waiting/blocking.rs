//! Threads that wait.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use tollgate::{
    Clock, Denied, LeakyBucket, Limiter, ManualClock, Pacer, Quota, Tick, TokenBucket, WaitingRoom,
};

use crate::counting::{Audited, Counting, Readings, run_until};

fn manual(quota: Quota) -> (ManualClock, Limiter<TokenBucket, ManualClock>) {
    let clock = ManualClock::new();
    let bucket = TokenBucket::new(quota).expect("a quota");
    (clock.clone(), Limiter::with_clock(bucket, clock))
}

#[test]
fn a_thousand_threads_read_the_clock_twice_each_and_end_when_they_should() {
    const WAITERS: u64 = 1000;
    let readings = Readings::default();
    let clock = ManualClock::new();
    let bucket = TokenBucket::new(Quota::per_second(1000).burst(1)).expect("a quota");
    let counting = Counting {
        clock: clock.clone(),
        readings: &readings,
    };
    let gate = Limiter::with_clock(bucket, counting);
    let begun = readings.count();
    let ends = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let waiters: Vec<_> = (0..WAITERS)
            .map(|_| {
                scope.spawn(|| {
                    let granted = gate.acquire().expect("it will be there");
                    let now = clock.now();
                    assert!(now >= granted.at(), "early: {now:?} for {granted:?}");
                    ends.lock().expect("nobody panicked").push(granted.at());
                })
            })
            .collect();
        run_until(&clock, || waiters.iter().all(|waiter| waiter.is_finished()));
    });
    assert!(readings.count() - begun <= 2 * WAITERS);
    // Each has a tick of its own, and there is none between them that nobody has.
    let mut ends = ends.into_inner().expect("nobody panicked");
    ends.sort();
    let first = ends[0].as_nanos();
    for (place, end) in (0..).zip(&ends) {
        // Who came after the clock had moved on comes later.
        assert!(end.as_nanos() >= first + place * 1_000_000);
    }
    let ideal = (WAITERS - 1) * 1_000_000;
    let last = ends[ends.len() - 1].as_nanos();
    assert!(last <= ideal + ideal / 100, "{last} where {ideal} is ideal");
}

#[test]
fn who_waits_is_due_in_the_order_of_arrival() {
    let (clock, gate) = manual(Quota::per_second(10).burst(3));
    let gate = Audited::new(gate);
    let room = WaitingRoom::for_wait(&gate, Duration::MAX);
    thread::scope(|scope| {
        let waiters: Vec<_> = (0..64)
            .map(|i| scope.spawn(move || i % 3 + 1))
            .map(|n| n.join().expect("nobody panicked"))
            .map(|n| {
                let room = &room;
                scope.spawn(move || room.enter(n).map(|granted| granted.at()))
            })
            .collect();
        run_until(&clock, || waiters.iter().all(|waiter| waiter.is_finished()));
    });
    let dues = gate.account().dues;
    assert_eq!(dues.len(), 64);
    assert!(dues.is_sorted(), "{dues:?}");
}

#[test]
fn a_timeout_of_zero_is_a_try() {
    let (clock, gate) = manual(Quota::per_second(10).burst(2));
    assert_eq!(
        gate.acquire_timeout(2, Duration::ZERO).map(|g| g.n()),
        Ok(2)
    );
    let denied = gate.acquire_timeout(1, Duration::ZERO).unwrap_err();
    assert_eq!(denied.retry_after(), Some(Duration::from_millis(100)));
    assert_eq!(gate.try_acquire().unwrap_err(), denied);
    clock.advance(Duration::from_millis(100));
    assert!(gate.acquire_timeout(1, Duration::ZERO).is_ok());
}

#[test]
fn what_can_never_be_is_said_at_once() {
    let (_, gate) = manual(Quota::per_second(10).burst(2));
    let never = |denied: Denied| denied.is_permanent() && denied.requested() == 3;
    assert!(never(gate.acquire_n(3).unwrap_err()));
    assert!(never(gate.reserve(3).map(|_| ()).unwrap_err()));
    assert!(never(gate.acquire_timeout(3, Duration::MAX).unwrap_err()));
    let within = gate.reserve_within(3, Duration::MAX);
    assert!(never(within.map(|_| ()).unwrap_err()));
    assert_eq!(gate.available(), 2, "and nothing was taken");
    // And neither will what is beyond the clock's end.
    gate.charge(u64::MAX);
    assert!(matches!(gate.acquire(), Err(Denied::Stuck { .. })));
}

#[test]
fn who_would_come_too_late_takes_nothing() {
    let (_, gate) = manual(Quota::per_second(10).burst(1));
    let room = WaitingRoom::for_wait(&gate, Duration::from_millis(250));
    let dues = (0..3).map(|_| room.reserve(1).expect("a place").due());
    let dues: Vec<_> = dues.map(|due| due.as_nanos() / 1_000_000).collect();
    assert_eq!(dues, [0, 100, 200]);
    for _ in 0..2 {
        let full = room.enter(1).unwrap_err();
        assert_eq!(full.retry_after(), Some(Duration::from_millis(50)));
    }
    assert_eq!(room.waiting(), 2);
}

#[test]
fn a_queue_lets_them_out_at_its_rate() {
    let clock = ManualClock::new();
    let queue = LeakyBucket::queue(Quota::per_second(10).burst(2)).expect("a quota");
    let gate = Limiter::with_clock(queue, clock.clone());
    let outs = thread::scope(|scope| {
        let waiters: Vec<_> = (0..5)
            .map(|_| scope.spawn(|| gate.acquire().expect("it is let out").at()))
            .collect();
        run_until(&clock, || waiters.iter().all(|waiter| waiter.is_finished()));
        let outs = waiters.into_iter().map(|waiter| waiter.join());
        outs.map(|out| out.expect("nobody panicked"))
            .collect::<Vec<_>>()
    });
    let mut outs: Vec<_> = outs.iter().map(|out| out.as_nanos()).collect();
    outs.sort_unstable();
    for pair in outs.windows(2) {
        assert!(pair[1] - pair[0] >= 100_000_000, "{outs:?}");
    }
    assert_eq!(gate.reserve(1).expect("a place").n(), 1);
}

#[test]
fn a_pacer_keeps_its_rate_though_each_wakes_late() {
    const LATE: Duration = Duration::from_micros(150);
    let clock = ManualClock::new();
    let pacer = Pacer::with_clock(Quota::per_second(1000), 10, clock.clone()).expect("a quota");
    for _ in 0..=10_000 {
        let due = pacer.reserve().expect("the clock goes on").due();
        if due > clock.now() {
            clock.set(due.saturating_add(LATE));
        }
    }
    // A thousandth of a second each, and one wake-up late.
    let expected = Tick::from_nanos(10_000_000_000).saturating_add(LATE);
    assert!(clock.now() <= expected, "{:?}", clock.now());
}

#[test]
fn a_pacer_without_slack_is_never_less_than_an_interval_apart() {
    let clock = ManualClock::new();
    let pacer = Pacer::with_clock(Quota::per_second(300), 0, clock.clone()).expect("a quota");
    let mut last: Option<Tick> = None;
    for step in 0..1000_u64 {
        clock.advance(Duration::from_micros(step * 7919 % 9000));
        let due = pacer.reserve().expect("the clock goes on").due();
        if let Some(last) = last {
            assert!(due.saturating_since(last) > pacer.interval());
        }
        last = Some(due);
    }
    assert_eq!((pacer.slack(), pacer.interval().as_nanos()), (0, 3_333_333));
}
