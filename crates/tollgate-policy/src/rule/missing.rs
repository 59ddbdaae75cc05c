//! Requests that a rule refuses because they lack its key.

#![expect(clippy::disallowed_types, reason = "no model runs a policy")]

use std::sync::atomic::{AtomicU64, Ordering};

use super::CompiledRule;
#[cfg(feature = "tracing")]
use crate::facts::{FactKind, FactName};

/// Counts the requests that lack the key of a rule.
#[derive(Default)]
pub(crate) struct MissingKeys(AtomicU64);

impl MissingKeys {
    pub(crate) fn count(&self) -> u64 {
        // ORDERING: Relaxed. It publishes nothing.
        self.0.load(Ordering::Relaxed)
    }
}

impl<C> CompiledRule<C> {
    /// Counts a request that lacks the key. The first one is an event, unless the rule has had
    /// keys: the program probably does not supply a fact of the key, so each request is refused.
    #[cold]
    pub(crate) fn lacks_key(&self) {
        // ORDERING: Relaxed. It publishes nothing.
        let before = self.missing_keys.0.fetch_add(1, Ordering::Relaxed);
        #[cfg(feature = "tracing")]
        if before == 0 && self.has_own_fact() && self.tables().all(|table| table.is_empty()) {
            tracing::warn!(
                target: "tollgate",
                rule = &*self.name,
                "a request has no key: the program probably does not supply a fact of the key",
            );
        }
        let _ = before;
    }

    /// Returns whether a part of the key is a fact that the program supplies, and the client does
    /// not.
    #[cfg(feature = "tracing")]
    fn has_own_fact(&self) -> bool {
        let mut names = self.source.key.iter().map(|name| FactName::new(name));
        names.any(|name| matches!(name.kind(), FactKind::ClientIp | FactKind::Other(_)))
    }
}
