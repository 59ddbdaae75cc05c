//! A banned key of a map gets nothing until the ban's last tick, whatever is returned or changed in
//! between. Then it gets as much as a key that spent its whole burst at that tick.

use std::rc::Rc;
use std::time::Duration;

use tollgate::adjustable::Keep;
use tollgate::algorithm::ChangeQuota;
use tollgate::clock::NoClock;
use tollgate::{AnyAlgorithm, Denied, KeyedMap, Overflow, Quota, Tick};

use super::{bucket_of, map, of};
use crate::support::hooks::{Call, Hooked, at_call, unhook};
use crate::support::model::{Answer, Model, SameGrant, Verb, say};
use crate::support::{
    NOW, Random, SECOND, algorithm, all, bucket, deadline, every, often, on_threads, period, tick,
};

type Map = KeyedMap<String, AnyAlgorithm, NoClock>;

/// Checks that nothing is available until the ban ends, and that nothing can be returned.
fn is_banned(map: &Map, until: u64, of: &AnyAlgorithm) {
    let between = (0..40).map(|part| NOW + (until - 1 - NOW) / 39 * part);
    for now in between.chain([until - 1]) {
        let view = map.key("key").at(tick(now));
        let denied = view.try_acquire().expect_err("it is banned");
        let is_told = matches!(denied, Denied::Banned { requested: 1, .. });
        assert!(is_told, "{denied:?} at {now} before {until}, {of}");
        let taken = view.take_up_to(5);
        let had = (taken.n(), view.available(), view.refund(3));
        assert_eq!((had, view.undo(taken)), ((0, 0, 0), 0), "{now}, {of}");
    }
}

#[test]
fn a_banned_key_gets_nothing_before_its_longest_ban_ends_and_then_as_after_a_burst() {
    for algorithm in every() {
        let period = period(&algorithm);
        for bans in [[1; 3], [period / 3; 3], [2, 7 * period + 13, period]] {
            let map: Map = of(algorithm, 100);
            let until = NOW + bans.into_iter().max().expect("three");
            let now = tick(NOW);
            let before = map.key("key").at(now).take_up_to(1);
            for past in [0, 1, NOW - 1, NOW] {
                assert_eq!(map.key("stranger").at(now).ban(tick(past)), Ok(()));
            }
            assert!(map.len() <= 1);
            for long in bans {
                assert_eq!(map.key("key").at(now).ban(tick(NOW + long)), Ok(()));
            }
            assert_eq!(map.key("key").at(now).undo(before), 0, "{algorithm}");
            is_banned(&map, until, &algorithm);
            // Compares it with a key that spends everything at that tick.
            let other = map.key("other");
            let _ = other.at(now).take_up_to(1);
            let _ = other.at(tick(until)).take_up_to(u64::MAX);
            for now in (0..50).map(|part| until + 1 + period / 25 * part) {
                let views = [map.key("key"), other].map(|key| key.at(tick(now)));
                let [had, right] = views.map(|view| view.available());
                assert!(had <= right, "{had} of {right}, {algorithm}");
            }
            let over = map.key("key").at(now).banned_until().expect("it is banned");
            assert_eq!(map.key("key").at(over).banned_until(), None);
            let view = map.key("key").at(over);
            let granted = view.try_acquire().expect("it is over");
            assert_eq!(view.undo(granted), 1, "{algorithm}");
        }
    }
}

/// Makes the same requests to some keys and to their model. Keys are banned now and then.
#[test]
fn banned_keys_answer_as_their_model() {
    for text in [
        "token-bucket 3/7ns burst 4",
        "gcra 1/10ns tolerance 15ns",
        "leaky-queue 1/10ns burst 5 free 2",
        "fixed-window 3/40ns",
        "sliding-window 3/40ns",
        "intervals 2/30ns burst 4",
    ] {
        let map: KeyedMap<u64, AnyAlgorithm, NoClock> = of(algorithm(text), 8);
        let mut model = Model::new(&[algorithm(text)]);
        let (mut random, mut now, mut banned) = (Random(text.len() as u64), 0, 0);
        let mut kept: [Vec<_>; 3] = Default::default();
        for turn in 0..often(6_000) {
            now += random.below(12);
            let (key, n) = (turn % 3, random.below(5));
            let verb = match random.below(12) {
                _ if turn < 3 => Verb::Acquire(1),
                0 => Verb::Charge(n),
                1 => Verb::Refund(n),
                2 => Verb::Available,
                3 => Verb::Level,
                4 => match kept[key as usize].pop() {
                    Some(granted) => Verb::Undo(granted, (0, 0)),
                    None => Verb::Level,
                },
                5 => Verb::TakeUpTo(n),
                6 if random.one_in(4) => Verb::Ban(tick(now + random.below(150))),
                7 if random.one_in(20) => Verb::Reset,
                8 => Verb::TimeUntil(n),
                _ => Verb::Acquire(n),
            };
            if matches!(verb, Verb::Reset) {
                kept[key as usize].clear();
            }
            let view = map.key(&key).at(tick(now));
            let right = model.ask(key, 0, tick(now), &verb);
            let asked = format!("{verb:?}");
            let said = match verb {
                Verb::Ban(until) => {
                    assert_eq!(view.ban(until), Ok(()));
                    // A ban replaces the key's entry: earlier grants can't be undone.
                    kept[key as usize].clear();
                    Answer::Done
                }
                verb => say!(view, verb),
            };
            assert_eq!(said, right, "{asked} of {key} at {now}, {text}");
            match said {
                Answer::Outcome(Ok(SameGrant(granted))) => kept[key as usize].push(granted),
                Answer::Outcome(Err(Denied::Banned { .. })) => banned += 1,
                _ => {}
            }
        }
        assert!(banned > 50, "{banned} times banned, {text}");
    }
}

