//! No key exceeds its bound over its whole history, however often the process restarts. (For
//! buckets. For periods aligned to the clock, the clock determines when they begin.)

use tollgate_audit::{Audit, Bound, Log};

use super::{restarted, table};
use crate::support::*;

/// All processes share one time. If the interval is a whole number of nanoseconds, each answer is
/// that of a table that never restarted.
#[test]
fn a_restart_grants_no_extra_burst() {
    for (text, is_exact) in [
        ("token-bucket 10/s burst 30", true),
        ("token-bucket 13/s burst 40", false),
        ("gcra 7/s burst 3", false),
        ("leaky-meter 10/s burst 20", true),
        ("leaky-queue 70/min burst 5 free 2", false),
        ("sliding-window 10/s", false),
    ] {
        let algorithm = algorithm(text);
        let stays = table(algorithm, tick(0));
        let mut limiter = table(algorithm, tick(0));
        let mut logs = vec![Log::new(); 5];
        // The process's clock minus the shared time.
        let (mut random, mut time, mut behind) = (Random(11), 0_u64, 0_i128);
        for turn in 0..6000 {
            time += random.below(40_000_000);
            let now = tick((i128::from(time) + behind) as u64);
            limiter.clock().set(now);
            let (key, n) = (random.below(5), 1 + random.below(3));
            let granted = limiter.try_acquire_n(&key, n);
            let right = stays.key(&key).at(tick(time)).try_acquire_n(n);
            let is_right = granted.is_ok() == right.is_ok();
            assert!(is_right || !is_exact, "{turn} {text}");
            if let Ok(granted) = granted {
                let at = i128::from(granted.at().as_nanos()) - behind;
                logs[key as usize].grant(tick(at as u64), granted.n());
            }
            if turn % 50 == 49 {
                let pause = random.below(200_000_000);
                time += pause;
                let to = random.below(2_000_000_000);
                let elapsed = Duration::from_nanos(pause);
                limiter = restarted(&limiter, algorithm, tick(to), elapsed);
                behind = i128::from(to) - i128::from(time);
            }
        }
        let bound = Bound::of_quota(algorithm.quota()).expect("a quota");
        let mut most = 0;
        for log in logs {
            match Audit::from_iter([log]).check(&bound) {
                Ok(summary) => most = most.max(summary.granted),
                Err(excess) => panic!("{excess}, {text}"),
            }
        }
        // The burst must have been used up, or the test shows nothing.
        let burst = u128::from(algorithm.quota().burst_size());
        assert!(most > 3 * burst, "{most}: {text}");
    }
}
