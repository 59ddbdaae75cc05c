//! Maps, pairs and lists of pairs as facts.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;

use super::{FactName, FactValue, FactValues, Facts};

impl<F: Facts + ?Sized> Facts for &F {
    #[inline]
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        (**self).fact(name)
    }

    #[inline]
    fn values(&self, name: &FactName) -> FactValues<'_> {
        (**self).values(name)
    }

    #[inline]
    fn permits(&self) -> Option<u64> {
        (**self).permits()
    }
}

/// No facts.
impl Facts for () {
    fn fact(&self, _: &FactName) -> Option<FactValue<'_>> {
        None
    }
}

/// The first that knows a fact answers.
impl<A: Facts, B: Facts> Facts for (A, B) {
    #[inline]
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        self.values(name).single()
    }

    #[inline]
    fn values(&self, name: &FactName) -> FactValues<'_> {
        let values = self.0.values(name);
        match values.is_none() {
            true => self.1.values(name),
            false => values,
        }
    }

    #[inline]
    fn permits(&self) -> Option<u64> {
        self.0.permits().or_else(|| self.1.permits())
    }
}

impl<V: AsRef<str>, S: BuildHasher> Facts for HashMap<String, V, S> {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        self.get(name.as_str()).map(|value| value.as_ref().into())
    }
}

impl<V: AsRef<str>> Facts for BTreeMap<String, V> {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        self.get(name.as_str()).map(|value| value.as_ref().into())
    }
}

impl<K: AsRef<str>, V: AsRef<str>> Facts for [(K, V)] {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        self.values(name).single()
    }

    fn values(&self, name: &FactName) -> FactValues<'_> {
        let found = self.iter().filter(|(known, _)| name.is(known.as_ref()));
        FactValues::of(found.map(|(_, value)| value.as_ref().into()))
    }
}

impl<K: AsRef<str>, V: AsRef<str>, const N: usize> Facts for [(K, V); N] {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        self.as_slice().fact(name)
    }

    fn values(&self, name: &FactName) -> FactValues<'_> {
        self.as_slice().values(name)
    }
}

impl<K: AsRef<str>, V: AsRef<str>> Facts for Vec<(K, V)> {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        self.as_slice().fact(name)
    }

    fn values(&self, name: &FactName) -> FactValues<'_> {
        self.as_slice().values(name)
    }
}
