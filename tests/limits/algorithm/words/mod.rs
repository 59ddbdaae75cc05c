//! Properties of any word at any tick, reachable by a limiter or not: no verb panics or writes the
//! word that a limiter reserves for itself, a denial is exact to the nanosecond, and no caller gets
//! more by being late, early or idle.

mod case;

use tollgate::algorithm::{Debt, Forecast, Gauge, GiveBack};
use tollgate::error::QuotaError;
use tollgate::store::{AtomicWord, UNSTARTED, WordCell, WordStore};

use self::case::Case;
use crate::algorithm::{cases, quotas};
use crate::support::algorithms::is_bucket;
use crate::support::edges::EDGES;
use crate::support::*;

/// Returns an extreme number, or any.
fn any_number(random: &mut Random, algorithm: &AnyAlgorithm) -> u64 {
    let quota = algorithm.quota();
    let period = quota.period().as_nanos() as u64;
    match random.below(8) {
        0 => random.below(4),
        1 => u64::MAX - 1 - random.below(3),
        2 => quota.burst_size().saturating_add(random.below(3)) - 1,
        3 => FIFTY_YEARS.saturating_add(random.upto(FIFTY_YEARS)),
        4 => (period / 2)
            .saturating_mul(random.upto(50))
            .saturating_add(random.below(3)),
        5 => 1 << random.below(64),
        6 => EDGES[random.below(EDGES.len() as u64) as usize],
        _ => random.upto(u64::MAX),
    }
}

/// Returns a word that this algorithm reaches at about that tick, one next to it, or any.
fn any_word(random: &mut Random, algorithm: &AnyAlgorithm, now: u64) -> u64 {
    let period = algorithm.quota().period().as_nanos() as u64;
    let then = now
        .saturating_add(random.upto(period))
        .saturating_sub(random.upto(period));
    let later = tick(then.saturating_add(random.upto(period)));
    let (then, n) = (tick(then), any_number(random, algorithm));
    let (taken, granted) = algorithm.take_up_to(0, then, n);
    let (twice, _) = algorithm.take_up_to(taken, later, 1 + random.upto(n));
    let word = match random.below(8) {
        0 => 0,
        1 => random.next(),
        2 => any_number(random, algorithm),
        3 => algorithm.charge(0, then, n).0,
        4 => taken,
        5 => algorithm.undo(twice, later, &granted).0,
        6 => algorithm.refund(twice, later, random.upto(n)).0,
        _ => twice,
    };
    // The word that a limiter reserves is never passed to an algorithm.
    word.saturating_add(random.below(3) * random.below(2))
        .min(UNSTARTED - 1)
}

#[test]
fn any_word_is_answered_at_any_tick() {
    let mut random = Random(0x0070_11a7_e301);
    let turns = if cfg!(debug_assertions) { 150 } else { 4000 };
    let (mut cases, mut idle) = (0, 0);
    let all = cases::all();
    for algorithm in &all {
        for _ in 0..turns {
            let [now, n, number] = [0; 3].map(|_| any_number(&mut random, algorithm));
            let case = Case {
                algorithm,
                word: any_word(&mut random, algorithm, now),
                now: tick(now),
                n,
            };
            let then = tick(number);
            case.acquire();
            case.take_up_to();
            case.charge();
            case.give_back(number);
            case.reset();
            case.left_alone(then);
            case.behind(then);
            case.idle(then);
            case.moved(then, &all[random.below(all.len() as u64) as usize]);
            cases += 1;
            idle += u64::from(algorithm.is_idle(case.word, case.now));
        }
    }
    println!("{cases} words, {idle} of them idle");
    assert!(cases > 40_000 && idle > cases / 50 && idle < cases / 2);
}

#[test]
fn the_word_zero_is_fresh_at_every_tick_and_fresh_is_full() {
    let mut random = Random(0x0070_11a7_e302);
    for algorithm in cases::all() {
        let quota = algorithm.quota();
        let limit = quota.burst_size();
        let ticks = (0..100)
            .map(|_| any_number(&mut random, &algorithm))
            .collect::<Vec<_>>();
        for now in ticks.into_iter().chain([0, u64::MAX]).map(tick) {
            assert!(algorithm.is_idle(0, now), "{algorithm} at {now:?}");
            assert_eq!(algorithm.available(0, now), limit, "{algorithm} at {now:?}");
            let all = algorithm.step(0, now, limit);
            assert!(all.is_ok_and(|(_, granted)| granted.remaining() == 0));
            let nothing = algorithm.step(0, now, 0);
            assert!(
                nothing.is_ok_and(|(next, granted)| next == 0 && granted.reset_after().is_zero())
            );
            // The first verb starts a limiter with what its quota says.
            let cell = WordCell::new(UNSTARTED);
            let there = WordStore::new(&algorithm, &cell).at(now).available();
            assert_eq!(cell.load(), algorithm.initial_word(now).min(UNSTARTED - 1));
            assert_eq!(there, quota.initial_permits(), "{algorithm} at {now:?}");
        }
    }
}

/// A custom algorithm with only the required methods. The trait provides the others.
pub(crate) struct Own(pub(crate) AnyAlgorithm);

impl Algorithm for Own {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        self.0.step(word, now, n)
    }
    fn available(&self, word: u64, now: Tick) -> u64 {
        self.0.available(word, now)
    }
    fn is_idle(&self, word: u64, now: Tick) -> bool {
        self.0.is_idle(word, now)
    }
}

