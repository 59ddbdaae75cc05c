//! Limiters accept as many shards and leases as the limit allows. They refuse zero and larger
//! numbers, say what is allowed, and report numbers that were clamped. tests/limits/errors.rs has
//! the texts.

use tollgate::algorithm::{Lend, Split};
use tollgate::error::LimiterError;

use crate::algorithm::text::any_algorithm;
use crate::support::*;

fn sharded(
    algorithm: AnyAlgorithm,
    shards: usize,
) -> Result<Sharded<AnyAlgorithm, NoClock>, LimiterError> {
    Sharded::starting_at(algorithm, shards, NoClock, Tick::ZERO)
}

fn leases(
    algorithm: AnyAlgorithm,
    total: u64,
) -> Result<Leases<AnyAlgorithm, ManualClock>, LimiterError> {
    Leases::with_clock(algorithm, total, ManualClock::new())
}

/// Creates it, and checks that a refusal is right.
fn is_sharded(algorithm: AnyAlgorithm, shards: usize) -> bool {
    let same = Sharded::with_shards(algorithm, shards, ManualClock::new());
    let made = sharded(algorithm, shards).map(|limiter| limiter.shards());
    assert_eq!(same.map(|limiter| limiter.shards()), made);
    match sharded(algorithm, shards) {
        Ok(limiter) => {
            assert_eq!(limiter.shards(), shards, "{algorithm}");
            assert!((1..=Sharded::MAX_SHARDS).contains(&shards));
            assert!(shards as u64 <= algorithm.most_shards(), "{algorithm}");
            return true;
        }
        Err(LimiterError::ZeroShards) => assert_eq!(shards, 0),
        Err(error @ LimiterError::TooManyShards { shards: asked, max }) => {
            assert_eq!(asked, shards);
            assert!((1..shards).contains(&max), "{algorithm}: {error}");
            assert!(sharded(algorithm, max).is_ok(), "{algorithm}: {error}");
            assert!(sharded(algorithm, max + 1).is_err(), "{algorithm}: {error}");
        }
        Err(other) => panic!("{algorithm} in {shards}: {other}"),
    }
    false
}

/// Creates them, and checks that a refusal is right.
fn is_lent(algorithm: AnyAlgorithm, total: u64) -> bool {
    let most = algorithm.most_lent();
    match leases(algorithm, total) {
        Ok(limiter) => {
            assert!((1..=most).contains(&total), "{algorithm}: {total}");
            assert_eq!((limiter.max_lent(), limiter.lent()), (total, 0));
            limiter.limiter().reset();
            let left = algorithm.available(0, Tick::ZERO) - total;
            assert_eq!(limiter.limiter().available(), left, "{algorithm}");
            return true;
        }
        Err(LimiterError::ZeroLeases) => assert_eq!(total, 0),
        Err(error @ LimiterError::LeasesTooLarge { total: asked, max }) => {
            assert!(asked == total && max == most && max < total, "{error}");
            assert!(max == 0 || leases(algorithm, max).is_ok(), "{algorithm}");
            assert!(leases(algorithm, max + 1).is_err(), "{algorithm}");
        }
        Err(other) => panic!("{algorithm} with {total}: {other}"),
    }
    false
}

#[test]
fn a_limit_is_split_and_lent_up_to_exactly_what_it_allows() {
    let shards = [0, 1, 2, 3, 4, 7, 16, 97, 255, 256, 257, 1 << 20, usize::MAX];
    let (mut random, mut made, mut refused) = (Random(0x0070_11a7_e605), 0, 0);
    let any = [(); 100].map(|()| any_algorithm(&mut random));
    for algorithm in algorithms().into_iter().chain(any) {
        let most = algorithm.most_lent();
        let totals = [
            0,
            1,
            2,
            3,
            most.max(1) - 1,
            most,
            most + 1,
            1 << 63,
            u64::MAX,
        ];
        let more = [(); 30].map(|()| random.upto(u64::MAX));
        let shards = shards.map(|shards| is_sharded(algorithm, shards));
        let totals = totals
            .into_iter()
            .chain(more)
            .map(|total| is_lent(algorithm, total));
        for is_made in shards.into_iter().chain(totals) {
            *if is_made { &mut made } else { &mut refused } += 1;
        }
    }
    assert!(made > 200 && refused > 200, "{made} and {refused}");
}

