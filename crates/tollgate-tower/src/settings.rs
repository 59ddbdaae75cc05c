//! What a layer knows besides its limits.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Extensions;
use tollgate::Concurrency;
use tollgate::concurrency::ConcurrencyGuard;
use tollgate_http::{Answers, ClientAddress, Fields, PathForm, RequestFacts};

use crate::answered::{Ended, Outcome};
use crate::decision::LayerDecision;
use crate::head::Head;
use crate::peer;
use crate::report::{Report, Reports};

/// What happens to a request that lacks the key of its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum MissingKey {
    /// The request is refused, with the status of
    /// [`Cause::MissingKey`](tollgate_http::Cause::MissingKey).
    #[default]
    Refuse,
    /// All such requests share one limit.
    Share,
    /// It is not limited. A client that can leave out its key, such as a header, is then never
    /// limited.
    Exempt,
}

/// Whether a request failed.
pub(crate) type IsFailure = Arc<dyn Fn(&Ended<'_>) -> bool + Send + Sync>;

/// Whether a request is not limited.
pub(crate) type IsExempt = Arc<dyn Fn(&RequestFacts<'_>) -> bool + Send + Sync>;

/// What the program does with decisions.
pub(crate) type OnDecision = Arc<dyn Fn(&RequestFacts<'_>, &LayerDecision<'_>) + Send + Sync>;

/// The settings of a layer that do not depend on the kind of its limits.
#[derive(Clone)]
pub struct Settings {
    /// The name of the limit in fields, bodies and reports.
    pub(crate) name: Cow<'static, str>,
    pub(crate) reports: Reports,
    pub(crate) answers: Answers,
    pub(crate) address: ClientAddress,
    /// Where the peer's address is, if the program says so.
    pub(crate) peer: Option<fn(&Extensions) -> Option<IpAddr>>,
    pub(crate) path: PathForm,
    /// The policy whose file may say how clients are found.
    #[cfg(feature = "policy")]
    pub(crate) policy: Option<Arc<dyn ReadsRequests>>,
    pub(crate) missing: MissingKey,
    pub(crate) is_exempt: Option<IsExempt>,
    /// Whether the layer limits nothing.
    pub(crate) is_off: bool,
    pub(crate) wait: Option<Wait>,
    pub(crate) is_failure: Option<IsFailure>,
    /// Which requests are served although they would be refused.
    pub(crate) shadow_if: Option<IsExempt>,
    /// Whether these are the settings for such requests.
    pub(crate) is_shadow: bool,
    pub(crate) on_decision: Option<OnDecision>,
    /// Whether gRPC calls are refused with a gRPC status.
    #[cfg(feature = "tonic")]
    pub(crate) grpc: bool,
}

#[cfg(feature = "policy")]
/// A policy, for settings that do not know its clock.
pub(crate) trait ReadsRequests: Send + Sync {
    /// Returns the facts of a request. What the policy's file says of clients comes before what the
    /// program says.
    fn facts<'r>(&self, head: Head<'r>, settings: &Settings) -> RequestFacts<'r>;
}

/// A place among the requests that wait.
pub(crate) type Place = ConcurrencyGuard<Arc<Concurrency>>;

/// How long requests may wait, and how many.
#[derive(Clone)]
pub(crate) struct Wait {
    pub(crate) time: Duration,
    pub(crate) waiting: Arc<Concurrency>,
}

impl Settings {
    pub(crate) fn new() -> Self {
        Self {
            name: Cow::Borrowed("default"),
            reports: Reports::default(),
            answers: Answers::new(),
            address: ClientAddress::default(),
            peer: None,
            path: PathForm::default(),
            #[cfg(feature = "policy")]
            policy: None,
            missing: MissingKey::default(),
            is_exempt: None,
            is_off: false,
            wait: None,
            is_failure: None,
            shadow_if: None,
            is_shadow: false,
            on_decision: None,
            #[cfg(feature = "tonic")]
            grpc: false,
        }
    }

    /// Returns the facts of a request.
    #[inline(never)]
    pub(crate) fn facts<'r>(&self, head: Head<'r>) -> RequestFacts<'r> {
        self.facts_here(head)
    }

    /// The same, inlined: for the first look at each request.
    #[inline(always)]
    pub(crate) fn facts_here<'r>(&self, head: Head<'r>) -> RequestFacts<'r> {
        #[cfg(feature = "policy")]
        if let Some(policy) = &self.policy {
            return policy.facts(head, self);
        }
        self.facts_by(&self.address, self.path, head)
    }

    /// The same, with other settings of clients.
    #[inline(always)]
    pub(crate) fn facts_by<'r>(
        &self,
        address: &ClientAddress,
        path: PathForm,
        head: Head<'r>,
    ) -> RequestFacts<'r> {
        let client = |peer| address.of(peer, head.headers);
        let client = match self.peer {
            Some(find) => find(head.extensions).map(client),
            None => peer::address(head.extensions).map(client),
        };
        self.facts_from(client, path, head)
    }

    /// The same, if the client's address is the peer's: see [`is_plain`](Self::is_plain).
    #[inline(always)]
    pub(crate) fn plain_facts<'r>(&self, head: Head<'r>) -> RequestFacts<'r> {
        self.facts_from(peer::address(head.extensions), self.path, head)
    }

    #[inline(always)]
    fn facts_from<'r>(
        &self,
        client: Option<IpAddr>,
        path: PathForm,
        head: Head<'r>,
    ) -> RequestFacts<'r> {
        let facts = RequestFacts::of(head.method, head.uri, head.headers)
            .with_extensions(head.extensions)
            .path_form(path);
        // A nested router has taken a prefix from the path.
        #[cfg(feature = "axum")]
        let facts =
            facts.path_from(|extensions| Some(&extensions.get::<axum::extract::OriginalUri>()?.0));
        match client {
            Some(client) => facts.client_ip(client),
            None => facts,
        }
    }

    /// Returns whether no request is exempt or in shadow, the program is not told of decisions, and
    /// the client's address is the peer's.
    pub(crate) fn is_plain(&self) -> bool {
        let is_told = self.on_decision.is_some() || self.shadow_if.is_some();
        let is_peer = self.peer.is_none() && self.address == ClientAddress::peer();
        self.is_exempt.is_none() && !self.is_off && !is_told && is_peer
    }

    /// Returns the settings for requests in shadow: none waits, and no answer says anything.
    pub(crate) fn in_shadow(&self) -> Self {
        let answers = self.answers.clone().fields(Fields::OFF);
        Self {
            answers,
            wait: None,
            is_shadow: true,
            ..self.clone()
        }
    }

    /// Returns whether a request is not limited.
    #[inline]
    pub(crate) fn exempts(&self, head: Head<'_>) -> bool {
        let test = self.is_exempt.as_ref();
        self.is_off || test.is_some_and(|test| test(&self.facts(head)))
    }

    /// Returns the reports of the limit.
    #[inline]
    pub(crate) fn report(&self) -> Report<'_> {
        self.reports.of(&self.name, true)
    }

    /// Returns the reports of a rule.
    #[inline]
    pub(crate) fn report_of<'a>(&'a self, rule: &'a str) -> Report<'a> {
        self.reports.of(rule, *rule == *self.name)
    }

    /// Returns a place among the requests that wait, if there is one.
    pub(crate) fn place(&self) -> Option<Place> {
        self.wait.as_ref()?.waiting.try_enter_owned(1).ok()
    }

    /// Returns whether there is a place among the requests that wait.
    #[cfg(feature = "policy")]
    pub(crate) fn has_place(&self) -> bool {
        let wait = self.wait.as_ref();
        wait.is_some_and(|wait| wait.waiting.inside() < wait.waiting.limit())
    }

    /// Returns what a request counts as.
    pub(crate) fn outcome(&self, ended: &Ended<'_>) -> Outcome {
        ended.outcome(match &self.is_failure {
            Some(test) => test(ended),
            None => ended.is_failure(),
        })
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("name", &self.name)
            .field("answers", &self.answers)
            .field("address", &self.address)
            .field("path", &self.path)
            .field("missing", &self.missing)
            .field("wait", &self.wait.as_ref().map(|wait| wait.time))
            .finish_non_exhaustive()
    }
}
