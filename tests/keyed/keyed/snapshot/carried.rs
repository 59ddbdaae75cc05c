//! Plans, bans and quotas that differ after the restart.

use super::{SECOND, next_table, read, restarted, table, ticks, written};
use crate::support::*;

#[test]
fn a_key_keeps_its_plan_or_moves_to_the_first_one() {
    let plans = ["1/h burst 10", "1/h burst 1000", "1/h burst 7"].map(bucket);
    let limiter = with_plans(&plans[..2]);
    for (plan, key, n) in [(0, "alice", 3), (1, "bob", 300), (1, "dave", 995)] {
        limiter
            .key(key)
            .with_plan(plan)
            .try_acquire_n(n)
            .expect("fresh");
    }
    let bytes = written(&limiter);
    for count in 1..=3 {
        let mut next = with_plans(&plans[..count]);
        next.clock().set(ticks(1.0));
        assert_eq!(read(&mut next, &bytes).expect("whole").no_room, 0);
        let (second, bob) = if count > 1 { (1, 700) } else { (0, 10) };
        let had = [(0, "alice"), (second, "bob"), (second, "dave")];
        let had = had.map(|(plan, key)| next.key(key).with_plan(plan).available());
        assert_eq!(had, [7, bob, 5]);
    }
}

#[test]
fn a_snapshot_is_written_and_restored_with_the_current_quota() {
    let limiter = table(bucket("1/h burst 10"), ticks(5.0));
    let _ = limiter.try_acquire_n("alice", 8).expect("fresh");
    let quota = Quota::per_hour(1).burst(100);
    assert!(limiter.set_quota(quota, Keep::Scaled).is_ok());
    assert_eq!(limiter.key("alice").available(), 20);
    // The snapshot holds the current quota, although no caller has asked since the change.
    let mut next = next_table(bucket("1/h burst 50"), ticks(5.0));
    let change = |next: &Keyed<TokenBucket, _>, burst| {
        let quota = Quota::per_hour(1).burst(burst);
        next.set_quota(quota, Keep::AsIs).expect("a quota");
    };
    for burst in [60, 70, 80] {
        change(&next, burst);
    }
    let restored = read(&mut next, &written(&limiter));
    assert_eq!(restored.expect("whole").no_room, 0);
    assert_eq!(next.key("alice").available(), 20);
    // The quota can still be changed, more often than there are versions.
    for turn in 0..200 {
        change(&next, 40 + turn % 2);
    }
    assert_eq!(next.key("alice").available(), 20);
}

#[test]
fn a_restored_ban_ends_at_its_tick() {
    for old in all() {
        let to = [0.0, 3.21, 60.5].into_iter().cycle();
        for (new, to) in all().into_iter().chain([old]).zip(to) {
            let limiter = table(old, ticks(100.5));
            limiter.key("mallory").ban_for(70 * SECOND).expect("room");
            let next = restarted(&limiter, new, ticks(to), 4 * SECOND);
            // Nothing can be returned.
            assert_eq!(next.key("mallory").refund(100), 0);
            let long = next.key("mallory").time_until(1).expect("it ends");
            let period = old.quota().period().max(new.quota().period());
            let is_right = long >= 66 * SECOND && long <= 66 * SECOND + 3 * period;
            assert!(is_right, "{long:?}: {old} to {new} at {to}");
        }
        // On the same clock nothing is rounded.
        let limiter = table(old, ticks(100.5));
        limiter.key("mallory").ban_for(70 * SECOND).expect("room");
        let next = restarted(&limiter, old, ticks(104.5), 4 * SECOND);
        let until =
            [&limiter, &next].map(|table| table.key("mallory").at(ticks(104.5)).banned_until());
        assert!(
            until[0].is_some() && until[0] == until[1],
            "{until:?}, {old}"
        );
    }
    // A bucket's ban is exact to the nanosecond: it ends, and then a permit comes.
    let limiter = table(bucket("10/s"), ticks(100.0));
    limiter.key("mallory").ban(ticks(107.5)).expect("room");
    for (quota, due) in [("10/s", 5500 + 100), ("1000/s", 5600)] {
        let next = restarted(&limiter, bucket(quota), ticks(1.0), 2 * SECOND);
        let wait = next.key("mallory").at(ticks(1.0)).time_until(1);
        assert_eq!(wait, Some(Duration::from_millis(due)));
    }
}

/// The next process's clock starts at another time of day.
#[test]
fn a_ban_in_daily_windows_ends_at_midnight() {
    let hour = Duration::from_secs(3600);
    let daily = |origin: u32| {
        let windows = FixedWindow::new(Quota::per_day(10)).expect("windows");
        windows.aligned_to_unix(origin * hour)
    };
    // It started at 23:00, and now it is 1:00.
    let limiter = table(daily(23), tick(0).saturating_add(2 * hour));
    limiter.key("mallory").ban_for(30 * hour).expect("room");
    for (elapsed, to) in [(1, 0), (1, 20), (21, 3)] {
        // At 1:00 plus the pause, the next clock shows that time.
        let origin = (48 + 1 + elapsed - to) % 24;
        let now = tick(0).saturating_add(to * hour);
        let next = restarted(&limiter, daily(origin), now, elapsed * hour);
        // Banned until 7:00 on the next day, and so until the end of that day.
        let due = next.key("mallory").time_until(1);
        assert_eq!(due, Some((47 - elapsed) * hour), "{elapsed} {to}");
    }
}
