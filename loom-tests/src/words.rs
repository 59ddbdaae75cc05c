//! Atomic words: the crate's own, a sequential one to compare with, and broken ones on which the
//! models must fail. The crate's own verbs run on all of them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use tollgate::store::{AtomicWord, UNSTARTED, WordCell};
use tollgate::sync::model::AtomicU64;

use crate::traced_word::SharedWord;

/// Makes an atomic word with this first value.
pub type MakeWord = fn(u64) -> SharedWord;

/// The crate's own word.
pub fn cell(word: u64) -> SharedWord {
    Arc::new(WordCell::new(word))
}

/// A word that loom does not track, for running verbs one after the other.
pub(crate) fn alone(word: u64) -> SharedWord {
    Arc::new(Alone(Mutex::new(word)))
}

struct Alone(Mutex<u64>);

impl AtomicWord for Alone {
    fn load(&self) -> u64 {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn compare_exchange(&self, word: u64, next: u64) -> Result<(), u64> {
        let mut here = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *here == word {
            *here = next;
            Ok(())
        } else {
            Err(*here)
        }
    }

    fn swap(&self, next: u64) -> u64 {
        let mut here = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut here, next)
    }
}

/// An atomic word of which one operation differs from the crate's.
struct Broken {
    atomic: AtomicU64,
    /// The word that it was made with.
    first: u64,
    load: fn(&Self) -> u64,
    exchange: fn(&AtomicU64, u64, u64) -> Result<(), u64>,
    swap: fn(&AtomicU64, u64) -> u64,
}

impl Broken {
    fn new(first: u64) -> Self {
        Self {
            atomic: AtomicU64::new(first),
            first,
            load: |word| word.atomic.load(Ordering::Relaxed),
            exchange,
            swap: |atomic, next| atomic.swap(next, Ordering::Relaxed),
        }
    }
}

impl AtomicWord for Broken {
    fn load(&self) -> u64 {
        (self.load)(self)
    }

    fn compare_exchange(&self, word: u64, next: u64) -> Result<(), u64> {
        (self.exchange)(&self.atomic, word, next)
    }

    fn swap(&self, next: u64) -> u64 {
        (self.swap)(&self.atomic, next)
    }
}

/// A word with this exchange.
fn exchanging(word: u64, exchange: fn(&AtomicU64, u64, u64) -> Result<(), u64>) -> SharedWord {
    let whole = Broken::new(word);
    Arc::new(Broken { exchange, ..whole })
}

/// A word with this swap.
fn swapping(word: u64, swap: fn(&AtomicU64, u64) -> u64) -> SharedWord {
    let whole = Broken::new(word);
    Arc::new(Broken { swap, ..whole })
}

fn exchange(atomic: &AtomicU64, word: u64, next: u64) -> Result<(), u64> {
    let exchanged = atomic.compare_exchange(word, next, Ordering::Relaxed, Ordering::Relaxed);
    exchanged.map(drop)
}

/// Correct, but every second exchange fails spuriously, as weak exchanges may on some processors.
/// Loom's own exchanges never do.
pub fn fails_spuriously(word: u64) -> SharedWord {
    Arc::new(FailsSpuriously(WordCell::new(word), Mutex::new(true)))
}

/// Loom does not track the flag and need not: it only decides which exchange fails.
struct FailsSpuriously(WordCell, Mutex<bool>);

impl FailsSpuriously {
    fn may_succeed(&self) -> bool {
        // Released before any atomic operation, where loom may switch threads.
        let mut serious = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        *serious = !*serious;
        *serious
    }
}

impl AtomicWord for FailsSpuriously {
    fn load(&self) -> u64 {
        self.0.load()
    }

    fn compare_exchange(&self, word: u64, next: u64) -> Result<(), u64> {
        if self.may_succeed() {
            self.0.compare_exchange(word, next)
        } else {
            Err(word)
        }
    }

    fn swap(&self, next: u64) -> u64 {
        self.0.swap(next)
    }
}

/// Broken: compares, and then stores.
pub fn stores(word: u64) -> SharedWord {
    exchanging(word, |atomic, word, next| {
        let seen = atomic.load(Ordering::Relaxed);
        if seen != word {
            return Err(seen);
        }
        atomic.store(next, Ordering::Relaxed);
        Ok(())
    })
}

/// Broken: exchanges even if the word has changed, like a loop that does not run its step
/// again.
pub fn overwrites(word: u64) -> SharedWord {
    exchanging(word, |atomic, _word, next| {
        atomic.swap(next, Ordering::Relaxed);
        Ok(())
    })
}

/// Broken: always reports that it exchanged the word.
pub fn claims_success(word: u64) -> SharedWord {
    exchanging(word, |atomic, word, next| {
        let _ = exchange(atomic, word, next);
        Ok(())
    })
}

/// Broken: reports a failure after it succeeded, unless the word was 0.
pub fn reports_failure(word: u64) -> SharedWord {
    exchanging(word, |atomic, word, next| {
        exchange(atomic, word, next)?;
        if word == 0 { Err(next) } else { Ok(()) }
    })
}

/// Broken: always loads the word that it was made with, like a loop that does not load again.
pub fn loads_stale(word: u64) -> SharedWord {
    let whole = Broken::new(word);
    let load = |word: &Broken| word.first;
    Arc::new(Broken { load, ..whole })
}

/// Broken: starts the limiter again after another thread has started it.
pub fn starts_over(word: u64) -> SharedWord {
    exchanging(word, |atomic, word, next| {
        if word == UNSTARTED {
            atomic.swap(next, Ordering::Relaxed);
            return Ok(());
        }
        exchange(atomic, word, next)
    })
}

/// Broken: swaps the word only if no other thread changes it in between.
pub fn gives_up(word: u64) -> SharedWord {
    swapping(word, |atomic, next| {
        let word = atomic.load(Ordering::Relaxed);
        let _ = exchange(atomic, word, next);
        word
    })
}

/// Broken: swaps the word by a load and a store.
pub fn replaces_by_store(word: u64) -> SharedWord {
    swapping(word, |atomic, next| {
        let word = atomic.load(Ordering::Relaxed);
        atomic.store(next, Ordering::Relaxed);
        word
    })
}
