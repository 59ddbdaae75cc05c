//! Runs models on schedules of two kinds, and prints a line for each.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::thread;

use shuttle::scheduler::{PctScheduler, RandomScheduler, RoundRobinScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use tollgate::sync::model::{Conditions, under};

/// How many schedules a seed stands for: few, so that one that fails is there again at once.
const OF_A_SEED: usize = 100;
/// On so many schedules of each kind a fault must be found.
const FOR_MISTAKES: usize = 100_000;
/// A model that has not come to all that it must goes on, up to so many times as many schedules.
const AT_MOST: usize = 10;
/// More operations than this in one schedule mean that a loop does not end.
const PATIENCE: usize = 20_000;

/// What a model does, once for each schedule.
pub trait Body: Fn() + Copy + Send + Sync + 'static {}
impl<F: Fn() + Copy + Send + Sync + 'static> Body for F {}

/// Who draws which thread is next.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Threads have priorities, which change at two places of the schedule: what takes few changes
    /// of threads, but each at the right place, is found so.
    Pct,
    /// Any thread, at each operation.
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

    /// Runs a seed's schedules. The number of the one that failed, and what it said.
    fn run(self, seed: u64, body: impl Body) -> Result<(), (usize, String)> {
        thread_local! {
            static BEGUN: Cell<usize> = const { Cell::new(0) };
        }
        listen();
        BEGUN.set(0);
        SAID.set(None);
        let runner = Runner::new(self.scheduler(seed, OF_A_SEED), config());
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
    config.max_steps = MaxSteps::FailAfter(PATIENCE);
    config.silence_warnings = true;
    // Who fails while holding something gives it back, and others would go on meanwhile.
    config
        .ungraceful_shutdown_config
        .immediately_return_on_panic = true;
    config
}

/// The seeds of so many schedules: the same ones in every run, unless `SHUTTLE_STREAM` says
/// otherwise.
fn seeds(schedules: usize) -> impl Iterator<Item = u64> {
    let seeds = schedules.div_ceil(OF_A_SEED) as u64;
    let first = stream().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..seeds).map(move |seed| first.wrapping_add(seed))
}

/// The seed that `SHUTTLE_RANDOM_SEED` names.
fn only_seed() -> Option<u64> {
    let seed = std::env::var("SHUTTLE_RANDOM_SEED").ok()?;
    Some(seed.parse().expect("a seed is a number"))
}

/// Which seeds are taken: a failure of another stream is repeated by its number.
fn stream() -> u64 {
    let stream = std::env::var("SHUTTLE_STREAM");
    stream.map_or(1, |stream| stream.parse().expect("a stream is a number"))
}

thread_local! {
    static REACHED: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
}

/// Notes that a model came to this.
pub fn reached(what: &'static str) {
    REACHED.with_borrow_mut(|reached| reached.insert(what));
}

/// How many of the schedules of a model that works are taken, in hundredths: `SHUTTLE_PERCENT`, or
/// all.
fn percent() -> usize {
    let percent = std::env::var("SHUTTLE_PERCENT");
    percent.map_or(100, |percent| percent.parse().expect("percent is a number"))
}

/// Runs a model on so many schedules of each kind. On those of each kind it must come to all of
/// this, or what it shows is less than it seems. If it has not yet come to all, it goes on, up to
/// [`AT_MOST`] times as many schedules.
///
/// # Panics
///
/// If one of them fails.
pub fn model(name: &str, schedules: usize, must_reach: &[&str], body: impl Body) {
    for kind in Kind::ALL {
        let run = |seed| {
            if let Err((number, message)) = kind.run(seed, body) {
                panic!(
                    "{name} failed on schedule {number} ({}) of a seed: {message}\n\
                     again: SHUTTLE_RANDOM_SEED={seed} scripts/shuttle, and the test's name",
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
        for seed in seeds(AT_MOST * schedules.max(asked)) {
            if made >= asked && missed().is_none() {
                break;
            }
            run(seed);
            made += OF_A_SEED;
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

/// Runs a model on something broken, on schedules of both kinds in turn: one must fail, and say
/// why. (Or one of several whys, with `|` between them.)
///
/// # Panics
///
/// If none does.
pub(crate) fn broken(name: &str, why: &str, conditions: Conditions, body: impl Body) {
    // On a thread of its own, which may be left in the middle of a panic.
    let search = thread::spawn(move || {
        QUIET.set(true);
        under(conditions, || first_failure(body))
    });
    let found = search.join().expect("whatever fails is caught");
    let (kind, number, message) = found.unwrap_or_else(|| panic!("{name} found nothing"));
    let mut whys = why.split('|').map(str::trim);
    let Some(why) = whys.find(|why| message.contains(why)) else {
        panic!("{name} should have said {why:?}, and said {message:?}");
    };
    println!(
        "broken  {name:<64} | {:<12} | found on schedule {number:>6}: {why}",
        kind.name(),
    );
}

/// On which schedule of which kind a model fails first, and what it says.
fn first_failure(body: impl Body) -> Option<(Kind, usize, String)> {
    for (turn, seed) in seeds(FOR_MISTAKES).enumerate() {
        for kind in Kind::ALL {
            if let Err((number, message)) = kind.run(seed, body) {
                return Some((kind, turn * OF_A_SEED + number, message));
            }
        }
    }
    None
}

thread_local! {
    /// Whether panics of this thread of the system are expected. All threads of a model run on it.
    static QUIET: Cell<bool> = const { Cell::new(false) };
    /// What the first one said: those that it brings about say less.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Hears what panics say.
fn listen() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        // The first run brings shuttle's own hook, which this one must come before.
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
