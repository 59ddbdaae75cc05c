//! What a node holds of a key, in one word that many threads spend from.

/// The unit of the time at which a lease ends: 2^24 nanoseconds, about 17 milliseconds.
const UNIT: u32 = 24;

const PERMITS: u32 = 21;
const MARK: u32 = 5;
const IS_ASKED: u64 = 1 << (PERMITS + MARK);
const TIMES: u32 = PERMITS + MARK + 1;

/// The most permits that a node can hold of a key.
pub(crate) const MOST_HELD: u64 = (1 << PERMITS) - 1;

/// Permits, and until when they may be spent, as a word.
///
/// ```text
///  37 bits            1 bit      5 bits               21 bits
///  until, in units    is asked   the mark, as a power  permits
/// ```
///
/// The spender that reaches the mark sets *is asked*, and tells the holder to draw. 0 is a key of
/// which nothing is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Held(pub(crate) u64);

/// What a spender is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) held: Held,
    /// Whether the spender must tell the holder to draw.
    pub(crate) asks: bool,
}

impl Held {
    fn new(permits: u64, until_ns: u64, mark: u64) -> Self {
        let permits = if permits < MOST_HELD {
            permits
        } else {
            MOST_HELD
        };
        let mark = u64::from(mark.checked_ilog2().unwrap_or(0));
        Self((until_ns >> UNIT) << TIMES | mark << PERMITS | permits)
    }

    /// Returns how many permits may be spent at a tick.
    pub(crate) const fn permits(self, now_ns: u64) -> u64 {
        match now_ns < self.until_ns() {
            true => self.0 & MOST_HELD,
            false => 0,
        }
    }

    /// Returns how many permits a message or an answer takes out unspent: those whose lease has
    /// ended, and those that the process may not spend.
    pub(crate) fn lapsed(self, now_ns: u64, lost: u64) -> u64 {
        let kept = self.permits(now_ns).saturating_sub(lost);
        (self.0 & MOST_HELD).saturating_sub(kept)
    }

    /// Returns the tick before which the permits may be spent.
    pub(crate) const fn until_ns(self) -> u64 {
        (self.0 >> TIMES) << UNIT
    }

    /// Takes `n` permits at a tick, if they are there.
    pub(crate) const fn spend(self, now_ns: u64, n: u64) -> Option<Spent> {
        if now_ns >= self.until_ns() {
            return None;
        }
        let Some(left) = self.permits(now_ns).checked_sub(n) else {
            return None;
        };
        let mark = 1 << (self.0 >> PERMITS & ((1 << MARK) - 1));
        let asks = left <= mark && self.0 & IS_ASKED == 0;
        let held = (self.0 & !MOST_HELD) | left;
        let held = Self(if asks { held | IS_ASKED } else { held });
        Some(Spent { held, asks })
    }

    /// Returns the word without all permits but some, and how many it then has and had more. From
    /// now on a draw is under way, so that no spender asks for one.
    pub(crate) fn withdraw(self, now_ns: u64, keep: u64) -> (Self, u64, u64) {
        let had = self.permits(now_ns);
        let keeps = had.min(keep);
        let held = Self((self.0 & !MOST_HELD) | IS_ASKED | keeps);
        (held, keeps, had.saturating_sub(keeps))
    }

    /// Returns the word with slots that were in use, if their lease has not ended.
    pub(crate) fn returned(self, now_ns: u64, n: u64) -> Self {
        match now_ns < self.until_ns() {
            true => {
                Self((self.0 & !MOST_HELD) | (self.0 & MOST_HELD).saturating_add(n).min(MOST_HELD))
            }
            false => self,
        }
    }

    /// Returns the word after an answer: with these permits more, or fewer, until a tick. The
    /// spender that leaves no more than `mark` permits asks for the next draw.
    pub(crate) fn answered(
        self,
        now_ns: u64,
        lost: u64,
        more: u64,
        until_ns: u64,
        mark: u64,
    ) -> Self {
        let kept = self.permits(now_ns).saturating_sub(lost);
        Self::new(
            kept.saturating_add(more),
            until_ns.max(self.until_ns()),
            mark,
        )
    }
}
