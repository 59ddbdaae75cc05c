//! Shards and leases: so many as the limit bears are made, none and more are refused with what is allowed,
//! and what was clamped can be read back.

use proptest::prelude::*;
use tollgate::{
    AnyAlgorithm, ConfigError, Leases, Lend, Limiter, MAX_SHARDS, ManualClock, NoClock, Sharded,
    Split, Tick,
};

use crate::bad_input::any_text;

/// Limits of every kind: of one permit, of few, of as many as fit, whose numbers come out even or not.
pub(crate) fn algorithms() -> Vec<AnyAlgorithm> {
    let texts = [
        "token-bucket 1/s",
        "token-bucket 3/s",
        "token-bucket 1000/s burst 40 initial 7",
        "token-bucket 1/365d burst 17",
        "token-bucket 10/1ns burst 1099511627776",
        "token-bucket 9999999999/s burst 100",
        "token-bucket 97/s burst 64 initial 0",
        "token-bucket 1/s burst 8434345636",
        "gcra 7/s burst 12",
        "gcra 1/1d burst 97620",
        "gcra 1/10ms tolerance 25ms",
        "gcra 1/1s tolerance 8434345635s",
        "leaky-meter 10/s burst 20",
        "leaky-queue 10/s burst 20",
        "leaky-queue 10/s burst 20 free 5",
        "fixed-window 1/d",
        "fixed-window 1000/d utc offset 2h",
        "fixed-window 5/s first-hit",
        "fixed-window 8589934591/s",
        "sliding-window 3/min",
        "sliding-window 65535/s",
        "sliding-window 1000/min rounding down",
        "intervals 1/s",
        "intervals 10/s burst 25 initial 3",
        "intervals 3/s burst 100",
        "intervals 10/s burst 25 greedy",
        "intervals 1000/s burst 3 greedy",
        "intervals 3/min burst 1000 initial 999 greedy",
    ];
    let read = |text: &str| {
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    };
    texts.map(read).to_vec()
}

/// Numbers of shards that break things.
const SHARDS: [usize; 14] = [
    0,
    1,
    2,
    3,
    4,
    7,
    16,
    97,
    255,
    256,
    257,
    1 << 20,
    usize::MAX - 1,
    usize::MAX,
];

type Gate = Sharded<AnyAlgorithm, NoClock>;

fn sharded(algorithm: AnyAlgorithm, shards: usize) -> Result<Gate, ConfigError> {
    Sharded::starting_at(algorithm, shards, NoClock, Tick::ZERO)
}

/// Makes it, and checks that what a refusal says is so.
fn check_shards(algorithm: AnyAlgorithm, shards: usize) -> Result<Gate, ConfigError> {
    let made = sharded(algorithm, shards);
    let error = match &made {
        Ok(gate) => {
            assert_eq!(gate.shards(), shards, "{algorithm}");
            assert!((1..=MAX_SHARDS).contains(&shards));
            assert!(shards as u64 <= algorithm.most_parts(), "{algorithm}");
            return made;
        }
        Err(error) => *error,
    };
    assert!(error.to_string().starts_with("shards is "), "{error}");
    assert_eq!(error.field(), "shards");
    match error {
        ConfigError::ZeroShards => assert_eq!(shards, 0),
        ConfigError::TooManyShards { shards: asked, max } => {
            assert_eq!(asked, shards);
            assert!((1..shards).contains(&max), "{algorithm}: {error}");
            assert!(sharded(algorithm, max).is_ok(), "{algorithm}: {error}");
            assert!(sharded(algorithm, max + 1).is_err(), "{algorithm}: {error}");
        }
        other => panic!("{algorithm} in {shards}: {other}"),
    }
    made
}

