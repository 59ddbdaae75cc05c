//! Compares a sharded limit with the same limit in one word: all permits are available at any time
//! from any shard, except for fractions.

use tollgate::algorithm::Split;
use tollgate::traits::SettleLimiter;

use crate::algorithm::known_failures::{INTERVALS, WINDOWS};
use crate::support::algorithms::{limiter, sharded};
use crate::support::*;

/// Returns algorithms with this many permits at once, each due at a whole part of a nanosecond.
fn of_limit(limit: u64) -> [AnyAlgorithm; 7] {
    [
        format!("token-bucket 1/s burst {limit}"),
        format!("gcra 7/h burst {limit}"),
        format!("leaky-meter 1/min burst {limit}"),
        format!("fixed-window {limit}/h"),
        format!("sliding-window {limit}/h"),
        format!("intervals {limit}/h"),
        format!("intervals {limit}/h greedy"),
    ]
    .map(|text| algorithm(&text))
}

/// Calls `check` with limits of these sizes, one kind after the other, and all numbers of shards up
/// to 16.
fn in_each_split(
    seed: u64,
    sizes: impl Iterator<Item = u64> + Send + 'static,
    check: impl Fn(AnyAlgorithm, usize, &mut Random) + Send + 'static,
) {
    deadline("shards beside one word", move || {
        let mut random = Random(seed);
        for (case, limit) in sizes.enumerate() {
            for shards in (1..=16).filter(|shards| *shards as u64 <= limit) {
                check(of_limit(limit)[(case + shards) % 7], shards, &mut random);
            }
        }
    });
}

/// At a standing tick all permits are available from any shard: one by one, in any sizes and all at
/// once, and not one more.
#[test]
fn every_permit_is_available_at_one_tick_from_any_shard() {
    let step = if cfg!(debug_assertions) { 99 } else { 1 };
    let sizes = (1..=1000).step_by(step);
    in_each_split(0x0070_11a7_e602, sizes, |algorithm, shards, random| {
        let limit = algorithm.quota().burst_size();
        let tick = tick(random.upto(FIFTY_YEARS));
        let limiter = sharded(algorithm, shards);
        let mut from_any = || limiter.at(tick).from_shard(random.next() as usize);
        for way in 0..4 {
            limiter.reset();
            let mut left = limit;
            while left > 0 {
                let view = from_any();
                assert_eq!(view.available(), left, "{algorithm} in {shards}");
                let n = match way {
                    0 => 1,
                    1 => left,
                    _ => 1 + (left * 7 + limit) % left.min(11),
                };
                if left % 16 < 2 {
                    let more = view.try_acquire_n(left + 1);
                    assert!(more.is_err(), "{algorithm} in {shards}: {more:?}");
                }
                let n = match way {
                    2 => view.take_up_to(n).n(),
                    _ => view.try_acquire_n(n).expect("there were enough").n(),
                };
                assert!(n > 0, "{algorithm} in {shards}");
                left -= n;
            }
            let view = from_any();
            assert!(view.try_acquire().is_err() && view.take_up_to(1).n() == 0);
        }
    });
}

/// Shards return as many permits as one word does at the tick at which they were taken. If the
/// whole burst was taken, they return less at a later tick, by less than a permit a shard.
#[test]
fn shards_return_as_many_permits_as_one_word() {
    let step = if cfg!(debug_assertions) { 5 } else { 1 };
    let sizes = (1..=256).step_by(step).chain([3, 20, 31]);
    in_each_split(0x0070_11a7_e603, sizes, |algorithm, shards, random| {
        let limit = algorithm.quota().burst_size();
        let parts = sharded(algorithm, shards);
        let whole = Limiter::unstarted(algorithm, NoClock);
        let now = tick(random.upto(FIFTY_YEARS));
        let later = now.saturating_add(Duration::from_nanos(random.upto(1 << 42)));
        let some = 1 + random.upto(limit - 1);
        for (n, back) in [(limit, now), (some, now), (limit, later)] {
            parts.reset();
            whole.reset();
            let from = parts.at(now).from_shard(random.next() as usize);
            let few = from.try_acquire_n(n).expect("all are there");
            let all = whole.at(now).try_acquire_n(n).expect("all are there");
            let (parts, whole) = (parts.at(back), whole.at(back));
            let (few, all) = match random.below(3) {
                0 => (parts.undo(few), whole.undo(all)),
                1 => (parts.refund(n), whole.refund(n)),
                _ => (parts.refund(some), whole.refund(some)),
            };
            let short = if back > now { shards as u64 - 1 } else { 0 };
            let label = format!("{n} of {algorithm} in {shards}, {few} for {all} back");
            assert!(few + short >= all && (short > 0 || few == all), "{label}");
            let (few, all) = (parts.available(), whole.available());
            assert!(
                (few..=few + short).contains(&all),
                "{label}: {few} for {all}"
            );
        }
    });
}

