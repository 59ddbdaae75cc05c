//! Runs models on schedules of two kinds, and prints a line for each run.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::thread;

use shuttle::scheduler::{PctScheduler, RandomScheduler, RoundRobinScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use tollgate::sync::model::{Conditions, under};

/// The number of schedules of one seed. It is small, so that a failing seed repeats quickly.
const SCHEDULES_PER_SEED: usize = 100;
/// The number of schedules of each kind within which a fault must be found.
const SCHEDULES_FOR_FAULTS: usize = 100_000;
/// A model that has not reached all its labels runs up to this many times its schedules.
const MAX_REPETITIONS: usize = 10;
/// A schedule with more operations than this has a loop that does not end.
const MAX_STEPS: usize = 20_000;

/// The body of a model, run once for each schedule.
pub trait Body: Fn() + Copy + Send + Sync + 'static {}
impl<F: Fn() + Copy + Send + Sync + 'static> Body for F {}

/// Which of shuttle's schedulers chooses the next thread.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Threads have priorities, which change at two points of the schedule. This finds faults that
    /// need few thread switches, each at the right point.
    Pct,
    /// Any thread may run at each operation.
    Random,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Pct, Self::Random];

    const fn name(self) -> &'static str {
        match self {
            Self::Pct => "PCT, depth 3",
            Self::Random => "random",
        }
    }

    fn scheduler(self, seed: u64, schedules: usize) -> Box<dyn Scheduler + Send> {
        match self {
            Self::Pct => Box::new(PctScheduler::new_from_seed(seed, 3, schedules)),
            Self::Random => Box::new(RandomScheduler::new_from_seed(seed, schedules)),
        }
    }

    /// Runs a seed's schedules. On a failure, returns the failing schedule's number and its
    /// message.
    fn run(self, seed: u64, body: impl Body) -> Result<(), (usize, String)> {
        thread_local! {
            static BEGUN: Cell<usize> = const { Cell::new(0) };
        }
        listen();
        BEGUN.set(0);
        SAID.set(None);
        let runner = Runner::new(self.scheduler(seed, SCHEDULES_PER_SEED), config());
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
            runner.run(move || {
                BEGUN.set(BEGUN.get() + 1);
                body();
            })
        }));
        match outcome {
            Ok(_) => Ok(()),
            Err(_) => Err((BEGUN.get(), SAID.take().unwrap_or_default())),
        }
    }
}

fn config() -> Config {
    let mut config = Config::new();
    config.failure_persistence = FailurePersistence::None;
    config.max_steps = MaxSteps::FailAfter(MAX_STEPS);
    config.silence_warnings = true;
    // Without this, a failing thread would drop its guards while other threads go on.
    config
        .ungraceful_shutdown_config
        .immediately_return_on_panic = true;
    config
}

/// Returns the seeds for this many schedules. They are the same in every run, unless
/// `SHUTTLE_STREAM` is set.
fn seeds(schedules: usize) -> impl Iterator<Item = u64> {
    let seeds = schedules.div_ceil(SCHEDULES_PER_SEED) as u64;
    let first = stream().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..seeds).map(move |seed| first.wrapping_add(seed))
}

/// Returns the seed that `SHUTTLE_RANDOM_SEED` names.
fn only_seed() -> Option<u64> {
    let seed = std::env::var("SHUTTLE_RANDOM_SEED").ok()?;
    Some(seed.parse().expect("a seed is a number"))
}

/// Returns the stream, which selects the seeds: `SHUTTLE_STREAM`, or 1.
fn stream() -> u64 {
    let stream = std::env::var("SHUTTLE_STREAM");
    stream.map_or(1, |stream| stream.parse().expect("a stream is a number"))
}

thread_local! {
    static REACHED: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
}

/// Records that a model reached this label.
pub fn reached(what: &'static str) {
    REACHED.with_borrow_mut(|reached| reached.insert(what));
}

