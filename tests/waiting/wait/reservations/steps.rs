//! A reservation has the effect of the same operation at the tick at which it is due, which is the
//! first tick that grants it. So everything that `scripts/prove` proves of the operation holds for
//! reservations.

use tollgate::algorithm::{Forecast, Reserve};

use super::{RATES, asks_anything};
use crate::support::*;

/// Returns whether it is due later than now.
fn compare(bucket: &TokenBucket, word: u64, now: u64, n: u64) -> bool {
    let now = tick(now);
    let forecast = bucket.due(word, now, n);
    match bucket.reserve(word, now, n, tick(u64::MAX)) {
        Ok((next, granted)) => {
            let due = granted.due();
            assert_eq!(Some(due), forecast, "{bucket:?} {word} {now:?} {n}");
            let (then, _) = bucket.step(word, due, n).expect("it is there then");
            assert_eq!(next, then, "{bucket:?} {word} {now:?} {n}");
            if due > now {
                let before = tick(due.as_nanos() - 1);
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
fn a_reservation_is_due_at_the_first_tick_that_grants_it() {
    let (mut random, mut waited) = (Random(7), 0);
    for (n, period) in RATES {
        for burst in [1, 2, 5, 200] {
            let quota = Quota::per(n, Duration::from_nanos(period)).burst(burst);
            let bucket = TokenBucket::new(quota).expect("a quota");
            for _ in 0..2000 {
                let now = random.upto(u64::MAX);
                let word = match random.below(3) {
                    0 => random.upto(u64::MAX),
                    // Near the clock, where a bucket's word is.
                    _ => {
                        let (base, _) = bucket.take_up_to(0, tick(now), u64::MAX);
                        base.saturating_add(random.upto(u64::MAX) >> 20)
                    }
                };
                let n = random.below(burst + 2);
                waited += u64::from(compare(&bucket, word.min(u64::MAX - 1), now, n));
            }
        }
    }
    assert!(waited > 20_000, "{waited}");
}

#[test]
fn any_word_tick_or_number_is_answered() {
    for (n, period) in RATES {
        for burst in [1, 3, 1 << 40] {
            let quota = Quota::per(n, Duration::from_nanos(period)).burst(burst);
            let Ok(bucket) = TokenBucket::new(quota) else {
                continue;
            };
            asks_anything(&bucket, true, &mut Random(9), 5_000);
            let queue = LeakyBucket::queue(quota).expect("a quota");
            for free in [0, 1, u64::MAX - 1] {
                asks_anything(&queue.free(free), true, &mut Random(9), 5_000);
            }
        }
    }
}
