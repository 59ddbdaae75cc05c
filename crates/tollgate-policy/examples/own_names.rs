//! A program that registers names of its own: a resolver that makes a key, an algorithm, and a
//! store. Its policy uses all three.
//!
//! ```sh
//! cargo run -p tollgate-policy --example own_names
//! ```

use std::error::Error;

use tollgate::{FixedWindow, Keyed, ManualClock, Quota, TokenBucket};
use tollgate_policy::{FactName, LimitSpec, OwnLimit, Policy};

const POLICY: &str = r#"
[[rule]]
name  = "tenant"
key   = "tenant"          # computed by the program
limit = "per-weekday 3"   # an algorithm of the program
also  = ["shared"]

[[rule]]
name  = "shared"
when  = "never"
key   = "tenant"
limit = "5/h"
store = "generous"
fallback = "closed"        # a store of the program
"#;

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
        .store("generous", generous)
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
