//! Keys of tables, and limits whose quota changes, as members of a reservation.

use tollgate::compose::{Member, ReserveMembers};
use tollgate::{Adjustable, TryAcquire};

use crate::support::*;

/// A limit that is empty, gets a permit a second, and holds `burst` of them.
fn empty(burst: u64, clock: &ManualClock) -> Limiter<TokenBucket, ManualClock> {
    let quota = Quota::per_second(1).burst(burst).initial(0);
    Limiter::with_clock(TokenBucket::new(quota).expect("a quota"), clock.clone())
}

/// Reserves three permits of a member that has 20 of 20 and gets two a second, with a limit that
/// has them in 3 s, in every way that a reservation can end.
fn is_reserved<M>(member: &M, clock: &ManualClock)
where
    M: ReserveMembers<ManualClock> + TryAcquire<Clock = ManualClock>,
{
    let other = empty(3, clock);
    let all = All::new((member, &other)).expect("two limits");
    let in_a_second = all.reserve_within(3, Duration::from_secs(1));
    let denied = in_a_second.map(drop).expect_err("due in 3 s");
    let actual = (
        denied.member(),
        denied.retry_after().map(|wait| wait.as_secs()),
    );
    assert_eq!(actual, (Some(1), Some(2)));
    assert_eq!(member.available(), 20);

    let reserved = all.reserve(3).expect("due in 3 s");
    assert_eq!(reserved.time_left(), Duration::from_secs(3));
    assert_eq!(member.available(), 20 - 6 - 3);
    assert_eq!((reserved.cancel(), member.available()), (6, 20));

    let reserved = all.reserve(3).expect("due in 3 s");
    assert!(member.try_acquire_n(1).is_ok());
    assert_eq!((reserved.cancel(), member.available()), (3, 20 - 6 - 3 - 1));
    clock.advance(Duration::from_secs(3));
    assert_eq!(member.available(), 20 - 3 - 1);
    let reserved = all.reserve(3).expect("due now");
    assert!(reserved.is_due());
    assert_eq!(reserved.into_granted().undo(), 6);
    assert_eq!(member.available(), 20 - 3 - 1);
}

const QUOTA: &str = "2/s burst 20";

#[test]
fn every_kind_of_member_is_reserved_alike() {
    let clock = || ManualClock::at(tick(NOW));
    let one = clock();
    is_reserved(&Limiter::with_clock(bucket(QUOTA), one.clone()), &one);
    let one = clock();
    is_reserved(
        &Arc::new(Limiter::with_clock(bucket(QUOTA), one.clone())),
        &one,
    );
    let one = clock();
    is_reserved(&Adjustable::with_clock(bucket(QUOTA), one.clone()), &one);
    let one = clock();
    let table = Arc::new(Keyed::with_clock(bucket(QUOTA), 100, one.clone()).expect("a table"));
    is_reserved(&table.key("borrowed"), &one);
    is_reserved(&table.key_owned("owned"), &one);
}

/// The due tick is that of other members. A key that is idle by then is not idle now, and stays.
#[test]
fn a_reservation_evicts_no_key_that_is_busy_now() {
    let clock = ManualClock::at(tick(NOW));
    let table = Keyed::with_clock(bucket("1/s"), 1, clock.clone()).expect("a table");
    let table = table.with_overflow(Overflow::Deny);
    let mut taken = 0;
    while table.try_acquire(&taken).is_ok() {
        taken += 1;
    }
    let slow = empty(1, &clock);
    for _ in 0..2 {
        let keys = All::new((&slow, table.key(&taken))).expect("two limits");
        let denied = keys.reserve(1).map(drop).expect_err("no room");
        assert_eq!(denied.denied(), Some(Denied::no_room(1)));
        assert!(table.try_acquire(&0).is_err(), "the key was evicted");
    }
    let actual = slow.check_n(1).map_err(|denied| denied.retry_after());
    assert_eq!(actual, Err(Some(Duration::from_secs(1))));
}

#[test]
fn no_reservation_waits_for_the_end_of_a_ban() {
    let clock = ManualClock::at(tick(NOW));
    let table = Keyed::with_clock(bucket(QUOTA), 100, clock.clone()).expect("a table");
    let slow = empty(1, &clock);
    table.key("alice").ban(tick(NOW + SECOND)).expect("room");
    let denied = |denied: Result<(), tollgate::compose::AllDenied>| {
        let denied = denied.expect_err("a ban").denied();
        assert!(matches!(denied, Some(Denied::Banned { .. })), "{denied:?}");
    };
    // A ban between the look and the taking.
    let (due, now) = (tick(NOW + 9 * SECOND), tick(NOW));
    let took = table.key("alice").take_as_of(1, due, now).map(drop);
    assert!(matches!(took, Err(Denied::Banned { .. })), "{took:?}");
    // With a limit that is due sooner, and one that is due later.
    let later = empty(1, &clock);
    later.charge(5);
    for other in [&slow, &later] {
        let all = All::new((table.key("alice"), other)).expect("two limits");
        denied(all.reserve(1).map(drop));
    }
    assert!(slow.check_n(1).expect_err("empty").retry_after() == Some(Duration::from_secs(1)));
    clock.advance(Duration::from_secs(2));
    let all = All::new((table.key("alice"), &slow)).expect("two limits");
    assert!(all.reserve(1).is_ok(), "the ban is over");
}

/// A ban between: what was reserved before does not come back, and the ban keeps its end.
#[test]
fn a_cancelled_reservation_does_not_shorten_a_ban() {
    let clock = ManualClock::at(tick(NOW));
    let table = Keyed::with_clock(bucket(QUOTA), 100, clock.clone()).expect("a table");
    let slow = empty(1, &clock);
    let all = All::new((table.key("alice"), &slow)).expect("two limits");
    let reserved = all.reserve(1).expect("due in 1 s");
    table
        .key("alice")
        .ban(tick(NOW + 10 * SECOND))
        .expect("room");
    assert_eq!(reserved.cancel(), 1); // of the other limit
    assert_eq!(table.key("alice").available(), 0);
    clock.advance(Duration::from_secs(9));
    assert_eq!(table.key("alice").available(), 0);
}

#[test]
fn a_reservation_from_before_a_change_of_the_quota_gives_nothing_back() {
    let clock = ManualClock::at(tick(NOW));
    let changing = Adjustable::with_clock(bucket(QUOTA), clock.clone());
    let slow = empty(1, &clock);
    let all = All::new((&changing, &slow)).expect("two limits");
    let reserved = all.reserve(1).expect("due in 1 s");
    assert_eq!(changing.available(), 20 - 2 - 1);
    changing
        .set_quota(Quota::per_second(4).burst(20), Keep::AsIs)
        .expect("a quota");
    assert_eq!(reserved.cancel(), 1); // of the other limit
    assert_eq!(changing.available(), 20 - 2 - 1);
    let reserved = all.reserve(1).expect("due in 1 s");
    assert_eq!(reserved.cancel(), 2);
}
