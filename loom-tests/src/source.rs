//! Atomic operations, found by their text in the crate's sources. The crate of shuttle's models
//! includes this file too.

use std::fs;
use std::path::Path;

/// An operation: the end of its file's path, and the line.
pub type Operation = (&'static str, u32);

/// Source files, by their paths relative to the crate's `src` folder.
#[derive(Debug, Clone, Copy)]
pub struct Source(pub &'static [&'static str]);

impl Source {
    /// Finds these operations.
    pub fn sites<const N: usize>(self, operations: [&'static str; N]) -> [Operation; N] {
        operations.map(|operation| self.site(operation))
    }

    /// Finds the operation, the only line of these files that contains this text.
    pub fn site(self, operation: &'static str) -> Operation {
        let lines = self.0.iter().flat_map(|file| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../src")
                .join(file);
            let text = fs::read_to_string(path).expect("a source file");
            let lines = text
                .lines()
                .zip(1..)
                .filter(|(line, _)| line.contains(operation));
            lines.map(|(_, line)| (*file, line)).collect::<Vec<_>>()
        });
        match lines.collect::<Vec<_>>()[..] {
            [(file, line)] => (file.trim_start_matches("../"), line),
            ref lines => panic!("{operation} is in {lines:?}"),
        }
    }
}

const TRANSITIONS: Source = Source(&["keyed/find/table/transitions.rs"]);

/// The exchange that releases a slot of a table.
pub fn release() -> Operation {
    TRANSITIONS.site("self.exchange(at, held, SlotState::RELEASED)")
}

/// The exchange that migrates a slot to another version or algorithm.
pub fn migrate() -> Operation {
    TRANSITIONS.site("self.exchange(at, old, new)")
}

/// The exchange of a first attempt.
pub fn decision() -> Operation {
    TRANSITIONS.site("compare_exchange(self.slot, old, new")
}

/// The fence of a change of a quota or an override, before it reaches the keys of a table.
pub fn change_of_table() -> Operation {
    Source(&["keyed/admit/reach.rs"]).site("fence(Ordering::SeqCst)")
}

/// The load of the tick from which a new key counts.
pub fn horizon() -> Operation {
    Source(&["keyed/admit/claim.rs"]).site("self.horizon()")
}

/// The exchange of a version and a word by a decision.
pub fn decision_of_pair() -> Operation {
    Source(&["adjustable/ring.rs"]).site("fast_pair.compare_exchange(cell")
}

/// The exchange that sets another limit of a concurrency.
pub fn new_limit() -> Operation {
    Source(&["concurrency/queue.rs"]).site("self.exchange(word, word.with_limit(limit))")
}

/// The exchange by which a caller enters, or says that it waits.
pub fn wait() -> Operation {
    Source(&["concurrency/queue.rs"]).site("self.exchange(word, next)")
}
