//! Compositions of limits: requests that take from several limits at once, beside each other and
//! beside callers of a single limit. No limit grants more than its bound, a denied request leaves
//! everything as it was, and of two that need each other's permits one is granted.

use tollgate::compose::{AllDenied, AllReserved, OrElse};
use tollgate::keyed::Overflow;
use tollgate::{Adjustable, Keyed, TryAcquire};
use tollgate_loom_tests::prelude::*;

use super::compose_rows::{
    Bucket, NOW, bucket, granted, pair, rest, row_against_a_plain_caller, rows_in_opposite_orders,
    told, whole_row,
};

/// Three limits. Their addresses are in this order.
#[repr(C)]
struct Limits {
    a: Bucket,
    b: Bucket,
    c: Bucket,
}

type Action = Any<Limits, ()>;
type Scenario = AnyScenario<Limits, ()>;

const SECOND: u64 = 1_000_000_000;
const LATER: Tick = Tick::from_nanos(20 + SECOND);

fn limits(n: u64) -> Limits {
    let clock = ManualClock::at(NOW);
    let limiter = || Limiter::with_clock(bucket(n), clock.clone());
    let (a, b, c) = (limiter(), limiter(), limiter());
    Limits { a, b, c }
}

/// Takes a permit of each of two limits.
macro_rules! both {
    ($one:ident, $other:ident) => {
        Action::new(
            concat!("both ", stringify!($one), ", ", stringify!($other)),
            |limits, ()| {
                let all = All::new((&limits.$one, &limits.$other)).expect("two limits");
                told(all.at(NOW).try_acquire_n(1))
            },
        )
    };
}

/// Takes `n` permits of one limit at this tick.
macro_rules! plain {
    ($limit:ident, $n:expr, $now:expr) => {
        Action::new(concat!("plain ", stringify!($limit)), |limits, ()| {
            Answer::Is(limits.$limit.try_acquire_n_at($n, $now).is_ok())
        })
    };
}

/// At the end, says what each limit has.
fn with_rest(scenario: Scenario) -> Scenario {
    scenario.after(|limits, _| {
        let all = [&limits.a, &limits.b, &limits.c];
        let all = all.map(|limit| Answer::Count(limit.available_at(NOW)));
        all.to_vec()
    })
}

/// A member is empty: a caller of another member sees nothing of the denied request.
fn beside_an_empty_member(run: &mut Run) {
    let scenario = Scenario::at(|| limits(1))
        .actor_after(&[plain!(b, 1, NOW)], &[both!(a, b)])
        .actor(&[plain!(a, 1, NOW)])
        .rule(|played| {
            let plain = granted(&played.answers[1]);
            assert_eq!(plain, 1, "a denied request took something");
        });
    scenario.explore_to(run, &["false | true"]);
}

/// While a request is between taking and undoing, and only then, another is denied although the
/// request is denied as well.
fn denied_in_between(run: &mut Run) {
    let scenario = Scenario::at(|| limits(1))
        .actor(&[both!(a, b)])
        .actor(&[plain!(b, 1, NOW), plain!(a, 1, NOW)]);
    let scenario = with_rest(scenario).rule(|played| {
        let (both, plain) = (granted(&played.answers[0]), &played.answers[1]);
        let of = |answer: &Answer| granted(std::slice::from_ref(answer));
        assert_eq!(rest(&played.after[0]), 1 - both - of(&plain[1]), "of a");
        assert_eq!(rest(&played.after[1]), 1 - both - of(&plain[0]), "of b");
    });
    let told = [
        "true | false, false",
        // The composition took `a`, and was denied by `b`, which the plain caller has.
        "false | true, false",
        "false | true, true",
        "false | true, true",
    ];
    scenario.explore_to(run, &told[..3]);
}

/// A limit of another kind, and a bucket of one permit.
struct Two<A> {
    a: A,
    b: Bucket,
}

impl<A> Two<A> {
    fn new(a: impl FnOnce(ManualClock) -> A) -> Self {
        let b = limits(1).b;
        let a = a(b.clock().clone());
        Self { a, b }
    }
}

