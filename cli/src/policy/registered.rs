//! The names that a program registers, which the commands take for granted.

use clap::Args;
use tollgate::clock::SystemClock;
use tollgate::{Keyed, Quota, TokenBucket, const_unwrap};
use tollgate_policy::redis::RedisStore;
use tollgate_policy::{LimitSpec, OwnLimit, Policy, PolicyBuilder, Store};
use tollgate_redis::Keys;

/// What the program that uses the policy registers.
#[derive(Debug, Args)]
pub(super) struct Registered {
    /// An algorithm that the program registers; can be given several times
    #[arg(long = "algorithm", value_name = "NAME")]
    algorithms: Vec<String>,

    /// A store that the program registers; can be given several times. memory and redis are known:
    /// give redis if it is another store than that of tollgate-redis
    #[arg(long = "store", value_name = "NAME")]
    stores: Vec<String>,
}

/// The store of rules whose limits are in the program's memory.
pub(super) const MEMORY: &str = "memory";

/// The store of the crate tollgate-redis.
pub(super) const REDIS: &str = "redis";

impl Registered {
    /// Returns whether the program registers a store of this name.
    pub(super) fn has_store(&self, name: &str) -> bool {
        self.stores.iter().any(|known| known == name)
    }

    /// Returns a builder that knows the names, and these facts. Registered algorithms and stores
    /// accept any text as a limit, since the command does not know what they do. The limits of
    /// `redis` are read as the store reads them.
    pub(super) fn builder<'f>(
        &self,
        keys: Keys,
        facts: impl Iterator<Item = &'f str>,
    ) -> PolicyBuilder<SystemClock> {
        let redis = RedisStore::without_server(keys);
        let mut builder = Policy::builder().store(REDIS, redis);
        for name in &self.algorithms {
            builder = builder.algorithm(name, |_| Ok::<_, String>(BUCKET));
        }
        for name in &self.stores {
            builder = builder.store(name, Store::here(any_limit));
        }
        for name in facts {
            builder = builder.resolver(name, |_| None);
        }
        builder
    }
}

/// Stands for each algorithm and store.
const BUCKET: TokenBucket = const_unwrap!(TokenBucket::new(Quota::per_second(1)));

fn any_limit(spec: &LimitSpec<'_, SystemClock>) -> Result<Box<dyn OwnLimit<SystemClock>>, String> {
    let table = Keyed::new(BUCKET, 1).map_err(|error| error.to_string())?;
    Ok(Box::new(table.with_hasher(spec.hasher.clone())))
}
