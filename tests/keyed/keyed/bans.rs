//! A banned key gets nothing until the ban's last tick, whatever is returned or changed in between.
//! Then it gets as much as a key that spent its whole burst at that tick.

use tollgate::keyed::Key;

use crate::support::*;

/// Checks that nothing is available until the ban ends, and that nothing can be returned.
fn is_banned(key: Key<&Keyed<AnyAlgorithm, ManualClock>>, until: u64, of: &AnyAlgorithm) {
    let between = (0..40).map(|part| NOW + (until - 1 - NOW) / 39 * part);
    for now in between.chain([until - 1]) {
        let view = key.at(tick(now));
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
        for (bans, changes) in [
            ([1; 3], 0),
            ([period / 3; 3], 0),
            ([2, 7 * period + 13, period], 0),
            ([2, 7 * period + 13, period], 1),
        ] {
            let limiter = table(algorithm);
            for _ in 0..changes {
                let quota = algorithm.quota();
                limiter.set_quota(quota, Keep::Fresh).expect("a quota");
            }
            let [key, other, stranger] = ["key", "other", "stranger"].map(|key| limiter.key(key));
            let until = NOW + bans.into_iter().max().expect("three");
            let before = key.take_up_to(1);
            for past in [0, 1, NOW - 1, NOW] {
                stranger.ban(tick(past)).expect("nothing to keep");
            }
            assert!(limiter.len() <= 1);
            for long in bans {
                key.ban(tick(NOW + long)).expect("there is room");
            }
            assert_eq!(key.undo(before), 0, "{algorithm}");
            is_banned(key, until, &algorithm);
            // Compares it with a key that spends everything at that tick.
            let _ = other.take_up_to(1);
            let _ = other.at(tick(until)).take_up_to(u64::MAX);
            for now in (0..50).map(|part| until + 1 + period / 25 * part) {
                let [had, right] = [key, other].map(|key| key.at(tick(now)).available());
                assert!(had <= right, "{had} of {right}, {algorithm}");
            }
            let wait = key.at(tick(until)).time_until(1);
            let view = key.at(tick(until).saturating_add(wait.expect("some time")));
            let granted = view.try_acquire().expect("it is over");
            assert_eq!(view.undo(granted), 1, "{algorithm}");
        }
    }
}

/// Until the first grant after a ban, callers with older ticks find the ban. Then they count at the
/// tick of that grant: they get no more than callers whose clocks are right.
#[test]
fn callers_with_older_ticks_get_nothing_before_the_first_grant_after_a_ban_and_then_no_more() {
    for algorithm in every() {
        let period = period(&algorithm);
        for long in [period / 3, period, 7 * period / 2] {
            let limiter = table(algorithm);
            let until = NOW + long;
            let key = limiter.key("key");
            let _ = key.take_up_to(1);
            key.ban(tick(until)).expect("there is room");
            let over = key.banned_until().expect("it is banned");
            assert!(
                over > tick(until),
                "the first permit comes later, {algorithm}"
            );
            let last = tick(over.as_nanos() - 1);
            assert!(matches!(
                key.at(last).try_acquire(),
                Err(Denied::Banned { .. })
            ));
            // A query of a caller that is ahead does not end the ban.
            assert!(key.at(over).available() > 0, "{algorithm}");
            is_banned(key, until, &algorithm);
            let one = key.at(over).try_acquire().expect("it is over");
            assert_eq!(one.at(), over, "{algorithm}");
            let left = key.at(over).available();
            let older = [until - 1, NOW].map(|now| key.at(tick(now)).take_up_to(u64::MAX).n());
            assert!(
                older.iter().sum::<u64>() <= left,
                "{older:?} of {left}, {algorithm}"
            );
        }
    }
}

