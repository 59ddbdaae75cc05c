//! Permits that come back while a request scans the shards in vain are not hidden: the hint of that
//! scan is not used. The algorithm calls back into the test, so one thread plays both parts.

use std::cell::RefCell;

use tollgate::algorithm::{Forecast, GiveBack, Split};

use crate::support::*;

/// How many words to look at before the work, and the work.
type Work = (u64, Box<dyn FnOnce()>);

thread_local! {
    static AFTER: RefCell<Option<Work>> = const { RefCell::new(None) };
}

/// Runs `work` within the look at a word after `looks` others. Looks within the work do not count.
fn after_looks(looks: u64, work: impl FnOnce() + 'static) {
    AFTER.set(Some((looks, Box::new(work))));
}

/// A bucket that reports each look at a word.
#[derive(Debug, Clone)]
struct Watched(TokenBucket);

impl Algorithm for Watched {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        self.0.step(word, now, n)
    }

    fn available(&self, word: u64, now: Tick) -> u64 {
        let available = self.0.available(word, now);
        match AFTER.take() {
            Some((0, work)) => work(),
            Some((looks, work)) => AFTER.set(Some((looks - 1, work))),
            None => {}
        }
        available
    }

    fn is_idle(&self, word: u64, now: Tick) -> bool {
        self.0.is_idle(word, now)
    }
}

impl GiveBack for Watched {
    fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
        self.0.undo(word, now, granted)
    }

    fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64) {
        self.0.refund(word, now, n)
    }
}

impl Forecast for Watched {
    fn due(&self, word: u64, now: Tick, n: u64) -> Option<Tick> {
        self.0.due(word, now, n)
    }
}

impl Split for Watched {
    fn most_shards(&self) -> u64 {
        self.0.most_shards()
    }

    fn per_shard(&self, shards: u64) -> Option<(Self, u64)> {
        let (shard, permit) = self.0.per_shard(shards)?;
        Some((Self(shard), permit))
    }

    fn never_falls(&self) -> bool {
        true
    }
}

const NOW: Tick = tick(1_000_000_000);

#[test]
fn a_permit_that_comes_back_during_a_scan_is_not_hidden_by_its_hint() {
    for shards in [2, 4, 32] {
        let bucket = TokenBucket::new(Quota::per(1, Duration::from_secs(1)).burst(64));
        let bucket = Watched(bucket.expect("a quota"));
        let mut came_back = 0;
        for looks in 0..4 * shards as u64 {
            let limiter = Sharded::starting_at(bucket.clone(), shards, NoClock, Tick::ZERO);
            let limiter = Arc::new(limiter.expect("it splits"));
            assert_eq!(limiter.at(NOW).take_up_to(64).n(), 64);
            let again = Arc::clone(&limiter);
            after_looks(looks, move || assert_eq!(again.at(NOW).refund(1), 1));
            // Finds nothing, unless the permit came back in time. Notes what it found.
            let first = limiter.at(NOW).try_acquire();
            if AFTER.take().is_some() {
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