/// A permit of a window that is over when it is undone does not come back to the next window.
fn undone_in_the_next_window(run: &mut Run) {
    type Action = Any<Two<Limiter<FixedWindow, ManualClock>>, ()>;
    let windows = |clock| {
        let window = FixedWindow::new(Quota::per(1, Duration::from_secs(1))).expect("a quota");
        Limiter::with_clock(window, clock)
    };
    let later = plain!(a, 1, LATER);
    let scenario = AnyScenario::at(move || Two::new(windows))
        .actor(&[both!(a, b)])
        .actor(&[plain!(b, 1, NOW), later.clone(), later])
        .rule(|played| {
            let later = granted(&played.answers[1][1..]);
            assert!(later <= 1, "a window of 1 granted {later}");
        });
    scenario.explore_rules(run);
}

/// A request takes from the first or the second of two limits, beside a caller that takes the
/// first, and then the other member. What a lost race gives back reaches the limit that granted.
fn a_choice_loses_a_race(run: &mut Run) {
    let choice = Action::new("a or else b, and c", |limits, ()| {
        let members = (OrElse::new(&limits.a, &limits.b), &limits.c);
        let all = All::new(members).expect("two limits");
        told(all.at(NOW).try_acquire_n(1))
    });
    let scenario = Scenario::at(|| limits(1))
        .actor(&[choice])
        .actor(&[plain!(a, 1, NOW), plain!(c, 1, NOW)]);
    let scenario = with_rest(scenario).rule(|played| {
        let of = |answer: &Answer| granted(std::slice::from_ref(answer));
        let (all, plain) = (granted(&played.answers[0]), &played.answers[1]);
        let (a, b, c) = (&played.after[0], &played.after[1], &played.after[2]);
        assert_eq!(rest(c), 0, "not one of them has c");
        assert_eq!(all + of(&plain[1]), 1, "not one of them is granted");
        // Only one of the two is taken from, and `a` first.
        assert_eq!(rest(a) + rest(b), 2 - all - of(&plain[0]), "of a and b");
        assert!(rest(b) == 1 || of(&plain[0]) == 1, "b was taken before a");
    });
    scenario.explore_rules(run);
}

/// Another caller takes the last permit of a member, and reserves the next one of the member that
/// was taken from first. A newcomer does not use what is rolled back when the reservation is due.
fn beside_a_reservation(run: &mut Run) {
    let reserve = Action::new("reserve a", |limits, ()| {
        let reserved = limits.a.at(NOW).reserve_until(1, Tick::MAX);
        Answer::Count(reserved.expect("a place in line").due().as_nanos())
    });
    let scenario = Scenario::at(|| limits(1))
        .actor(&[both!(a, b)])
        .actor(&[plain!(b, 1, NOW), reserve])
        .after(|limits, _| vec![Answer::Is(limits.a.try_acquire_n_at(1, LATER).is_ok())])
        .rule(|played| {
            let (both, other) = (granted(&played.answers[0]), &played.answers[1]);
            let newcomer = granted(&played.after);
            let is_due = |tick: Tick| u64::from(rest(&other[1]) == tick.as_nanos());
            assert_eq!(both + granted(&other[..1]), 1, "not one of them has b");
            assert!(both + is_due(NOW) <= 1, "two are used at once");
            assert!(
                newcomer + is_due(LATER) <= 1,
                "two are used when one is due"
            );
        });
    scenario.explore_rules(run);
}

/// A member's quota changes while a request takes from it and undoes.
fn a_quota_changes(run: &mut Run) {
    type Action = Any<Two<Adjustable<TokenBucket, ManualClock>>, ()>;
    let change = Action::new("change a", |limits, ()| {
        let quota = Quota::per(1, Duration::from_secs(1)).burst(3);
        let changed = limits.a.at(NOW).set_quota(quota, Keep::AsIs);
        changed.expect("a quota");
        // If this is 2, nothing was taken when the quota changed.
        Answer::Count(limits.a.available_at(NOW))
    });
    let make = || Two::new(|clock| Adjustable::with_clock(bucket(2), clock));
    let scenario = AnyScenario::at(make)
        .actor(&[both!(a, b)])
        .actor(&[plain!(b, 1, NOW), change])
        .after(|limits, _| {
            let (a, b) = (limits.a.available_at(NOW), limits.b.available_at(NOW));
            vec![Answer::Count(a), Answer::Count(b)]
        })
        .rule(|played| {
            let (both, plain) = (granted(&played.answers[0]), &played.answers[1]);
            let takes_b = granted(&plain[..1]);
            assert_eq!(both + takes_b, 1, "not one of them is granted");
            assert_eq!(rest(&played.after[1]), 0, "b has more than it should");
            // A change keeps what is available. A grant from before it can't be undone.
            let (has, should) = (rest(&played.after[0]), 2 - both);
            assert!(has <= should, "a has {has}, and should have {should}");
            let lost = u64::from(rest(&plain[1]) < 2);
            assert!(has + lost >= should, "a lost more than the grant");
        });
    scenario.explore_rules(run);
}

