//! Limits of the program's own: a limiter for each key, in a map.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tollgate::compose::{Held, Member};
use tollgate::store::Place;
use tollgate::{Denied, Granted, ManualClock, Tick};
use tollgate_policy::{DynLimit, KeyRef, OwnLimit};

/// A limit for each key.
pub(super) struct Own<L> {
    new: Box<dyn Fn() -> L + Send + Sync>,
    keys: Mutex<HashMap<Vec<u8>, Arc<L>>>,
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
        let limit = Arc::clone(limit.or_insert_with(|| Arc::new((self.new)())));
        drop(keys);
        visit(&*limit);
    }
}

impl<L> fmt::Debug for Own<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Own")
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

    /// A check writes nothing, so what follows a denial is noted here.
    fn count(&self, _: bool, _: u64) {
        *self.denies() = false;
    }
}
