//! Named plans keep their keys when a configuration is reloaded in another order. If a plan has
//! changed or is missing, the report says so.

use tollgate::error::RestoreError;
use tollgate::keyed::{PlanMatch, Restored};

use super::forged::{parameters, plan, with_blocks};
use super::{read, ticks, whole, written};
use crate::support::forged::sealed;
use crate::support::*;

type Table = Keyed<TokenBucket, ManualClock>;

/// Creates a table with these plans, with names unless these are empty.
fn made(plans: &[(&str, &str)]) -> Table {
    let clock = ManualClock::at(ticks(1.0));
    let quotas = plans.iter().map(|(_, quota)| bucket(quota));
    let names = plans.iter().map(|(name, _)| *name);
    let table = match plans.iter().all(|(name, _)| name.is_empty()) {
        true => Keyed::with_plans(quotas, 1, clock),
        false => Keyed::with_named_plans(names.zip(quotas), 1, clock),
    };
    table.expect("a table")
}

const FREE: &str = "200/h";
const PAID: &str = "1000/h";
const NAMED: [(&str, &str); 2] = [("free", FREE), ("paid", PAID)];
const UNNAMED: [(&str, &str); 2] = [("", FREE), ("", PAID)];

/// Returns a snapshot in which Bob has 140 of 200 and Alice 940 of 1000.
fn of_two_keys(plans: &[(&str, &str)]) -> Vec<u8> {
    let limiter = made(plans);
    for (plan, key) in [(0, "bob"), (1, "alice")] {
        let taken = limiter.key(key).with_plan(plan).try_acquire_n(60);
        assert!(taken.is_ok());
    }
    written(&limiter)
}

/// Returns each plan's report: where its keys continue, how it was matched, and their number.
fn reported(restored: &Restored) -> Vec<(usize, PlanMatch, u64)> {
    let plans = restored.plans.iter();
    plans
        .map(|plan| (plan.plan, plan.found, plan.keys))
        .collect()
}

#[test]
fn a_reload_that_reorders_plans_keeps_each_key_in_the_plan_of_its_name() {
    let bytes = of_two_keys(&NAMED);
    for (plans, free, paid) in [
        (&[("paid", PAID), ("free", FREE)][..], 1, 0),
        (&[("free", FREE), ("staff", "7/h"), ("paid", PAID)], 0, 2),
        (&[("staff", "7/h"), ("paid", PAID), ("free", FREE)], 2, 1),
        (&NAMED, 0, 1),
    ] {
        let (next, restored) = whole(made(plans), &bytes);
        let same = PlanMatch::Same;
        assert_eq!(reported(&restored), [(free, same, 1), (paid, same, 1)]);
        let left = |plan: &str, key| {
            let plan = next.plan_named(plan)?;
            Some(next.key(key).with_plan(plan).available())
        };
        assert_eq!(left("free", "bob"), Some(140));
        assert_eq!(left("paid", "alice"), Some(940));
        // The same in the other direction.
        let (last, restored) = whole(made(&NAMED), &written(&next));
        let had = restored.plans.iter().filter(|plan| plan.keys > 0);
        assert!(had.map(|plan| plan.found).eq([same; 2]));
        assert_eq!(last.key("alice").with_plan(1).available(), 940);
    }
}

/// Without names, plans are matched only by position. Keys lose permits, and the report says so.
#[test]
fn a_reload_that_reorders_plans_without_names_is_reported() {
    let (next, restored) = whole(made(&[("", PAID), ("", FREE)]), &of_two_keys(&UNNAMED));
    let changed = PlanMatch::Changed;
    assert_eq!(reported(&restored), [(0, changed, 1), (1, changed, 1)]);
    assert!(restored.plans.iter().all(|plan| plan.name.is_none()));
    // 940 of 1000 were left. That is more than the plan at this position can hold, so the key is
    // fresh.
    assert_eq!((restored.keys, restored.idle), (1, 1));
    assert_eq!(next.key("alice").with_plan(1).available(), 200);
    let (_, restored) = whole(made(&UNNAMED), &of_two_keys(&UNNAMED));
    let same = PlanMatch::Same;
    assert_eq!(reported(&restored), [(0, same, 1), (1, same, 1)]);
}

