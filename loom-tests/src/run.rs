//! Runs models, counts their executions, and prints a line for each layout.

use std::cell::Cell;
use std::fmt::Debug;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread;

use crate::expected::Expected;
use crate::layout::{Depth, Layout};

/// A run of one model in several layouts.
#[derive(Debug)]
pub struct Run {
    bound: Option<usize>,
    /// Each layout with its number of executions.
    layouts: Vec<(Layout, u64)>,
    cases: u64,
}

impl Run {
    fn new(bound: Option<usize>, layouts: &[Layout]) -> Self {
        Self {
            bound,
            layouts: layouts.iter().map(|layout| (*layout, 0)).collect(),
            cases: 0,
        }
    }

    /// Returns loom's bound on preemptions.
    pub(crate) fn bound(&self) -> Option<usize> {
        self.bound
    }

    /// Runs a case in each layout, in every interleaving that loom visits within the preemption
    /// bound. Loom misses some interleavings in each layout, so check the reached outcomes only
    /// after all layouts have run.
    pub fn explore(&mut self, execution: impl Fn(Layout) + Send + Sync + 'static) {
        let execution = Arc::new(execution);
        self.cases += 1;
        for (layout, executions) in &mut self.layouts {
            let count = Arc::new(Mutex::new(0));
            let (counted, execution) = (Arc::clone(&count), Arc::clone(&execution));
            let layout = *layout;
            let mut builder = loom::model::Builder::new();
            // Override loom's environment variables, so that the printed line states what ran.
            builder.preemption_bound = self.bound;
            builder.max_permutations = None;
            builder.max_duration = None;
            builder.check(move || {
                *counted.lock().unwrap_or_else(PoisonError::into_inner) += 1;
                execution(layout);
            });
            *executions += *count.lock().unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Runs a case in the same way. Its executions reach each of these outcomes, and no other.
    pub fn explore_all<T>(
        &mut self,
        outcomes: Vec<T>,
        execution: impl Fn(Layout) -> T + Send + Sync + 'static,
    ) where
        T: Clone + Debug + PartialEq + Send + Sync + 'static,
    {
        let expected = Expected::all(outcomes);
        let noted = expected.clone();
        self.explore(move |layout| noted.note(&execution(layout)));
        expected.assert_reached();
    }
}

/// A model. Its methods run it on broken code, on which it must fail.
pub struct Model<'n, B> {
    pub(crate) name: &'n str,
    pub(crate) bound: Option<usize>,
    pub(crate) body: B,
}

/// Runs a model in every layout, which must not panic. `bound` is loom's bound on preemptions, or
/// `None`.
pub fn model<B: Fn(&mut Run)>(name: &str, bound: Option<usize>, body: B) -> Model<'_, B> {
    let mut run = Run::new(bound, Layout::chosen(Depth::here()));
    body(&mut run);
    let text = bound.map_or("none".into(), |bound| bound.to_string());
    for (layout, executions) in run.layouts {
        assert!(executions > 0, "{name} ran nothing");
        println!(
            "model   {name:<66} | {:<19} | bound {text:<4} | cases {:>4} | executions {executions:>7}",
            layout.name(),
            run.cases,
        );
    }
    Model { name, bound, body }
}

/// Makes a model that runs only on broken code.
#[must_use = "it runs only on the broken code that it is asked to find"]
pub fn on_broken<B: Fn(&mut Run)>(name: &str, bound: Option<usize>, body: B) -> Model<'_, B> {
    Model { name, bound, body }
}

/// Returns whether to run a model that only repeats what a shorter one shows. `scripts/deep` runs
/// it. Otherwise, prints that the model is left out.
pub fn deep(name: &str) -> bool {
    let runs = Depth::here() == Depth::Deep;
    if !runs {
        println!("left    {name}");
    }
    runs
}

/// Returns a bound on preemptions: a larger one, or none, if this run is deep.
pub fn deeper(bound: usize, deep: impl Into<Option<usize>>) -> Option<usize> {
    match Depth::here() {
        Depth::Ci => Some(bound),
        Depth::Deep => deep.into(),
    }
}

/// Runs a model that only repeats what a shorter one shows, if this run is deep.
pub fn deep_model(name: &str, bound: Option<usize>, body: impl Fn(&mut Run)) {
    if deep(name) {
        model(name, bound, body);
    }
}

/// Runs a model on broken code. It must fail in every layout with the message `why`, or with one of
/// several messages that `|` separates.
pub fn broken(name: &str, why: &str, bound: Option<usize>, body: impl Fn(&mut Run)) {
    for &layout in Layout::chosen(Depth::here()) {
        let mut run = Run::new(bound, &[layout]);
        match quietly(|| body(&mut run)) {
            Ok(()) => panic!("{name} found nothing in {run:?}"),
            Err(message) => assert!(
                why.split('|').any(|why| message.contains(why.trim())),
                "{name} should have failed with {why:?}, but failed with {message:?}"
            ),
        }
        println!("broken  {name:<66} | {:<19} | found: {why}", layout.name());
    }
}

thread_local! {
    /// Whether panics of this thread are expected. Loom runs all threads of a model on one thread
    /// of the operating system.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether panics are expected here.
pub(crate) fn is_quiet() -> bool {
    QUIET.get()
}

/// Catches a panic without printing it, and returns its message.
fn quietly<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !is_quiet() {
                loud(info);
            }
        }));
    });
    QUIET.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    QUIET.set(false);
    outcome.map_err(|panic| match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => (*panic.downcast::<&str>().unwrap_or(Box::new("no message"))).into(),
    })
}

/// Prints the scenario if it fails unexpectedly.
pub(crate) struct PrintOnPanic(pub(crate) String);

impl Drop for PrintOnPanic {
    fn drop(&mut self) {
        if thread::panicking() && !is_quiet() {
            eprintln!("the scenario that failed:\n{}", self.0);
        }
    }
}
