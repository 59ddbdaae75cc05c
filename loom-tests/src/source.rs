//! Atomic operations, found by their text in the crate's sources. The crate of shuttle's models
//! includes this file too.

use std::fs;
use std::path::Path;

use tollgate::sync::model::{Conditions, Defect};

/// An atomic operation in the source code.
#[derive(Debug, Clone, Copy)]
pub struct Site {
    file: &'static str,
    line: u32,
    /// The text by which it was found.
    pub operation: &'static str,
}

impl Site {
    /// Returns the conditions under which this operation has a defect.
    pub fn with(self, defect: Defect) -> Conditions {
        Conditions {
            defect: Some((defect, self.file, self.line)),
            ..Conditions::default()
        }
    }
}

/// Source files, by their paths relative to the crate's `src` folder.
#[derive(Debug, Clone, Copy)]
pub struct Source<'s>(pub &'s [&'static str]);

impl Source<'_> {
    /// Finds these operations.
    pub fn sites<const N: usize>(self, operations: [&'static str; N]) -> [Site; N] {
        operations.map(|operation| self.site(operation))
    }

    /// Finds the only line of these files that contains `operation`.
    fn site(self, operation: &'static str) -> Site {
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
            // Conditions name a file by the end of its path.
            [(file, line)] => Site {
                file: file.trim_start_matches("../"),
                line,
                operation,
            },
            ref lines => panic!("{operation} is in {lines:?}"),
        }
    }
}
