//! Limits of the program's own: a limiter for each key, in a map.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tollgate::compose::{Held, Member, Members, OneMember, SettleMembers, Visitor};
use tollgate::outcome::{Charged, Settled};
use tollgate::store::Place;
use tollgate::{Denied, Granted, ManualClock, Tick};
use tollgate_policy::{DynLimit, KeyRef, OwnLimit};

/// A limit for each key.
pub(super) struct Own<L> {
    new: Box<dyn Fn() -> L + Send + Sync>,
    keys: Mutex<HashMap<Vec<u8>, Arc<One<L>>>>,
}

impl<L: Member<ManualClock> + Send + Sync + 'static> Own<L> {
    pub(super) fn boxed(
        new: impl Fn() -> L + Send + Sync + 'static,
    ) -> Box<dyn OwnLimit<ManualClock>> {
        let new = Box::new(new);
        let keys = Mutex::default();
        Box::new(Self { new, keys })
    }
}

impl<L: Member<ManualClock> + Send + Sync> OwnLimit<ManualClock> for Own<L> {
    fn with_key(
        &self,
        key: KeyRef<'_>,
        _: usize,
        visit: &mut dyn FnMut(&DynLimit<'_, ManualClock>),
    ) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = keys.entry(key.bytes().to_vec());
        let limit = Arc::clone(limit.or_insert_with(|| Arc::new(One((self.new)()))));
        drop(keys);
        visit(&*limit);
    }
}

impl<L> fmt::Debug for Own<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Own")
    }
}

/// The limit of a key, as a member of compositions.
struct One<L>(L);

impl<L: Member<C>, C> Members<C> for One<L> {
    type Grants = Option<Held>;
    const COUNT: Option<usize> = Some(1);

    fn count(&self) -> usize {
        1
    }

    fn visit<V: Visitor<C>>(&self, index: usize, visitor: V) -> Option<V::Output> {
        (index == 0).then(|| visitor.visit(self, None))
    }

    fn no_grants(&self) -> Option<Held> {
        None
    }

    fn slot<'g>(&self, grants: &'g mut Option<Held>, index: usize) -> Option<&'g mut Option<Held>> {
        (index == 0).then_some(grants)
    }

    fn grant<'g>(&self, grants: &'g Option<Held>, index: usize) -> Option<&'g Held> {
        grants.as_ref().filter(|_| index == 0)
    }
}

impl<L: Member<C>, C> OneMember<C> for One<L> {
    type Limit = Self;

    fn limit(&self) -> &Self {
        self
    }
}

/// A limit that can't settle keeps what it granted.
impl<L: Member<C>, C> SettleMembers<C> for One<L> {}

impl<L: Member<C>, C> Member<C> for One<L> {
    fn clock(&self) -> Option<&C> {
        self.0.clock()
    }

    fn place(&self) -> Place {
        self.0.place()
    }

    fn can_undo(&self) -> bool {
        self.0.can_undo()
    }

    fn check(&self, n: u64, now: Tick) -> Result<(), Denied> {
        self.0.check(n, now)
    }

    fn take(&self, n: u64, now: Tick) -> Result<Held, Denied> {
        self.0.take(n, now)
    }

    fn available_at(&self, now: Tick) -> u64 {
        self.0.available_at(now)
    }

    fn remaining(&self, held: &Held) -> u64 {
        self.0.remaining(held)
    }

    fn give_back(&self, held: Held, now: Tick) -> u64 {
        self.0.give_back(held, now)
    }

    fn correct(&self, held: Held, actual: u64, now: Tick) -> Settled {
        self.0.correct(held, actual, now)
    }

    fn charge_to(&self, n: u64, now: Tick) -> Charged {
        self.0.charge_to(n, now)
    }

    fn counts(&self) -> bool {
        self.0.counts()
    }

    fn count_granted(&self, held: &Held) {
        self.0.count_granted(held);
    }

    fn count_denied(&self, n: u64) {
        self.0.count_denied(n);
    }
}

/// Grants every other request.
#[derive(Default)]
pub(super) struct EveryOther(Mutex<bool>);

impl EveryOther {
    fn denies(&self) -> std::sync::MutexGuard<'_, bool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> Member<C> for EveryOther {
    fn clock(&self) -> Option<&C> {
        None
    }

    fn place(&self) -> Place {
        Place::of(self)
    }

    fn check(&self, n: u64, _: Tick) -> Result<(), Denied> {
        match *self.denies() {
            true => Err(Denied::busy(n)),
            false => Ok(()),
        }
    }

    fn take(&self, n: u64, now: Tick) -> Result<Held, Denied> {
        Member::<C>::check(self, n, now)?;
        *self.denies() = true;
        Ok(Granted::new(n, now).into())
    }

    fn available_at(&self, _: Tick) -> u64 {
        u64::from(!*self.denies())
    }

    fn give_back(&self, held: Held, _: Tick) -> u64 {
        *self.denies() = false;
        held.granted.n()
    }

    fn correct(&self, _: Held, _: u64, _: Tick) -> Settled {
        Settled::default()
    }

    fn charge_to(&self, n: u64, now: Tick) -> Charged {
        Charged::new(n, now)
    }

    fn counts(&self) -> bool {
        true
    }

    /// A check writes nothing, so what follows a denial is noted here.
    fn count_denied(&self, _: u64) {
        *self.denies() = false;
    }
}
