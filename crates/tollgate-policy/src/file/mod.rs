//! What a policy's file says, as it is written: names and limits are still text.

mod client;
pub(crate) mod disk;
mod format;
mod key_secret;
mod names;
pub(crate) mod secret;
pub(crate) mod server_url;
mod store;

use std::net::IpAddr;
use std::ops::Deref;
use std::time::Duration;

use ipnet::IpNet;
use tollgate::keyed::Overflow;

use crate::facts::FactName;
use crate::problem::{Position, quoted};
use crate::when::When;
pub use client::{ClientSettings, SeenPath};
pub use disk::read_text;
pub use format::Format;
pub use secret::SecretSource;
pub use store::StoreSettings;

/// A value, and where the file says it. Values are equal wherever they are.
#[derive(Debug, Clone, Copy)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Where it begins, if the file has positions.
    pub position: Option<Position>,
}

impl<T: PartialEq> PartialEq for At<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for At<T> {}

impl<T> Deref for At<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> From<T> for At<T> {
    fn from(value: T) -> Self {
        Self {
            value,
            position: None,
        }
    }
}

/// Which of the rules that match a request apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Apply {
    /// The first one. Shadow rules that match and come before it apply too. So does a rule that
    /// only some of several values match: then the next rule is tried.
    #[default]
    First,
    /// All of them, all or nothing.
    All,
}

/// What happens to a request that lacks a fact of a rule's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MissingFact {
    /// It is denied.
    #[default]
    Deny,
    /// The rule does not apply to it.
    Skip,
    /// All such requests share one limit.
    Shared,
}

/// Which value makes the key if a request has several values of a fact that differ: a header in
/// several lines, or a repeated parameter or cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Repeated {
    /// None: the request is denied, whatever [`MissingFact`] says.
    #[default]
    Deny,
    /// The first.
    First,
    /// The last.
    Last,
}

/// Which outcomes of requests a rule counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CountOf {
    /// All requests.
    #[default]
    All,
    /// Requests that fail: a success gets its permits back.
    Failures,
    /// Requests that succeed: a failure gets its permits back.
    Successes,
}

/// When a rule applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applies {
    /// To every request.
    Always,
    /// Only together with rules that name it in `also`, as a `[[limit]]` does.
    Never,
    /// To requests that fulfill the conditions.
    When(When),
}

/// An entry of the lists `allow` and `deny`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: At<String>,
    /// The requests that it applies to.
    pub when: When,
    /// The number by which the program's protocol answers a denial, from 400 to 599. Programs that
    /// speak HTTP use it as the status. `None` for an entry of `allow`.
    pub status: Option<At<u16>>,
}

/// Plans: limits that depend on a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plans {
    /// The fact, or the registered lookup, that says the plan.
    pub by: At<String>,
    /// The plans' names and limits.
    pub limits: Vec<(At<String>, At<String>)>,
    /// The plan of requests whose plan is absent or unknown. Without it, they are denied.
    pub default: Option<At<String>>,
}

/// A limit of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The key: a value for each part of the rule's key.
    pub key: At<Vec<String>>,
    /// The limit.
    pub limit: At<String>,
}

/// How many permits a request takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// The fact that says it, if it is not always the same.
    pub estimate: Option<At<FactName>>,
    /// The cost without that fact.
    pub default: At<u64>,
    /// The least that the fact can say: a smaller value counts as this one. Usually 1, so that a
    /// client that estimates 0 does not pass for free.
    pub min: At<u64>,
    /// The most that a fact of the request or of the answer can say: a larger value counts as this
    /// one. Without it, a fact of the answer can say at most all permits of a limit, or what an
    /// hour brings if that is more.
    pub max: Option<At<u64>>,
    /// The fact of the answer that says the actual cost.
    pub settle: Option<At<FactName>>,
}

/// What counts towards a ban.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BanOf {
    /// Requests that the rule denies.
    #[default]
    Denials,
    /// Requests that fail.
    Failures,
}

/// Bans a key that is denied, or fails, again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ban {
    /// The number of denials or failures that bans the key.
    pub after: At<u64>,
    /// What counts.
    pub of: BanOf,
    /// How long the ban lasts.
    pub duration: At<Duration>,
    /// The period in which they count. Without it, denials count in the period of the rule's first
    /// limit or plan, and failures in 15 minutes.
    pub within: Option<At<Duration>>,
}

/// An answer that is a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// A status, from 100 to 599.
    Status(u16),
    /// All statuses of a class: 5 is 500 to 599.
    Class(u8),
    /// A status of gRPC, from 1 to 16.
    Grpc(u8),
}

/// What decides while a store does not answer. Each rule with a store names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fallback {
    /// Every request is denied.
    Closed,
    /// Every request is granted.
    Open,
    /// A number of permits is granted, over all keys of the limit in this process. Then requests
    /// are denied.
    OpenAtMost {
        /// The most permits in one outage, and in one minute for calls that fail without an outage.
        at_most: At<u64>,
        /// With a period, `at_most` holds for each one, in place of the whole outage and the
        /// minute.
        per: Option<At<Duration>>,
    },
    /// Each process decides by its share of the limit.
    Local {
        /// The number of processes.
        processes: At<u64>,
        /// The number of keys that each process tracks.
        keys: At<u64>,
    },
}

