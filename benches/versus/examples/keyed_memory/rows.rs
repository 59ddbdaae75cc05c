//! The rows: each creates a limiter, fills it, and prints the cost.

use std::hash::Hash;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use governor::RateLimiter;
use tollgate::keyed::Overflow;
use tollgate::{Keyed, Quota, Tick, TokenBucket};
use tollgate_versus::keys::{address, key, name};
use tollgate_versus::memory::resident;

use crate::ALLOCATOR;

/// A row's name, and its function, which takes the number of keys.
pub(crate) type Row = (&'static str, fn(u64));

pub(crate) const ROWS: [Row; 8] = [
    ("governor, u64", |keys| governor(keys, "u64", key)),
    ("governor, IpAddr", |keys| governor(keys, "IpAddr", address)),
    ("governor, String", |keys| governor(keys, "String", name)),
    ("tollgate, u64", |keys| {
        table(keys, "u64", |table, number| {
            table.key(&key(number)).at(NOW).try_acquire().is_ok()
        })
    }),
    ("tollgate, IpAddr", |keys| {
        table(keys, "IpAddr", |table, number| {
            table.key(&address(number)).at(NOW).try_acquire().is_ok()
        })
    }),
    ("tollgate, String", |keys| {
        table(keys, "String", |table, number| {
            table
                .key(name(number).as_str())
                .at(NOW)
                .try_acquire()
                .is_ok()
        })
    }),
    ("room", room),
    ("to make", to_make),
];

/// All keys arrive at this tick, so no key is idle when another arrives.
const NOW: Tick = Tick::from_nanos(1_000_000_000);

/// An hour from one permit to the next, and a burst of a hundred.
const PERIOD: Duration = Duration::from_secs(3600);
const BURST: NonZeroU32 = NonZeroU32::new(100).expect("not zero");

/// The target for bytes a key.
const MOST_BYTES: f64 = 24.0;

/// The target for the share of new keys that find no slot.
const MOST_REFUSED: f64 = 0.005;

/// The target for the time to create a table.
const LONGEST: Duration = Duration::from_millis(100);

/// Runs the row with this name.
pub(crate) fn run(name: &str, keys: u64) -> Result<(), String> {
    let row = ROWS.iter().find(|(found, _)| *found == name);
    let (_, row) = row.ok_or_else(|| format!("unknown row {name}"))?;
    row(keys);
    Ok(())
}

type Table = Keyed<TokenBucket>;

/// Returns a table of this capacity, which denies keys without a slot.
fn empty(capacity: u64) -> Table {
    let bucket = TokenBucket::new(Quota::per(1, PERIOD).burst(BURST.get().into()));
    let table = Keyed::new(bucket.expect("a quota that fits"), capacity as usize);
    table
        .expect("a valid capacity")
        .with_overflow(Overflow::Deny)
}

/// The memory figures at some moment.
struct Before {
    asked: u64,
    resident: Option<u64>,
}

impl Before {
    fn now() -> Self {
        Self {
            asked: ALLOCATOR.now(),
            resident: resident(),
        }
    }

    /// Prints how much memory was added since then for each of `keys` keys.
    fn say(&self, what: &str, of: &str, keys: u64, most: Option<f64>) {
        let each = |bytes: u64| bytes as f64 / keys as f64;
        let asked = each(ALLOCATOR.now() - self.asked);
        let highest = each(ALLOCATOR.most() - self.asked);
        let resident = self
            .resident
            .zip(resident())
            .map(|(then, now)| each(now.saturating_sub(then)));
        let shown = resident.map_or_else(|| "unknown".to_owned(), |bytes| format!("{bytes:.1}"));
        let met = most.map_or("", |most| {
            match asked.max(resident.unwrap_or(0.0)) <= most {
                true => "   <= 24: met",
                false => "   <= 24: MISSED",
            }
        });
        println!(
            "    {what:9} {of:7} bytes a key: {asked:6.1} allocated, {highest:6.1} at the peak, {shown:>6} resident{met}"
        );
    }
}

fn governor<K: Hash + Eq + Clone>(keys: u64, of: &str, key: fn(u64) -> K) {
    let before = Before::now();
    let quota = governor::Quota::with_period(PERIOD).expect("not zero");
    let limiter = RateLimiter::keyed(quota.allow_burst(BURST));
    let granted = (0..keys)
        .filter(|&number| limiter.check_key(&key(number)).is_ok())
        .count();
    before.say("governor", of, limiter.len() as u64, None);
    assert_eq!(
        (granted as u64, limiter.len() as u64),
        (keys, keys),
        "every key has its own limit"
    );
}

fn table(keys: u64, of: &str, ask: fn(&Table, u64) -> bool) {
    let before = Before::now();
    let table = empty(keys);
    let granted = (0..keys).filter(|&number| ask(&table, number)).count();
    before.say("tollgate", of, granted as u64, Some(MOST_BYTES));
    assert_eq!(
        granted as u64,
        table.len() as u64,
        "every key has its own limit"
    );
}

/// How many new keys are offered to a full table. Each is removed again before the next.
const OFFERED: u64 = 100_000;

fn room(keys: u64) {
    let table = empty(keys);
    let allocations = ALLOCATOR.calls();
    let ask = |number| table.key(&key(number)).at(NOW).try_acquire().is_ok();
    let filling = (0..keys).filter(|&number| !ask(number)).count();
    let in_use = table.len();
    let offered = keys..keys + OFFERED;
    let refused = offered
        .filter(|&number| !(ask(number) && table.key(&key(number)).remove()))
        .count();
    assert_eq!(table.len(), in_use, "every offered key was removed again");
    assert_eq!(
        ALLOCATOR.calls(),
        allocations,
        "a table allocates only when it is created"
    );
    for (refused, of, when) in [
        (filling, keys, "while filling it to its capacity"),
        (refused, OFFERED, "in the full table"),
    ] {
        let share = refused as f64 / of as f64;
        let met = if share < MOST_REFUSED {
            "met"
        } else {
            "MISSED"
        };
        println!(
            "    no slot   for {refused} of {of} new keys {when}: {:.3} %   < 0.5 %: {met}",
            100.0 * share
        );
    }
}

fn to_make(keys: u64) {
    let start = Instant::now();
    let table = black_box(empty(keys));
    let took = start.elapsed();
    let met = if took < LONGEST { "met" } else { "MISSED" };
    println!(
        "    creating  a table of this capacity: {:.3} ms   < 100 ms: {met}",
        1e3 * took.as_secs_f64()
    );
    drop(table);
}
