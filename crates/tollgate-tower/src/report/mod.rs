//! Reports of decisions: counters of the crate `metrics`, and events of the crate `tracing`.
//!
//! Reports name the rule, and never the key.

#[cfg(feature = "metrics")]
mod counters;
#[cfg(feature = "metrics")]
mod stats;

#[cfg(feature = "metrics")]
use std::sync::Arc;

use tollgate_http::Cause;

#[cfg(feature = "metrics")]
use self::counters::Counters;
#[cfg(feature = "metrics")]
pub use self::stats::record_stats;

/// Whether decisions are reported.
#[cfg(feature = "policy")]
pub(crate) const IS_ON: bool = cfg!(any(feature = "metrics", feature = "tracing"));

/// What a layer reports. Clones of a layer share it.
#[derive(Clone, Default)]
pub(crate) struct Reports {
    #[cfg(feature = "metrics")]
    counters: Arc<Counters>,
}

/// What was decided about a request, by the rule that is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decided {
    Allowed,
    Denied,
    Waited,
    /// A limit in shadow would deny it.
    Shadow,
    /// A shadow rule would allow it.
    #[cfg(feature = "policy")]
    ShadowAllowed,
}

impl Decided {
    /// Returns its name in labels and events.
    #[cfg(any(
        feature = "metrics",
        all(feature = "tracing", any(feature = "policy", feature = "redis"))
    ))]
    const fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Waited => "waited",
            Self::Shadow => "shadow",
            #[cfg(feature = "policy")]
            Self::ShadowAllowed => "shadow-allowed",
        }
    }
}

/// Reports of one rule.
#[derive(Clone, Copy)]
pub(crate) struct Report<'a> {
    rule: &'a str,
    /// Whether the rule is the layer's own name.
    is_own: bool,
    reports: &'a Reports,
}

impl Reports {
    #[inline]
    pub(crate) const fn of<'a>(&'a self, rule: &'a str, is_own: bool) -> Report<'a> {
        Report {
            rule,
            is_own,
            reports: self,
        }
    }
}

impl Report<'_> {
    #[inline]
    fn count(self, decided: Decided) {
        #[cfg(feature = "metrics")]
        self.reports
            .counters
            .with(self.rule, self.is_own, |counters| {
                counters.request(self.rule, decided);
            });
        let _ = (self.rule, self.is_own, self.reports, decided);
    }

    /// The rule allows a request.
    #[inline]
    pub(crate) fn allowed(self) {
        self.count(Decided::Allowed);
        #[cfg(feature = "tracing")]
        tracing::trace!(target: "tollgate", rule = self.rule, "allowed");
    }

    /// The rule denies a request.
    #[inline]
    pub(crate) fn denied(self, cause: Cause) {
        self.count(Decided::Denied);
        #[cfg(feature = "tracing")]
        tracing::debug!(target: "tollgate", rule = self.rule, ?cause, "denied");
        let _ = cause;
    }

    /// The fallback of the rule decides a request, because its store does not answer.
    #[cfg(any(feature = "policy", feature = "redis"))]
    pub(crate) fn fallback(self, fallback: &'static str, decided: Decided) {
        #[cfg(feature = "metrics")]
        self.reports
            .counters
            .with(self.rule, self.is_own, |counters| {
                counters.fallback(self.rule, fallback, decided);
            });
        #[cfg(feature = "tracing")]
        tracing::debug!(
            target: "tollgate",
            rule = self.rule,
            fallback,
            decision = decided.name(),
            "decided without the store",
        );
        let _ = (fallback, decided);
    }

    /// A limit in shadow would deny a request.
    pub(crate) fn shadow(self) {
        self.count(Decided::Shadow);
        #[cfg(feature = "tracing")]
        tracing::debug!(target: "tollgate", rule = self.rule, "would be denied");
    }

    /// A shadow rule would allow a request.
    #[cfg(feature = "policy")]
    pub(crate) fn shadow_allowed(self) {
        self.count(Decided::ShadowAllowed);
    }

    /// A request waits.
    #[inline]
    pub(crate) fn waited(self) {
        self.count(Decided::Waited);
        #[cfg(feature = "tracing")]
        tracing::trace!(target: "tollgate", rule = self.rule, "waits");
    }

    /// A request has no key, and the address of its connection is not known. If the address is the
    /// key, the server does not say addresses, and each request is refused: this is said once.
    pub(crate) fn no_peer(self) {
        #[cfg(feature = "tracing")]
        {
            static ONCE: std::sync::Once = std::sync::Once::new();
            ONCE.call_once(|| {
                tracing::warn!(
                    target: "tollgate",
                    rule = self.rule,
                    "a request has no key: the server does not say the addresses of its connections",
                );
            });
        }
    }
}
