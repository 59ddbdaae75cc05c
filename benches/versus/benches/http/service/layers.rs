//! The layers. All have the same limit for each address.

use std::time::Duration;

use axum::body::Body;
use governor::clock::QuantaInstant;
use governor::middleware::{NoOpMiddleware, RateLimitingMiddleware, StateInformationMiddleware};
use tollgate::clock::SystemClock;
use tollgate::error::LimiterError;
use tollgate::keyed::SeededHasher;
use tollgate::{Keyed, Quota, TokenBucket};
use tollgate_policy::{LivePolicy, Policy, Problems};
use tollgate_tower::{ByPolicy, PerKey, Rate, RateLimitLayer};
use tower_governor::GovernorLayer;
use tower_governor::governor::{GovernorConfig, GovernorConfigBuilder};
use tower_governor::key_extractor::PeerIpKeyExtractor;

use tollgate_versus::DAY;

/// The limit of each address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    /// The time for one permit to return.
    pub(crate) period: Duration,
    /// The permits that an address has at first.
    pub(crate) burst: u32,
}

impl Limit {
    /// No address exceeds it, even if a thread is stopped for a second between its reading of the
    /// clock and its decision.
    pub(crate) const WIDE: Self = Self {
        period: Duration::from_nanos(10),
        burst: 100_000_000,
    };
    /// Each address may make two requests. A table protects a key from its second grant on.
    pub(crate) const TWO: Self = Self {
        period: DAY,
        burst: 2,
    };

    fn quota(self) -> Quota {
        Quota::per(1, self.period).burst(self.burst.into())
    }
}

/// More addresses than the benches have.
const CAPACITY: usize = 100_000;

/// tollgate's layer, by address.
pub(crate) type ByAddress =
    RateLimitLayer<Rate<PerKey<TokenBucket, SystemClock, SeededHasher, tollgate_tower::ByAddress>>>;

/// Returns tollgate's layer, by address.
pub(crate) fn by_address(limit: Limit) -> Result<ByAddress, LimiterError> {
    let table = Keyed::token_bucket(limit.quota(), CAPACITY)?;
    Ok(RateLimitLayer::by_address(table))
}

/// Returns tollgate's layer with a policy of one rule, by address.
pub(crate) fn by_policy(limit: Limit) -> Result<RateLimitLayer<ByPolicy>, Problems> {
    let quota = limit.quota();
    let rule = format!("name = 'default'\nkey = 'client-ip'\nlimit = '{quota}'");
    let policy = Policy::from_toml(&format!("[[rule]]\n{rule}\ncapacity = {CAPACITY}"))?;
    Ok(RateLimitLayer::policy(LivePolicy::new(policy)))
}

/// The layer of tower_governor, by the peer's address.
pub(crate) type Governor = GovernorLayer<PeerIpKeyExtractor, NoOpMiddleware, Body>;

/// The layer of tower_governor, by the peer's address, with fields in its answers.
pub(crate) type GovernorWithFields =
    GovernorLayer<PeerIpKeyExtractor, StateInformationMiddleware, Body>;

/// Returns the layer of tower_governor: its default, with this limit.
#[must_use]
pub(crate) fn governor(limit: Limit) -> Governor {
    let mut builder = GovernorConfigBuilder::default();
    layer(builder.period(limit.period).burst_size(limit.burst))
}

/// Returns the same with fields.
#[must_use]
pub(crate) fn governor_with_fields(limit: Limit) -> GovernorWithFields {
    let mut builder = GovernorConfigBuilder::default();
    let builder = builder.period(limit.period).burst_size(limit.burst);
    layer(&mut builder.use_headers())
}

fn layer<M: RateLimitingMiddleware<QuantaInstant>>(
    builder: &mut GovernorConfigBuilder<PeerIpKeyExtractor, M>,
) -> GovernorLayer<PeerIpKeyExtractor, M, Body> {
    let config: GovernorConfig<_, M> = builder.finish().expect("a limit that is not zero");
    GovernorLayer::new(config)
}
