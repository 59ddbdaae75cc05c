//! Plans in a text file: reloaded while the service runs, and found by name after a restart.
//!
//! ```text
//! cargo run --example reload --features keyed
//! ```

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Duration;

use tollgate::Keep;
use tollgate::algorithm::ChangeQuota;
use tollgate::keyed::PlanMatch;
use tollgate::{Keyed, ManualClock, Quota, TokenBucket};

type Table = Keyed<TokenBucket, ManualClock>;
type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Reads a line such as `free: 60 per minute burst 10`.
fn parse(line: &str) -> Result<(String, TokenBucket)> {
    let (name, quota) = line.split_once(':').ok_or("write `name: quota`")?;
    Ok((name.trim().to_owned(), TokenBucket::new(quota.parse()?)?))
}

fn read(file: &Path) -> Result<Vec<(String, TokenBucket)>> {
    let text = fs::read_to_string(file)?;
    let lines = (1..).zip(text.lines());
    let plans = lines.map(|(n, line)| parse(line).map_err(|error| format!("line {n}: {error}")));
    Ok(plans.collect::<std::result::Result<_, _>>()?)
}

fn open(file: &Path) -> Result<Table> {
    let (plans, clock) = (read(file)?, ManualClock::new());
    Ok(Keyed::with_named_plans(plans, 100_000, clock)?)
}

/// Applies the file's quotas while other threads decide. A file with an error changes nothing, and
/// a plan that is no longer in the file keeps its quota.
fn reload(table: &Table, file: &Path) -> Result<()> {
    for (name, bucket) in read(file)? {
        match table.plan_named(&name) {
            Some(plan) => table.set_plan_quota(plan, bucket.quota(), Keep::Scaled)?,
            None => eprintln!("a restart will bring the new plan {name}"),
        }
    }
    Ok(())
}

/// Sends 15 requests each for bob and alice, and returns how many are granted.
fn serve(table: &Table) -> Result<[usize; 2]> {
    let mut granted = [0; 2];
    for (n, (plan, customer)) in [("free", "bob"), ("paid", "alice")].into_iter().enumerate() {
        let plan = table.plan_named(plan).ok_or("no such plan")?;
        let customer = table.key(customer).with_plan(plan);
        granted[n] = (0..15).filter(|_| customer.try_acquire().is_ok()).count();
    }
    println!(
        "of 15 requests each bob got {}, alice {}",
        granted[0], granted[1]
    );
    Ok(granted)
}

fn main() -> Result<()> {
    let file = std::env::temp_dir().join(format!("tollgate-reload-{}", std::process::id()));
    fs::write(&file, "free: 60/min burst 10\npaid: 600/min burst 100")?;
    let table = open(&file)?;
    assert_eq!(serve(&table)?, [10, 15]);

    // A typing error changes no quota.
    fs::write(&file, "free: 60/min burst 10\npaid: 1200/mni burst 200")?;
    let error = reload(&table, &file).expect_err("there is no such unit");
    println!("not reloaded: {error}");
    let paid = table.plan_named("paid").ok_or("no such plan")?;
    assert_eq!(table.plan_quota(paid)?, Quota::per_minute(600).burst(100));

    // `Keep::Scaled`: a bucket that was 85 % full stays 85 % full.
    fs::write(&file, "free: 60/min burst 10\npaid: 1200/min burst 200")?;
    reload(&table, &file)?;
    assert_eq!(table.key("alice").with_plan(paid).available(), 170);

    // The next process, a second later. Its file has another order and a new plan.
    let mut snapshot = Vec::new(); // or a file: `snapshot_to`, `restore_from`
    table.snapshot(&mut snapshot)?;
    fs::write(
        &file,
        "trial: 5/min\npaid: 1200/min burst 200\nfree: 60/min burst 10",
    )?;
    let mut table = open(&file)?;
    let restored = table.restore_after(&mut snapshot.as_slice(), Duration::from_secs(1))?;
    for plan in restored.plans {
        println!(
            "{:?} is plan {} now: {:?}",
            plan.name, plan.plan, plan.found
        );
        assert_eq!(plan.found, PlanMatch::Same);
    }
    assert_eq!(serve(&table)?, [1, 15]);
    Ok(fs::remove_file(&file)?)
}
