//! The word of what is held, against numbers of their own, for random operations.

use crate::decisions::Random;
use crate::lease::held::{Held, MOST_HELD, Spent};

const UNIT_NS: u64 = 1 << 24;

/// What a word means.
#[derive(Debug, Default)]
struct Plain {
    permits: u64,
    until_ns: u64,
    /// The first spender that leaves at most this many permits asks for a draw.
    mark: u64,
    is_asked: bool,
}

impl Plain {
    fn permits(&self, now_ns: u64) -> u64 {
        if now_ns < self.until_ns {
            self.permits
        } else {
            0
        }
    }
}

#[test]
fn a_word_holds_what_its_numbers_say() {
    let mut random = Random(5);
    let (mut spent, mut told, mut ended) = (0, 0, 0);
    for _ in 0..500 {
        let (mut held, mut plain, mut now_ns) = (Held::default(), Plain::default(), 1);
        let most = 1 << random.below(22);
        for _ in 0..100 {
            now_ns += random.below(20 * UNIT_NS);
            match random.below(8) {
                0 => {
                    let keep = random.below(most);
                    let (next, keeps, returns) = held.withdraw(now_ns, keep);
                    let has = plain.permits(now_ns);
                    assert_eq!((keeps, returns), (has.min(keep), has - has.min(keep)));
                    (plain.permits, plain.is_asked) = (keeps, true);
                    held = next;
                }
                1 | 2 => {
                    let (lost, more) = (random.below(3), random.below(most));
                    let (until_ns, mark) =
                        (now_ns + random.below(100 * UNIT_NS), random.below(most));
                    held = held.answered(now_ns, lost, more, until_ns, mark);
                    let kept = plain.permits(now_ns).saturating_sub(lost);
                    plain = Plain {
                        permits: (kept + more).min(MOST_HELD),
                        until_ns: until_ns.max(plain.until_ns) / UNIT_NS * UNIT_NS,
                        mark: if mark == 0 { 1 } else { 1 << mark.ilog2() },
                        is_asked: false,
                    };
                }
                3 => {
                    let n = random.below(4);
                    held = held.returned(now_ns, n);
                    if now_ns < plain.until_ns {
                        plain.permits = (plain.permits + n).min(MOST_HELD);
                    }
                }
                _ => {
                    let n = random.below(most / 8 + 2);
                    let left = plain.permits(now_ns).checked_sub(n);
                    // Without a lease, not even no permits are spent.
                    let left = left.filter(|_| now_ns < plain.until_ns);
                    let Some(left) = left else {
                        ended += u64::from(plain.permits >= n);
                        assert_eq!(held.spend(now_ns, n), None);
                        continue;
                    };
                    let Spent { held: next, asks } = held.spend(now_ns, n).expect("permits");
                    assert_eq!(asks, left <= plain.mark.max(1) && !plain.is_asked);
                    plain.permits = left;
                    plain.is_asked |= asks;
                    held = next;
                    spent += 1;
                    told += u64::from(asks);
                }
            }
            assert_eq!(held.permits(now_ns), plain.permits(now_ns), "{plain:?}");
            assert_eq!(held.until_ns(), plain.until_ns, "{plain:?}");
        }
    }
    assert!(
        spent > 1000 && told > 100 && ended > 100,
        "{spent} {told} {ended}"
    );
}