/// At one tick, all verbs in any order answer as one word does.
#[test]
fn at_one_tick_every_verb_answers_as_one_word_does() {
    let step = if cfg!(debug_assertions) { 3 } else { 1 };
    let sizes = (1..=256).step_by(step);
    in_each_split(0x0070_11a7_e607, sizes, |algorithm, shards, random| {
        let limit = algorithm.quota().burst_size();
        let (parts, whole) = (sharded(algorithm, shards), limiter(algorithm));
        let now = tick(random.upto(FIFTY_YEARS));
        let one = whole.at(now);
        let mut kept = Vec::new();
        for turn in 0..20 {
            let any = parts.at(now).from_shard(random.next() as usize);
            let n = 1 + random.below([limit + 1, limit / 4 + 1, 2][turn % 3]);
            let verb = random.below(8);
            let label = format!("{n}, {verb} of {algorithm} in {shards}, turn {turn}");
            match verb {
                0..=2 => match (any.try_acquire_n(n), one.try_acquire_n(n)) {
                    (Ok(few), Ok(all)) => kept.push((few, all)),
                    (few, all) => {
                        let (few, all) = (few.unwrap_err(), all.unwrap_err());
                        // Fractions of a permit that are left in the shards become whole
                        // later.
                        assert_eq!(few.is_permanent(), all.is_permanent(), "{label}");
                        assert!(few.retry_after() >= all.retry_after(), "{label}");
                    }
                },
                3 => {
                    let (few, all) = (any.take_up_to(n), one.take_up_to(n));
                    assert_eq!(few.n(), all.n(), "{label}");
                    kept.push((few, all));
                }
                4 => {
                    let (few, all) = (any.charge(n), one.charge(n));
                    assert_eq!((few.n(), few.debt()), (all.n(), all.debt()), "{label}");
                    // In debt, the shard that granted is the first to grant again.
                    if all.debt() > 0 {
                        kept.clear();
                    }
                }
                5 => {
                    assert_eq!(any.refund(n), one.refund(n), "{label}");
                }
                6 => {
                    let kept = kept.pop();
                    let back = kept.map(|(few, whole)| (any.undo(few), one.undo(whole)));
                    assert!(
                        back.is_none_or(|(few, all)| few == all),
                        "{label}: {back:?}"
                    );
                }
                _ => assert!(any.time_until(n) >= one.time_until(n), "{label}"),
            }
            assert_eq!(any.available(), one.available(), "{label}");
            let (few, all) = (any.level(), one.level());
            let actual = (few.floor(), few.ceil());
            assert_eq!(actual, (all.floor(), all.ceil()), "{label}");
        }
    });
}

/// A grant of a past window returns nothing. This also holds for a caller whose tick is still in
/// that window while others have taken permits of the next one.
#[test]
fn refilled_permits_do_not_come_back_to_a_late_caller() {
    for kind in [&WINDOWS[..], &INTERVALS, &["token-bucket QUOTA"]].concat() {
        let text = &kind.replace("QUOTA", "8/s");
        let [before, after] = [500_000_000, 2_600_000_000].map(tick);
        for (shards, n) in (2..=8).flat_map(|shards| (1..=8).map(move |n| (shards, n))) {
            let (parts, whole) = (sharded(algorithm(text), shards), limiter(algorithm(text)));
            let few = parts.at(before).from_shard(n).try_acquire_n(n as u64);
            let all = whole.at(before).try_acquire_n(n as u64);
            let taken = whole.at(after).take_up_to(8).n();
            let actual = parts.at(after).take_up_to(8).n();
            assert_eq!(actual, taken, "{text} in {shards}");
            let few = parts.at(before).undo(few.expect("fresh"));
            let all = whole.at(before).undo(all.expect("fresh"));
            assert!(
                few <= all,
                "{n} of {text} in {shards}: {few} came back for {all}"
            );
            let left = parts.at(after).available();
            assert!(
                left <= whole.at(after).available(),
                "{n} of {text} in {shards}: {left}"
            );
        }
    }
}

