//! A limit in parts beside the same limit in one word, which is told of every grant: the parts never have
//! more, all of it can be had at any moment and from any shard, and after idling it is all there.

use std::time::Duration;

use tollgate::{
    Algorithm, AnyAlgorithm, Debt, Limiter, MAX_SHARDS, NoClock, Requota, Sharded, Split, Tick,
};

use crate::support::random::Random;
use crate::support::reference::FIFTY_YEARS;

fn read(text: &str) -> AnyAlgorithm {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn sharded(algorithm: AnyAlgorithm, shards: usize) -> Sharded<AnyAlgorithm, NoClock> {
    Sharded::starting_at(algorithm, shards, NoClock, Tick::ZERO).expect("so many shards")
}

/// One word that counts what parts granted: as a charge, for it may know of a fraction of a permit less.
struct Whole {
    algorithm: AnyAlgorithm,
    word: u64,
}

impl Whole {
    fn grants(&mut self, n: u64, now: Tick) {
        let (next, charged) = self.algorithm.charge(self.word, now, n);
        assert_eq!(charged.n(), n);
        self.word = next;
    }
}

/// While time does not go back, and periods do not begin with a permit, so that they are the same in all
/// parts, the parts together never have a permit more than one word would after the same grants: where that
/// is exact. Elsewhere what they have one word has within a nanosecond.
///
/// (Where a period begins with its first permit, those of the parts begin at different times, and one that
/// began early ends early. Who brings an older tick finds a part as old as that where one word has moved on.)
#[test]
fn the_parts_never_have_more_than_one_word_would() {
    let exact = [
        "token-bucket 10/s",
        "token-bucket 1000/s burst 40",
        "gcra 1/10ms tolerance 25ms",
        "gcra 1/7ms tolerance 99ms",
        "leaky-meter 7/min burst 20",
        "token-bucket 1/365d burst 17",
        "fixed-window 1000/s",
        "fixed-window 7/min offset 3s",
        "sliding-window 100/s",
        "sliding-window 100/s rounding down",
        "sliding-window 7/7ns",
        "intervals 10/s burst 25",
        "intervals 7/s burst 100",
    ];
    let nearly = [
        "token-bucket 97/s burst 64",
        "gcra 9999999999/s burst 100",
        "leaky-meter 13/min burst 40",
    ];
    let (mut random, mut looks, mut less) = (Random(0x0070_11a7_e601), 0, 0);
    for (text, late) in exact
        .map(|text| (text, 0))
        .into_iter()
        .chain(nearly.map(|text| (text, 1)))
    {
        let algorithm = read(text);
        let (burst, most) = (
            algorithm.quota().burst_size(),
            algorithm.most_parts().min(16),
        );
        for _ in 0..if cfg!(debug_assertions) { 20 } else { 200 } {
            let gate = sharded(algorithm, 1 + random.below(most) as usize);
            let mut whole = Whole { algorithm, word: 0 };
            let mut now = random.upto(FIFTY_YEARS / 2);
            let period = algorithm.quota().period().as_nanos() as u64;
            for _ in 0..200 {
                now += match random.below(4) {
                    0 => random.upto(period),
                    1 => random.upto(period / burst),
                    2 => random.below(2),
                    _ => 0,
                };
                let tick = Tick::from_nanos(now);
                let view = gate.at(tick).from_shard(random.next() as usize);
                let granted = match random.below(2) {
                    0 => view.take_up_to(1 + random.upto(burst - 1)).n(),
                    _ => match view.try_acquire_n(1 + random.upto(burst - 1)) {
                        Ok(granted) => granted.n(),
                        Err(_) => 0,
                    },
                };
                whole.grants(granted, tick);
                let then = Tick::from_nanos(now + late);
                let (parts, one) = (view.available(), algorithm.available(whole.word, then));
                assert!(
                    parts <= one,
                    "{text}, {gate:?}: {parts} and {one} at {tick:?}"
                );
                looks += 1;
                less += u64::from(parts < one);
            }
        }
    }
    println!("{looks} looks, {less} with less");
    assert!(less > 0 && less < looks / 2);
}

/// Those of so many permits at once, where each of them is due at a whole part of a nanosecond.
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
    .map(|text| read(&text))
}

