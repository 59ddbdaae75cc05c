//! Defects of the crate's own protocols that models must find: a fault in the code, an ordering
//! that is too weak, an exchange that is not atomic.

use std::fs;
use std::path::Path;

use tollgate::sync::model::{Conditions, Fault, under};

use crate::run::{Model, Run, broken};

impl<B: Fn(&mut Run)> Model<'_, B> {
    /// Sets loom's bound on preemptions for the broken code.
    #[must_use = "only what runs after it has this bound"]
    pub fn bound(self, bound: Option<usize>) -> Self {
        Self { bound, ..self }
    }

    /// Runs the model on code with each of these faults in turn. It must fail with the message
    /// `why`.
    pub fn finds(self, faults: impl IntoIterator<Item = Fault>, why: &str) -> Self {
        for fault in faults {
            let conditions = Conditions {
                fault: Some(fault),
                ..Conditions::default()
            };
            self.fails(&format!("{fault:?}"), why, conditions);
        }
        self
    }

    /// Runs the model on code whose compare-exchange is a load, a comparison and a store. It must
    /// fail with the message `why`.
    pub fn stored(self, why: &str) -> Self {
        let conditions = Conditions {
            stores: true,
            ..Conditions::default()
        };
        self.fails("compares and stores", why, conditions);
        self
    }

    /// Runs the model on code in which the orderings of one of these operations are `Relaxed`, of
    /// each in turn. It must fail with the message `why`.
    pub fn relaxed(self, sites: impl IntoIterator<Item = Site>, why: &str) -> Self {
        for site in sites {
            let conditions = Conditions {
                relaxed: Some((site.file, site.line)),
                ..Conditions::default()
            };
            self.fails(&format!("{} is Relaxed", site.operation), why, conditions);
        }
        self
    }

    fn fails(&self, defect: &str, why: &str, conditions: Conditions) {
        let name = format!("{}, {defect}", self.name);
        broken(&name, why, self.bound, |run| {
            under(conditions, || (self.body)(run));
        });
    }
}

/// An atomic operation in the source code.
#[derive(Debug, Clone, Copy)]
pub struct Site {
    file: &'static str,
    line: u32,
    operation: &'static str,
}

/// Source files, by their paths relative to the crate's `src` folder.
#[derive(Debug, Clone, Copy)]
pub struct Source(pub &'static [&'static str]);

impl Source {
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
