//! A program that registers names of its own: a resolver that makes a key, an algorithm, a limit
//! and a store. Its policy uses all four.
//!
//! ```sh
//! cargo run -p tollgate-policy --example own_names
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Mutex, PoisonError};

use tollgate::{Denied, FixedWindow, Keyed, ManualClock, Quota, Tick, TokenBucket};
use tollgate_policy::{FactName, KeyRef, KeyedLimit, LimitSpec, OwnLimit, Policy, Store};

const POLICY: &str = r#"
[[rule]]
name  = "tenant"
key   = "tenant"          # computed by the program
limit = ["per-weekday 3", "allowance 100"] # an algorithm and a limit of the program
also  = ["shared"]

[[limit]]
name  = "shared"
key   = "tenant"
limit = "5/h"
store = "generous"
fallback = "closed"        # a store of the program
"#;

/// The logic of the program's own limit: each key has a number of permits, and none comes back.
#[derive(Debug)]
struct Allowance {
    permits: u64,
    taken: Mutex<HashMap<Vec<u8>, u64>>,
}

impl Allowance {
    /// Changes what a key has taken, and returns what it has left. `None` changes nothing.
    fn change(&self, key: KeyRef<'_>, to: impl FnOnce(u64) -> Option<u64>) -> Option<u64> {
        let mut keys = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = keys.entry(key.bytes().to_vec()).or_default();
        let changed = to(*taken).filter(|taken| *taken <= self.permits)?;
        *taken = changed;
        Some(self.permits - changed)
    }
}

/// What a policy needs of it.
impl KeyedLimit for Allowance {
    fn take(&self, key: KeyRef<'_>, n: u64, _: Tick) -> Result<u64, Denied> {
        let taken = self.change(key, |taken| taken.checked_add(n));
        taken.ok_or(Denied::busy(n))
    }
    fn undo(&self, key: KeyRef<'_>, n: u64, _: Tick) -> u64 {
        self.change(key, |taken| taken.checked_sub(n))
            .map_or(0, |_| n)
    }
}

/// Makes a limit with twice the burst that a rule says.
fn generous(spec: &LimitSpec<'_, ManualClock>) -> Result<Box<dyn OwnLimit<ManualClock>>, String> {
    let [text] = spec.limits.as_slice() else {
        return Err("must not be a plan".into());
    };
    let quota: Quota = text.parse().map_err(|_| "must be a rate such as `5/h`")?;
    let quota = quota.burst(quota.burst_size().saturating_mul(2));
    let bucket = TokenBucket::new(quota).map_err(|error| error.to_string())?;
    let table = Keyed::with_clock(bucket, spec.capacity, spec.clock.clone());
    let table = table.map_err(|error| error.to_string())?;
    Ok(Box::new(table.with_hasher(spec.hasher.clone())))
}

fn main() -> Result<(), Box<dyn Error>> {
    let customer = FactName::new("header:x-customer");
    let policy = Policy::builder()
        .clock(ManualClock::new())
        // `acme/ann` and `acme/bob` are of the tenant `acme`.
        .resolver("tenant", move |facts| {
            let customer = facts.fact(&customer)?;
            let (tenant, _) = customer
                .as_text()
                .split_once('/')
                .map(|(tenant, user)| (tenant.to_owned(), user.to_owned()))?;
            Some(tenant.into())
        })
        .algorithm("per-weekday", |text| {
            let n = text
                .parse()
                .map_err(|_| "must have a number, as in `per-weekday 3`")?;
            FixedWindow::new(Quota::per_day(n)).map_err(|_| "must be at least 1")
        })
        .limit("allowance", |spec| {
            let permits = spec.limits.first().and_then(|text| text.parse().ok());
            let permits = permits.ok_or("must have a number, as in `allowance 100`")?;
            let taken = Mutex::default();
            Ok(Box::new(Allowance { permits, taken }))
        })
        .store("generous", Store::here(generous))
        .build_toml(POLICY)?;

    for customer in [
        "acme/ann",
        "acme/bob",
        "globex/carol",
        "acme/ann",
        "acme/dan",
    ] {
        let decision = policy.decide(&[("header:x-customer", customer)]);
        match decision.denied_by() {
            None => {
                let left: Vec<_> = decision
                    .asked()
                    .map(|it| (it.rule(), it.remaining()))
                    .collect();
                println!("{customer}: allowed, left {left:?}");
            }
            Some(rule) => println!("{customer}: denied by {rule}"),
        }
    }
    let denied = policy.decide(&[("header:x-customer", "acme/eve")]);
    assert_eq!(denied.denied_by(), Some("tenant"));

    // A name that is not registered is an error that lists the known ones.
    let misspelled = POLICY.replace("per-weekday 3", "per-weekdy 3");
    let Err(problems) = Policy::from_toml(&misspelled) else {
        return Err("per-weekdy is no algorithm".into());
    };
    println!("{problems}");
    Ok(())
}
