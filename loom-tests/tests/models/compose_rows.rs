//! Compositions of two, three, four and eight limits, and of boxed members: in opposite orders, and
//! beside a caller of a single limit.

use tollgate::TryAcquire;
use tollgate::compose::{AllDenied, BoxMember};
use tollgate_loom_tests::prelude::*;

pub(super) const NOW: Tick = Tick::from_nanos(20);

pub(super) type Bucket = Limiter<TokenBucket, ManualClock>;

/// Limits in a row. Their addresses are in this order.
type Row<const N: usize> = [Bucket; N];
type InRow<const N: usize> = Any<Row<N>, ()>;
type RowScenario<const N: usize> = AnyScenario<Row<N>, ()>;

/// A bucket of `n` permits that fills by one a second.
pub(super) fn bucket(n: u64) -> TokenBucket {
    TokenBucket::new(Quota::per(1, Duration::from_secs(1)).burst(n)).expect("a quota")
}

/// The answer to a request that took a permit of each limit, or none.
pub(super) fn told<G>(outcome: Result<G, AllDenied>) -> Answer {
    match outcome {
        // Dropping the grant keeps the permits.
        Ok(_) => Answer::Is(true),
        Err(_) => Answer::Is(false),
    }
}

pub(super) fn granted(answers: &[Answer]) -> u64 {
    let granted = answers.iter().filter(|answer| **answer == Answer::Is(true));
    granted.count() as u64
}

pub(super) fn rest(answer: &Answer) -> u64 {
    match answer {
        Answer::Count(n) => *n,
        other => panic!("no count: {other}"),
    }
}

fn row<const N: usize>() -> Row<N> {
    let clock = ManualClock::at(NOW);
    [(); N].map(|()| Limiter::with_clock(bucket(1), clock.clone()))
}

const fn ascending<const N: usize>() -> [usize; N] {
    let mut order = [0; N];
    let mut index = 0;
    while index < N {
        order[index] = index;
        index += 1;
    }
    order
}

fn descending<const N: usize>() -> [usize; N] {
    ascending().map(|index| N - 1 - index)
}

/// Takes a permit of each limit of the row, which the caller writes in this order.
pub(super) fn whole_row<const N: usize>(order: [usize; N]) -> InRow<N> {
    Any::new("the whole row", move |limits: &Arc<Row<N>>, ()| {
        let all = All::new(order.map(|index| &limits[index])).expect("a row of limits");
        told(all.at(NOW).try_acquire_n(1))
    })
}

/// The same for two limits, in a tuple.
pub(super) fn pair([one, other]: [usize; 2]) -> InRow<2> {
    Any::new("the pair", move |limits: &Arc<Row<2>>, ()| {
        let all = All::new((&limits[one], &limits[other])).expect("two limits");
        told(all.at(NOW).try_acquire_n(1))
    })
}

/// The same for boxed members.
fn boxed_row<const N: usize>(order: [usize; N]) -> InRow<N> {
    Any::new("the whole row, boxed", move |limits: &Arc<Row<N>>, ()| {
        let boxed = |index: usize| -> BoxMember<'_, ManualClock> { Box::new(&limits[index]) };
        let members: Vec<_> = order.into_iter().map(boxed).collect();
        let all = All::new(members).expect("a row of limits");
        told(all.at(NOW).try_acquire_n(1))
    })
}

fn with_rest_of_row<const N: usize>(scenario: RowScenario<N>) -> RowScenario<N> {
    scenario.after(|limits, _| {
        let rest = limits.each_ref().map(|limit| limit.available_at(NOW));
        rest.map(Answer::Count).to_vec()
    })
}

/// Two compositions of the same limits, in opposite orders, compete for their last permits.
pub(super) fn rows_in_opposite_orders<const N: usize>(
    run: &mut Run,
    one: InRow<N>,
    other: InRow<N>,
) {
    let scenario = RowScenario::at(row).actor(&[one]).actor(&[other]);
    let scenario = with_rest_of_row(scenario).rule(|played| {
        let granted: u64 = played.answers.iter().map(|told| granted(told)).sum();
        assert_eq!(granted, 1, "not one of them is granted");
        for limit in &played.after {
            assert_eq!(rest(limit), 0, "permits were lost or made");
        }
    });
    scenario.explore_to(run, &["true | false", "false | true"]);
}

/// A composition of a row, and a caller that takes the last permit of the last limit.
pub(super) fn row_against_a_plain_caller<const N: usize>(run: &mut Run, all: InRow<N>) {
    let plain = Any::new("plain, the last", |limits: &Arc<Row<N>>, ()| {
        Answer::Is(limits[N - 1].try_acquire_n_at(1, NOW).is_ok())
    });
    let scenario = RowScenario::at(row).actor(&[all]).actor(&[plain]);
    let scenario = with_rest_of_row(scenario).rule(|played| {
        let (all, plain) = (granted(&played.answers[0]), granted(&played.answers[1]));
        assert_eq!(all + plain, 1, "not one of them is granted");
        for limit in &played.after[..N - 1] {
            assert_eq!(rest(limit), 1 - all, "permits were lost");
        }
        assert_eq!(rest(&played.after[N - 1]), 0, "permits were made");
    });
    scenario.explore_to(run, &["true | false", "false | true"]);
}

#[test]
fn of_two_with_four_or_eight_members_one_is_granted() {
    let name = "compose_rows::of_two_with_four_or_eight_members_one_is_granted";
    fn opposite<const N: usize>(run: &mut Run) {
        let (one, other) = (whole_row(ascending::<N>()), whole_row(descending()));
        rows_in_opposite_orders(run, one, other);
    }
    let faults = [Fault::TakesInTheCallersOrder];
    let why = "not one of them is granted";
    model(name, None, opposite::<4>).finds(faults, why);
    // Bounded, because with 3 preemptions there are 30 000 executions.
    model(name, Some(2), opposite::<8>).finds(faults, why);
}

#[test]
fn a_lost_race_undoes_four_members() {
    let name = "compose_rows::a_lost_race_undoes_four_members";
    let against = |run: &mut Run| row_against_a_plain_caller::<4>(run, whole_row(descending()));
    let faults = [Fault::ForgetsToUndo, Fault::UndoesOne];
    model(name, None, against).finds(faults, "permits were lost");
}

#[test]
fn boxed_members_are_taken_all_or_none() {
    let name = "compose_rows::boxed_members_are_taken_all_or_none";
    let opposite = |run: &mut Run| {
        let (one, other) = (boxed_row(ascending::<4>()), boxed_row(descending()));
        rows_in_opposite_orders(run, one, other);
    };
    let mixed = |run: &mut Run| {
        let (one, other) = (whole_row(ascending::<4>()), boxed_row(descending()));
        rows_in_opposite_orders(run, one, other);
    };
    let against = |run: &mut Run| row_against_a_plain_caller::<4>(run, boxed_row(descending()));
    let why = "not one of them is granted";
    model(name, Some(3), |run| {
        opposite(run);
        mixed(run);
        against(run);
    });
    for broken in [&opposite as &dyn Fn(&mut Run), &mixed] {
        on_broken(name, Some(3), broken).finds([Fault::TakesInTheCallersOrder], why);
    }
    let faults = [Fault::ForgetsToUndo, Fault::UndoesOne];
    on_broken(name, Some(3), against).finds(faults, "permits were lost");
}