/// A member is a key that leaves the table while a request takes from it and undoes, and that
/// returns.
fn a_key_leaves(run: &mut Run) {
    type Action = Any<Two<Keyed<TokenBucket, ManualClock>>, ()>;
    let table = |clock| {
        let table = Keyed::with_clock(bucket(2), 1, clock).expect("a table");
        table.with_overflow(Overflow::Deny)
    };
    let both = Action::new("both", |limits, ()| {
        let all = All::new((limits.a.key("alice"), &limits.b)).expect("two limits");
        told(all.at(NOW).try_acquire_n(1))
    });
    let remove = Action::new("remove", |limits, ()| {
        let _ = limits.a.key("alice").remove();
        Answer::Done
    });
    let takes_key = Action::new("plain key", |limits, ()| {
        let key = limits.a.key("alice");
        Answer::Is(key.try_acquire_n_at(2, NOW).is_ok())
    });
    let scenario = AnyScenario::at(move || Two::new(table))
        .actor(&[both])
        .actor(&[plain!(b, 1, NOW), remove, takes_key])
        .after(|limits, _| {
            let key = limits.a.key("alice").available_at(NOW);
            let b = limits.b.available_at(NOW);
            vec![Answer::Count(key), Answer::Count(b)]
        })
        .rule(|played| {
            let both = granted(&played.answers[0]);
            let takes_b = granted(&played.answers[1][..1]);
            let takes_key = 2 * granted(&played.answers[1][2..]);
            assert_eq!(both + takes_b, 1, "not one of them is granted");
            assert_eq!(rest(&played.after[1]), 0, "b has more than it should");
            // The removed key is fresh when it returns. A grant from before its removal may come
            // back to it, if the request is denied.
            let (has, excess) = (rest(&played.after[0]), 1 - both);
            assert!(
                has + takes_key <= 2 + excess,
                "the key has {has}, after {takes_key} of 2"
            );
            assert!(
                has + takes_key + both >= 2,
                "the key's permit was lost: it has {has}, after {takes_key} of 2"
            );
        });
    scenario.explore_rules(run);
}

/// Two compositions of the same two limits, in opposite orders, reserve. One limit has a permit,
/// and the other has one in a second. One of the two waits for a second at most.
fn reservations_in_opposite_orders(run: &mut Run) {
    /// Returns the due tick, in seconds from now, or that the request is denied.
    fn due<R, M, C>(reserved: Result<AllReserved<R, M, C>, AllDenied>) -> Answer
    where
        R: std::ops::Deref<Target = All<M, C>>,
        M: tollgate::compose::Members<C>,
    {
        match reserved {
            Ok(reserved) => Answer::Count(reserved.due().saturating_since(NOW).as_secs()),
            Err(_) => Answer::Is(false),
        }
    }
    let make = || {
        let limits = limits(1);
        assert!(limits.b.try_acquire_n_at(1, NOW).is_ok());
        limits
    };
    let soon = Action::new("reserve a, b, soon", |limits, ()| {
        let all = All::new((&limits.a, &limits.b)).expect("two limits");
        due(all.at(NOW).reserve_within(1, Duration::from_secs(1)))
    });
    let ever = Action::new("reserve b, a", |limits, ()| {
        let all = All::new((&limits.b, &limits.a)).expect("two limits");
        due(all.at(NOW).reserve(1))
    });
    let scenario = Scenario::at(make).actor(&[soon]).actor(&[ever]);
    let scenario = scenario
        .after(|limits, _| {
            let waits = [&limits.a, &limits.b].map(|limit| {
                let wait = limit
                    .check_n_at(1, NOW)
                    .map_err(|denied| denied.retry_after());
                Answer::Count(wait.err().flatten().map_or(0, |wait| wait.as_secs()))
            });
            waits.to_vec()
        })
        .rule(|played| {
            let dues = played.answers.iter().flatten();
            let dues = dues.filter_map(|answer| match answer {
                Answer::Count(due) => Some(*due),
                _ => None,
            });
            let dues: Vec<_> = dues.collect();
            assert_ne!(dues, [], "both are denied");
            assert!(
                dues.len() == 1 || dues[0] != dues[1],
                "due at once: {dues:?}"
            );
            let last = dues.iter().max().copied().unwrap_or(0);
            for limit in &played.after {
                assert!(rest(limit) > last, "a permit that is reserved is free");
            }
        });
    scenario.explore_rules(run);
}