#[test]
fn a_changed_quota_and_a_missing_plan_are_reported() {
    let bytes = of_two_keys(&NAMED);
    let (next, restored) = whole(made(&[("staff", "7/h"), ("free", "150/h")]), &bytes);
    let right = [(1, PlanMatch::Changed, 1), (0, PlanMatch::Missing, 1)];
    assert_eq!(reported(&restored), right);
    let names = restored.plans.iter().map(|plan| plan.name.as_deref());
    assert!(names.eq([Some("free"), Some("paid")]));
    assert_eq!(next.key("bob").with_plan(1).available(), 140);
    // She continues in the first plan, which is full with her number of permits.
    assert_eq!(next.key("alice").with_plan(0).available(), 7);
    // The same for plans that are matched by position.
    let (_, restored) = whole(made(&UNNAMED[..1]), &of_two_keys(&UNNAMED));
    let right = [(0, PlanMatch::Same, 1), (0, PlanMatch::Missing, 1)];
    assert_eq!(reported(&restored), right);
}

/// Nothing is restored that may be in the wrong plan.
#[test]
fn without_names_on_both_sides_plans_must_match_by_position() {
    let reordered = [("paid", PAID), ("free", FREE)];
    let more = [("free", FREE), ("paid", PAID), ("staff", "7/h")];
    let error_of = |bytes: &[u8], plans: &[(&str, &str)]| {
        let mut next = made(plans);
        assert!(next.key("carol").with_plan(0).try_acquire().is_ok());
        let error = read(&mut next, bytes).expect_err("the plan is ambiguous");
        assert_eq!((next.len(), error.to_string().is_empty()), (1, false));
        match error {
            RestoreError::PlanNamesMissing { plan, in_snapshot } => (plan, in_snapshot),
            other => panic!("{other}"),
        }
    };
    let (named, unnamed) = (of_two_keys(&NAMED), of_two_keys(&UNNAMED));
    let changed = [("free", FREE), ("paid", "900/h")];
    assert_eq!(error_of(&unnamed, &reordered), (0, true));
    assert_eq!(error_of(&unnamed, &changed), (1, true));
    let without = |plans: [(&'static str, &'static str); 2]| plans.map(|(_, quota)| ("", quota));
    assert_eq!(error_of(&named, &without(reordered)), (0, false));
    assert_eq!(error_of(&named, &without(changed)), (1, false));
    let three = of_two_keys(&more);
    assert_eq!(error_of(&three, &UNNAMED), (2, false));
    for (bytes, plans) in [
        (&unnamed, &NAMED[..]),
        (&unnamed, &more),
        (&named, &UNNAMED),
    ] {
        let (next, restored) = whole(made(plans), bytes);
        let same = PlanMatch::Same;
        assert_eq!(reported(&restored), [(0, same, 1), (1, same, 1)]);
        assert_eq!(next.key("alice").with_plan(1).available(), 940);
    }
    // A single plan has no other order.
    for plans in [[("all", "900/h")], [("", "900/h")]] {
        for bytes in [&named, &unnamed] {
            let (_, restored) = whole(made(&plans), bytes);
            assert_eq!(restored.plans.len(), 2);
            let mut plans = restored.plans.iter();
            assert!(plans.all(|plan| plan.plan == 0 && plan.keys == 1));
            assert_eq!(restored.plans[1].found, PlanMatch::Missing);
        }
    }
}

/// Plans are written twice if a quota changes while the snapshot is written.
#[test]
fn keys_are_counted_by_plan_even_if_plans_are_written_twice() {
    let plan = |quota| plan(&parameters(quota));
    let key = |hash: u64| vec![1, 1, 0, hash << 4, 1 << 62];
    let before = [plan("11/s"), key(1), key(2)].concat();
    let after = [plan("10/s"), key(3), vec![0, 0]].concat();
    let bytes = with_blocks(&[before, after].concat());
    let (_, restored) = whole(with_plans(&[bucket("10/s")]), &bytes);
    assert_eq!(reported(&restored), [(0, PlanMatch::Same, 3)]);
    assert_eq!((restored.keys, restored.idle), (3, 0));
}

/// A name that fits none, or is not text, and two plans of the same name.
#[test]
fn a_forged_name_is_missing_or_continues_in_its_plan() {
    let bytes = of_two_keys(&NAMED);
    let first = bytes.windows(4).position(|four| four == b"free");
    let first = first.expect("it is there");
    for (name, right) in [
        (b"\xFF\xFEx\xFD", (0, PlanMatch::Missing, 1)),
        (b"paid", (1, PlanMatch::Changed, 1)),
    ] {
        let mut forged = bytes[..bytes.len() - 8].to_vec();
        forged[first..first + 4].copy_from_slice(name);
        let (_, restored) = whole(made(&NAMED), &sealed(forged));
        assert_eq!(reported(&restored), [right, (1, PlanMatch::Same, 1)]);
    }
}
