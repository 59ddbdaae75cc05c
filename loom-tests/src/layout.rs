//! Who runs where. Loom does not visit every interleaving of every program, and which ones it
//! misses depends on which thread does what. So each model runs in each of these layouts.

use loom::thread;

/// What one thread does.
pub type Actor<T> = Box<dyn FnOnce() -> T + Send>;

/// Makes an [`Actor`].
pub fn actor<T>(act: impl FnOnce() -> T + Send + 'static) -> Actor<T> {
    Box::new(act)
}

/// Which thread has which role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Each actor has a thread; the main thread waits for them.
    MainJoins,
    /// The same, with the roles turned round.
    MainJoinsSwapped,
    /// The main thread is the first actor.
    MainActs,
    /// The main thread is the last actor.
    MainActsSwapped,
}

impl Layout {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::MainJoins,
        Self::MainJoinsSwapped,
        Self::MainActs,
        Self::MainActsSwapped,
    ];

    /// What the report calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MainJoins => "main joins",
            Self::MainJoinsSwapped => "main joins, swapped",
            Self::MainActs => "main acts",
            Self::MainActsSwapped => "main acts, swapped",
        }
    }

    /// Runs the actors and returns what each of them returned, in the order in which they were
    /// given.
    ///
    /// # Panics
    ///
    /// If an actor does.
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
}
