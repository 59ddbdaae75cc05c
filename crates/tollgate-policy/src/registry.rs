//! What a program registers by name: resolvers, algorithms and stores.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::facts::{FactKind, FactName, FactValue, FactValues, Facts};
use crate::limit::{LimitSpec, OwnLimit, RemoteStore};

/// Computes a fact from others: a key, or the name of a plan.
pub(crate) type Resolver = dyn for<'f> Fn(&'f dyn Facts) -> Option<FactValue<'f>> + Send + Sync;

/// Makes a limit, or says what is wrong with its text and what is allowed.
pub(crate) type MakeLimit<C> =
    dyn Fn(&LimitSpec<'_, C>) -> Result<Box<dyn OwnLimit<C>>, String> + Send + Sync;

/// What a program has registered.
pub(crate) struct Registry<C> {
    pub(crate) resolvers: BTreeMap<String, Arc<Resolver>>,
    pub(crate) algorithms: BTreeMap<String, Arc<MakeLimit<C>>>,
    pub(crate) stores: BTreeMap<String, Store<C>>,
}

/// A store that a program registers: see [`PolicyBuilder::store`](crate::PolicyBuilder::store). A
/// [`RemoteStore`] is one, and [`here`](Self::here) makes one of a function.
pub struct Store<C>(pub(crate) StoreKind<C>);

pub(crate) enum StoreKind<C> {
    Here(Arc<MakeLimit<C>>),
    Elsewhere(Arc<dyn RemoteStore>),
}

impl<C> Store<C> {
    /// Makes a store whose limits are decided in this process. `make` returns an error if it can't
    /// make a limit: a text that says what must be different.
    pub fn here(
        make: impl Fn(&LimitSpec<'_, C>) -> Result<Box<dyn OwnLimit<C>>, String> + Send + Sync + 'static,
    ) -> Self {
        Self(StoreKind::Here(Arc::new(make)))
    }
}

impl<C, S: RemoteStore + 'static> From<S> for Store<C> {
    fn from(store: S) -> Self {
        Self(StoreKind::Elsewhere(Arc::new(store)))
    }
}

impl<C> fmt::Debug for Store<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            StoreKind::Here(_) => f.write_str("Store"),
            StoreKind::Elsewhere(store) => store.fmt(f),
        }
    }
}

impl<C> Default for Registry<C> {
    fn default() -> Self {
        Self {
            resolvers: BTreeMap::new(),
            algorithms: BTreeMap::new(),
            stores: BTreeMap::new(),
        }
    }
}

impl<C> fmt::Debug for Registry<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("resolvers", &self.resolvers.keys())
            .field("algorithms", &self.algorithms.keys())
            .field("stores", &self.stores)
            .finish()
    }
}

impl<C> Registry<C> {
    /// Returns a store that decides asynchronously.
    pub(crate) fn remote(&self, name: &str) -> Option<&Arc<dyn RemoteStore>> {
        match self.stores.get(name)?.0 {
            StoreKind::Here(_) => None,
            StoreKind::Elsewhere(ref store) => Some(store),
        }
    }

    /// Returns the facts of a request, and those that registered resolvers compute.
    pub(crate) fn resolve<'r, F: Facts>(&'r self, facts: &'r F) -> Resolved<'r, F> {
        Resolved {
            resolvers: &self.resolvers,
            facts: Watched {
                facts,
                is_ambiguous: Cell::new(false),
            },
        }
    }
}

/// The facts of a request, and those that registered resolvers compute.
pub(crate) struct Resolved<'r, F> {
    resolvers: &'r BTreeMap<String, Arc<Resolver>>,
    facts: Watched<'r, F>,
}

/// The facts that resolvers read.
struct Watched<'r, F> {
    facts: &'r F,
    /// Whether a resolver asked by `fact` for a fact that has several values. Then the value that
    /// the resolver computes is ambiguous too.
    is_ambiguous: Cell<bool>,
}

impl<F: Facts> Facts for Watched<'_, F> {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        let values = self.facts.values(name);
        if values.is_ambiguous() {
            self.is_ambiguous.set(true);
        }
        values.single()
    }

    fn values(&self, name: &FactName) -> FactValues<'_> {
        self.facts.values(name)
    }
}

impl<F: Facts> Facts for Resolved<'_, F> {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        self.values(name).single()
    }

    #[inline]
    fn values(&self, name: &FactName) -> FactValues<'_> {
        if let (FactKind::Other(name), false) = (name.kind(), self.resolvers.is_empty()) {
            if let Some(resolver) = self.resolvers.get(name) {
                self.facts.is_ambiguous.set(false);
                let value = FactValues::from(resolver(&self.facts));
                return match self.facts.is_ambiguous.get() {
                    true => FactValues::NONE.and_more(),
                    false => value,
                };
            }
        }
        self.facts.facts.values(name)
    }

    fn permits(&self) -> Option<u64> {
        self.facts.facts.permits()
    }
}
