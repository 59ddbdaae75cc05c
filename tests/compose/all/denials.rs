//! If several members deny, the answer is the denial that lasts longest. It carries the name of its
//! member.

use tollgate::compose::{AllDenied, BoxMember, Named};

use super::{Bucket, full, secs};
use crate::support::*;

/// Returns a limit without a permit, which gets one after this many seconds.
fn empty_for(seconds: u64, clock: &ManualClock) -> Bucket {
    let quota = Quota::per(1, Duration::from_secs(seconds));
    let bucket = TokenBucket::new(quota).expect("a quota");
    let limit = Limiter::with_clock(bucket, clock.clone());
    assert!(limit.try_acquire().is_ok());
    limit
}

#[test]
fn the_answer_is_the_longest_denial_whatever_the_order_of_the_members() {
    let clock = ManualClock::new();
    let check = |denied: AllDenied, waits: [u64; 3]| {
        let longest = waits.iter().position(|wait| *wait == 3);
        assert_eq!(denied.member(), longest, "{waits:?}");
        assert_eq!(denied.retry_after(), secs(3), "{waits:?}");
    };
    // The seconds until each member has a permit. Each member denies for longest in some order.
    for waits in ORDERS.map(|order| order.map(|place| 1 + place as u64)) {
        let limits = waits.map(|wait| empty_for(wait, &clock));
        let [a, b, c] = &limits;
        let all = All::new((a, b, c)).expect("three limits");
        check(all.try_acquire().expect_err("all are empty"), waits);
        let looked = all.at(all.now()).check_n(1);
        check(looked.expect_err("all are empty"), waits);
        let boxed = |limit| -> BoxMember<'_, ManualClock> { Box::new(limit) };
        let all = All::new(Vec::from([a, b, c].map(boxed))).expect("three limits");
        check(all.try_acquire().expect_err("all are empty"), waits);
    }
}

#[test]
fn of_two_members_the_longest_denial_is_the_answer() {
    let clock = ManualClock::new();
    let (short, long) = (empty_for(1, &clock), empty_for(2, &clock));
    for (members, longest) in [((&short, &long), 1), ((&long, &short), 0)] {
        let all = All::new(members).expect("two limits");
        let denied = all.try_acquire().expect_err("both are empty");
        let expected = (Some(longest), secs(2));
        assert_eq!((denied.member(), denied.retry_after()), expected);
        assert_eq!(all.check_n(1), Err(denied));
    }
    clock.advance(Duration::from_secs(2));
    let all = All::new([&short, &long]).expect("two limits");
    assert_eq!(all.check_n(1), Ok(()));
}

#[test]
fn the_name_is_that_of_the_member_and_of_its_composition_if_it_has_none() {
    let (_, [a, b, c, d]) = full([1, 2, 3, 4]);
    let inner = Named::new("inner", (&b, Named::new("c", &c)));
    let all = All::new((Named::new("a", &a), inner, &d)).expect("four limits");
    let cases = [
        ([2, 0, 0, 0], Some("a"), "a: "),
        ([0, 3, 0, 0], Some("inner"), "inner: "),
        ([0, 0, 4, 0], Some("c"), "c: "),
        ([0, 0, 0, 5], None, "member 3: "),
    ];
    for (member, (costs, name, text)) in cases.into_iter().enumerate() {
        let denied = all.try_acquire_each(costs).expect_err("too many");
        assert_eq!((denied.member(), denied.name()), (Some(member), name));
        assert!(denied.to_string().starts_with(text), "{denied}");
        assert_eq!(all.at(all.now()).check_each(costs), Err(denied));
    }
}
