//! Layouts: which thread plays which role. Loom does not visit every interleaving of every program,
//! and what it misses depends on which thread does what. So each model runs in several layouts.

use std::sync::OnceLock;

use loom::thread;

/// How many models and layouts run. The environment variable `LOOM_DEPTH` decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// `ci`, the default: two layouts of each model.
    Ci,
    /// `deep`: all four layouts of each model. Also runs models that only repeat, for another
    /// algorithm, what a shorter model shows.
    Deep,
}

impl Depth {
    /// Returns the depth of this run.
    pub fn here() -> Self {
        static HERE: OnceLock<Depth> = OnceLock::new();
        *HERE.get_or_init(|| match std::env::var("LOOM_DEPTH").as_deref() {
            Err(_) | Ok("ci") => Self::Ci,
            Ok("deep") => Self::Deep,
            Ok(other) => panic!("LOOM_DEPTH must be ci or deep, not {other:?}"),
        })
    }
}

/// The work of one thread.
pub type Actor<T> = Box<dyn FnOnce() -> T + Send>;

/// Makes an [`Actor`].
pub fn actor<T>(act: impl FnOnce() -> T + Send + 'static) -> Actor<T> {
    Box::new(act)
}

/// Which thread has which role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Each actor has a thread of its own; the main thread waits for them.
    MainJoins,
    /// The same, with the actors in reverse order.
    MainJoinsSwapped,
    /// The main thread is the first actor.
    MainActs,
    /// The main thread is the last actor.
    MainActsSwapped,
}

impl Layout {
    const ALL: [Self; 4] = [
        Self::MainJoins,
        Self::MainActsSwapped,
        Self::MainJoinsSwapped,
        Self::MainActs,
    ];

    /// Returns the layouts in which a model runs. The first two differ in both respects: whether
    /// the main thread acts, and the order of the actors.
    pub fn chosen(depth: Depth) -> &'static [Self] {
        match depth {
            Depth::Ci => &Self::ALL[..2],
            Depth::Deep => &Self::ALL,
        }
    }

    /// Returns the name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MainJoins => "main joins",
            Self::MainJoinsSwapped => "main joins, swapped",
            Self::MainActs => "main acts",
            Self::MainActsSwapped => "main acts, swapped",
        }
    }

    /// Runs the actors, and returns their results in the order in which the actors were given.
    pub fn act<T: 'static>(self, mut actors: Vec<Actor<T>>) -> Vec<T> {
        let swapped = matches!(self, Self::MainJoinsSwapped | Self::MainActsSwapped);
        if swapped {
            actors.reverse();
        }
        let mut actors = actors.into_iter();
        let main = match self {
            Self::MainActs | Self::MainActsSwapped => actors.next(),
            Self::MainJoins | Self::MainJoinsSwapped => None,
        };
        let threads: Vec<_> = actors.map(|actor| thread::spawn(actor)).collect();
        let mut done: Vec<T> = main.map(|actor| actor()).into_iter().collect();
        done.extend(threads.into_iter().map(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }));
        if swapped {
            done.reverse();
        }
        done
    }

    /// Runs two actors whose results may differ in type.
    pub fn both<A: 'static, B: 'static>(
        self,
        one: impl FnOnce() -> A + Send + 'static,
        other: impl FnOnce() -> B + Send + 'static,
    ) -> (A, B) {
        let one = actor(move || (Some(one()), None));
        let other = actor(move || (None, Some(other())));
        let mut told = self.act(vec![one, other]).into_iter();
        match (told.next(), told.next()) {
            (Some((Some(one), None)), Some((None, Some(other)))) => (one, other),
            _ => unreachable!("both have acted"),
        }
    }
}
