//! What threads race for at the edge of a window, with every outcome in words.

use tollgate::Tick;
use tollgate::algorithm::{Algorithm, Debt, GiveBack};

use crate::run::Run;
use crate::subject::Subject;
use crate::verb::Verb;

type Turns<A> = Vec<(Verb<A>, Tick)>;

fn take<A: Algorithm>(n: u64, at: u64) -> (Verb<A>, Tick) {
    (Verb::acquire(n), Tick::from_nanos(at))
}

/// The four races at one edge, from a tick before it to one after it, and what each of two actors
/// may be told in them.
pub struct Races<'a> {
    /// A tick before the edge.
    pub old: u64,
    /// A tick after it.
    pub new: u64,
    /// How many permits there are at once.
    pub all: u64,
    /// Two threads bring the new window: each takes one in it, after all were taken in the old one.
    pub both: &'a [&'a [&'a str]],
    /// One is late: it takes one in the old window, where there is one left, and another takes two
    /// in the new one.
    pub late: &'a [&'a [&'a str]],
    /// All were taken in the old window, and that is undone there; another takes two in the new
    /// one, and asks for one more.
    pub undo: &'a [&'a [&'a str]],
    /// One more than all is charged in the old window; another takes two in the new one, one after
    /// the other.
    pub charge: &'a [&'a [&'a str]],
}

impl Races<'_> {
    /// Explores all four.
    ///
    /// # Panics
    ///
    /// If an actor is told something else, or something is never told.
    pub fn explore<A>(&self, subject: &Subject<A>, run: &mut Run)
    where
        A: GiveBack + Debt + Send + Sync + 'static,
    {
        let (old, new) = (Tick::from_nanos(self.old), Tick::from_nanos(self.new));
        let mut scenario = |before: Turns<A>, one: Turns<A>, other: Turns<A>, told| {
            let scenario = subject.scenario(&before, &[&one, &other]);
            scenario.explore_to(run, told);
        };
        let all = || vec![take(self.all, self.old)];
        let one = || vec![take(1, self.new)];
        scenario(all(), one(), one(), self.both);

        let but_one = vec![take(self.all - 1, self.old)];
        let late = vec![take(1, self.old)];
        scenario(but_one, late, vec![take(2, self.new)], self.late);

        let undo = vec![(Verb::undo(), old)];
        let two = vec![take(2, self.new), take(1, self.new)];
        scenario(all(), undo, two, self.undo);

        let charge = vec![(Verb::charge(self.all + 1), old)];
        let twice = vec![(Verb::acquire(1), new), (Verb::acquire(1), new)];
        scenario(vec![take(1, self.old)], charge, twice, self.charge);
    }
}

/// Of a fixed window: two in [4, 8) and two in [8, 12).
pub const FIXED: Races<'_> = Races {
    old: 7,
    new: 8,
    all: 2,
    both: &[
        &["1 at 8, 1 left", "1 at 8, 0 left"],
        &["1 at 8, 0 left", "1 at 8, 1 left"],
    ],
    late: &[
        &["1 at 7, 0 left", "2 at 8, 0 left"],
        &["not for 5", "2 at 8, 0 left"],
    ],
    undo: &[
        &["2 back", "2 at 8, 0 left, not for 4"],
        &["0 back", "2 at 8, 0 left, not for 4"],
    ],
    charge: &[
        &["charged 3 at 7, owes 2", "1 at 8, 1 left, 1 at 8, 0 left"],
        &["charged 3 at 8, owes 2", "1 at 8, 1 left, not for 4"],
        &["charged 3 at 8, owes 3", "1 at 8, 1 left, 1 at 8, 0 left"],
    ],
};
