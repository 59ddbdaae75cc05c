//! The cell of the sketch that finds the heaviest keys of the service: what it says of a key is
//! never too little or too much, also while keys are added.

use std::sync::atomic::Ordering;

use tollgate::sync::model::AtomicU64;
use tollgate_loom_tests::prelude::*;

#[allow(dead_code, reason = "a model does not clear cells")]
#[path = "../../../crates/tollgate-server/src/heaviest/cell.rs"]
mod cell;

use cell::{Cell, Seen, Word};

/// The atomics of a cell.
mod sync {
    pub(super) use std::sync::atomic::Ordering;
    pub(super) use tollgate::sync::model::AtomicU64;
}

/// The keys, as marks.
const KEY: u32 = 7;
const OTHER: u32 = 8;

trait Adds: Default + Send + Sync + 'static {
    fn add(&self, key: u32);
    fn get(&self) -> Seen;
}

impl Adds for Cell {
    fn add(&self, key: u32) {
        let _ = Cell::add(self, key);
    }

    fn get(&self) -> Seen {
        Cell::get(self)
    }
}

/// Broken: it counts a vote as cancelled only after it took it.
#[derive(Default)]
struct CountsLater {
    word: AtomicU64,
    cancelled: AtomicU64,
}

impl Adds for CountsLater {
    fn add(&self, key: u32) {
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            let before = Word::unpack(seen);
            let after = before.after(key).pack();
            let exchanged =
                self.word
                    .compare_exchange_weak(seen, after, Ordering::Release, Ordering::Relaxed);
            match exchanged {
                Ok(_) if before.is_against(key) => {
                    self.cancelled.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    fn get(&self) -> Seen {
        let word = Word::unpack(self.word.load(Ordering::Acquire));
        let cancelled = self.cancelled.load(Ordering::Relaxed);
        Seen { word, cancelled }
    }
}

/// Broken: it publishes nothing.
#[derive(Default)]
struct Unpublished {
    word: AtomicU64,
    cancelled: AtomicU64,
}

impl Adds for Unpublished {
    fn add(&self, key: u32) {
        let mut seen = self.word.load(Ordering::Relaxed);
        if Word::unpack(seen).is_against(key) {
            self.cancelled.fetch_add(1, Ordering::Relaxed);
        }
        loop {
            let after = Word::unpack(seen).after(key).pack();
            let exchanged =
                self.word
                    .compare_exchange_weak(seen, after, Ordering::Relaxed, Ordering::Relaxed);
            match exchanged {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    fn get(&self) -> Seen {
        let word = Word::unpack(self.word.load(Ordering::Relaxed));
        let cancelled = self.cancelled.load(Ordering::Relaxed);
        Seen { word, cancelled }
    }
}

/// A key has come twice. One thread adds another key, a second one asks how often the key came, and
/// a third one adds it once more.
fn is_read<C: Adds>(run: &mut Run) {
    run.explore(|layout| {
        let cell = Arc::new(C::default());
        cell.add(KEY);
        cell.add(KEY);
        let (one, other, reader) = (Arc::clone(&cell), Arc::clone(&cell), Arc::clone(&cell));
        let actors = vec![
            actor(move || one.add(OTHER)),
            actor(move || {
                let (low, high) = reader.get().bounds(KEY);
                assert!(
                    low <= 3 && high >= 2,
                    "the key came 2 or 3 times, not {low} to {high}"
                );
                assert!(
                    reader.get().bounds(OTHER).0 <= 1,
                    "the other key came once at most"
                );
            }),
            actor(move || other.add(KEY)),
        ];
        layout.act(actors);
        let (low, high) = cell.get().bounds(KEY);
        assert!(
            low <= 3 && high >= 3,
            "the key came 3 times, not {low} to {high}"
        );
        assert!(cell.get().bounds(OTHER).1 >= 1, "the other key came");
    });
}

#[test]
fn bounds_hold_while_keys_come() {
    model(
        "heaviest::bounds_hold_while_keys_come",
        Some(3),
        is_read::<Cell>,
    );
    let name = "heaviest::counts a cancelled vote later";
    broken(name, "not 1 to 1", Some(3), is_read::<CountsLater>);
    let name = "heaviest::publishes nothing";
    broken(name, "not 1 to 1", Some(3), is_read::<Unpublished>);
}
