//! Defects of the crate's own protocols that models must find: a fault in the code, an ordering
//! that is too weak, an exchange that is not atomic.

use std::fs;
use std::path::Path;

use tollgate::sync::model::{Conditions, Fault, under};

use crate::run::{Model, Run, broken};

impl<B: Fn(&mut Run)> Model<'_, B> {
    /// Sets loom's bound on preemptions for the broken code.
    pub fn bound(self, bound: Option<usize>) -> Self {
        Self { bound, ..self }
    }

    /// Runs the model with each of these faults: [`with_faults`].
    pub fn finds(self, faults: impl IntoIterator<Item = Fault>, why: &str) -> Self {
        with_faults(self.name, faults, why, self.bound, &self.body);
        self
    }

    /// Runs the model with exchanges that are not atomic: [`stored`].
    pub fn stored(self, why: &str) -> Self {
        stored(self.name, why, self.bound, &self.body);
        self
    }

    /// Runs the model with each of these operations `Relaxed`: [`relaxed`].
    pub fn relaxed(self, sites: impl IntoIterator<Item = Site>, why: &str) -> Self {
        relaxed(self.name, sites, why, self.bound, &self.body);
        self
    }
}

/// Runs a model on code with each of these faults in turn. The model must fail with the message
/// `why`.
pub fn with_faults(
    name: &str,
    faults: impl IntoIterator<Item = Fault>,
    why: &str,
    bound: Option<usize>,
    body: impl Fn(&mut Run),
) {
    for fault in faults {
        let conditions = Conditions {
            fault: Some(fault),
            ..Conditions::default()
        };
        let name = format!("{name}, {fault:?}");
        broken(&name, why, bound, |run| under(conditions, || body(run)));
    }
}

/// Runs a model on code whose compare-exchange is a load, a comparison and a store. The model must
/// fail with the message `why`.
pub fn stored(name: &str, why: &str, bound: Option<usize>, body: impl Fn(&mut Run)) {
    let conditions = Conditions {
        stores: true,
        ..Conditions::default()
    };
    let name = format!("{name}, compares and stores");
    broken(&name, why, bound, |run| under(conditions, || body(run)));
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

/// Runs a model on code in which the orderings of one of these operations are `Relaxed`, of each in
/// turn. The model must fail with the message `why`.
pub fn relaxed(
    name: &str,
    sites: impl IntoIterator<Item = Site>,
    why: &str,
    bound: Option<usize>,
    body: impl Fn(&mut Run),
) {
    for site in sites {
        let conditions = Conditions {
            relaxed: Some((site.file, site.line)),
            ..Conditions::default()
        };
        let name = format!("{name}, {} is Relaxed", site.operation);
        broken(&name, why, bound, |run| under(conditions, || body(run)));
    }
}
