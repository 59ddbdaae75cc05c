//! The algorithm of [`KeyedConcurrency`](super::KeyedConcurrency): the word is the total weight of
//! the callers inside.

use crate::algorithm::{Algorithm, GiveBack};
use crate::clock::Tick;
use crate::outcome::{Denied, Granted};

/// Allows a total weight of `limit` at once. Only guards give weight back; time does not. The word
/// of a key without guards is 0, so the key is idle. A key with guards is never idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Places {
    pub(super) limit: u64,
}

impl Algorithm for Places {
    #[inline(always)]
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        match word.checked_add(n) {
            Some(next) if next <= self.limit => Ok((next, Granted::new(n, now))),
            _ if n > self.limit => Err(Denied::never(n, self.limit)),
            _ => Err(Denied::busy(n)),
        }
    }

    #[inline]
    fn available(&self, word: u64, _now: Tick) -> u64 {
        self.limit.saturating_sub(word)
    }

    #[inline]
    fn is_idle(&self, word: u64, _now: Tick) -> bool {
        word == 0
    }
}

impl GiveBack for Places {
    fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
        self.refund(word, now, granted.n())
    }

    #[inline(always)]
    fn refund(&self, word: u64, _now: Tick, n: u64) -> (u64, u64) {
        (word.saturating_sub(n), word.min(n))
    }
}

#[cfg(test)]
mod tests {
    use super::{Algorithm, Denied, GiveBack, Places, Tick};

    const NOW: Tick = Tick::ZERO;

    #[test]
    fn any_word_with_any_number_stays_within_the_limit() {
        let numbers = [0, 1, 2, 4, 5, 6, u64::MAX - 1, u64::MAX];
        let places = Places { limit: 5 };
        for word in numbers {
            for n in numbers {
                let there = places.available(word, NOW);
                match places.step(word, NOW, n) {
                    Ok((next, granted)) => {
                        assert!(next <= 5 && n <= there && granted.n() == n);
                        assert_eq!(places.refund(next, NOW, n), (word, n));
                    }
                    Err(denied) => {
                        assert!(n > there || word > 5);
                        assert_eq!(matches!(denied, Denied::Never { .. }), n > 5);
                    }
                }
                let (next, back) = places.refund(word, NOW, n);
                assert_eq!((next + back, back <= n), (word, true));
            }
            assert_eq!(places.is_idle(word, NOW), word == 0);
        }
    }
}