#[test]
fn reservations_are_whole() {
    let name = "compose::reservations_are_whole";
    model(name, None, reservations_in_opposite_orders)
        .finds([Fault::CancelsInTheMiddle], "reserved is free");
}

/// A request stops forever before each of its operations in turn. Others finish, and miss no more
/// than what it takes.
fn stops_in_between(run: &mut Run) {
    let both = both!(a, b);
    let scenario = Scenario::at(|| limits(2))
        .actor(&[both])
        .actor(&[plain!(b, 2, NOW), plain!(a, 1, NOW)]);
    let scenario = with_rest(scenario).rule(|played| {
        let of = |answer: &Answer| granted(std::slice::from_ref(answer));
        let plain = &played.answers[1];
        assert_eq!(of(&plain[1]), 1, "a permit that is not taken is denied");
        let has = rest(&played.after[0]) + of(&plain[1]);
        match played.answers[0].first() {
            Some(both) => assert_eq!(has, 2 - of(both), "permits were lost"),
            None => assert!(has == 1 || has == 2, "it has {has} of 2"),
        }
    });
    scenario.explore_stopping(run, 0);
}

#[test]
fn of_two_in_opposite_orders_one_is_granted() {
    let name = "compose::of_two_in_opposite_orders_one_is_granted";
    let faults = [Fault::TakesInTheCallersOrder];
    let opposite = |run: &mut Run| rows_in_opposite_orders(run, pair([0, 1]), pair([1, 0]));
    model(name, None, opposite).finds(faults, "not one of them is granted");
}

#[test]
fn a_lost_race_undoes_everything() {
    let name = "compose::a_lost_race_undoes_everything";
    let faults = [Fault::ForgetsToUndo, Fault::UndoesOne];
    let against = |run: &mut Run| row_against_a_plain_caller(run, whole_row([0, 1, 2]));
    model(name, None, against).finds(faults, "permits were lost");
}

#[test]
fn a_denial_takes_nothing() {
    let name = "compose::a_denial_takes_nothing";
    model(name, None, beside_an_empty_member).finds([Fault::TakesWithoutALook], "took something");
}

#[test]
fn a_request_is_denied_wrongly_only_in_between() {
    let name = "compose::a_request_is_denied_wrongly_only_in_between";
    model(name, None, denied_in_between).finds([Fault::ForgetsToUndo], "of a");
}

#[test]
fn a_request_that_stops_in_between_withholds_only_what_it_takes() {
    let name = "compose::a_request_that_stops_in_between_withholds_only_what_it_takes";
    model(name, None, stops_in_between).finds([Fault::ForgetsToUndo], "permits were lost");
}

#[test]
fn nothing_comes_back_to_another_window() {
    let name = "compose::nothing_comes_back_to_another_window";
    model(name, None, undone_in_the_next_window)
        .finds([Fault::RefundsInstead], "a window of 1 granted 2");
}

#[test]
fn nothing_comes_back_beside_a_reservation() {
    let name = "compose::nothing_comes_back_beside_a_reservation";
    model(name, None, beside_a_reservation)
        .finds([Fault::RollsBackByUndo], "two are used when one is due");
}

#[test]
fn a_lost_race_gives_back_to_the_limit_that_was_chosen() {
    let name = "compose::a_lost_race_gives_back_to_the_limit_that_was_chosen";
    model(name, None, a_choice_loses_a_race).finds([Fault::ForgetsToUndo], "of a and b");
}

#[test]
fn a_member_changes_its_quota() {
    model("compose::a_member_changes_its_quota", None, a_quota_changes)
        .finds([Fault::ForgetsToUndo], "a lost more than the grant");
}

#[test]
fn a_member_leaves_its_table() {
    model("compose::a_member_leaves_its_table", Some(3), a_key_leaves)
        .finds([Fault::ForgetsToUndo], "the key's permit was lost");
}
