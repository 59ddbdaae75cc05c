//! Plans, bans, and quotas that are others after the restart.

use std::time::Duration;

use tollgate::{
    AnyAlgorithm, FixedWindow, Keep, Keyed, ManualClock, Quota, Requota, Tick, TokenBucket,
};

use crate::{SECOND, all, bucket, restarted, table, ticks, written};

fn with_plans(texts: &[&str], at: Tick) -> Keyed<TokenBucket, ManualClock> {
    let plans = texts.iter().map(|text| bucket(text));
    Keyed::with_plans(plans, 1000, ManualClock::at(at)).expect("small")
}

fn restored(from: &Keyed<TokenBucket, ManualClock>, to: &mut Keyed<TokenBucket, ManualClock>) {
    let restored = to.restore_after(&mut written(from).as_slice(), Duration::ZERO);
    assert_eq!(restored.expect("whole").no_room, 0);
}

#[test]
fn each_key_stays_with_its_plan() {
    let gate = with_plans(&["1/h burst 10", "1/h burst 1000"], ticks(5.0));
    let _ = gate.plan(0).key("alice").try_acquire_n(3).expect("fresh");
    let _ = gate.plan(1).key("bob").try_acquire_n(300).expect("fresh");
    for more in [&[][..], &["1/h burst 7"][..]] {
        let plans = [&["1/h burst 10", "1/h burst 1000"], more].concat();
        let mut next = with_plans(&plans, ticks(0.0));
        restored(&gate, &mut next);
        assert_eq!(next.plan(0).key("alice").available(), 7);
        assert_eq!(next.plan(1).key("bob").available(), 700);
    }
}

#[test]
fn keys_of_a_plan_that_is_gone_go_on_in_the_first_one() {
    let gate = with_plans(&["1/h burst 10", "1/h burst 1000"], ticks(5.0));
    let _ = gate.plan(1).key("bob").try_acquire_n(995).expect("fresh");
    let _ = gate.plan(1).key("carol").try_acquire_n(300).expect("fresh");
    let mut next = table(bucket("1/h burst 10"), ticks(0.0));
    restored(&gate, &mut next);
    assert_eq!(next.key("bob").available(), 5);
    assert_eq!(next.key("carol").available(), 10);
}

#[test]
fn another_quota_is_carried_over_for_each_algorithm() {
    let mut kinds = 0;
    for old in all() {
        for new in all() {
            let from = ticks(100.25);
            let gate = table(old, from);
            let gate = &gate;
            for key in 1..10_u64 {
                let _ = gate.key(&key).take_up_to(key);
                let _ = gate.key(&(100 + key)).take_up_to(u64::MAX);
                gate.key(&(100 + key)).charge(key);
            }
            let next = restarted(gate, new, from, Duration::ZERO);
            for key in (1..10_u64).chain(101..110) {
                let (had, has) = (gate.key(&key).available(), next.key(&key).available());
                let most = if gate.key(&key).is_idle_now() {
                    u64::MAX
                } else {
                    had
                };
                assert!(has <= most, "{has} of {had}: {old} to {new}");
                // As many as can be, but for parts of one.
                let least = had.min(next.key(&999).available());
                assert!(has + 1 >= least, "{has} of {had}: {old} to {new}");
            }
            kinds += 1;
        }
    }
    assert!(kinds > 100);
}

trait IsIdle {
    fn is_idle_now(&self) -> bool;
}

impl IsIdle for tollgate::keyed::Key<'_, AnyAlgorithm, ManualClock> {
    fn is_idle_now(&self) -> bool {
        self.at(self.now()).is_idle()
    }
}

