//! A banned key gets nothing until the tick that was said, whatever comes back or changes meanwhile, and then what it
//! would get after a burst.

use std::time::Duration;

use tollgate::{AnyAlgorithm, Keyed, ManualClock, Quota, Tick, TokenBucket};

use crate::{all, with_less_at_first};

const NOW: u64 = 86_400_000_000_007;

fn tick(nanos: u64) -> Tick {
    Tick::from_nanos(nanos)
}

fn table(algorithm: AnyAlgorithm) -> Keyed<AnyAlgorithm, ManualClock> {
    Keyed::with_clock(algorithm, 1, ManualClock::at(tick(NOW))).expect("a table")
}

fn every() -> impl Iterator<Item = (AnyAlgorithm, u64)> {
    all().into_iter().chain(with_less_at_first())
}

/// Nothing is there for a while, and nothing can be given back.
fn is_banned(gate: &Keyed<AnyAlgorithm, ManualClock>, key: &str, from: u64, until: u64, of: &str) {
    let between = (0..40_u64).map(|part| from + (until - 1 - from) / 39 * part);
    for now in between.chain([until - 1]) {
        let view = gate.key(key).at(tick(now));
        assert!(view.try_acquire().is_err(), "{now} before {until}, {of}");
        let taken = view.take_up_to(5);
        assert_eq!(
            (taken.n(), view.available()),
            (0, 0),
            "{now} before {until}, {of}"
        );
        assert_eq!((view.refund(3), view.undo(taken)), (0, 0), "{of}");
    }
}

#[test]
fn nothing_is_granted_before_its_end_and_afterwards_what_comes_after_a_burst() {
    for (algorithm, period) in every() {
        let text = algorithm.to_string();
        for long in [1, period / 3, period, 7 * period + 13] {
            let (gate, until) = (table(algorithm), NOW + long);
            let before = gate.key("key").take_up_to(1);
            gate.ban("key", tick(until)).expect("there is room");
            assert_eq!(gate.key("key").undo(before), 0, "{text}");
            is_banned(&gate, "key", NOW, until, &text);
            // As one that spends all then.
            let other = gate.key("other");
            let _ = other.take_up_to(1);
            let _ = other.at(tick(until)).take_up_to(u64::MAX);
            let times = (0..50).map(|part| until + 1 + period / 25 * part);
            for now in times {
                let [had, right] =
                    [gate.key("key"), other].map(|key| key.at(tick(now)).available());
                assert!(had <= right, "{had} of {right}, {text}");
            }
            let wait = gate
                .key("key")
                .at(tick(until))
                .time_until(1)
                .expect("some time");
            let later = until + wait.as_nanos() as u64;
            let granted = gate
                .key("key")
                .at(tick(later))
                .try_acquire()
                .expect("it is over");
            assert_eq!(gate.key("key").at(tick(later)).undo(granted), 1, "{text}");
        }
    }
}

#[test]
fn the_longer_one_holds_and_one_of_the_past_is_none() {
    for (algorithm, period) in all() {
        let (text, gate) = (algorithm.to_string(), table(algorithm));
        let [short, long] = [2, 5].map(|periods| NOW + periods * period);
        for past in [0, 1, NOW - 1, NOW] {
            gate.ban("key", tick(past)).expect("nothing to keep");
        }
        assert!(gate.is_empty(), "{text}");
        for until in [short, long, short] {
            gate.ban("key", tick(until)).expect("there is room");
        }
        is_banned(&gate, "key", NOW, long, &text);
        assert!(
            gate.key("key")
                .at(tick(long + 2 * period))
                .try_acquire()
                .is_ok(),
            "{text}"
        );
    }
}

#[test]
fn who_is_forgotten_or_reset_is_free() {
    for (algorithm, period) in all() {
        let gate = table(algorithm);
        let until = tick(NOW + 9 * period);
        for turn in 0..4 {
            gate.ban("key", until).expect("there is room");
            assert!(gate.try_acquire("key").is_err());
            match turn % 2 {
                0 => assert!(gate.forget("key")),
                _ => gate.key("key").reset(),
            }
            let granted = gate.try_acquire("key").expect("it is fresh");
            assert_eq!(gate.key("key").undo(granted), 1, "{algorithm}");
        }
    }
}

/// For as long as clocks run.
#[test]
fn a_ban_for_ever_is_one() {
    for (algorithm, _) in every() {
        let gate = table(algorithm);
        gate.ban("key", Tick::MAX).expect("there is room");
        is_banned(
            &gate,
            "key",
            NOW,
            45 * 365 * 86_400_000_000_000,
            &algorithm.to_string(),
        );
        gate.ban_for("other", Duration::MAX).expect("there is room");
        assert!(gate.try_acquire("other").is_err());
    }
}

/// Also by those who only ever reserve or charge.
#[test]
fn once_it_is_over_what_is_reserved_or_charged_can_be_given_back() {
    let bucket = TokenBucket::new(Quota::per_second(1).burst(5)).expect("a bucket");
    let gate = Keyed::with_clock(bucket, 1, ManualClock::at(tick(NOW))).expect("a table");
    let key = gate.key("key");
    for turn in 0..4 {
        gate.ban_for("key", Duration::from_secs(10))
            .expect("there is room");
        gate.clock().advance(Duration::from_secs(100));
        if turn % 2 == 0 {
            assert_eq!((key.charge(3).n(), key.refund(3)), (3, 3));
        }
        assert_eq!(key.reserve(5).expect("it is there").cancel().lost, 0);
        assert_eq!(key.available(), 5);
    }
}

/// Of windows all are idle at the same time, whatever was taken.
#[test]
fn they_are_the_last_to_be_evicted() {
    for text in [
        "fixed-window 100/d",
        "sliding-window 100/d",
        "token-bucket 100/d",
    ] {
        let gate = table(text.parse().expect(text));
        let banned = 0..200_u32;
        for key in banned.clone() {
            let until = tick(NOW + 60_000_000_000);
            gate.ban(&key, until).expect("there is room");
        }
        for key in 1000..30_000_u32 {
            let _ = gate.try_acquire(&key);
        }
        assert!(gate.stats().evicted > 20_000, "{text}");
        let gone = banned.filter(|key| gate.key(key).available() > 0);
        assert_eq!(gone.count(), 0, "{text}");
    }
}

/// Also where what is fresh has nothing at first.
#[test]
fn a_ban_that_another_quota_has_ended_is_over() {
    use tollgate::Keep;
    let quota = |n| Quota::per_second(n).burst(5).initial(0);
    let bucket = TokenBucket::new(quota(10)).expect("a bucket");
    let gate = Keyed::with_clock(bucket, 1, ManualClock::at(tick(NOW))).expect("a table");
    gate.ban_for("mallory", Duration::from_secs(1000))
        .expect("there is room");
    let _ = gate.try_acquire("alice");
    gate.set_quota(quota(20), Keep::Fresh).expect("a quota");
    assert_eq!(gate.key("alice").refund(3), 3);
    assert_eq!(gate.key("mallory").refund(3), 3);
}