/// At a standing tick all permits can be had from any shard, one by one, in any sizes and all at once; and
/// not one more.
#[test]
fn every_permit_can_be_had_at_one_tick_from_any_shard() {
    let mut random = Random(0x0070_11a7_e602);
    let step = if cfg!(debug_assertions) { 37 } else { 1 };
    let mut cases = 0;
    for limit in (1..=1000).step_by(step) {
        let algorithms = of_limit(limit);
        for shards in (1..=16).filter(|shards| *shards as u64 <= limit) {
            let algorithm = algorithms[(cases % 7) as usize];
            let tick = Tick::from_nanos(random.upto(FIFTY_YEARS));
            let gate = sharded(algorithm, shards);
            for way in 0..4 {
                gate.reset();
                let mut left = limit;
                while left > 0 {
                    let view = gate.at(tick).from_shard(random.next() as usize);
                    assert_eq!(view.available(), left, "{algorithm} in {shards}");
                    let n = match way {
                        0 => 1.min(left),
                        1 => left,
                        _ => 1 + random.below(left),
                    };
                    left -= match way {
                        2 => view.take_up_to(n).n(),
                        _ => {
                            if random.one_in(16) {
                                let more = view.try_acquire_n(left + 1);
                                assert!(more.is_err(), "{algorithm} in {shards}: {more:?}");
                            }
                            let granted = view.try_acquire_n(n);
                            granted.expect("there were enough").n()
                        }
                    };
                }
                let view = gate.at(tick).from_shard(random.next() as usize);
                assert!(view.try_acquire().is_err() && view.take_up_to(1).n() == 0);
            }
            cases += 1;
        }
    }
    println!("{cases} limits in shards");
    assert!(cases > 400);
}

/// Where they are not, the last permit of each part is there a nanosecond later, as that of one word is.
#[test]
fn where_it_is_not_exact_a_permit_of_each_part_is_a_nanosecond_late() {
    for (text, limit) in [
        ("token-bucket 97/h burst 64", 64),
        ("gcra 13/s burst 100", 100),
    ] {
        let algorithm = read(text);
        for shards in 1..=16 {
            let gate = sharded(algorithm, shards);
            let now = Tick::from_nanos(1_000_000_007);
            let taken = std::iter::from_fn(|| gate.try_acquire_at(now).ok()).count();
            assert!(
                (limit - shards..=limit).contains(&taken),
                "{taken} in {shards}"
            );
            let later = now.saturating_add(Duration::from_nanos(1));
            let rest = std::iter::from_fn(|| gate.try_acquire_at(later).ok()).count();
            assert_eq!(taken + rest, limit, "in {shards}");
        }
    }
}

/// After as much time as an empty limiter needs to fill, and a permit's interval for each part, nothing tells
/// it from a fresh one.
#[test]
fn after_idling_it_is_full_whatever_was_taken() {
    let mut random = Random(0x0070_11a7_e603);
    for limit in [1, 2, 3, 7, 16, 97, 1000] {
        for algorithm in of_limit(limit) {
            for shards in [1, 2, 3, 7, 16] {
                if shards as u64 > limit.min(MAX_SHARDS as u64) {
                    continue;
                }
                let gate = sharded(algorithm, shards);
                let mut now = random.upto(FIFTY_YEARS / 2);
                let quota = algorithm.quota();
                let interval = quota.period().as_nanos() as u64 / quota.permits();
                for _ in 0..20 {
                    for _ in 0..random.below(30) {
                        now += random.upto(interval * 3);
                        let view = gate
                            .at(Tick::from_nanos(now))
                            .from_shard(random.next() as usize);
                        let _ = view.take_up_to(1 + random.upto(limit));
                    }
                    let full =
                        now + interval * (limit + shards as u64) + quota.period().as_nanos() as u64;
                    let then = gate.at(Tick::from_nanos(full));
                    assert_eq!(then.available(), limit, "{algorithm} in {shards}");
                    assert!(then.is_idle(), "{algorithm} in {shards}");
                    assert!(then.level().is_zero(), "{algorithm} in {shards}");
                    now = full;
                }
            }
        }
    }
}

/// One shard is the limiter itself.
#[test]
fn one_shard_is_the_limiter_itself() {
    let mut random = Random(0x0070_11a7_e604);
    for algorithm in of_limit(20) {
        let (gate, one) = (
            sharded(algorithm, 1),
            Limiter::unstarted(algorithm, NoClock),
        );
        let mut now = 0;
        for _ in 0..2000 {
            now += random.upto(600_000_000_000);
            let (tick, n) = (Tick::from_nanos(now), random.below(22));
            let (view, same) = (gate.at(tick), one.at(tick));
            match random.below(4) {
                0 => assert_eq!(view.take_up_to(n), same.take_up_to(n)),
                1 => assert_eq!(view.refund(n), same.refund(n)),
                2 => {
                    let (ours, theirs) = (view.charge(n / 4), same.charge(n / 4));
                    assert_eq!((ours.n(), ours.debt()), (theirs.n(), theirs.debt()));
                    assert_eq!(ours.clear_after(), theirs.clear_after());
                }
                _ => assert_eq!(view.try_acquire_n(n), same.try_acquire_n(n)),
            }
            assert_eq!(view.available(), same.available());
            assert_eq!(view.level(), same.level());
            assert_eq!(view.time_until(n), same.time_until(n));
        }
    }
}