#[test]
fn a_ban_is_reported_until_it_ends() {
    let enders: [fn(&super::Map); 4] = [
        |map| assert!(map.remove(&7)),
        |map| map.key(&7).reset(),
        |map| {
            let set = map.set_quota(Quota::per_second(20), Keep::Fresh);
            assert_eq!(set, Ok(()));
        },
        |map| assert!(map.set_algorithm_afresh(&7, bucket_of(3)).is_ok()),
    ];
    for end in enders {
        let (map, _) = map(10);
        assert_eq!(map.ban_for(&7, Duration::MAX), Ok(()));
        // Other changes do not end the ban.
        assert_eq!(map.set_quota(Quota::per_second(5), Keep::Scaled), Ok(()));
        assert!(map.set_algorithm(&7, bucket_of(4)).is_ok());
        assert_eq!(map.try_acquire(&7), Err(Denied::banned(1, None)));
        assert!(map.unset_algorithm(&7));
        assert_eq!(map.try_acquire(&7), Err(Denied::banned(1, None)));
        assert!(map.banned_until(&7) > Some(tick(45 * 365 * 86_400 * SECOND)));
        end(&map);
        assert_eq!(map.banned_until(&7), None);
        assert!(map.try_acquire(&7).is_ok());
    }
}

#[test]
fn a_query_for_a_ban_inserts_no_key() {
    let (map, _) = map(10);
    assert_eq!(map.banned_until(&7), None);
    assert!(map.is_empty());
}

#[test]
fn a_ban_survives_a_new_quota() {
    for old in all() {
        for keep in [Keep::AsIs, Keep::Scaled] {
            let map: Map = of(old, 10);
            let period = period(&old);
            let until = NOW + 5 * period / 2;
            assert_eq!(map.key("key").at(tick(NOW)).ban(tick(until)), Ok(()));
            let quota = Quota::per(7, old.quota().period());
            assert_eq!(map.set_quota_at(quota, keep, tick(NOW)), Ok(()));
            is_banned(&map, until, &old);
            let later = map.key("key").at(tick(until + 3 * period)).available();
            assert!(later > 0, "{old} {keep:?}");
        }
    }
}

#[test]
fn a_ban_that_can_not_be_recorded_is_denied() {
    for overflow in [Overflow::Deny, Overflow::Admit] {
        let map: KeyedMap<u64, _, NoClock> = of(bucket("1/h"), 3);
        let map = map.with_overflow(overflow);
        let bans = (0..5).map(|key| map.key(&key).at(tick(0)).ban(Tick::MAX));
        let bans: Vec<_> = bans.collect();
        assert_eq!(bans.iter().filter(|ban| ban.is_ok()).count(), 3);
        assert!(matches!(bans[4], Err(Denied::NoRoom { .. })));
        assert_eq!((map.len(), map.stats().no_room), (3, 2));
    }
}

/// A flood evicts every key except the banned one, including keys that came back.
#[test]
fn a_banned_key_is_evicted_last() {
    let map: KeyedMap<u64, _, NoClock> = of(bucket("10/h"), 8);
    assert_eq!(map.key(&0).at(tick(0)).ban(tick(SECOND)), Ok(()));
    for key in 1..100 {
        for _ in 0..2 {
            assert!(map.try_acquire_n_at(&key, 5, tick(0)).is_ok());
        }
        assert!(map.key(&0).at(tick(0)).banned_until().is_some(), "{key}");
    }
    assert_eq!(map.stats().evicted_protected, 99 - 7);
}

/// A decision is denied if its key is banned between its read and its write.
#[test]
fn a_ban_overrides_a_decision_in_progress() {
    let map: Rc<KeyedMap<u64, Hooked, NoClock>> = Rc::new(of(Hooked(bucket_of(2)), 4));
    assert!(map.try_acquire_at(&1, tick(0)).is_ok());
    let others = Rc::clone(&map);
    at_call(Call::Step, 0, move || {
        assert_eq!(others.key(&1).at(tick(0)).ban(tick(100)), Ok(()));
    });
    let late = map.try_acquire_at(&1, tick(0));
    assert!(!unhook(), "the decision was not interrupted");
    assert!(matches!(late, Err(Denied::Banned { .. })), "{late:?}");
}

/// Threads take and return permits while a key is banned repeatedly. None is granted before the
/// latest ban ends.
#[test]
fn a_banned_key_grants_nothing_to_any_thread() {
    deadline("threads that take while a key is banned", || {
        let map: KeyedMap<u64, _, NoClock> = of(bucket_of(1_000), 4);
        for round in 1..often(200) {
            let start = tick(round * 1_000_000);
            let until = tick(round * 1_000_000 + 1_000);
            let granted = on_threads(3, |id| {
                if id == 0 {
                    assert_eq!(map.key(&7).at(start).ban(until), Ok(()));
                }
                let _ = map.try_acquire_at(&7, start);
                let _ = map.key(&7).at(start).refund(3);
                assert!(id > 0 || map.try_acquire_at(&7, start).is_err());
            });
            drop(granted);
            let view = map.key(&7).at(until);
            assert!(matches!(view.try_acquire(), Err(Denied::Banned { .. })));
            assert_eq!(view.refund(3), 0);
        }
    });
}