#[test]
fn as_many_shards_as_the_limit_bears_and_no_more() {
    let (mut made, mut refused) = (0, 0);
    for algorithm in algorithms() {
        for shards in SHARDS {
            match check_shards(algorithm, shards) {
                Ok(_) => made += 1,
                Err(_) => refused += 1,
            }
        }
        let clock = ManualClock::new();
        let same = Sharded::with_shards(algorithm, 0, clock.clone()).map(|gate| gate.shards());
        assert_eq!(same, Err(ConfigError::ZeroShards));
        let one = Sharded::with_shards(algorithm, 1, clock).map(|gate| gate.shards());
        assert_eq!(one, Ok(1), "{algorithm}");
    }
    assert!(made > 100 && refused > 100, "{made} and {refused}");
}

#[test]
fn so_many_shards_fit_as_is_documented() {
    let most = |text: &str| {
        let algorithm = text.parse().expect(text);
        match check_shards(algorithm, usize::MAX) {
            Err(ConfigError::TooManyShards { max, .. }) => max,
            other => panic!("{other:?}"),
        }
    };
    // One for each permit that is there at once, up to the most there are.
    assert_eq!(most("token-bucket 1/s"), 1);
    assert_eq!(most("token-bucket 1000/s burst 3"), 3);
    assert_eq!(most("token-bucket 1000/s"), MAX_SHARDS);
    assert_eq!(most("gcra 1/10ms tolerance 25ms"), 3);
    assert_eq!(most("leaky-meter 10/s burst 20"), 20);
    assert_eq!(most("fixed-window 5/s first-hit"), 5);
    assert_eq!(most("sliding-window 3/min"), 3);
    // Two queues would not keep the distance of one.
    assert_eq!(most("leaky-queue 10/s burst 20"), 1);
    assert_eq!(most("intervals 10/s burst 25"), 25);
    // Each part needs a permit of each refill.
    assert_eq!(most("intervals 10/s burst 25 greedy"), 10);
    // The debt of a burst of 2^40 is shared out too.
    assert_eq!(most("token-bucket 10/1ns burst 1099511627776"), MAX_SHARDS);
}

/// As many as there are cores, but no more than the limit bears: which can be read back.
#[test]
fn a_small_limit_is_split_in_fewer_parts() {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    for algorithm in algorithms() {
        let gate = Sharded::new(algorithm).expect("one part at least");
        let same = Sharded::with_clock(algorithm, ManualClock::new()).expect("one part at least");
        assert_eq!(gate.shards(), same.shards());
        assert!((1..=cores.min(MAX_SHARDS)).contains(&gate.shards()));
        assert!(gate.shards() as u64 <= algorithm.most_parts());
        assert_eq!(*gate.algorithm(), algorithm);
        assert!(sharded(algorithm, gate.shards()).is_ok());
    }
    let three: AnyAlgorithm = "token-bucket 3/s".parse().expect("a bucket");
    let gate = Sharded::new(three).expect("a limit of 3");
    assert_eq!(gate.shards(), cores.min(3));
    assert_eq!(gate.try_acquire_n(3).map(|granted| granted.n()), Ok(3));
}

/// A part that is not there is none, and neither is one of none or of too many.
#[test]
fn a_part_that_is_not_there_is_none() {
    for algorithm in algorithms() {
        for of in [0, 1, 2, 3, 1 << 40, u64::MAX] {
            for index in [of, of.saturating_add(1), u64::MAX] {
                assert!(
                    algorithm.part(index, of).is_none(),
                    "{algorithm} {index} of {of}"
                );
            }
            if of > algorithm.most_parts() {
                let all = (0..of.min(1000)).map(|index| algorithm.part(index, of));
                assert!(of > 1000 || all.into_iter().any(|part| part.is_none()));
            }
        }
        let whole = algorithm.part(0, 1).expect("the whole");
        let fresh = |algorithm: AnyAlgorithm| Limiter::unstarted(algorithm, NoClock);
        let (whole, same) = (fresh(whole), fresh(algorithm));
        assert_eq!(
            whole.at(Tick::ZERO).available(),
            same.at(Tick::ZERO).available(),
            "{algorithm}"
        );
    }
}

fn leases(
    algorithm: AnyAlgorithm,
    total: u64,
) -> Result<Leases<AnyAlgorithm, ManualClock>, ConfigError> {
    Leases::with_clock(algorithm, total, ManualClock::new())
}

