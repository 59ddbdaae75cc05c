//! Six keys in tables of two and of four slots, at ticks that differ from thread to thread: keys leave as idle, are
//! evicted and forgotten, and come again, and each keeps its bound on the ticks at which its grants are counted, but
//! for beginning anew each time that it was evicted or forgotten. Also if threads stop for ever in the middle: then all
//! others come to their end, and who comes later finds room.

#![cfg(tollgate_shuttle)]

use std::sync::Arc;
use std::time::Duration;

use tollgate::primitive::modelled::{Mistake, Stop, stopping};
use tollgate::{Denied, Overflow, Quota, Tick, TokenBucket};
use tollgate_shuttle_tests::{
    Body, Books, Promise, Table, act, actor, below, check_table, mistaken, model, one_in, reached,
    stored, table,
};

const KEYS: usize = 6;
const CALLS: u64 = 8;
const PROMISE: Promise = Promise {
    burst: 2,
    permits: 1,
    period: 4,
};
/// When all is idle, and after which it is again.
const LATER: u64 = 10_000;

type Gate = Table<TokenBucket>;

fn gate(slots: usize, overflow: Overflow) -> Arc<Gate> {
    let quota = Quota::per(PROMISE.permits, Duration::from_nanos(PROMISE.period));
    let bucket = TokenBucket::new(quota.burst(PROMISE.burst)).expect("a quota");
    Arc::new(table([bucket], slots, overflow))
}

/// Takes permits of all keys, and now and then forgets one. Its time moves on by itself.
fn goes_on(gate: &Gate, forgets: bool, books: &mut Books<KEYS>) {
    let mut now = 100 + below(12);
    for _ in 0..CALLS {
        now += below(5);
        let (key, at) = (below(KEYS as u64) as usize, Tick::from_nanos(now));
        let view = gate.key(&key).at(at);
        match below(8) {
            0 if forgets => books.forgotten[key] += u64::from(gate.forget(&key)),
            0 => {
                let keys = [key, below(KEYS as u64) as usize];
                let mut outcomes = [Err(Denied::busy(1)); 2];
                let length = gate.check_many_at(&keys, &mut outcomes, at);
                length.expect("there are two");
                for (key, outcome) in keys.into_iter().zip(outcomes) {
                    books.enter(key, 1, outcome);
                }
            }
            1 => assert!(view.available() <= PROMISE.burst),
            2 => books.enter(key, 2, view.try_acquire_n(2)),
            _ => books.enter(key, 1, view.try_acquire()),
        }
    }
}

/// All come to their end.
fn turnover<const SLOTS: usize, const EVICTS: bool, const FORGETS: bool>() {
    let gate = gate(
        SLOTS,
        if EVICTS {
            Overflow::Evict
        } else {
            Overflow::Deny
        },
    );
    let actors = (0..4).map(|_| {
        let gate = Arc::clone(&gate);
        actor(move || {
            let mut books = Books::default();
            goes_on(&gate, FORGETS, &mut books);
            books
        })
    });
    let books = Books::of_all(act(actors.collect()));
    check(&gate, &books, 0);
    assert_eq!(gate.stats().forgotten, books.forgotten.iter().sum::<u64>());
    assert_eq!(gate.stats().no_room, books.no_room, "not as often");
    let evicted = |key: usize| {
        let losses = PROMISE.losses(&books.grants[key]);
        losses.saturating_sub(books.forgotten[key])
    };
    let evicted: u64 = (0..KEYS).map(evicted).sum();
    assert!(evicted <= gate.stats().evicted, "more than was promised");
}

/// Two of five stop for ever.
fn two_stop<const SLOTS: usize, const EVICTS: bool>() {
    let gate = gate(
        SLOTS,
        if EVICTS {
            Overflow::Evict
        } else {
            Overflow::Deny
        },
    );
    let actors = (0..5).map(|number| {
        let gate = Arc::clone(&gate);
        actor(move || {
            let mut books = Books::default();
            let stop = Stop::Operations(match number {
                0 | 1 => below(80),
                _ => u64::MAX,
            });
            let stopped = stopping(stop, || goes_on(&gate, one_in(2), &mut books)).is_none();
            (books, usize::from(stopped))
        })
    });
    let (books, stopped): (Vec<_>, Vec<_>) = act(actors.collect()).into_iter().unzip();
    let stopped = stopped.into_iter().sum();
    check(&gate, &Books::of_all(books), stopped);
    for key in 0..KEYS {
        let later = Tick::from_nanos(LATER * (key as u64 + 1));
        assert!(
            gate.try_acquire_at(&key, later).is_ok(),
            "no room for who comes later"
        );
    }
    check_table::<_, KEYS>(&gate, stopped);
}

fn check(gate: &Gate, books: &Books<KEYS>, stopped: usize) {
    if gate.claims() > 0 {
        reached("a claim is left");
    }
    check_table::<_, KEYS>(gate, stopped);
    let stats = gate.stats();
    for (count, what) in [
        (stats.taken_over, "taken over"),
        (stats.evicted, "evicted"),
        (stats.forgotten, "forgotten"),
        (stats.no_room, "no room"),
        (stopped as u64, "stopped"),
    ] {
        if count > 0 {
            reached(what);
        }
    }
    let losses: u64 = books
        .grants
        .iter()
        .map(|of_key| PROMISE.losses(of_key))
        .sum();
    assert!(
        losses <= stats.evicted + stats.forgotten,
        "more than was promised"
    );
}

/// What is wrong with a table in which keys are held to less.
const WRONG: &str =
    "more than was promised | two slots of a key | not as many keys | a claim is left";

fn sabotage(name: &str, mistakes: &[Mistake], body: impl Body) {
    for mistake in mistakes {
        mistaken(name, *mistake, WRONG, body);
    }
}

#[test]
fn idle_keys_leave() {
    let name = "keyed_turnover::idle_keys_leave";
    let all = ["taken over", "no room"];
    model(
        &format!("{name}, 2 slots"),
        10_000,
        &all,
        turnover::<2, false, false>,
    );
    model(
        &format!("{name}, 4 slots"),
        10_000,
        &all,
        turnover::<4, false, false>,
    );
    let mistakes = [
        Mistake::LooksOnce,
        Mistake::TakesWhoIsBusy,
        Mistake::RaisesAfterwards,
        Mistake::IgnoresTheHorizon,
        Mistake::NumbersAlike,
        Mistake::LeavesOtherClaims,
        Mistake::GivesUpBlindly,
    ];
    sabotage(name, &mistakes, turnover::<2, false, false>);
    stored(name, WRONG, turnover::<2, false, false>);
}

#[test]
fn keys_are_evicted_and_forgotten() {
    let name = "keyed_turnover::keys_are_evicted_and_forgotten";
    let all = ["taken over", "evicted", "forgotten"];
    model(
        &format!("{name}, 2 slots"),
        10_000,
        &all,
        turnover::<2, true, true>,
    );
    model(
        &format!("{name}, 4 slots"),
        10_000,
        &all,
        turnover::<4, true, true>,
    );
    model(
        &format!("{name}, denied"),
        10_000,
        &["forgotten", "no room"],
        turnover::<2, false, true>,
    );
}

#[test]
fn who_stops_stops_nobody() {
    let name = "keyed_turnover::who_stops_stops_nobody";
    let all = ["stopped", "a claim is left", "taken over", "evicted"];
    model(
        &format!("{name}, 2 slots"),
        10_000,
        &all,
        two_stop::<2, true>,
    );
    model(
        &format!("{name}, 4 slots, denied"),
        10_000,
        &all[..3],
        two_stop::<4, false>,
    );
}