/// At each tick after everything was taken, the shards have what one word would have, except for
/// less than a permit each.
#[test]
fn except_for_fractions_the_shards_have_as_many_permits_as_one_word() {
    for limit in (1..=1000).step_by(37) {
        let bucket = algorithm(&format!("token-bucket 1/us burst {limit}"));
        let whole = Limiter::unstarted(bucket, NoClock);
        assert_eq!(whole.at(Tick::ZERO).take_up_to(u64::MAX).n(), limit);
        for shards in (1..=16).filter(|shards| *shards as u64 <= limit) {
            let parts = sharded(bucket, shards);
            let first = parts.at(Tick::ZERO);
            let one_by_one = (0..=limit).take_while(|_| first.try_acquire().is_ok());
            assert_eq!(one_by_one.count() as u64, limit);
            for step in 1..=16 {
                let now = tick(step * (limit * 1000 / 16 + 7));
                let (few, all) = (parts.at(now).available(), whole.at(now).available());
                assert!(
                    few <= all && all - few < shards as u64,
                    "{limit}: {few}, {all}"
                );
            }
        }
    }
}

/// As long as time does not go back, the shards never have a permit more than one word with the
/// same grants. After idling they are indistinguishable from fresh ones.
#[test]
fn the_shards_never_have_more_than_one_word_would() {
    deadline("parts beside one word", || {
        let mut random = Random(0x0070_11a7_e604);
        for text in [
            "token-bucket 1000/s burst 40",
            "gcra 1/10ms tolerance 25ms",
            "leaky-meter 7/min burst 20",
            "fixed-window 7/min offset 3s",
            "sliding-window 100/s",
            "sliding-window 100/s rounding down",
            "sliding-window 7/7ns",
            "intervals 7/s burst 100",
        ] {
            let algorithm = algorithm(text);
            let quota = algorithm.quota();
            let (burst, period) = (quota.burst_size(), quota.period().as_nanos() as u64);
            for shards in 1..=algorithm.most_shards().min(16) {
                let limiter = sharded(algorithm, shards as usize);
                let whole = Limiter::unstarted(algorithm, NoClock);
                let mut now = random.upto(FIFTY_YEARS / 2);
                for _ in 0..200 {
                    now += match random.below(4) {
                        0 => random.upto(period),
                        1 => random.upto(period / burst),
                        _ => random.below(2),
                    };
                    let tick = tick(now);
                    let view = limiter.at(tick).from_shard(random.next() as usize);
                    let one = whole.at(tick);
                    let n = 1 + random.upto(burst - 1);
                    let granted = match random.below(2) {
                        0 => view.take_up_to(n).n(),
                        _ => view.try_acquire_n(n).map_or(0, |granted| granted.n()),
                    };
                    // After a charge, the single word may have a fraction of a permit less.
                    assert_eq!(one.charge(granted).n(), granted);
                    let (parts, all) = (view.available(), one.available());
                    assert!(
                        parts <= all,
                        "{text} in {shards}: {parts} and {all} at {now}"
                    );
                }
                let full = now + period / quota.permits() * (burst + shards) + period;
                let then = limiter.at(tick(full));
                let is = (then.available(), then.is_idle(), then.level().is_zero());
                assert_eq!(is, (burst, true, true), "{text} in {shards}");
            }
        }
    });
}

/// Returns the answers to one of the verbs, and the state after it.
fn answers(limiter: &impl SettleLimiter<Clock = ManualClock>, verb: u64, n: u64) -> String {
    let said = match verb {
        0 => {
            let taken = limiter.take_up_to(n);
            format!("{} at {:?}", taken.n(), taken.at())
        }
        1 => limiter.refund(n).to_string(),
        2 => format!("{:?}", limiter.charge(n / 4)),
        _ => match limiter.try_acquire_n(n) {
            Ok(granted) if verb == 3 => format!("{n}, {} undone", limiter.undo(granted)),
            answer => format!("{:?}", answer.map(|granted| granted.n())),
        },
    };
    format!("{said}, then {}", limiter.available())
}

#[test]
fn one_shard_is_the_limiter_itself() {
    let mut random = Random(0x0070_11a7_e605);
    for algorithm in of_limit(20) {
        let clock = ManualClock::new();
        let limiter = Sharded::with_shards(algorithm, 1, clock.clone()).expect("one part");
        let one = Limiter::with_clock(algorithm, clock.clone());
        for _ in 0..1000 {
            clock.advance(Duration::from_nanos(random.upto(600_000_000_000)));
            let (n, verb) = (random.below(22), random.below(5));
            let (ours, theirs) = (answers(&limiter, verb, n), answers(&one, verb, n));
            assert_eq!(ours, theirs, "{algorithm}");
            let ours = (limiter.level(), limiter.time_until(n));
            assert_eq!(ours, (one.level(), one.time_until(n)), "{algorithm}");
        }
    }
}
