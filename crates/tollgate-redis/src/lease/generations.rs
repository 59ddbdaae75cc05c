//! How many slots were put to use, or renewed, in each of the latest spans of time, so that those
//! that are never given back are idle again after a lease.
//!
//! A grant names its generation: the span in which it was made, or renewed. Its slots leave the
//! generation once: because the grant is given back or renewed, or because the generation lapses,
//! after which no grant finds it.

use super::sync::{AtomicU64, Ordering};

/// A lease lasts for this many spans. So slots lapse at most an eighth of a lease late.
const SPANS: u64 = 8;

/// Enough for the generations that have not lapsed, and for a task that looks seldom.
const WORDS: usize = 16;

/// Of a word: the count of a generation. The rest is its number.
const COUNT: u32 = 16;
const MOST: u64 = (1 << COUNT) - 1;

#[derive(Debug)]
pub(crate) struct Generations {
    span_ns: u64,
    words: [AtomicU64; WORDS],
}

/// A generation, and how many slots it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Generation {
    number: u64,
    count: u64,
}

impl Generation {
    const fn of(word: u64) -> Self {
        Self {
            number: word >> COUNT,
            count: word & MOST,
        }
    }

    const fn word(self) -> u64 {
        self.number << COUNT | self.count
    }
}

impl Generations {
    pub(crate) fn new(lease_ns: u64) -> Self {
        Self {
            span_ns: lease_ns.div_ceil(SPANS).max(1),
            words: Default::default(),
        }
    }

    /// Returns the number of a tick's generation. 0 is none.
    fn number(&self, now_ns: u64) -> u64 {
        let number = now_ns.checked_div(self.span_ns).unwrap_or(0);
        number.saturating_add(1)
    }

    fn word_of(&self, number: u64) -> Option<&AtomicU64> {
        let index = usize::try_from(number).unwrap_or(0) % WORDS;
        self.words.get(index)
    }

    /// Adds slots that are in use. Returns their generation, and how many slots have lapsed because
    /// an older one had its word.
    pub(crate) fn add(&self, now_ns: u64, n: u64) -> (u64, u64) {
        let number = self.number(now_ns);
        let added = self.word_of(number).and_then(|word| {
            change(word, |was| {
                // The clock was read long ago.
                if was.number >= number {
                    let count = was.count.saturating_add(n).min(MOST);
                    return Some((Generation { count, ..was }, (was.number, 0)));
                }
                let count = n.min(MOST);
                Some((Generation { number, count }, (number, was.count)))
            })
        });
        added.unwrap_or((number, 0))
    }

    /// Takes slots out of a generation. Returns whether it had them.
    pub(crate) fn take(&self, number: u64, n: u64) -> bool {
        let taken = self.word_of(number).and_then(|word| {
            change(word, |was| {
                let count = was.count.checked_sub(n)?;
                let is_same = was.number == number;
                is_same.then_some((Generation { count, ..was }, ()))
            })
        });
        taken.is_some()
    }

    /// Takes out the slots that were put to use more than a lease ago, and returns how many.
    pub(crate) fn lapse(&self, now_ns: u64) -> u64 {
        let now = self.number(now_ns);
        let lapsed = self.words.iter().filter_map(|word| {
            change(word, |was| {
                let has_lapsed = was.number.saturating_add(SPANS) < now;
                (has_lapsed && was.count > 0).then_some((Generation { count: 0, ..was }, was.count))
            })
        });
        lapsed.fold(0, u64::saturating_add)
    }
}

/// Changes a word, or leaves it as it is.
fn change<T>(
    word: &AtomicU64,
    change: impl Fn(Generation) -> Option<(Generation, T)>,
) -> Option<T> {
    let mut seen = word.load(Ordering::Relaxed);
    loop {
        let (next, result) = change(Generation::of(seen))?;
        // ORDERING: Release. The slots were counted as in use before they were added here. Acquire.
        // A thread that takes out what another one has added makes it idle after that.
        let exchanged =
            word.compare_exchange_weak(seen, next.word(), Ordering::AcqRel, Ordering::Relaxed);
        match exchanged {
            Ok(_) => return Some(result),
            Err(now) => seen = now,
        }
    }
}