/// Returns the share of a model's schedules to run on working code, in percent: `SHUTTLE_PERCENT`,
/// or 100.
fn percent() -> usize {
    let percent = std::env::var("SHUTTLE_PERCENT");
    percent.map_or(100, |percent| percent.parse().expect("percent is a number"))
}

/// Runs a model on this many schedules of each kind.
///
/// With each kind it must reach all labels in `must_reach`; otherwise it tests less than it seems
/// to. A model that has not reached them continues, up to [`MAX_REPETITIONS`] times as many
/// schedules.
pub fn model(name: &str, schedules: usize, must_reach: &[&str], body: impl Body) {
    for kind in Kind::ALL {
        let run = |seed| {
            if let Err((number, message)) = kind.run(seed, body) {
                panic!(
                    "{name} failed on schedule {number} ({}) of its seed: {message}\n\
                     repeat with: SHUTTLE_RANDOM_SEED={seed} scripts/shuttle TEST_NAME",
                    kind.name()
                );
            }
        };
        if let Some(seed) = only_seed() {
            run(seed);
            continue;
        }
        let (asked, mut made) = (schedules * percent() / 100, 0);
        let missed = || {
            REACHED.with_borrow(|reached| must_reach.iter().find(|what| !reached.contains(**what)))
        };
        REACHED.take();
        for seed in seeds(MAX_REPETITIONS * schedules.max(asked)) {
            if made >= asked && missed().is_none() {
                break;
            }
            run(seed);
            made += SCHEDULES_PER_SEED;
        }
        if let Some(missed) = missed() {
            panic!("{name} never reached: {missed} ({})", kind.name());
        }
        println!(
            "model   {name:<64} | {:<12} | stream {} | schedules {made:>7}",
            kind.name(),
            stream(),
        );
    }
}

/// Runs a model on broken code, with schedules of both kinds in turn.
///
/// One schedule must fail with a message that contains `why`, or one of several texts that `|`
/// separates.
pub(crate) fn broken(name: &str, why: &str, conditions: Conditions, body: impl Body) {
    // A thread of its own, because a caught panic may leave shuttle's thread-local state
    // unfinished.
    let search = thread::spawn(move || {
        QUIET.set(true);
        under(conditions, || first_failure(body))
    });
    let found = search.join().expect("the search catches panics");
    let (kind, number, message) = found.unwrap_or_else(|| panic!("{name} found nothing"));
    let mut whys = why.split('|').map(str::trim);
    let Some(why) = whys.find(|why| message.contains(why)) else {
        panic!("{name} should have failed with {why:?}, but failed with {message:?}");
    };
    println!(
        "broken  {name:<64} | {:<12} | found on schedule {number:>6}: {why}",
        kind.name(),
    );
}

/// Returns the kind and the number of the first schedule that fails, and its message.
fn first_failure(body: impl Body) -> Option<(Kind, usize, String)> {
    for (turn, seed) in seeds(SCHEDULES_FOR_FAULTS).enumerate() {
        for kind in Kind::ALL {
            if let Err((number, message)) = kind.run(seed, body) {
                return Some((kind, turn * SCHEDULES_PER_SEED + number, message));
            }
        }
    }
    None
}

thread_local! {
    /// Whether panics of this system thread are expected. All threads of a model run on it.
    static QUIET: Cell<bool> = const { Cell::new(false) };
    /// The first panic's message. The panics that follow from it say less.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Installs a panic hook that records messages.
fn listen() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        // The first run installs shuttle's own hook, which this one must wrap.
        Runner::new(RoundRobinScheduler::new(1), config()).run(|| {});
        let loud = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let said = SAID.take().unwrap_or_else(|| message(info.payload()));
            SAID.set(Some(said));
            if !QUIET.get() {
                loud(info);
            }
        }));
    });
}

fn message(payload: &(dyn Any + Send)) -> String {
    match (payload.downcast_ref::<String>(), payload.downcast_ref()) {
        (Some(message), _) => message.clone(),
        (None, message) => (*message.unwrap_or(&"no message")).to_owned(),
    }
}