#[test]
fn what_is_in_force_is_what_counts_on_both_sides() {
    let gate = table(bucket("1/h burst 10"), ticks(5.0));
    let _ = gate.try_acquire_n("alice", 8).expect("fresh");
    gate.set_quota(Quota::per_hour(1).burst(100), Keep::Scaled)
        .expect("a quota");
    assert_eq!(gate.key("alice").available(), 20);
    // Written as it stands now, though nobody has asked since.
    let mut next = table(bucket("1/h burst 50"), ticks(5.0));
    for burst in [60, 70, 80] {
        next.set_quota(Quota::per_hour(1).burst(burst), Keep::AsIs)
            .expect("a quota");
    }
    restored(&gate, &mut next);
    assert_eq!(next.key("alice").available(), 20);
    // And it can be changed as ever, more often than there are versions.
    for turn in 0..200 {
        let quota = Quota::per_hour(1).burst(40 + turn % 2);
        next.set_quota(quota, Keep::AsIs).expect("a quota");
    }
    assert_eq!(next.key("alice").available(), 20);
}

#[test]
fn a_ban_ends_when_it_would_have_ended() {
    for old in all() {
        for (new, to) in all()
            .into_iter()
            .chain([old])
            .zip([0.0, 3.21, 60.5].into_iter().cycle())
        {
            let gate = table(old, ticks(100.5));
            gate.ban_for("mallory", 70 * SECOND).expect("room");
            let elapsed = 4 * SECOND;
            let next = restarted(&gate, new, ticks(to), elapsed);
            // Nothing can be given back.
            assert_eq!(next.key("mallory").refund(100), 0);
            let long = next.key("mallory").time_until(1).expect("it ends");
            let period = old.quota().period().max(new.quota().period());
            assert!(long >= 66 * SECOND, "{long:?}: {old} to {new} at {to}");
            assert!(
                long <= 66 * SECOND + 3 * period,
                "{long:?}: {old} to {new} at {to}"
            );
        }
    }
}

#[test]
fn a_ban_of_a_bucket_ends_to_the_nanosecond() {
    let gate = table(bucket("10/s"), ticks(100.0));
    gate.ban("mallory", ticks(107.5)).expect("room");
    let next = restarted(&gate, bucket("10/s"), ticks(1.0), 2 * SECOND);
    let due = next.key("mallory").at(ticks(1.0)).time_until(1);
    // It ends, and then a permit comes.
    assert_eq!(due, Some(Duration::from_millis(5500 + 100)));
    let other = restarted(&gate, bucket("1000/s"), ticks(1.0), 2 * SECOND);
    let due = other.key("mallory").at(ticks(1.0)).time_until(1);
    assert_eq!(due, Some(Duration::from_millis(5600)));
}

/// The clock of the next process begins elsewhere in the day, and its windows where the day's do.
#[test]
fn windows_of_the_day_go_on() {
    let hour = Duration::from_secs(3600);
    let daily = |origin: u32| {
        let windows = FixedWindow::new(Quota::per_day(10)).expect("windows");
        windows.aligned_to_unix(origin * hour)
    };
    // Started at 23 o'clock, now it is 1.
    let gate = table(daily(23), Tick::ZERO.saturating_add(2 * hour));
    let _ = gate.try_acquire_n("alice", 10).expect("fresh");
    let _ = gate.try_acquire_n("bob", 4).expect("fresh");
    gate.ban_for("mallory", 30 * hour).expect("room");
    for (elapsed, to) in [(1, 0), (1, 20), (21, 3)] {
        // The clock says so when it is 1 o'clock and so much later.
        let origin = (48 + 1 + elapsed - to) % 24;
        let now = Tick::ZERO.saturating_add(to * hour);
        let next = restarted(&gate, daily(origin), now, elapsed * hour);
        let midnight = (23 - elapsed) * hour;
        for key in ["alice", "bob"] {
            let key = next.key(key);
            let left = key.available();
            assert_eq!(key.time_until(left + 1), Some(midnight), "{elapsed} {to}");
        }
        assert_eq!(
            (next.key("alice").available(), next.key("bob").available()),
            (0, 6)
        );
        // Until 7 o'clock on the next day, and so until the end of that.
        let due = next.key("mallory").time_until(1);
        assert_eq!(due, Some(midnight + 24 * hour), "{elapsed} {to}");
    }
}
