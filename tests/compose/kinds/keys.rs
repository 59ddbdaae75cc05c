//! Keys of tables as members of a composition.

use tollgate::compose::Named;

use crate::support::*;

type Table = Keyed<TokenBucket, ManualClock>;

fn service(n: &str, clock: &ManualClock) -> Limiter<TokenBucket, ManualClock> {
    Limiter::with_clock(bucket(n), clock.clone())
}

fn tables(quota: &str) -> (ManualClock, Table, Table) {
    let clock = ManualClock::at(tick(NOW));
    let table = || Keyed::with_clock(bucket(quota), 100, clock.clone()).expect("a table");
    let (one, other) = (table(), table());
    (clock, one, other)
}

/// Whichever member denies, and whichever is first: keys that were not in their tables are not
/// inserted.
#[test]
fn a_denial_inserts_no_key() {
    let (clock, table, other) = tables("5/h");
    let low = service("2/h", &clock);
    let all = All::new((&low, table.key("alice"), other.key(&7))).expect("three limits");
    let back = All::new((other.key(&7), table.key("alice"), &low)).expect("three limits");
    for n in [3, 6, u64::MAX] {
        assert!(all.try_acquire_n(n).is_err() && back.try_acquire_n(n).is_err());
        // By their own costs, only one of the members denies.
        let costs = [[n, 1, 1], [1, n.max(6), 1], [1, 1, n.max(6)]];
        for [a, b, c] in costs {
            assert!(all.try_acquire_each([a, b, c]).is_err());
            assert!(back.try_acquire_each([c, b, a]).is_err());
            assert!(all.at(all.now()).check_each([a, b, c]).is_err());
        }
    }
    assert_eq!((table.len(), other.len(), low.available()), (0, 0, 2));
    assert_eq!((all.available(), back.available()), (2, 2));
    assert_eq!((table.len(), other.len()), (0, 0), "a query inserted");
    drop(all.try_acquire_n(2).expect("they have it"));
    assert_eq!((table.len(), other.len(), low.available()), (1, 1, 0));
}

/// A key that starts with less than its burst fills from its first request on, even if that was
/// denied, wherever the key stands in the composition.
#[test]
fn keys_that_start_empty_fill_from_their_first_denied_request_on() {
    let (clock, table, other) = tables("5/h burst 5 initial 0");
    let (low, high) = (service("9/h", &clock), service("9/h", &clock));
    let all = All::new((&low, table.key("alice"), other.key(&7), &high)).expect("four limits");
    for hour in 0..4 {
        let denied = all.try_acquire_n(5).expect_err("it is empty");
        let expected = Some(Duration::from_secs(3600));
        assert_eq!(denied.retry_after(), expected, "in hour {hour}");
        clock.advance(Duration::from_secs(3600));
        drop(all.try_acquire_n(5).expect("an hour's permits"));
    }
}

#[test]
fn a_key_that_appears_twice_pays_both_costs() {
    let (_, table, _) = tables("10/h");
    let table = Arc::new(table);
    let (alice, again) = (table.key("alice"), table.key_owned("alice"));
    let all = All::new((alice, table.key("bob"), Named::new("owned", &again), alice));
    let all = all.expect("two keys");
    assert_eq!((all.members(), all.available()), (4, 3));
    let mut granted = all.try_acquire_each([1, 5, 2, 3]).expect("they have it");
    let parts = [0, 1, 2, 3].map(|member| granted.member(member).map(|part| part.n()));
    assert_eq!(parts, [Some(6), Some(5), None, None]);
    assert_eq!((alice.available(), table.key("bob").available()), (4, 5));
    let denied = all.try_acquire_each([1, 1, 2, 2]).expect_err("alice has 4");
    assert_eq!((denied.member(), denied.name()), (Some(0), None));
    assert_eq!(denied.denied().map(|denied| denied.requested()), Some(5));
    assert_eq!(
        granted
            .settle([1, 1, 1, 1])
            .expect("a cost for each")
            .returned,
        3 + 4
    );
    assert_eq!((alice.available(), table.key("bob").available()), (7, 9));
}

/// A key has one state in its table, whatever the plan: it pays both costs, by its first plan.
#[test]
fn a_key_by_two_plans_is_one_limit() {
    let clock = ManualClock::at(tick(NOW));
    let plans = ["10/h", "3/h"].map(bucket);
    let table: Table = Keyed::with_plans(plans, 100, clock).expect("a table");
    let [paid, free] = [0, 1].map(|plan| table.key("alice").with_plan(plan));
    let all = All::new((paid, Named::new("free", free))).expect("one key");
    assert_eq!(all.available(), 5);
    let granted = all.try_acquire_each([4, 3]).expect("ten by the first plan");
    assert_eq!(granted.member(0).map(|part| part.n()), Some(7));
    assert_eq!(granted.undo(), 7);
    let all = All::new((Named::new("free", free), paid)).expect("one key");
    let denied = all
        .try_acquire_each([1, 3])
        .expect_err("three by the first plan");
    assert_eq!((denied.member(), denied.name()), (Some(0), Some("free")));
    assert_eq!(denied.denied(), Some(Denied::never(4, 3)));
}

/// A limit that is counted is the limit that it counts.
#[test]
fn a_counted_key_twice_is_one_limit() {
    let (clock, table, _) = tables("10/h");
    let low = service("4/h", &clock);
    let table = Counted::new(table);
    let key = || table.key("alice");
    let counted = Counted::new(&low);
    let all = All::new((key(), &counted, table.limiter().key("alice"), &low, key()));
    let all = all.expect("two limits");
    assert_eq!(all.available(), 2);
    let granted = all.try_acquire_each([2, 1, 3, 1, 4]).expect("nine and two");
    let parts = [0, 1, 2, 3, 4].map(|member| granted.member(member).map(|part| part.n()));
    assert_eq!(parts, [Some(9), Some(2), None, None, None]);
    assert_eq!((key().available(), low.available()), (1, 2));
}

#[test]
fn keys_of_two_tables_are_two_limits() {
    let (_, table, other) = tables("4/h");
    let all = All::new([table.key("alice"), other.key("alice")]).expect("two keys");
    assert_eq!(all.available(), 4);
    drop(all.try_acquire_n(4).expect("four each"));
}

/// A table without room is a denial like others: nothing is taken.
#[test]
fn a_table_without_room_denies_the_whole_request() {
    let clock = ManualClock::at(tick(NOW));
    let table: Table = Keyed::with_clock(bucket("5/h"), 1, clock.clone()).expect("a table");
    let table = table.with_overflow(Overflow::Deny);
    let other = service("9/h", &clock);
    let mut inserted = 0;
    while table.try_acquire_n(&inserted, 1).is_ok() {
        inserted += 1;
    }
    let new = inserted;
    let last = All::new((&other, table.key(&new))).expect("two");
    let first = All::new((table.key(&new), &other)).expect("two");
    for (outcome, member) in [
        (last.try_acquire().map(drop), 1),
        (first.try_acquire().map(drop), 0),
    ] {
        let denied = outcome.expect_err("no room");
        assert_eq!(denied.member(), Some(member));
        assert_eq!((denied.retry_after(), denied.is_permanent()), (None, false));
    }
    assert_eq!(other.available(), 9);
}