/// The permits of each key that a process grants without the store, and so also of keys that are
/// asked for seldom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowance {
    /// Which part of the limit the allowances of all processes are.
    pub percent: At<u64>,
    /// The number of processes that use the limit at a time, at most.
    pub processes: At<u64>,
    /// The number of keys that each process tracks.
    pub keys: At<u64>,
}

/// The part of an address that is a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Networks {
    /// The bits of an IPv4 address that count: 32 unless the rule says otherwise.
    pub v4: At<u8>,
    /// The bits of an IPv6 address that count: 64 unless the rule says otherwise.
    pub v6: At<u8>,
}

impl Networks {
    /// Returns how many bits of an address count.
    pub(crate) fn bits(&self, address: IpAddr) -> u8 {
        match address {
            IpAddr::V4(_) => self.v4.value,
            IpAddr::V6(_) => self.v6.value,
        }
    }

    /// Returns an address, or its network if not all of its bits count.
    pub(crate) fn text_of(&self, address: IpAddr) -> String {
        let bits = self.bits(address);
        match IpNet::new(address, bits) {
            Ok(network) if bits < network.max_prefix_len() => network.trunc().to_string(),
            _ => address.to_string(),
        }
    }
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its name, which no other rule has.
    pub name: At<String>,
    /// Whether it is a `[[limit]]` of the file: it applies only together with rules that name it.
    pub is_limit: bool,
    /// When it applies.
    pub when: At<Applies>,
    /// The facts, or registered resolvers, whose values make the key. If there are none, all
    /// requests share one limit.
    pub key: Vec<At<String>>,
    /// What happens if a fact of the key is absent.
    pub missing: MissingFact,
    /// Which value counts if a fact of the key has several that differ.
    pub repeated: Repeated,
    /// The part of an address that counts as a key.
    pub network: Networks,
    /// The limits. All must grant a request.
    pub limits: Vec<At<String>>,
    /// Plans, in place of `limits`.
    pub plan: Option<At<Plans>>,
    /// The limits of single keys.
    pub overrides: Vec<Override>,
    /// How many permits a request takes.
    pub cost: Cost,
    /// Which outcomes count.
    pub count: CountOf,
    /// The answers that are failures. If the rule names none, the program says what fails.
    pub failures: Vec<At<Failure>>,
    /// Bans keys that are denied, or fail, again and again.
    pub ban: Option<At<Ban>>,
    /// Other rules that must grant the request too.
    pub also: Vec<At<String>>,
    /// Whether the rule only reports what it would have decided.
    pub shadow: bool,
    /// The number by which the program's protocol answers a denial, from 400 to 599. Programs that
    /// speak HTTP use it as the status.
    pub status: Option<At<u16>>,
    /// The number of keys that are in use at once.
    pub capacity: At<u64>,
    /// What happens to a new key that finds no slot.
    pub overflow: Overflow,
    /// The name of the store.
    pub store: At<String>,
    /// What decides while the store does not answer.
    pub fallback: Option<At<Fallback>>,
    /// Whether the store lends permits to this process ahead of need: `mode = "leased"`.
    pub is_leased: bool,
    /// The permits of each key that this process grants without the store, with `mode = "leased"`.
    pub allowance: Option<At<Allowance>>,
    /// Whether denials by the store are remembered for up to a second, if the rule says it.
    pub remember: Option<bool>,
}

/// A whole policy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyFile {
    /// Which of the rules that match apply.
    pub apply: Apply,
    /// The memory that all tables may take, in bytes. `check` warns if they take more.
    pub memory: Option<At<u64>>,
    /// The names of facts that the program supplies, if the file lists them. Then other names are
    /// errors.
    pub facts: Option<Vec<At<String>>>,
    /// How the program finds the client of a request.
    pub client: ClientSettings,
    /// The server that has the limits, unless all of them are in memory.
    pub store: Option<StoreSettings>,
    /// The secret by which stores hide the keys of clients.
    pub key_secret: Option<At<SecretSource>>,
    /// Requests that are denied.
    pub deny: Vec<Entry>,
    /// Requests that no rule limits.
    pub allow: Vec<Entry>,
    /// The rules, in their order, and then the limits that rules name in `also`.
    pub rules: Vec<Rule>,
    /// Whether the file says that it has no rules: `rule = []`. If not, a reload refuses a file
    /// that has lost all of them.
    pub no_rules: bool,
}

impl Rule {
    /// Returns what messages call it.
    pub(crate) const fn kind(&self) -> &'static str {
        if self.is_limit { "limit" } else { "rule" }
    }

    /// Returns its kind and its name, as messages begin.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.kind(), quoted(&self.name))
    }

    /// Returns whether denials by the store are remembered: unless the rule says so, only if it
    /// gives no permits back. They may come back to another process, which can't be known here.
    pub(crate) fn remembers_denials(&self) -> bool {
        self.remember.unwrap_or(!self.gives_back())
    }

    /// Returns whether requests give permits back when they are done.
    pub(crate) fn gives_back(&self) -> bool {
        self.count != CountOf::All || self.cost.settle.is_some()
    }
}

impl PolicyFile {
    /// Returns the rules and limits, each with its position among those of its kind.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, &Rule)> {
        let (mut rules, mut limits) = (0.., 0..);
        self.rules.iter().filter_map(move |rule| {
            let numbers = if rule.is_limit {
                &mut limits
            } else {
                &mut rules
            };
            Some((numbers.next()?, rule))
        })
    }
}
