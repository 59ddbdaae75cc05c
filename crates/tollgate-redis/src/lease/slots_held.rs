//! What a node holds of a key's slots, in one word: those that are in use, and those that are idle.

/// The unit of the time at which a lease ends: 2^24 nanoseconds, about 17 milliseconds.
const UNIT: u32 = 24;

const COUNT: u32 = 11;
const MARK: u32 = 4;
const COUNTS: u64 = (1 << (2 * COUNT)) - 1;
const MARKS: u64 = ((1 << MARK) - 1) << (2 * COUNT);
const IS_ASKED: u64 = 1 << (2 * COUNT + MARK);
const TIMES: u32 = 2 * COUNT + MARK + 1;

/// The most slots that a node can hold of a key: more than a limit has.
pub(crate) const MOST_SLOTS_HELD: u64 = (1 << COUNT) - 1;

/// Slots, and until when they are held, as a word.
///
/// ```text
///  37 bits            1 bit      4 bits               11 bits   11 bits
///  until, in units    is asked   the mark, as a power  in use    idle
/// ```
///
/// Only messages and their answers change how many slots there are: who enters or leaves moves them
/// from one count to the other. So the node always says exactly what it keeps. 0 is a key of which
/// nothing is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct SlotsHeld(pub(crate) u64);

/// What one that entered is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entered {
    pub(crate) held: SlotsHeld,
    /// How many slots are still idle.
    pub(crate) idle: u64,
    /// Whether the holder must be told to draw.
    pub(crate) asks: bool,
}

impl SlotsHeld {
    /// The lease ended while slots were in use, or the server does not hold them: they are lost for
    /// good, and the word stays as it is.
    pub(crate) const LOST: Self = Self(1);

    const fn with(self, in_use: u64, idle: u64) -> Self {
        Self((self.0 & !COUNTS) | (in_use << COUNT) | idle)
    }

    const fn counts(self) -> (u64, u64) {
        let counts = self.0 & COUNTS;
        (counts >> COUNT, counts & MOST_SLOTS_HELD)
    }

    /// Returns the tick before which the slots are held.
    pub(crate) const fn until_ns(self) -> u64 {
        (self.0 >> TIMES) << UNIT
    }

    /// Returns how many slots are in use, and how many are idle, at a tick.
    pub(crate) const fn at(self, now_ns: u64) -> (u64, u64) {
        match now_ns < self.until_ns() {
            true => self.counts(),
            false => (0, 0),
        }
    }

    /// Returns whether slots that were in use are lost at a tick.
    pub(crate) fn is_lost(self, now_ns: u64) -> bool {
        self == Self::LOST || now_ns >= self.until_ns() && self.counts().0 > 0
    }

    /// Puts `n` slots to use at a tick, if they are idle.
    pub(crate) fn enter(self, now_ns: u64, n: u64) -> Option<Entered> {
        let (in_use, idle) = self.at(now_ns);
        let left = idle.checked_sub(n).filter(|_| n > 0)?;
        let mark = 1 << ((self.0 & MARKS) >> (2 * COUNT));
        let asks = left <= mark && self.0 & IS_ASKED == 0;
        let held = self.with(in_use.saturating_add(n), left);
        Some(Entered {
            held: Self(held.0 | if asks { IS_ASKED } else { 0 }),
            idle: left,
            asks,
        })
    }

    /// Makes `n` slots that are in use idle, if their lease has not ended.
    pub(crate) fn leave(self, now_ns: u64, n: u64) -> Option<Self> {
        let (in_use, idle) = self.at(now_ns);
        let in_use = in_use.checked_sub(n)?;
        Some(self.with(in_use, idle.saturating_add(n).min(MOST_SLOTS_HELD)))
    }

    /// Lets the one that leaves no more than `mark` idle slots ask for a draw.
    pub(crate) fn rearmed(self, mark: u64) -> Self {
        match self {
            Self::LOST => self,
            _ => Self((self.0 & !MARKS & !IS_ASKED) | power(mark)),
        }
    }

    /// Returns the word without all idle slots but some, how many slots the node then keeps, and
    /// how many idle ones it had more. From now on a draw is under way, so that none asks for one.
    pub(crate) fn withdraw(self, now_ns: u64, keep: u64) -> (Self, u64, u64) {
        if now_ns >= self.until_ns() {
            return (self, 0, 0);
        }
        let (in_use, idle) = self.counts();
        let stay = idle.min(keep);
        let held = Self(self.with(in_use, stay).0 | IS_ASKED);
        (held, in_use.saturating_add(stay), idle.saturating_sub(stay))
    }

    /// Returns the word after an answer: with these slots more, or fewer, until a tick. If slots
    /// that are in use are among those that are lost, all are.
    pub(crate) fn answered(
        self,
        now_ns: u64,
        lost: u64,
        more: u64,
        until_ns: u64,
        mark: u64,
    ) -> Self {
        let (in_use, idle) = self.at(now_ns);
        if self.is_lost(now_ns) || in_use > 0 && lost > idle {
            return Self::LOST;
        }
        let idle = idle.saturating_sub(lost).saturating_add(more);
        let idle = idle.min(MOST_SLOTS_HELD.saturating_sub(in_use));
        let until_ns = until_ns.max(self.until_ns());
        Self((until_ns >> UNIT) << TIMES | power(mark)).with(in_use, idle)
    }
}

/// Returns a mark as it is in a word.
fn power(mark: u64) -> u64 {
    let power = mark.min(MOST_SLOTS_HELD).checked_ilog2().unwrap_or(0);
    u64::from(power) << (2 * COUNT)
}
