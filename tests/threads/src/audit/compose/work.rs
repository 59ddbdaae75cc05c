//! What one thread does with the compositions.

use tollgate::Keep;
use tollgate::compose::{AllGranted, DebtMembers, Members};

use super::Totals;
use super::limits::{
    BOXED, Boxed, Compositions, ELEVEN, Eleven, FIVE, Five, Limits, N, TWO, Two, WITH_LOG,
};
use crate::support::*;

/// What threads do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mix {
    /// By how many nanoseconds less than this a turn moves the clock.
    pub(super) step: u64,
    /// Whether one thread changes a quota.
    pub(super) changes: bool,
    /// Whether members are charged, also in place of a grant that is settled at more.
    pub(super) charges: bool,
    /// A thread keeps one of this many grants, and settles three of them.
    pub(super) keeps_one_in: u64,
}

/// A composition, and the grants that a thread holds of it.
struct Side<'c, M: Members<ManualClock>> {
    all: &'c All<M, ManualClock>,
    /// The limits of the members.
    limits: &'static [usize],
    held: Vec<AllGranted<&'c All<M, ManualClock>, M, ManualClock>>,
}

/// What a thread was told.
#[derive(Default)]
pub(super) struct Told {
    pub(super) totals: Totals,
    /// How often the thread changed the quota.
    pub(super) changes: u64,
    /// How many permits of each limit it has used.
    pub(super) kept: [u64; N + 1],
}

/// A thread, and the grants that it holds.
pub(super) struct Caller<'c> {
    id: usize,
    random: Random,
    all: &'c Compositions<'c>,
    eleven: Side<'c, Eleven<'c>>,
    two: Side<'c, Two<'c>>,
    five: Side<'c, Five<'c>>,
    boxed: Side<'c, Boxed<'c>>,
    pub(super) told: Told,
}

impl<'c, M: Members<ManualClock>> Side<'c, M> {
    fn new(all: &'c All<M, ManualClock>, limits: &'static [usize]) -> Self {
        assert_eq!(all.members(), limits.len());
        Self {
            all,
            limits,
            held: Vec::new(),
        }
    }

    fn request(&mut self, told: &mut Told, random: &mut Random) {
        let costs: Vec<_> = self.limits.iter().map(|_| random.below(3)).collect();
        match self.all.try_acquire_each(costs) {
            Ok(granted) => {
                told.totals.granted += 1;
                self.held.push(granted);
            }
            Err(_) => told.totals.denied += 1,
        }
    }

    /// Drops a grant, which keeps its permits.
    fn keep(&mut self, which: usize, told: &mut Told) {
        let granted = self.held.swap_remove(which);
        for (member, limit) in self.limits.iter().enumerate() {
            told.kept[*limit] += granted.member(member).expect("a grant").n();
        }
    }
}

impl<M: Members<ManualClock>> Side<'_, M> {
    fn turn(&mut self, told: &mut Told, random: &mut Random, mix: Mix) {
        match random.below(16) {
            0..=8 => self.request(told, random),
            _ => self.finish(told, random, mix),
        }
        while self.held.len() > 3 {
            self.finish(told, random, mix);
        }
    }

    /// Undoes, settles or keeps one of the grants.
    fn finish(&mut self, told: &mut Told, random: &mut Random, mix: Mix) {
        if self.held.is_empty() {
            return;
        }
        let which = random.below(self.held.len() as u64) as usize;
        match random.below(mix.keeps_one_in) {
            0 => self.keep(which, told),
            1..=3 => {
                let mut granted = self.held.swap_remove(which);
                let actual = (0..self.limits.len()).map(|member| {
                    let n = granted.member(member).expect("a grant").n();
                    match mix.charges && random.one_in(4) {
                        true => n + random.below(2),
                        false => random.below(n + 1),
                    }
                });
                let actual: Vec<_> = actual.collect();
                for (limit, actual) in self.limits.iter().zip(&actual) {
                    told.kept[*limit] += actual;
                }
                let settled = granted.settle(actual);
                settled.expect("a cost for each");
            }
            _ => {
                let granted = self.held.swap_remove(which);
                let n = granted.n();
                let back = granted.undo();
                assert!(back <= n, "{back} came back of {n}");
                told.totals.undone += 1;
            }
        }
    }

    fn end(&mut self, told: &mut Told, random: &mut Random, mix: Mix) {
        while !self.held.is_empty() {
            self.finish(told, random, mix);
        }
    }
}

/// Charges each member of a composition a permit or none.
fn charge<M: DebtMembers<ManualClock>>(side: &Side<'_, M>, told: &mut Told, random: &mut Random) {
    let costs: Vec<_> = side.limits.iter().map(|_| random.below(2)).collect();
    let charged = side.all.charge_each(&costs).expect("a cost for each");
    assert_eq!(charged, costs.iter().sum());
    for (limit, n) in side.limits.iter().zip(costs) {
        told.kept[*limit] += n;
    }
}

impl<'c> Caller<'c> {
    pub(super) fn new(id: usize, all: &'c Compositions<'c>, random: Random) -> Self {
        Self {
            id,
            random,
            all,
            eleven: Side::new(&all.eleven, ELEVEN),
            two: Side::new(&all.two, TWO),
            five: Side::new(&all.five, FIVE),
            boxed: Side::new(&all.boxed, BOXED),
            told: Told::default(),
        }
    }

    pub(super) fn work(&mut self, limits: &Limits, mix: Mix, turns: u64) {
        let (random, told) = (&mut self.random, &mut self.told);
        for _ in 0..turns {
            let by = random.below(mix.step);
            if by > 0 {
                limits.clock().advance(Duration::from_nanos(by));
            }
            match random.below(64) {
                0 if mix.charges => match random.below(3) {
                    0 => charge(&self.two, told, random),
                    1 => charge(&self.five, told, random),
                    _ => charge(&self.boxed, told, random),
                },
                1 if mix.changes && self.id == 0 => {
                    let period = Duration::from_nanos(20 + random.below(2) * 40);
                    let quota = Quota::per(1, period).burst(40 - random.below(2) * 10);
                    let changed = limits.adjustable.set_quota(quota, Keep::AsIs);
                    changed.expect("a quota");
                    told.changes += 1;
                }
                2 => {
                    // The log can't undo, so its grants are kept.
                    let mut side = Side::new(&self.all.with_log, WITH_LOG);
                    side.request(told, random);
                    if !side.held.is_empty() {
                        side.keep(0, told);
                    }
                }
                3..=18 => self.eleven.turn(told, random, mix),
                19..=34 => self.two.turn(told, random, mix),
                35..=50 => self.five.turn(told, random, mix),
                _ => self.boxed.turn(told, random, mix),
            }
        }
    }

    /// Finishes all grants.
    pub(super) fn end(&mut self, mix: Mix) {
        let (random, told) = (&mut self.random, &mut self.told);
        self.eleven.end(told, random, mix);
        self.two.end(told, random, mix);
        self.five.end(told, random, mix);
        self.boxed.end(told, random, mix);
    }
}
