//! Permits that come back while a request scans the shards in vain are not hidden: the hint of that
//! scan is not used. The algorithm calls back into the test, so one thread plays both parts.

use crate::support::hooks::{Call, Hooked, at_call, unhook};
use crate::support::*;

const NOW: Tick = tick(1_000_000_000);

#[test]
fn a_permit_that_comes_back_during_a_scan_is_not_hidden_by_its_hint() {
    for shards in [2, 4, 32] {
        let bucket = TokenBucket::new(Quota::per(1, Duration::from_secs(1)).burst(64));
        let bucket = Hooked(bucket.expect("a quota"));
        let mut came_back = 0;
        for looks in 0..4 * shards as u64 {
            let limiter = Sharded::starting_at(bucket, shards, NoClock, Tick::ZERO);
            let limiter = Arc::new(limiter.expect("it splits"));
            assert_eq!(limiter.at(NOW).take_up_to(64).n(), 64);
            let again = Arc::clone(&limiter);
            at_call(Call::Look, looks, move || {
                assert_eq!(again.at(NOW).refund(1), 1)
            });
            // Finds nothing, unless the permit came back in time. Notes what it found.
            let first = limiter.at(NOW).try_acquire();
            if unhook() {
                assert!(first.is_err(), "all was taken");
                continue;
            }
            came_back += 1;
            let second = limiter.at(NOW).try_acquire();
            let taken = u64::from(first.is_ok()) + u64::from(second.is_ok());
            assert_eq!(
                taken, 1,
                "{shards} shards, after {looks} looks: {first:?}, {second:?}"
            );
            // Now the hint is right.
            assert!(limiter.at(NOW).try_acquire().is_err());
            let later = NOW.saturating_add(Duration::from_secs(1));
            assert!(limiter.at(later).try_acquire().is_ok());
        }
        assert!(came_back >= shards, "a scan looks at each shard");
    }
}
