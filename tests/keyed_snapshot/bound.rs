//! No key gets more than its bound over its whole history, however often the process is restarted. (A bucket's; where
//! periods lie on the clock the clock says when they begin.)

use std::time::Duration;

use tollgate::{AnyAlgorithm, Keyed, ManualClock, Requota, Tick};

use crate::{Random, bucket, restarted, table};

/// Grants of each key, on one time for all processes.
type Grants = Vec<Vec<(u64, u64)>>;

fn holds(grants: &Grants, algorithm: &AnyAlgorithm) {
    let quota = algorithm.quota();
    let (period, n) = (quota.period().as_nanos(), u128::from(quota.permits()));
    let burst = u128::from(quota.burst_size());
    let mut most = 0;
    for key in grants {
        for (first, (from, _)) in key.iter().enumerate() {
            let mut sum = 0;
            for (at, granted) in key.iter().skip(first) {
                sum += u128::from(*granted);
                let since = u128::from(at.saturating_sub(*from));
                assert!(
                    sum * period <= burst * period + since * n,
                    "{sum} in {since} ns: {algorithm}"
                );
            }
            most = most.max(sum);
        }
    }
    // It was used up: else nothing was tested.
    assert!(most > 3 * burst, "{most}: {algorithm}");
}

#[test]
fn no_restart_hands_out_a_burst() {
    let texts = [
        "token-bucket 10/s burst 30",
        "token-bucket 13/s burst 40",
        "gcra 7/s burst 3",
        "leaky-meter 10/s burst 20",
        "leaky-queue 70/min burst 5 free 2",
        "sliding-window 10/s",
    ];
    for algorithm in texts.map(|text| text.parse::<AnyAlgorithm>().expect(text)) {
        let mut random = Random(11);
        let mut gate = table(algorithm, Tick::ZERO);
        let mut grants: Grants = vec![Vec::new(); 5];
        // What the clock of the process says less what it is on the time of all.
        let (mut time, mut behind) = (0_u64, 0_i128);
        for turn in 0..6000 {
            time += random.below(40_000_000);
            let now = Tick::from_nanos((i128::from(time) + behind) as u64);
            gate.clock().set(now);
            let key = random.below(5);
            if let Ok(granted) = gate.try_acquire_n(&key, 1 + random.below(3)) {
                let at = i128::from(granted.at().as_nanos()) - behind;
                grants[key as usize].push((at as u64, granted.n()));
            }
            if turn % 50 == 49 {
                let pause = random.below(200_000_000);
                time += pause;
                let to = random.below(2_000_000_000);
                let elapsed = Duration::from_nanos(pause);
                gate = restarted(&gate, algorithm, Tick::from_nanos(to), elapsed);
                behind = i128::from(to) - i128::from(time);
            }
        }
        holds(&grants, &algorithm);
    }
}

/// The order of ticks of a limit of its own, with the same decisions, says exactly what is granted.
#[test]
fn a_key_gets_what_a_limit_without_restarts_grants() {
    let mut gate: Keyed<_, ManualClock> = table(bucket("10/s burst 30"), Tick::ZERO);
    let stays = table(bucket("10/s burst 30"), Tick::ZERO);
    let mut random = Random(3);
    let (mut time, mut clock) = (0, 0);
    for turn in 0..3000 {
        let step = random.below(80_000_000);
        (time, clock) = (time + step, clock + step);
        let (key, n) = (random.below(4), random.below(4));
        let there = gate
            .try_acquire_n_at(&key, n, Tick::from_nanos(clock))
            .is_ok();
        let here = stays
            .try_acquire_n_at(&key, n, Tick::from_nanos(time))
            .is_ok();
        assert_eq!(there, here, "{turn}");
        if turn % 20 == 0 {
            let to = random.below(1 << 40);
            gate.clock().set(Tick::from_nanos(clock));
            gate = restarted(
                &gate,
                bucket("10/s burst 30"),
                Tick::from_nanos(to),
                Duration::ZERO,
            );
            clock = to;
        }
    }
}
