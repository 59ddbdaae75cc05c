//! First come, first served, to the letter: weights included, and nobody passes unless asked to.

use std::task::Poll;

use tollgate::Concurrency;

use super::{Waiter, busy, gate};

/// Lets waiters of these weights stand in line behind a full gate, opens it by a place at a time, and says
/// in which order they came in.
fn order(limit: u64, weights: &[u64]) -> Vec<usize> {
    let gate = gate(limit);
    let mut held: Vec<_> = (0..limit).map(|_| gate.try_enter()).collect();
    let mut waiters: Vec<_> = weights
        .iter()
        .map(|n| Some(Waiter::standing(&gate, *n)))
        .collect();
    let mut order = Vec::new();
    while order.len() < weights.len() {
        // Whoever came in leaves before the next place is given.
        match held.pop() {
            Some(guard) => drop(guard),
            None => panic!("somebody is forgotten: {order:?} came in"),
        }
        loop {
            let woken = |waiter: &Option<Waiter>| waiter.as_ref().is_some_and(|w| w.woken() > 0);
            let now: Vec<usize> = (0..waiters.len()).filter(|i| woken(&waiters[*i])).collect();
            // Those let in together stood next to each other: the lower came first.
            for i in &now {
                let mut waiter = waiters[*i].take().expect("a waiter");
                assert!(matches!(waiter.poll(), Poll::Ready(Ok(_))));
                order.push(*i);
            }
            if now.is_empty() {
                break;
            }
        }
    }
    order
}

#[test]
fn waiters_come_in_the_order_in_which_they_began_to_wait() {
    let weights = [5, 1, 1, 3, 4, 2, 5, 1, 0, 2, 4, 1, 1, 1];
    let expected: Vec<usize> = (0..weights.len()).collect();
    assert_eq!(order(5, &weights), expected);
    assert_eq!(order(1, &[1; 100]), (0..100).collect::<Vec<_>>());
}

#[test]
fn a_large_one_in_front_is_not_starved() {
    let gate = gate(4);
    let mut held: Vec<_> = (0..4).map(|_| gate.try_enter().expect("room")).collect();
    let mut large = Waiter::standing(&gate, 4);
    let mut small = Waiter::standing(&gate, 1);
    for _ in 0..3 {
        held.pop();
        assert_eq!((large.woken(), small.woken()), (0, 0));
        assert!(small.poll().is_pending(), "it passed the large one");
        assert_eq!(gate.try_enter().err(), busy(1), "it passed both");
    }
    held.pop();
    assert_eq!((large.woken(), small.woken()), (1, 0));
    let Poll::Ready(Ok(guard)) = large.poll() else {
        panic!("it was woken")
    };
    assert_eq!(gate.inside(), 4);
    drop(guard);
    assert_eq!(small.woken(), 1);
}

#[test]
fn who_stands_in_line_is_passed_on_demand_alone() {
    let gate = gate(3);
    let held = gate.try_enter_n(2).expect("room");
    let large = Waiter::standing(&gate, 2);
    assert_eq!(gate.try_enter().err(), busy(1));
    assert_eq!(gate.try_enter_owned(1).err(), busy(1));
    assert_eq!(gate.try_enter_n(0).err(), busy(0));
    assert_eq!(
        gate.enter().wait_timeout(std::time::Duration::ZERO).err(),
        busy(1)
    );
    let ahead = gate.try_enter_ahead(1).expect("room");
    assert_eq!(gate.try_enter_ahead(1).err(), busy(1));
    drop(held);
    assert_eq!(large.woken(), 1);
    drop((ahead, large));
    assert_eq!((gate.inside(), gate.waiting()), (0, 0));
}

#[test]
fn a_place_is_taken_when_first_polled() {
    let gate = gate(1);
    let held = gate.try_enter().expect("room");
    let mut early = Waiter::new(&gate, 1);
    let late = Waiter::standing(&gate, 1);
    assert!(early.poll().is_pending());
    drop(held);
    assert_eq!((early.woken(), late.woken()), (0, 1));
}

#[test]
fn who_gives_up_makes_way() {
    let gate = gate(4);
    let held = gate.try_enter_n(3).expect("room");
    let large = Waiter::standing(&gate, 2);
    let (one, other) = (Waiter::standing(&gate, 1), Waiter::standing(&gate, 1));
    // In the middle: nobody can come in by that.
    drop(Waiter::standing(&gate, 1));
    assert_eq!((one.woken(), gate.waiting()), (0, 3));
    drop(large);
    assert_eq!((one.woken(), other.woken()), (1, 0));
    // Let in, and does not know it: it goes to the next.
    drop(one);
    assert_eq!((other.woken(), gate.inside(), gate.waiting()), (1, 4, 0));
    drop((held, other));
    assert_eq!(gate.inside(), 0);
}

#[test]
fn the_last_waker_is_the_one_that_is_woken() {
    let gate = gate(1);
    let held = gate.try_enter().expect("room");
    let mut waiter = Waiter::standing(&gate, 1);
    let first = std::mem::replace(&mut waiter.bell, Waiter::new(&gate, 1).bell);
    assert!(waiter.poll().is_pending());
    drop(held);
    let old = first.0.load(tollgate::primitive::Ordering::Relaxed);
    assert_eq!((old, waiter.woken()), (0, 1));
}

#[test]
fn a_limit_that_changes_lets_in_and_refuses() {
    let gate = gate(4);
    let held = gate.try_enter_n(4).expect("room");
    let mut heavy = Waiter::standing(&gate, 3);
    let (mut one, two) = (Waiter::standing(&gate, 2), Waiter::standing(&gate, 2));
    assert_eq!(gate.set_limit(6), Ok(4));
    assert_eq!(
        (heavy.woken(), one.woken()),
        (0, 0),
        "only two places are new"
    );
    assert_eq!(gate.set_limit(2), Ok(6));
    // It can't ever come in, and those behind it can.
    assert_eq!((heavy.woken(), one.woken()), (1, 0));
    assert!(matches!(heavy.poll(), Poll::Ready(Err(denied)) if denied.is_permanent()));
    assert_eq!((gate.inside(), gate.waiting()), (4, 2));
    assert_eq!(gate.set_limit(7), Ok(2));
    assert_eq!((one.woken(), two.woken(), gate.inside()), (1, 0, 6));
    assert!(one.poll().is_ready());
    assert_eq!(
        gate.set_limit(Concurrency::new(8).expect("a limit").limit()),
        Ok(7)
    );
    assert_eq!((two.woken(), gate.waiting()), (1, 0));
    drop(held);
}
