//! Reservations keep the bound at the ticks at which they are due, for any cancellations in any
//! order.

mod every_order;
mod known_failures;
mod orders;
mod rolled_back;
mod search;
mod steps;
mod threads;
mod windows;

use tollgate::algorithm::Reserve;

use crate::support::*;

const YEAR: u64 = 365 * 86_400 * SECOND;

/// Permits and nanoseconds: exact rates and others.
const RATES: [(u64, u64); 16] = [
    (1, 2),
    (1, 1_000_000),
    (1, YEAR),
    (7, SECOND),
    (11, SECOND + 7),
    (13, 7),
    (13, 10),
    (13, SECOND),
    (17, 5),
    (300, SECOND),
    (1_000_003, YEAR / 365),
    (700_000_000, SECOND),
    (999_999_937, SECOND),
    (3_000_000_000, SECOND),
    (9_999_999_967, SECOND),
    (10_000_000_000, SECOND),
];

/// Reserves any number of permits of any word at any tick, and cancels any part of them. In a line
/// reservations only raise the word, and cancellations only lower it.
fn asks_anything<A>(algorithm: &A, is_line: bool, random: &mut Random, times: u32)
where
    A: Reserve + Debug,
{
    for _ in 0..times {
        let mut any = || {
            let n = random.upto(u64::MAX);
            if random.one_in(2) { n } else { u64::MAX - n }
        };
        let [word, other] = [any(), any()].map(|word| word.min(u64::MAX - 1));
        let [now, then, latest] = [any(), any(), any()].map(tick);
        let (n, back) = (any(), any());
        assert!(algorithm.waiting(word, now) < u64::MAX);
        for n in [n, n % 3] {
            let label = || format!("{algorithm:?}: {word:#x} at {now:?}, {n} until {latest:?}");
            let Ok((next, granted)) = algorithm.reserve(word, now, n, latest) else {
                continue;
            };
            let least = if is_line { word } else { 0 };
            let is_later = (least..u64::MAX).contains(&next) && granted.due() >= now;
            assert!(is_later, "{}", label());
            for word in [next, other] {
                let (left, kept, came) = algorithm.cancel(word, then, &granted, back);
                let most = if is_line { word } else { u64::MAX - 1 };
                assert!(left <= most && came <= back.min(n), "{}", label());
                assert!(kept.due() <= granted.due(), "{}", label());
                assert_eq!(kept.n(), n - back.min(n), "{}", label());
            }
        }
    }
}

#[test]
fn cancel_and_settle_report_what_they_returned() {
    let (clock, limiter) = bucket(Quota::per_second(10).burst(3));
    let line = [3, 1, 1, 3].map(|n| limiter.reserve(n).expect("it will be there"));
    let tenths = |tick: Tick| tick.as_nanos() / (SECOND / 10);
    assert_eq!(line.each_ref().map(|one| tenths(one.due())), [0, 1, 2, 5]);
    let expected = [true, false, false, false];
    assert_eq!(line.each_ref().map(|one| one.is_due()), expected);
    clock.set(tick(SECOND / 20));
    let left = line.each_ref().map(|one| one.time_left().as_millis());
    let expected = ([0, 50, 150, 450], 500);
    assert_eq!((left, line[3].delay().as_millis()), expected);
    let [first, second, middle, last] = line;
    // A reservation in the middle returns nothing, since another waits after it. The last one
    // returns its permits.
    for (one, returned) in [(middle, 0), (limiter.reserve(1).expect("a place"), 1)] {
        let cancelled = one.cancel();
        let expected = (returned, 1 - returned);
        assert_eq!((cancelled.returned, cancelled.lost), expected);
    }
    // The permits that the last one keeps are due sooner.
    let (kept, settled) = last.settle(1);
    assert_eq!((settled.returned, settled.lost, settled.charged), (2, 0, 0));
    assert_eq!((kept.n(), tenths(kept.due())), (1, 3));
    let (kept, settled) = second.settle(3);
    assert_eq!((settled.returned, settled.lost, settled.charged), (0, 0, 2));
    assert_eq!((kept.n(), tenths(kept.due())), (1, 1));
    // When none waits any more, permits refilled in the meantime do not come back again.
    clock.set(tick(6 * SECOND / 10));
    assert_eq!(limiter.available(), 1);
    let cancelled = first.cancel();
    let actual = (cancelled.returned, cancelled.lost, limiter.available());
    assert_eq!(actual, (0, 3, 1));
}
