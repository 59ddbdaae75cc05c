//! Each error of limiters and compositions names its field and what is allowed, and an error that
//! `?` has converted says the same as before.

use std::error::Error;

use tollgate::const_unwrap;
use tollgate::error::{ComposeError, LimiterError, QuotaError};

use crate::support::*;

type L = LimiterError;
type C = ComposeError;

/// Checks an error's text and field, and that there is no second error behind it.
#[track_caller]
fn says(error: &impl Error, field: &str, text: &str) {
    assert_eq!(error.to_string(), text);
    assert_eq!(text.split(' ').next(), Some(field));
    assert!(error.source().is_none());
}

/// Converts an error as `?` does.
fn by_question_mark<E, F: From<E>>(error: E) -> F {
    let question = || -> Result<(), F> { Ok(Err(error)?) };
    question().expect_err("an error")
}

/// Checks that the errors that this one becomes have its text and field.
#[track_caller]
pub(crate) fn is_kept(error: QuotaError, text: &str) {
    says(&error, error.field(), text);
    let limiter: LimiterError = by_question_mark(error);
    assert_eq!(limiter, L::Quota(error));
    assert_eq!(limiter.const_message(), error.const_message());
    is_kept_by_compositions(limiter, text);
    assert_eq!(by_question_mark::<_, C>(error), C::Limiter(limiter));
}

#[track_caller]
fn is_kept_by_compositions(error: LimiterError, text: &str) {
    says(&error, error.field(), text);
    let compose: ComposeError = by_question_mark(error);
    assert_eq!(compose, C::Limiter(error));
    says(&compose, compose.field(), text);
}

#[test]
fn each_error_of_limiters_names_the_field_its_value_and_what_is_allowed() {
    let [shards, slots, capacity, plans, overrides, keys] = [9; 6];
    let (total, n, limit, max, outcomes, length) = (9, 9, 9, 8, 8, 0);
    let period = Duration::from_secs(1);
    let errors = [
        L::ZeroShards,
        L::TooManyShards { shards, max },
        L::ZeroLeases,
        L::LeasesTooLarge { total, max: 8 },
        L::LeasesTooLarge { total, max: 0 },
        L::ZeroSlots,
        L::TooManySlots { slots, max },
        L::SlotsUneven { slots, period },
        L::LogTooLarge { n, max: 8 },
        L::ZeroCapacity,
        L::CapacityTooLarge { capacity, max },
        L::ZeroPlans,
        L::TooManyPlans { plans, max },
        L::NoSuchPlan { plan: 9, plans },
        L::PlanNameLength {
            plan: 1,
            length,
            max,
        },
        L::SamePlanName { plan: 2, other: 1 },
        L::ZeroOverrides,
        L::TooManyOverrides { overrides, max },
        L::NoOverrides,
        L::OverridesInUse { max },
        L::OutcomesLength { keys, outcomes },
        L::ZeroConcurrency,
        L::ConcurrencyTooLarge { limit, max: 8 },
    ];
    let texts = "\
shards is 0, but must be at least 1
shards is 9, but must be from 1 to 8 for this quota
total is 0, but must be at least 1 permit
total is 9, but must be from 1 to 8: at least one permit must remain
total is 9, but this limit has nothing to lend
slots is 0, but must be at least 1
slots is 9, but must be from 1 to 8
slots is 9, but must divide 1s in whole nanoseconds
n is 9, but must be from 1 to 8: a log keeps every permit
capacity is 0, but must be at least 1
capacity is 9, but must be from 1 to 8, and there must be memory for it
plans is 0, but must be at least 1
plans are 9, but must be from 1 to 8
plan is 9, but must be below 9
name of plan 1 has 0 bytes, but must have from 1 to 8
name of plan 2 is also that of plan 1, but must be unique
overrides is 0, but must be at least 1
overrides are 9, but must be from 1 to 8, and there must be memory for them
overrides are 0: to override a key's quota, make the table with_overrides
overrides are all in use: at most 8 keys of this table can have one
outcomes has room for 8, but must have room for 9, one for each key
limit is 0, but must be at least 1
limit is 9, but must be from 1 to 8";
    assert_eq!(texts.lines().count(), errors.len());
    for (error, text) in errors.into_iter().zip(texts.lines()) {
        is_kept_by_compositions(error, text);
        assert_eq!(error.const_message(), error.field());
    }
}

#[test]
fn each_error_of_compositions_names_the_field_its_value_and_what_is_allowed() {
    let (member, other, depth, members) = (2, 1, 9, 9);
    let errors = [
        C::ZeroMembers,
        C::TooManyMembers { members, max: 8 },
        C::ClocksDiffer { member, other },
        C::ClocksDiffer { member, other: 2 },
        C::NestedTooDeep {
            member,
            depth,
            max: 8,
        },
        C::SecondWithoutUndo { member, other },
    ];
    let texts = "\
members is 0, but must be at least 1
members are 9, but must be from 1 to 8
clock of member 2 must be the same as that of member 1
clock of member 2 must be a single clock, but its limits have several
member 2 is nested 9 deep, but must be at most 8
member 2 can't undo a grant, and neither can member 1: at most one member may be like this";
    assert_eq!(texts.lines().count(), errors.len());
    for (error, text) in errors.into_iter().zip(texts.lines()) {
        says(&error, error.field(), text);
    }
}

#[test]
fn const_unwrap_takes_the_error_of_a_limiter_too() {
    const fn slots(n: usize) -> Result<usize, LimiterError> {
        match n {
            0 => Err(L::ZeroSlots),
            n => Ok(n),
        }
    }
    const SLOTS: usize = const_unwrap!(slots(3));
    assert_eq!(SLOTS, 3);
}