/// A spent key is denied with `Later`, before a ban and after it.
#[test]
fn a_denial_by_a_ban_is_distinct_and_says_when_the_ban_ends() {
    for algorithm in every() {
        let limiter = with_plans(&[algorithm; 2]);
        let period = period(&algorithm);
        let key = limiter.key("key");
        let is_spent = |at: Tick| {
            let _ = key.at(at).take_up_to(u64::MAX);
            let denied = key.at(at).try_acquire().expect_err("it is spent");
            assert!(matches!(denied, Denied::Later { .. }), "{denied:?}");
            assert_eq!(key.at(at).banned_until(), None, "{algorithm}");
        };
        assert_eq!(key.banned_until(), None);
        is_spent(tick(NOW));
        let end = tick(NOW + 7 * period / 2);
        key.ban(end).expect("there is room");
        let over = key.banned_until().expect("it is banned");
        assert!(end < over && over <= tick(end.as_nanos() + 2 * period));
        for now in [tick(NOW), end, tick(over.as_nanos() - 1)] {
            for plan in [0, 1] {
                let view = key.with_plan(plan).at(now);
                // In another plan the end may be later, by less than a period.
                let until = view.banned_until().expect("it is banned");
                let latest = over.saturating_add(Duration::from_nanos(period * plan as u64));
                assert!((over..=latest).contains(&until), "{algorithm}");
                let left = Some(until.saturating_since(now));
                assert_eq!(view.try_acquire(), Err(Denied::banned(1, left)));
                let denied = view.try_acquire_n(2).expect_err("it is banned");
                assert!(matches!(denied, Denied::Banned { requested: 2, .. }));
                assert!(denied.retry_after() >= left && !denied.is_permanent());
                let never = view.try_acquire_n(1000).expect_err("too many");
                assert!(matches!(never, Denied::Never { .. }), "{never:?}");
            }
            let mut outcome = [const { Err(Denied::busy(1)) }];
            let asked = limiter.try_acquire_batch_at(0, &["key"], &mut outcome, now);
            asked.expect("an outcome for each key");
            assert!(matches!(outcome, [Err(Denied::Banned { .. })]));
        }
        assert_eq!(key.at(over).banned_until(), None, "{algorithm}");
        is_spent(over);
        assert_eq!(limiter.len(), 1);
    }
}

#[test]
fn a_ban_is_reported_until_it_ends() {
    let enders: [fn(&Keyed<TokenBucket, ManualClock>); 3] = [
        |limiter| assert!(limiter.key("key").remove()),
        |limiter| limiter.key("key").reset(),
        |limiter| {
            let quota = Quota::per_second(20);
            limiter.set_quota(quota, Keep::Fresh).expect("a quota");
        },
    ];
    for end in enders {
        let limiter = table(bucket("10/s"));
        limiter.key("key").ban_for(Duration::MAX).expect("room");
        // Other changes do not end the ban.
        let quota = Quota::per_second(5);
        limiter.set_quota(quota, Keep::Scaled).expect("a quota");
        let denied = limiter.try_acquire("key").expect_err("it is banned");
        assert_eq!(denied, Denied::banned(1, None));
        assert!(denied.is_permanent() && denied.retry_after().is_none());
        assert!(limiter.key("key").banned_until() > Some(tick(45 * 365 * 86_400 * SECOND)));
        end(&limiter);
        assert_eq!(limiter.key("key").banned_until(), None);
        assert!(limiter.try_acquire("key").is_ok());
    }
}

#[test]
fn a_query_for_a_ban_inserts_no_key_into_the_table() {
    for algorithm in every() {
        let limiter = table(algorithm);
        assert_eq!(limiter.key("key").banned_until(), None);
        assert_eq!(limiter.key("key").with_plan(1).banned_until(), None);
        assert!(limiter.is_empty(), "{algorithm}");
    }
}

/// A ban until `Tick::MAX` lasts until the end of time, unless the key is removed or reset.
#[test]
fn a_ban_without_an_end_never_ends() {
    for algorithm in every() {
        let limiter = table(algorithm);
        limiter.key("key").ban(Tick::MAX).expect("there is room");
        is_banned(limiter.key("key"), 45 * 365 * 86_400 * SECOND, &algorithm);
        let other = limiter.key("other");
        for turn in 0..4 {
            other.ban_for(Duration::MAX).expect("there is room");
            assert!(limiter.try_acquire("other").is_err());
            match turn % 2 {
                0 => assert!(other.remove()),
                _ => other.reset(),
            }
            // A key that is reset has all permits, and a new one its initial permits.
            let fresh = limiter.key(&turn).available().min(1);
            let had = other.take_up_to(1);
            assert!(had.n() >= fresh, "{algorithm}");
            let n = had.n();
            assert_eq!(other.undo(had), n, "{algorithm}");
        }
    }
}

