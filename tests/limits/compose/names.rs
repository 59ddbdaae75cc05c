//! Denials carry the names of members.

use tollgate::compose::Named;

use super::bucket;
use crate::support::*;

#[test]
fn the_name_is_that_of_the_member_and_of_its_composition_if_it_has_none() {
    let clock = ManualClock::new();
    let [a, b, c, d] = [1, 2, 3, 4].map(|n| bucket(n, &clock));
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
