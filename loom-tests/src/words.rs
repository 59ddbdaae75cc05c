//! Places: the real one, a sequential one to compare with, and broken ones on which the models must
//! fail. All of them run under the real verbs.

use std::sync::{Arc, Mutex, PoisonError};

use tollgate::store::{AtomicWord, UNSTARTED, WordCell};
use tollgate::sync::{AtomicU64, Ordering};

use crate::traced_word::SharedWord;

/// Makes a place that holds a word.
pub type MakeWord = fn(u64) -> SharedWord;

/// The crate's own cell.
pub fn cell(word: u64) -> SharedWord {
    Arc::new(WordCell::new(word))
}

/// A word that loom does not see, for verbs one after the other.
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

/// Defines a place on an atomic word that differs from the cell in some of its three operations.
macro_rules! place {
    ($(#[$meta:meta])* $make:ident = $name:ident {
        exchange($atomic:ident, $word:ident, $next:ident) $exchange:block
        $(replace($ratomic:ident, $rnext:ident) $replace:block)?
    }) => {
        struct $name(AtomicU64);

        impl AtomicWord for $name {
            fn load(&self) -> u64 {
                self.0.load(Ordering::Relaxed)
            }

            fn compare_exchange(&self, $word: u64, $next: u64) -> Result<(), u64> {
                let $atomic = &self.0;
                $exchange
            }

            #[allow(unreachable_code)]
            fn swap(&self, next: u64) -> u64 {
                $(
                    let ($ratomic, $rnext) = (&self.0, next);
                    return $replace;
                )?
                self.0.swap(next, Ordering::Relaxed)
            }
        }

        $(#[$meta])*
        pub fn $make(word: u64) -> SharedWord {
            Arc::new($name(AtomicU64::new(word)))
        }
    };
}

fn exchange(atomic: &AtomicU64, word: u64, next: u64) -> Result<(), u64> {
    let exchanged = atomic.compare_exchange(word, next, Ordering::Relaxed, Ordering::Relaxed);
    exchanged.map(drop)
}

/// Right, but every second exchange fails without a reason, as the processor's may. Loom's never
/// does by itself.
pub fn hesitant(word: u64) -> SharedWord {
    Arc::new(Hesitant(WordCell::new(word), Mutex::new(true)))
}

/// The flag is not seen by loom, and need not be: it only says whose turn it is to fail.
struct Hesitant(WordCell, Mutex<bool>);

impl Hesitant {
    fn is_serious(&self) -> bool {
        // Let go of before any atomic operation: loom changes threads there.
        let mut serious = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        *serious = !*serious;
        *serious
    }
}

impl AtomicWord for Hesitant {
    fn load(&self) -> u64 {
        self.0.load()
    }

    fn compare_exchange(&self, word: u64, next: u64) -> Result<(), u64> {
        if self.is_serious() {
            self.0.compare_exchange(word, next)
        } else {
            Err(word)
        }
    }

    fn swap(&self, next: u64) -> u64 {
        self.0.swap(next)
    }
}

place! {
    /// Broken: compares, and then stores.
    stores = Stores {
        exchange(atomic, word, next) {
            let seen = atomic.load(Ordering::Relaxed);
            if seen != word {
                return Err(seen);
            }
            atomic.store(next, Ordering::Relaxed);
            Ok(())
        }
    }
}

place! {
    /// Broken: exchanges whether the word is still there or not, as a loop would that does not run
    /// its step again.
    insists = Insists {
        exchange(atomic, _word, next) {
            atomic.swap(next, Ordering::Relaxed);
            Ok(())
        }
    }
}

place! {
    /// Broken: says that it exchanged the word, whether it did or not.
    boasts = Boasts {
        exchange(atomic, word, next) {
            let _ = exchange(atomic, word, next);
            Ok(())
        }
    }
}

place! {
    /// Broken: says that it failed after it succeeded, if the word was not the first one.
    denies = Denies {
        exchange(atomic, word, next) {
            exchange(atomic, word, next)?;
            if word == 0 { Err(next) } else { Ok(()) }
        }
    }
}

/// Broken: says the word that it was made with, as a loop would that does not look again.
pub fn dreams(word: u64) -> SharedWord {
    Arc::new(Dreams(WordCell::new(word), word))
}

struct Dreams(WordCell, u64);

impl AtomicWord for Dreams {
    fn load(&self) -> u64 {
        self.1
    }

    fn compare_exchange(&self, word: u64, next: u64) -> Result<(), u64> {
        self.0.compare_exchange(word, next)
    }

    fn swap(&self, next: u64) -> u64 {
        self.0.swap(next)
    }
}

place! {
    /// Broken: starts over what others have started.
    starts_over = StartsOver {
        exchange(atomic, word, next) {
            if word == UNSTARTED {
                atomic.swap(next, Ordering::Relaxed);
                return Ok(());
            }
            exchange(atomic, word, next)
        }
    }
}

place! {
    /// Broken: replaces the word only if nobody comes between.
    gives_up = GivesUp {
        exchange(atomic, word, next) { exchange(atomic, word, next) }
        replace(atomic, next) {
            let word = atomic.load(Ordering::Relaxed);
            let _ = exchange(atomic, word, next);
            word
        }
    }
}

place! {
    /// Broken: replaces the word by a load and a store.
    replaces_by_store = ReplacesByStore {
        exchange(atomic, word, next) { exchange(atomic, word, next) }
        replace(atomic, next) {
            let word = atomic.load(Ordering::Relaxed);
            atomic.store(next, Ordering::Relaxed);
            word
        }
    }
}
