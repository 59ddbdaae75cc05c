//! A counted table counts the decisions on all its keys, in every way of asking for a key.
//! Owned keys, which keep their table alive, act on that table.

use tollgate::TryAcquire;
use tollgate::stats::LimiterStats;
use tollgate::traits::ReserveLimiter;

use crate::support::*;

type Outcome = Result<Granted, Denied>;

/// Counts one more outcome.
fn add(to: &mut LimiterStats, outcome: &Outcome) {
    match outcome {
        Ok(granted) => {
            to.granted += 1;
            to.permits += granted.n();
        }
        Err(_) => to.denied += 1,
    }
}

/// Five permits an hour for each key.
fn hourly(clock: &ManualClock) -> Keyed<TokenBucket, ManualClock> {
    Keyed::with_clock(bucket("5/h"), 1000, clock.clone()).expect("a table")
}

/// A plan of five permits a day, and one of fifty.
fn daily() -> Keyed<FixedWindow, ManualClock> {
    let plans = [5, 50].map(|n| FixedWindow::new(Quota::per_day(n)).expect("a quota"));
    Keyed::with_plans(plans, 1000, ManualClock::new()).expect("a table")
}

/// Calls each verb of a key, and counts its answers.
fn ask<G>(key: &Counted<G, &tollgate::stats::Counters>, verb: u64, right: &mut LimiterStats)
where
    G: ReserveLimiter<Clock = ManualClock> + Copy,
{
    match verb {
        0 => add(right, &key.try_acquire()),
        1 => add(right, &key.try_acquire_n_at(2, tick(7))),
        2 => add(right, &Ok(key.take_up_to(3))),
        3 => right.returned += key.refund(1),
        4 => right.charged += key.charge(1).n(),
        5 => add(right, &key.blocking_acquire_timeout(1, Duration::ZERO)),
        _ => {
            let outcome = key.reserve(1).expect("below the burst");
            right.granted += 1;
            right.permits += 1;
            right.returned += outcome.cancel().returned;
        }
    }
}

#[test]
fn a_table_counts_each_verb_of_each_key() {
    let clock = ManualClock::new();
    let table = Counted::new(hourly(&clock));
    let (mut random, mut right) = (Random(11), LimiterStats::default());
    for _ in 0..3000 {
        let (key, verb) = (random.below(300), random.below(12));
        match verb {
            7 => add(&mut right, &table.key(&key).try_acquire()),
            8 => add(&mut right, &table.key(&key).try_acquire_n(2)),
            9 => add(
                &mut right,
                &table.key(&key).try_acquire_n_at(1, clock.now()),
            ),
            10 => add(&mut right, &table.key(&key).with_plan(0).try_acquire()),
            11 => {
                let mut outcomes = [const { Err(Denied::busy(1)) }; 20];
                let keys: [u64; 20] = std::array::from_fn(|i| key + i as u64 / 2);
                table
                    .try_acquire_batch(&keys, &mut outcomes)
                    .expect("as many");
                outcomes.iter().for_each(|outcome| add(&mut right, outcome));
                let few = table.try_acquire_batch(&keys[..3], &mut outcomes);
                assert!(few.is_err(), "a batch with too few outcomes is an error");
            }
            verb => ask(&table.key(&key), verb, &mut right),
        }
        assert_eq!(table.stats(), right);
    }
    let counts = [right.granted, right.denied, right.returned, right.charged];
    assert!(counts.iter().all(|count| *count > 50), "{right:?}");
    assert!(table.limiter().stats().tracked > 250);
}

#[test]
fn a_plan_that_does_not_exist_is_counted_as_denied() {
    let table = Counted::new(daily());
    assert!(table.key("alice").with_plan(1).try_acquire_n(40).is_ok());
    assert!(table.key("alice").with_plan(2).try_acquire().is_err());
    let decisions = table.stats();
    let actual = (decisions.granted, decisions.permits, decisions.denied);
    assert_eq!(actual, (1, 40, 1));
}

#[test]
fn threads_lose_no_counts() {
    deadline("threads", || {
        let table = Counted::new(hourly(&ManualClock::new()));
        on_threads(0..4, |_| {
            for key in 0..1000 {
                let _ = table.key(&(key % 100)).try_acquire();
            }
        });
        let stats = table.stats();
        assert_eq!((stats.granted, stats.denied), (500, 3500));
    });
}

/// Checks that each verb of an owned key acts on the key of the table.
fn shares_its_key<K>(own: K, borrowed: &dyn Fn() -> u64)
where
    K: TryAcquire<Clock = ManualClock> + ReserveLimiter + Clone + Send + 'static,
{
    assert!(own.try_acquire_n(3).is_ok());
    assert_eq!((own.available_at(Tick::ZERO), borrowed()), (2, 2));
    let other = own.clone();
    let granted = thread::spawn(move || other.try_acquire()).join();
    let granted = granted.expect("no panic").expect("one of two");
    assert_eq!(borrowed(), 1);
    assert_eq!(own.undo_at(granted, Tick::ZERO), 1);
    assert_eq!(own.charge_at(4, Tick::ZERO).debt(), 2);
    assert_eq!((own.refund_at(7, Tick::ZERO), borrowed()), (7, 5));
}

#[test]
fn an_owned_key_of_a_table_acts_on_the_same_key() {
    let table = Arc::new(hourly(&ManualClock::new()));
    let alice = table.key_owned("alice");
    shares_its_key(alice.clone(), &|| table.key("alice").available());
    let reservation = alice.clone().reserve_owned(5).expect("the burst");
    let later = alice.clone().reserve_within_owned(1, Duration::ZERO);
    assert!(later.is_err());
    drop(table);
    let cancelled = thread::spawn(move || reservation.cancel()).join();
    assert_eq!(cancelled.expect("no panic").returned, 5);
    assert!(alice.key().remove() && alice.table().is_empty());
}

#[test]
fn an_owned_key_has_a_plan() {
    let table = Arc::new(daily());
    let paid = table.key_owned("alice").with_plan(1);
    let actual = (paid.available(), table.key_owned("alice").available());
    assert_eq!(actual, (50, 5));
    let none = table.key_owned("alice").with_plan(2);
    assert!(matches!(none.try_acquire(), Err(Denied::NoSuchPlan { .. })));
}

#[test]
fn a_counted_table_and_an_owned_key_find_a_plan_by_name() {
    let plans = [("free", bucket("5/h")), ("paid", bucket("50/h"))];
    let table = Keyed::with_named_plans(plans, 1000, ManualClock::new());
    let table = Arc::new(table.expect("a table"));
    let alice = table.key_owned("alice");
    let by_name = |name| {
        let plan = table.plan_named(name)?;
        Some(alice.clone().with_plan(plan).available())
    };
    let names = ["free", "paid", "trial"];
    assert_eq!(names.map(by_name), [Some(5), Some(50), None]);
    drop(alice);

    let table = Arc::into_inner(table).expect("the only one");
    let counted = Counted::new(table);
    let paid = counted.limiter().plan_named("paid").expect("a plan");
    let bob = counted.key("bob").with_plan(paid);
    assert!(bob.try_acquire_n(6).is_ok());
    let decisions = counted.stats();
    assert_eq!((decisions.granted, decisions.permits), (1, 6));
}
