//! A member that records what is taken from it, and what comes back.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tollgate::compose::{DebtMembers, Held, Member, Members, Visitor};
use tollgate::outcome::Settled;
use tollgate::store::Place;

use crate::support::*;

/// What one thread took from a limit, including what it took and gave back in a lost race.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) log: Log,
    pub(super) taken: u64,
    pub(super) charged: u64,
    /// The permits that came back, as the limit says.
    pub(super) back: u64,
    /// The permits that were given back, but did not come back.
    pub(super) lost: u64,
    /// How often permits came back that were granted at an earlier tick. The limit may round up
    /// each of these.
    pub(super) late: u64,
    /// How often a request took permits after which another member denied.
    pub(super) rolled_back: u64,
}

/// The counts of one thread. A mutex, because boxed members must be `Sync`. No other thread uses it
/// at the same time.
#[derive(Default)]
pub(super) struct Record(Mutex<Counts>);

impl Record {
    pub(super) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A limit as one thread sees it.
#[derive(Clone, Copy)]
pub(super) struct Recorded<'r, L> {
    limit: L,
    record: &'r Record,
    clock: &'r ManualClock,
}

impl<'r, L: Member<ManualClock>> Recorded<'r, L> {
    pub(super) fn new(limit: L, record: &'r Record, clock: &'r ManualClock) -> Self {
        Self {
            limit,
            record,
            clock,
        }
    }

    fn granted(&self, granted: &Granted, begun: Tick) {
        let mut counts = self.record.counts();
        counts.taken += granted.n();
        let entry = counts.log.granted(granted);
        entry.during(begun, self.clock.now());
    }

    /// Records that of `n` unused permits `back` came back.
    fn came_back(&self, (at, n): (Tick, u64), back: u64, now: Tick) {
        assert!(back <= n, "{back} came back of {n}");
        let mut counts = self.record.counts();
        counts.back += back;
        counts.lost += n - back;
        counts.late += u64::from(at < now && back > 0);
        let entry = counts.log.gave_back(now.max(at), back);
        entry.during(now, self.clock.now());
    }

    fn charged(&self, charged: Charged, begun: Tick) {
        let mut counts = self.record.counts();
        counts.charged += charged.n();
        let entry = counts.log.charged(&charged);
        entry.during(begun, self.clock.now());
    }
}

impl<L: Member<ManualClock>> Member<ManualClock> for Recorded<'_, L> {
    fn clock(&self) -> Option<&ManualClock> {
        self.limit.clock()
    }

    fn place(&self) -> Place {
        self.limit.place()
    }

    fn can_undo(&self) -> bool {
        self.limit.can_undo()
    }

    fn check(&self, n: u64, now: Tick) -> Result<(), Denied> {
        self.limit.check(n, now)
    }

    fn take(&self, n: u64, now: Tick) -> Result<Held, Denied> {
        let held = self.limit.take(n, now)?;
        self.granted(&held.granted, now);
        Ok(held)
    }

    fn take_fast(&self, n: u64, now: Tick, held: &mut Option<Held>) -> Option<Result<(), Denied>> {
        let taken = self.limit.take_fast(n, now, held)?;
        if let (Ok(()), Some(held)) = (&taken, held) {
            self.granted(&held.granted, now);
        }
        Some(taken)
    }

    fn available_at(&self, now: Tick) -> u64 {
        self.limit.available_at(now)
    }

    fn give_back(&self, held: Held, now: Tick) -> u64 {
        let grant = (held.granted.at(), held.granted.n());
        let back = self.limit.give_back(held, now);
        self.came_back(grant, back, now);
        back
    }

    fn roll_back(&self, held: Held, now: Tick) -> u64 {
        let grant = (held.granted.at(), held.granted.n());
        let back = self.limit.roll_back(held, now);
        self.came_back(grant, back, now);
        self.record.counts().rolled_back += 1;
        back
    }

    fn correct(&self, held: Held, actual: u64, now: Tick) -> Settled {
        let (at, n) = (held.granted.at(), held.granted.n());
        let settled = self.limit.correct(held, actual, now);
        assert_eq!(settled.charged, actual.saturating_sub(n));
        self.came_back((at, n.saturating_sub(actual)), settled.returned, now);
        self.charged(Charged::new(settled.charged, now), now);
        settled
    }

    fn charge_to(&self, n: u64, now: Tick) -> Charged {
        let charged = self.limit.charge_to(n, now);
        self.charged(charged, now);
        charged
    }
}

impl<L: Member<ManualClock>> Members<ManualClock> for Recorded<'_, L> {
    type Grants = Option<Held>;
    const COUNT: Option<usize> = Some(1);

    fn count(&self) -> usize {
        1
    }

    fn visit<V: Visitor<ManualClock>>(&self, index: usize, visitor: V) -> Option<V::Output> {
        (index == 0).then(|| visitor.visit(self, None))
    }

    fn no_grants(&self) -> Option<Held> {
        None
    }

    fn grant_mut<'g>(
        &self,
        held: &'g mut Option<Held>,
        index: usize,
    ) -> Option<&'g mut Option<Held>> {
        (index == 0).then_some(held)
    }

    fn grant<'g>(&self, held: &'g Option<Held>, index: usize) -> Option<&'g Held> {
        held.as_ref().filter(|_| index == 0)
    }
}

impl<L: Member<ManualClock>> DebtMembers<ManualClock> for Recorded<'_, L> {}
