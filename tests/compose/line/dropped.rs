//! Callers that are dropped at random times.

use std::sync::Mutex;

use super::{Grant, Tested};
use crate::support::storm::{WAITERS, on_both_runtimes, rage};
use crate::support::*;

const BURST: u64 = 5;

fn tested() -> Tested {
    Tested::new(Quota::per_second(1000).burst(BURST), 3)
}

/// Asserts that each permit of the rate was granted or is available. The clock moves only to a tick
/// at which a caller waits for permits, so none is lost to a full bucket.
fn assert_closed(tested: &Tested, permits: u64) {
    tested.assert_empty();
    let passed = Duration::from_nanos(tested.clock.now().as_nanos());
    assert_eq!(permits + tested.rate(), BURST + passed.as_millis() as u64);
}

#[test]
fn of_twenty_thousand_callers_ten_thousand_are_dropped_and_the_accounts_close() {
    deadline("callers that are dropped", ten_thousand_are_dropped);
}

fn ten_thousand_are_dropped() {
    const CALLERS: u64 = 20_000;
    let (tested, mut random) = (tested(), Random(11));
    let (mut dropped, mut served, mut permits) = (0, Vec::new(), 0);
    let mut inside: Vec<Grant> = Vec::new();
    let mut callers = Vec::new();
    for number in 0..CALLERS {
        let mut caller = tested.caller(number % 3 + 1);
        match caller.poll() {
            Poll::Ready(granted) => {
                served.push(number);
                permits += number % 3 + 1;
                inside.push(granted.expect("there is room"));
            }
            Poll::Pending => callers.push((number, caller)),
        }
    }
    assert_eq!(served, [0, 1], "there is room for a weight of 3");
    while !callers.is_empty() {
        // The first in line is the earliest that is left. Often it is the one that is dropped.
        if dropped < CALLERS / 2 {
            let place = match random.one_in(4) {
                true => 0,
                false => random.below(callers.len() as u64) as usize,
            };
            drop(callers.remove(place));
            dropped += 1;
        }
        while let Some((number, caller)) = callers.first_mut().filter(|(_, it)| it.was_woken()) {
            let Poll::Ready(granted) = caller.poll() else {
                continue;
            };
            served.push(*number);
            permits += *number % 3 + 1;
            inside.push(granted.expect("it will be there"));
            callers.remove(0);
        }
        let mut behind = callers.iter().skip(1).take(50);
        assert!(behind.all(|(_, it)| !it.was_woken()));
        match tested.clock.next_sleeper() {
            Some(tick) if random.one_in(2) => tested.clock.set(tick.max(tested.clock.now())),
            _ if inside.is_empty() => {}
            _ => drop(inside.swap_remove(random.below(inside.len() as u64) as usize)),
        }
    }
    drop(inside);
    assert_eq!(served.len() as u64, CALLERS - dropped);
    assert!(served.is_sorted(), "a caller was overtaken");
    assert_closed(&tested, permits);
}

/// The same on threads, with callers that stay inside until other tasks have run.
#[test]
fn a_storm_closes_the_accounts() {
    deadline("a storm before a composition", || {
        on_both_runtimes(|spawn| {
            let tested = Arc::new(tested());
            let permits = Arc::new(AtomicU64::new(0));
            let inside = Arc::new(Mutex::new(Vec::new()));
            let jobs = (0..WAITERS).map(|number| {
                let (tested, permits) = (Arc::clone(&tested), Arc::clone(&permits));
                let inside = Arc::clone(&inside);
                Box::pin(async move {
                    let n = number % 3 + 1;
                    let line = tested.line.with_timer(tested.clock.clone());
                    let granted = line.acquire_n(n).await.expect("it will be there");
                    permits.fetch_add(n, SeqCst);
                    inside.lock().expect("no panic").push(granted);
                }) as _
            });
            let go_on = || {
                if let Some(tick) = tested.clock.next_sleeper() {
                    tested.clock.set(tick.max(tested.clock.now()));
                }
                drop(inside.lock().expect("no panic").pop());
            };
            rage(spawn, jobs, || tested.line.waiting(), go_on);
            inside.lock().expect("no panic").clear();
            assert!(permits.load(SeqCst) >= WAITERS / 2);
            assert_closed(&tested, permits.load(SeqCst));
        });
    });
}