impl ChangeQuota for Own {
    fn quota(&self) -> Quota {
        self.0.quota()
    }
    fn with_quota(&self, quota: Quota) -> Result<Self, QuotaError> {
        self.0.with_quota(quota).map(Self)
    }
    fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
        self.0.carry_over(word, now, &next.0)
    }
    fn carry_used(&self, word: u64, now: Tick, next: &Self) -> u64 {
        self.0.carry_used(word, now, &next.0)
    }
}

#[test]
fn a_custom_algorithm_is_scaled_in_whole_permits() {
    let now = tick(86_400_500_000_007);
    for text in [
        "token-bucket 10/s burst 20",
        "fixed-window 20/s",
        "gcra 3/h burst 20",
    ] {
        let own = Own(text.parse().expect("an algorithm"));
        for (taken, limit, has) in [(10, 40, 20), (10, 10, 5), (13, 40, 14), (20, 40, 0)] {
            let (word, _) = own.step(0, now, taken).expect("as many are there");
            let period = own.quota().period();
            let next = own.with_quota(Quota::per(limit, period)).expect("a quota");
            let carried = own.carry_scaled(word, now, &next);
            let actual = next.available(carried, now);
            assert_eq!(actual, has, "{taken} of {text}, {limit}");
        }
    }
}

#[test]
fn a_larger_word_of_an_ordered_algorithm_is_idle_no_sooner() {
    let mut random = Random(0x0070_11a7_e304);
    for algorithm in cases::all() {
        let name = algorithm.to_string();
        assert_eq!(
            algorithm.larger_is_idle_later(),
            is_bucket(&algorithm),
            "{name}"
        );
        for _ in 0..if is_bucket(&algorithm) { 200 } else { 0 } {
            let now = any_number(&mut random, &algorithm);
            let mut words = [0; 2].map(|_| any_word(&mut random, &algorithm, now));
            words.sort_unstable();
            let now = tick(now);
            let [smaller, larger] = words.map(|word| algorithm.is_idle(word, now));
            assert!(smaller || !larger, "{name}: {words:?} at {now:?}");
            let [smaller, larger] = words.map(|word| algorithm.idle_at(word, now));
            assert!(smaller <= larger, "{name}: {words:?} at {now:?}");
        }
    }
}

#[test]
fn a_custom_algorithm_has_the_provided_verbs() {
    let mut random = Random(0x0070_11a7_e303);
    for algorithm in cases::all() {
        let own = Own(algorithm);
        for _ in 0..10 {
            let [now, n] = [0; 2].map(|_| any_number(&mut random, &algorithm));
            let (word, now) = (any_word(&mut random, &algorithm, now), tick(now));
            let idle = own.idle_at(word, now);
            let before = idle.saturating_sub(Duration::from_nanos(1));
            let is_first = idle == now || !algorithm.is_idle(word, before);
            let is_idle = algorithm.is_idle(word, idle) || idle == Tick::MAX;
            assert!(
                is_idle && is_first,
                "{algorithm}: {word} at {now:?}: {idle:?}"
            );
            // Windows compute it without a search, as long as the clock gets there: to a quantum if
            // the window is ahead.
            let known = algorithm.idle_at(word, now);
            let is_window = matches!(
                algorithm,
                AnyAlgorithm::FixedWindow(_) | AnyAlgorithm::SlidingWindow(_)
            );
            if is_window && idle != Tick::MAX {
                let quantum = match algorithm {
                    AnyAlgorithm::FixedWindow(window) => window.quantum(),
                    _ => None,
                };
                let latest = idle.saturating_add(quantum.unwrap_or_default());
                assert!(
                    idle <= known && known <= latest,
                    "{algorithm}: {word} at {now:?}: {known:?}, {idle:?}"
                );
            }
            let taken = algorithm.take_up_to(word, now, n);
            let own = own.take_up_to(word, now, n);
            assert_eq!((taken.0, taken.1.n()), (own.0, own.1.n()), "{algorithm}");
        }
    }
}

#[test]
fn a_meter_and_gcra_decide_as_the_token_bucket_does() {
    let mut random = Random(0x0070_11a7_e304);
    for quota in quotas::exact().into_iter().chain(quotas::elsewhere()) {
        let bucket = AnyAlgorithm::from(TokenBucket::new(quota).expect("a bucket"));
        let gcra = AnyAlgorithm::from(Gcra::new(quota).expect("a gcra"));
        let meter = AnyAlgorithm::from(LeakyBucket::meter(quota).expect("a meter"));
        for _ in 0..200 {
            let [now, n] = [0; 2].map(|_| any_number(&mut random, &bucket));
            let (word, now) = (any_word(&mut random, &bucket, now), tick(now));
            let said = |one: &AnyAlgorithm| {
                (
                    one.step(word, now, n),
                    one.take_up_to(word, now, n),
                    one.charge(word, now, n),
                    one.refund(word, now, n),
                    one.due(word, now, n),
                    (one.level(word, now), one.initial_word(now)),
                )
            };
            assert_eq!(said(&meter), said(&bucket), "{quota}: {word} at {now:?}");
            assert_eq!(said(&gcra), said(&bucket), "{quota}: {word} at {now:?}");
        }
    }
}
