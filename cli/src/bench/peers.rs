//! Other crates' limiters and common hand-written ones, each with its own clock. Each must decide
//! correctly before it is measured.

#[path = "../../../benches/contestants/asked.rs"]
mod asked;

use std::hash::RandomState;
use std::time::Duration;

use tollgate::Tick;
use tollgate_versus::peers::{
    CounterWindow, Governor, LeakyBucket, Limit, Mutexes, Ratelimit, governor_by_key, verify_keys,
};
use tollgate_versus::{Ask, AskKey};

use super::contestants::sampling::Sampled;
use super::contestants::timing::{self, Aligned, Kind, PerThread};
use super::contestants::{Entry, Source};
use super::keyed::{ByKey, Walked};
use asked::Asked;

/// Returns all peers. The first four have one limit, and the others have one for each key.
pub(crate) fn entries(kind: Kind) -> Result<[Entry; 6], String> {
    let entry = |name, subject, clock, runner: Result<_, String>| {
        let runner = runner.map_err(|error| format!("{subject}: {error}"))?;
        Ok::<_, String>(Entry {
            name,
            subject,
            source: Source::Own(clock),
            kind,
            runner,
        })
    };
    let governor = one(kind, Governor::system);
    let by_key = by_key(kind, governor_by_key::<RandomState>);
    Ok([
        entry("governor", "governor", "quanta", governor)?,
        entry("ratelimit", "ratelimit", "std", one(kind, Ratelimit::new))?,
        entry(
            "leaky_bucket",
            "leaky-bucket",
            "tokio",
            one(kind, LeakyBucket::new),
        )?,
        entry(
            "counter_window",
            "counter window",
            "system",
            one(kind, CounterWindow::new),
        )?,
        entry("governor_keyed", "governor keyed", "quanta", by_key)?,
        entry(
            "locked_map",
            "locked map",
            "system",
            self::by_key(kind, Mutexes::new),
        )?,
    ])
}

fn one<G: Ask + 'static>(
    kind: Kind,
    peer: impl Fn(Limit) -> G,
) -> Result<Box<dyn Sampled>, String> {
    Ok(Box::new(Aligned(Asked::checked(kind, peer)?)))
}

/// Returns a keyed limiter with enough permits for each key, or with one, as tollgate's table has.
fn by_key<G: AskKey + 'static>(
    kind: Kind,
    peer: impl Fn(Limit) -> G,
) -> Result<Box<dyn Sampled>, String> {
    verify_keys(&peer(Limit::TEN))?;
    let peer = peer(match kind {
        Kind::Allowed => Limit {
            burst: 1 << 28,
            period: Duration::from_secs(1),
        },
        Kind::Denied => Limit {
            burst: 1,
            ..Limit::TEN
        },
    });
    Ok(Box::new(PerThread(Walked::new(Peer(peer)))))
}

struct Peer<G>(G);

impl<G: AskKey> ByKey for Peer<G> {
    #[inline(always)]
    fn is_allowed(&self, key: u64, _now: Tick) -> bool {
        self.0.is_key_allowed(&key)
    }
}