/// Tested also for a key that only reserves or charges.
#[test]
fn reserved_and_charged_permits_can_be_returned_after_a_ban() {
    let limiter = table(bucket("1/s burst 5"));
    let key = limiter.key("key");
    for turn in 0..4 {
        assert!(key.ban_for(Duration::from_secs(10)).is_ok());
        limiter.clock().advance(Duration::from_secs(100));
        if turn % 2 == 0 {
            assert_eq!((key.charge(3).n(), key.refund(3)), (3, 3));
        }
        assert_eq!(key.reserve(5).expect("it is there").cancel().lost, 0);
        assert_eq!(key.available(), 5);
    }
}

#[test]
fn a_ban_survives_a_new_quota_and_another_plan() {
    for old in all() {
        for keep in [Keep::AsIs, Keep::Scaled, Keep::Used] {
            let limiter = with_plans(&[old, algorithm("gcra 10/s")]);
            let period = period(&old);
            let until = NOW + 5 * period / 2;
            limiter.key("key").ban(tick(until)).expect("there is room");
            let quota = Quota::per(7, old.quota().period());
            limiter.set_quota(quota, keep).expect("a quota");
            for plan in [0, 1] {
                let key = limiter.key("key").with_plan(plan);
                is_banned(key, until, &old);
                // A window rounds a ban up to its own end, and the other quota to the end of the
                // next window.
                let later = key.at(tick(until + 3 * period)).available();
                assert!(later > 0, "{old} {keep:?} {plan}");
            }
        }
    }
}

/// This holds even if other requests without room are admitted.
#[test]
fn a_ban_that_can_not_be_recorded_is_denied() {
    for overflow in [Overflow::Deny, Overflow::Admit] {
        let limiter = crowded(bucket("1/h")).with_overflow(overflow);
        let bans = in_sixteen_slots(18)
            .iter()
            .map(|key| limiter.key(key).ban(Tick::MAX));
        assert_eq!(bans.filter(Result::is_ok).count(), 16);
        assert_eq!((limiter.len(), limiter.stats().no_room), (16, 2));
    }
}

/// This holds even if a fresh key starts with no permits.
#[test]
fn a_ban_that_a_new_quota_ended_is_over() {
    let limiter = table(bucket("10/s burst 5 initial 0"));
    let [alice, mallory] = ["alice", "mallory"].map(|key| limiter.key(key));
    assert!(mallory.ban_for(Duration::from_secs(1000)).is_ok());
    let _ = alice.try_acquire();
    let quota = Quota::per_second(20).burst(5).initial(0);
    limiter.set_quota(quota, Keep::Fresh).expect("a quota");
    assert_eq!([alice, mallory].map(|key| key.refund(3)), [3, 3]);
}

/// Several permits leave a queue one by one. A reservation does not wait for the end of a ban, and
/// is told when it can be retried, for any number of permits.
#[test]
fn a_reservation_by_a_banned_key_of_a_queue_is_told_when_to_retry() {
    let limiter = table(queue("leaky-queue 10/s burst 5"));
    let (key, second) = (limiter.key("key"), Duration::from_secs(1));
    let until = tick(NOW + 60 * SECOND);
    key.at(tick(NOW)).ban(until).expect("there is room");
    for (n, patience) in [
        (1, Duration::ZERO),
        (3, second),
        (3, Duration::MAX),
        (5, 100 * second),
    ] {
        let denied = key.reserve_within_at(n, patience, tick(NOW)).unwrap_err();
        assert!(matches!(denied, Denied::Banned { .. }), "{denied:?}");
        let wait = denied.retry_after().expect("it ends");
        assert!(
            wait >= 60 * second && wait < 62 * second,
            "{n} in {patience:?}: {denied}"
        );
        let then = tick(NOW).saturating_add(wait);
        assert_eq!(limiter.key("other").at(then).available(), 5);
    }
    let after = tick(NOW + 62 * SECOND);
    let actual = key
        .reserve_within_at(3, second, after)
        .map(|reserved| reserved.n());
    assert_eq!(actual, Ok(3));
}
