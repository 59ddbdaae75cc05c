//! What chains of limiters get wrong elsewhere.

use std::sync::Barrier;

use super::{full, secs};
use crate::support::*;

/// In some services, a loose limit hides a tight one that is listed later.
#[test]
fn loose_before_tight_and_tight_before_loose_deny_alike() {
    let (_, [loose, tight]) = full([100, 2]);
    let tight_last = All::new((&loose, &tight)).expect("two limits");
    let tight_first = All::new((&tight, &loose)).expect("two limits");
    assert!(tight_last.try_acquire().is_ok() && tight_first.try_acquire().is_ok());
    let [last, first] = [tight_last.try_acquire(), tight_first.try_acquire()].map(|answer| {
        let denied = answer.expect_err("the tight limit is empty");
        (denied.member(), denied.denied(), denied.retry_after())
    });
    assert_eq!((last.0, first.0), (Some(1), Some(0)));
    assert_eq!((last.1, last.2), (first.1, first.2));
    assert_eq!(last.2, secs(1));
    assert_eq!((loose.available(), tight.available()), (98, 0));
    assert_eq!((tight_last.available(), tight_first.available()), (0, 0));
}

/// The answer does not depend on where the limits are in memory.
#[test]
fn of_members_that_deny_alike_the_first_is_told() {
    let (clock, limits) = full([1; 3]);
    let [a, b, c] = limits.each_ref();
    for order in [[a, b, c], [c, b, a], [b, c, a], [c, a, b]] {
        let all = All::new(order).expect("three limits");
        // None of them ever has two.
        let never = all.check_n(2).expect_err("two of one");
        assert_eq!((never.member(), never.is_permanent()), (Some(0), true));
        drop(all.try_acquire().expect("one each"));
        let denied = all.try_acquire().map(drop).expect_err("all are empty");
        assert_eq!((denied.member(), denied.retry_after()), (Some(0), secs(1)));
        let denied = all.at(all.now()).check_each([0, 1, 1]);
        assert_eq!(denied.map_err(|denied| denied.member()), Err(Some(1)));
        clock.advance(Duration::from_secs(1));
    }
}

/// Callers that estimate their tokens: together they never hold more than the limit, and at the end
/// the limit counts what they used, exactly.
#[test]
fn callers_with_estimates_never_pass_the_limit_and_settle_exactly() {
    const CALLERS: u64 = 64;
    const TOKENS: u64 = 100;
    deadline("64 callers with estimates", || {
        for round in 0..20 {
            let (_, [requests, tokens]) = full([1000, TOKENS]);
            let model = All::new((&requests, &tokens)).expect("two limits");
            let asked = Barrier::new(CALLERS as usize);
            let told = on_threads(0..CALLERS, |id| {
                let mut random = Random(1000 * round + id);
                let estimate = 1 + random.below(12);
                let answer = model.try_acquire_each([1, estimate]);
                // All callers have asked before the first settles.
                asked.wait();
                let Ok(mut granted) = answer else {
                    return (0, 0);
                };
                let actual = random.below(estimate + 1);
                let settled = granted.settle([1, actual]).expect("a cost for each");
                assert_eq!((settled.returned, settled.lost), (estimate - actual, 0));
                (estimate, actual)
            });
            let (estimated, used) = told
                .into_iter()
                .fold((0, 0), |sum, told| (sum.0 + told.0, sum.1 + told.1));
            assert!(estimated <= TOKENS, "{estimated} tokens were granted");
            assert!(
                estimated > TOKENS - 12,
                "only {estimated} tokens were granted"
            );
            assert_eq!(tokens.available(), TOKENS - used);
        }
    });
}