#[test]
fn the_largest_numbers_of_shards_match_the_documentation() {
    for (text, most) in [
        // One for each permit of the burst, up to the maximum.
        ("token-bucket 1/s", 1),
        ("token-bucket 1000/s burst 3", 3),
        ("token-bucket 1000/s", Sharded::MAX_SHARDS),
        ("gcra 1/10ms tolerance 25ms", 3),
        ("leaky-meter 10/s burst 20", 20),
        ("fixed-window 5/s first-hit", 5),
        ("sliding-window 3/min", 3),
        // Two queues would not keep the interval of one.
        ("leaky-queue 10/s burst 20", 1),
        ("intervals 10/s burst 25", 25),
        ("intervals 10/s burst 25 greedy", 25),
        // The debt of a burst of 2^40 is divided too.
        (
            "token-bucket 10/1ns burst 1099511627776",
            Sharded::MAX_SHARDS,
        ),
    ] {
        assert!(is_sharded(algorithm(text), most), "{text}");
        assert!(!is_sharded(algorithm(text), most + 1), "{text}");
    }
}

/// By default there is one shard for each core, but no more shards than serve nearly as much as one
/// word would. The limiter reports the number.
#[test]
fn a_small_limit_has_fewer_shards() {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    for algorithm in algorithms() {
        let limiter = Sharded::new(algorithm).expect("one part at least");
        let same = Sharded::with_clock(algorithm, ManualClock::new()).expect("one part at least");
        let actual = (limiter.shards(), *limiter.algorithm());
        assert_eq!(actual, (same.shards(), algorithm));
        assert!((1..=cores.min(Sharded::MAX_SHARDS)).contains(&limiter.shards()));
        assert!(is_sharded(algorithm, limiter.shards()));
    }
    for (burst, cores, shards) in [(3, 8, 1), (4, 8, 2), (11, 8, 2), (12, 8, 3), (100, 8, 8)] {
        let bucket = algorithm(&format!("token-bucket 3/s burst {burst}"));
        let limiter = Sharded::for_cores(bucket, cores, ManualClock::new()).expect("a limit");
        assert_eq!(limiter.shards(), shards, "{burst}");
        let actual = limiter.try_acquire_n(burst).map(|granted| granted.n());
        assert_eq!(actual, Ok(burst));
    }
}

/// A limit has no part of zero, nor of a number of parts whose counts do not fit. The only part of
/// one is the whole.
#[test]
fn a_shard_that_does_not_exist_is_none() {
    for algorithm in algorithms() {
        assert!(algorithm.per_shard(0).is_none(), "{algorithm}");
        let is_too_many = algorithm.available(0, Tick::ZERO) > 1;
        assert!(
            !is_too_many || algorithm.per_shard(u64::MAX).is_none(),
            "{algorithm}"
        );
        let (part, permit) = algorithm.per_shard(1).expect("the whole");
        let fresh = |algorithm: AnyAlgorithm| algorithm.available(0, Tick::ZERO);
        assert_eq!(fresh(part) / permit, fresh(algorithm), "{algorithm}");
    }
}

/// A lease gets what is left of the total, possibly nothing, and reports how much that is.
#[test]
fn a_lease_reports_its_size() {
    for algorithm in algorithms() {
        let total = algorithm.most_lent().min(50);
        let Ok(limiter) = leases(algorithm, total) else {
            continue;
        };
        let (mut left, mut held) = (total, Vec::new());
        for asked in [1, 0, 7, u64::MAX, 1, u64::MAX] {
            let lease = limiter.lease(asked);
            assert_eq!((lease.size(), lease.held()), (asked.min(left), 0));
            left -= lease.size();
            assert_eq!(limiter.lent(), total - left);
            held.push(lease);
        }
        drop(held);
        assert_eq!(limiter.lent(), 0, "{algorithm}");
        assert_eq!(limiter.lease(u64::MAX).size(), total, "{algorithm}");
    }
}
