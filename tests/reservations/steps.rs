//! A reservation is the step at the tick at which it is due, and the first one that grants: so all that is proved
//! of the step (scripts/prove) is true of it.

use std::time::Duration;

use tollgate::{Algorithm, Denied, Forecast, Quota, Reserve, Tick, TokenBucket};

struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Of any size.
    fn any(&mut self) -> u64 {
        let bits = self.next() % 64;
        self.next() >> bits
    }
}

const RATES: [(u64, u64); 9] = [
    (1, 1_000_000_000),
    (3, 1_000_000_000),
    (7, 10),
    (13, 1_000),
    (10, 1),
    (999_999_937, 1_000_000_000),
    (1, 365 * 86_400_000_000_000),
    (11, 1_000_000_007),
    (1_000_003, 86_400_000_000_000),
];

fn compare(bucket: &TokenBucket, word: u64, now: Tick, n: u64) -> bool {
    let forecast = bucket.due(word, now, n);
    match bucket.reserve(word, now, n, Tick::MAX) {
        Ok((next, granted)) => {
            let due = granted.due();
            assert_eq!(Some(due), forecast, "{bucket:?} {word} {now:?} {n}");
            let (then, _) = bucket.step(word, due, n).expect("it is there then");
            assert_eq!(next, then, "{bucket:?} {word} {now:?} {n}");
            if due > now {
                let before = Tick::from_nanos(due.as_nanos() - 1);
                assert!(bucket.step(word, before, n).is_err());
                let too_late = bucket.reserve(word, now, n, before).unwrap_err();
                assert_eq!(too_late.retry_after(), Some(Duration::from_nanos(1)));
            }
            due > now
        }
        Err(denied) => {
            assert_eq!(forecast, None);
            let is_never = matches!(denied, Denied::Never { .. });
            assert_eq!(is_never, n > bucket.available(0, now));
            assert_eq!(bucket.step(word, now, n).unwrap_err(), denied);
            false
        }
    }
}

#[test]
fn it_is_the_first_step_that_grants() {
    let (mut numbers, mut waited) = (Numbers(7), 0_u64);
    for (n, period) in RATES {
        for burst in [1, 2, 5, 200] {
            let quota = Quota::per(n, Duration::from_nanos(period)).burst(burst);
            let bucket = TokenBucket::new(quota).expect("a quota");
            for _ in 0..3000 {
                let now = Tick::from_nanos(numbers.any());
                let word = match numbers.next() % 3 {
                    0 => numbers.any(),
                    // Near the clock, where a bucket's word is.
                    _ => {
                        let (base, _) = bucket.take_up_to(0, now, u64::MAX);
                        base.saturating_add(numbers.any() >> 20)
                    }
                };
                let n = numbers.next() % (burst + 2);
                waited += u64::from(compare(&bucket, word.min(u64::MAX - 1), now, n));
            }
        }
    }
    assert!(waited > 20_000, "{waited}");
}
