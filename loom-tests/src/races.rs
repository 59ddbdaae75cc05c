//! Races between threads at the edge of a window, with every outcome spelled out.

use tollgate::Tick;
use tollgate::algorithm::{Algorithm, Debt, GiveBack};

use crate::run::Run;
use crate::subject::Subject;
use crate::verb::Verb;

type Turns<A> = Vec<(Verb<A>, Tick)>;

fn take<A: Algorithm>(n: u64, at: u64) -> (Verb<A>, Tick) {
    (Verb::take(n), Tick::from_nanos(at))
}

/// The four races at one edge, from a tick before it to one after it, with the possible answers to
/// each of two actors.
pub struct Races<'a> {
    /// A tick before the edge.
    pub old: u64,
    /// A tick after it.
    pub new: u64,
    /// How many permits are available at once.
    pub all: u64,
    /// Two threads start the new window: each takes one permit in it, after all were taken in the
    /// old one.
    pub both: &'a [&'a str],
    /// A late thread takes the last permit of the old window, and another takes two in the new one.
    pub late: &'a [&'a str],
    /// A thread undoes a grant of all permits of the old window; another takes two in the new one,
    /// and asks for one more.
    pub undo: &'a [&'a str],
    /// A thread charges one permit more than the limit in the old window; another takes two in the
    /// new one, one after the other.
    pub charge: &'a [&'a str],
}

impl Races<'_> {
    /// Explores all four races.
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
        let twice = vec![(Verb::take(1), new), (Verb::take(1), new)];
        scenario(vec![take(1, self.old)], charge, twice, self.charge);
    }
}

/// A fixed window with two permits in [4, 8) and two in [8, 12).
pub const FIXED: Races<'_> = Races {
    old: 7,
    new: 8,
    all: 2,
    both: &[
        "1 at 8, 1 left | 1 at 8, 0 left",
        "1 at 8, 0 left | 1 at 8, 1 left",
    ],
    late: &[
        "1 at 7, 0 left | 2 at 8, 0 left",
        "denied for 5 | 2 at 8, 0 left",
    ],
    undo: &[
        "2 returned | 2 at 8, 0 left, denied for 4",
        "0 returned | 2 at 8, 0 left, denied for 4",
    ],
    charge: &[
        "charged 3 at 7, owes 2 | 1 at 8, 1 left, 1 at 8, 0 left",
        "charged 3 at 8, owes 2 | 1 at 8, 1 left, denied for 4",
        "charged 3 at 8, owes 3 | 1 at 8, 1 left, 1 at 8, 0 left",
    ],
};
