//! A word goes on under another quota, or on another clock, where it left off: with no more than it
//! had, and less by less than two permits at most.

use std::time::Duration;

use tollgate::cell::{Cell, Place};
use tollgate::{Algorithm, At, Debt, Forecast, Quota, Rebase, Requota, Tick, TokenBucket};

fn quotas() -> Vec<TokenBucket> {
    [
        Quota::per_second(10),
        Quota::per_second(13).burst(40),
        Quota::per(47, Duration::from_nanos(10)),
        Quota::per(4, Duration::from_nanos(1)).burst(9),
        Quota::per_day(1),
        Quota::per_hour(1000).burst(3),
    ]
    .map(|quota| TokenBucket::new(quota).expect("a quota"))
    .into()
}

/// Words that stand for every number of permits, for debt, and between two.
fn words(bucket: &TokenBucket, now: Tick) -> Vec<u64> {
    let taken = (0..=bucket.quota().burst_size() + 5).map(|n| {
        let cell = Cell::new(0);
        At::new(bucket, &cell, now).charge(n);
        cell.load()
    });
    taken.flat_map(|word| [word, word + 1]).collect()
}

#[test]
fn what_is_carried_over_is_what_there_was() {
    let now = Tick::from_nanos(86_400_000_000_007);
    let mut compared = 0;
    for (old, new) in quotas()
        .iter()
        .flat_map(|old| quotas().into_iter().map(move |new| (*old, new)))
    {
        for word in words(&old, now) {
            let carried = old.carry_over(word, now, &new);
            let (had, has) = (old.available(word, now), new.available(carried, now));
            let most = had.min(new.quota().burst_size());
            assert!(has <= most, "{has} of {most}: {old:?} to {new:?}");
            assert!(has + 1 >= most, "{has} of {most}: {old:?} to {new:?}");
            let owed = |bucket: &TokenBucket, word| bucket.charge(word, now, 0).1.debt();
            let (owed, owes) = (owed(&old, word), owed(&new, carried));
            assert!(
                (owed..=owed + 1).contains(&owes),
                "{owed} and {owes}: {old:?} to {new:?}"
            );
            compared += 1;
        }
        // What was not in debt is not in debt.
        let cell = Cell::new(0);
        let burst = old.quota().burst_size();
        assert!(At::new(&old, &cell, now).try_acquire_n(burst).is_ok());
        let carried = old.carry_over(cell.load(), now, &new);
        assert!(new.step(carried, now, 0).is_ok(), "{old:?} to {new:?}");
        assert_eq!(old.carry_over(cell.load(), now, &old), cell.load());
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn a_larger_bucket_is_not_full_because_a_smaller_one_was() {
    let (old, new) = (quotas()[0], quotas()[1]);
    let carried = old.carry_over(0, Tick::ZERO, &new);
    assert!((9..=10).contains(&new.available(carried, Tick::ZERO)));
    assert_eq!(new.carry_over(0, Tick::ZERO, &old), 0);
}

#[test]
fn a_rebased_word_stands_as_it_stood() {
    let (from, to) = (
        Tick::from_nanos(86_400_000_000_007),
        Tick::from_nanos(12_345),
    );
    for bucket in quotas() {
        assert_eq!(bucket.rebase(0, from, to), 0);
        for word in words(&bucket, from) {
            assert_eq!(bucket.rebase(word, from, from), word);
            let moved = bucket.rebase(word, from, to);
            let (had, has) = (bucket.available(word, from), bucket.available(moved, to));
            assert!(
                (has..=has + 1).contains(&had),
                "{had} and {has}: {bucket:?}"
            );
            let wait = |word, now: Tick| {
                let due = bucket.due(word, now, 1).expect("in time");
                due.saturating_since(now).as_nanos()
            };
            let (before, after) = (wait(word, from), wait(moved, to));
            assert!(
                (before..=before + 1).contains(&after),
                "{before} and {after}: {bucket:?}"
            );
        }
    }
}
