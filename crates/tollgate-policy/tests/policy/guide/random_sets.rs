//! Several sets of facts are decided as the sets are alone.

use std::collections::BTreeSet;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tollgate::{Denied, ManualClock};
use tollgate_policy::{Decision, Facts, Policy, Reason};

use crate::guide::lines::Pairs;
use crate::guide::random_policies::{policy, request};
use crate::random::Random;

type Decided<'p> = Decision<&'p Policy<ManualClock>, ManualClock>;

fn build(text: &str) -> Option<Policy<ManualClock>> {
    Policy::builder()
        .clock(ManualClock::new())
        .build_toml(text)
        .ok()
}

/// Returns the limits that are asked. A key can be that of several sets, so each counts once.
fn asked(decision: &Decided<'_>) -> BTreeSet<(String, String, bool)> {
    let asked = decision.asked();
    let limit = |it: tollgate_policy::Asked<'_>| {
        (it.rule().to_owned(), it.limit().to_owned(), it.is_shadow())
    };
    asked.map(limit).collect()
}

/// All stores are in memory, so the future is ready at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn several_sets_ask_what_each_of_them_asks() {
    let mut random = Random(7);
    let (mut allowed, mut denied, mut refused) = (0, 0, 0);
    for _ in 0..1000 {
        let text = policy(&mut random);
        let count = 1 + random.below(3);
        let sets: Vec<Pairs> = (0..count).map(|_| request(&mut random)).collect();
        let alone = || {
            sets.iter()
                .map(|_| build(&text))
                .collect::<Option<Vec<_>>>()
        };
        let Some(alone) = alone() else { continue };
        let decisions: Vec<_> = alone
            .iter()
            .zip(&sets)
            .map(|(it, set)| it.decide(set))
            .collect();
        let [one, other] = [build(&text).unwrap(), build(&text).unwrap()];
        let together = one.decide_together(&sets);
        let dynamic: Vec<&dyn Facts> = sets.iter().map(|set| set as &dyn Facts).collect();
        let later = now(other.decide_together_async(&dynamic));
        let context = format!("{text}\n{sets:?}\n{together:?}\n{decisions:?}");
        assert_eq!(together.is_allowed(), later.is_allowed(), "{context}");
        assert_eq!(asked(&together), asked(&later), "{context}");
        assert_eq!(together.denied_by(), later.denied_by(), "{context}");
        // A list, a rule without a key, or a limit of 0 decides before the limits.
        let is_zero = |denied| matches!(denied, Denied::Never { limit: 0, .. });
        let is_limit = |it: &Decided<'_>| match it.reason() {
            Some(Reason::Limit { denied, .. }) => !is_zero(denied),
            _ => false,
        };
        let mut denied_ones = decisions.iter().filter(|it| !it.is_allowed());
        if let Some(first) = denied_ones.find(|it| !is_limit(it)) {
            assert_eq!(together.denied_by(), first.denied_by(), "{context}");
            refused += 1;
            continue;
        }
        let expected = decisions.iter().flat_map(asked).collect::<BTreeSet<_>>();
        assert_eq!(asked(&together), expected, "{context}");
        match together.is_allowed() {
            true => {
                assert!(decisions.iter().all(Decided::is_allowed), "{context}");
                let exempt = decisions.iter().all(|it| it.exempted_by().is_some());
                assert_eq!(together.exempted_by().is_some(), exempt, "{context}");
                allowed += 1;
            }
            false => denied += 1,
        }
    }
    assert!(
        allowed > 300 && refused > 60,
        "{allowed} {denied} {refused}"
    );
}