/// Makes it, and checks that what a refusal says is so.
fn check_leases(algorithm: AnyAlgorithm, total: u64) -> bool {
    let most = algorithm.most_lent();
    let burst = Limiter::unstarted(algorithm, NoClock);
    burst.reset();
    let burst = burst.at(Tick::ZERO).available();
    let error = match leases(algorithm, total) {
        Ok(gate) => {
            assert!((1..=most).contains(&total), "{algorithm}: {total}");
            assert_eq!((gate.total(), gate.lent()), (total, 0));
            gate.limiter().reset();
            assert_eq!(gate.limiter().available(), burst - total, "{algorithm}");
            return true;
        }
        Err(error) => error,
    };
    let text = error.to_string();
    assert!(text.starts_with("total is "), "{text}");
    assert_eq!(error.field(), "total");
    match error {
        ConfigError::ZeroLeases => assert_eq!(total, 0),
        ConfigError::LeasesTooLarge { total: asked, max } => {
            assert!(asked == total && max == most && max < total, "{text}");
            assert!(max == 0 || leases(algorithm, max).is_ok(), "{algorithm}");
            assert!(leases(algorithm, max + 1).is_err(), "{algorithm}");
        }
        other => panic!("{algorithm} with {total}: {other}"),
    }
    false
}

#[test]
fn so_much_can_be_lent_that_a_permit_is_left() {
    let (mut made, mut refused) = (0, 0);
    for algorithm in algorithms() {
        let most = algorithm.most_lent();
        let totals = [
            0,
            1,
            2,
            3,
            most - most.min(1),
            most,
            most + 1,
            1 << 40,
            1 << 63,
            u64::MAX,
        ];
        for total in totals {
            match check_leases(algorithm, total) {
                true => made += 1,
                false => refused += 1,
            }
        }
    }
    assert!(made > 50 && refused > 50, "{made} and {refused}");
}

/// A lease gets what is left of the total, which may be nothing, and says how much that is.
#[test]
fn a_lease_says_how_large_it_is() {
    for algorithm in algorithms() {
        let total = algorithm.most_lent().min(50);
        let Ok(gate) = leases(algorithm, total) else {
            continue;
        };
        let sizes = [1, 0, 7, u64::MAX, 1, u64::MAX];
        let (mut left, mut held) = (total, Vec::new());
        for asked in sizes {
            let lease = gate.lease(asked);
            assert_eq!((lease.size(), lease.held()), (asked.min(left), 0));
            left -= lease.size();
            assert_eq!(gate.lent(), total - left);
            held.push(lease);
        }
        assert_eq!(gate.lent(), total, "{algorithm}");
        drop(held);
        assert_eq!(gate.lent(), 0, "{algorithm}");
        assert_eq!(gate.lease(u64::MAX).size(), total, "{algorithm}");
    }
}

#[test]
fn each_error_names_the_field_what_it_was_and_what_is_allowed() {
    let bucket: AnyAlgorithm = "token-bucket 100/s burst 20".parse().expect("a bucket");
    let cases = [
        (
            sharded(bucket, 0).err(),
            "shards",
            "shards is 0, but must be at least 1",
        ),
        (
            sharded(bucket, 21).err(),
            "shards",
            "shards is 21, but must be from 1 to 20 for this quota",
        ),
        (
            leases(bucket, 0).err(),
            "total",
            "total is 0, but must be at least 1 permit",
        ),
        (
            leases(bucket, 20).err(),
            "total",
            "total is 20, but must be from 1 to 19: a permit must be left",
        ),
    ];
    for (error, field, text) in cases {
        let error = error.expect(text);
        assert_eq!((error.field(), error.to_string().as_str()), (field, text));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn any_algorithm_is_split_and_lent_or_refused_with_a_reason(
        algorithm in any_text::algorithm(),
        shards in 0..300_usize,
        (total, fewer) in (any::<u64>(), 0..64_u32),
    ) {
        let _ = check_shards(algorithm, shards);
        check_leases(algorithm, total >> fewer);
    }
}
