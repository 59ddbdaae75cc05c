//! Measures what a flood costs in time and memory.
//!
//! A hundred keys have spent their burst of 100, with a quota of 100 a minute. Other keys fill a
//! table of a million slots to its capacity; all of them have just made a request. Then new keys
//! arrive at a given rate of the table's clock, one request each. After every thousand of them,
//! each of the hundred keys makes a request. Their total grants must equal exactly what their quota
//! allows.
//!
//! The cost of these decisions is compared with that in a table without a flood. There the thousand
//! requests are for known keys, so that the same amount of data passes through the caches. The two
//! tables take turns, and the result is the median of the ratios. In the last part another thread
//! makes the flood.

use std::time::{Duration, Instant};

use tollgate::keyed::Overflow;
use tollgate_versus::keys::{Random, key};
use tollgate_versus::memory::resident;

use crate::ALLOCATOR;
use crate::scene::{BETWEEN, CAPACITY, SPENT, Scene};

/// The most that a flood may slow down decisions on known keys, as a factor.
const SLOWER: f64 = 2.0;
/// An allowance for pages of the program itself that it touches for the first time.
const PAGES: u64 = 64 * 4096;

/// Prints each scene, and returns how many targets are missed.
pub(crate) fn print(keys: u64) -> usize {
    let mut missed = 0;
    for (overflow, per_second) in [
        (Overflow::Evict, 10_000_000),
        (Overflow::Evict, 1_000_000),
        (Overflow::Deny, 10_000_000),
        (Overflow::Admit, 10_000_000),
    ] {
        println!("{keys} new keys, {per_second} a second; overflow: {overflow:?}");
        missed += flood(overflow, Duration::from_secs(1) / per_second, keys);
        println!();
    }
    missed
}

/// Runs the flood with one `Overflow`, and returns how many targets it misses.
fn flood(overflow: Overflow, step: Duration, keys: u64) -> usize {
    let (mut still, mut flooded) = (Scene::full(overflow, step), Scene::full(overflow, step));
    println!("    {} keys before the flood", flooded.table.len());
    let mut random = Random(keys);
    let mut known = || key(SPENT + random.bits() % (CAPACITY - SPENT));
    let mut new = (CAPACITY..).map(key);
    let mut new = || new.next().unwrap_or(0);
    let rounds = keys.div_ceil(ROUND * BETWEEN);

    let mut costs = Costs::over(rounds);
    // Asking the system for resident memory allocates, so it comes before the count.
    let was = (resident(), Given::now());
    let mut took = Duration::ZERO;
    for _ in 0..rounds {
        let still = still.among(ROUND, BETWEEN, &mut known);
        let start = Instant::now();
        let flooded = flooded.among(ROUND, BETWEEN, &mut new);
        took += start.elapsed();
        costs.add(flooded, still);
    }
    let is = (Given::now(), resident());
    let stats = flooded.table.stats();
    println!(
        "    {} keys after it: {} inserted, {} expired, {} evicted, {} denied (no slot)",
        stats.tracked, stats.inserted, stats.expired, stats.evicted, stats.no_room
    );
    let ns = took.as_nanos() as f64 / (rounds * ROUND * BETWEEN) as f64;
    println!("    {ns:.1} ns a new key, including a request for a known key after every ten");

    let mut judged = Judged::default();
    judged.cost("during the flood", costs);
    let mut costs = Costs::over(rounds / 4);
    for _ in 0..rounds / 4 {
        costs.add(
            flooded.among(ROUND, BETWEEN, &mut known),
            still.among(ROUND, BETWEEN, &mut known),
        );
    }
    judged.cost("after the flood", costs);
    let mut costs = Costs::over(rounds / 4);
    for _ in 0..rounds / 4 {
        costs.add(flooded.among(ROUND, 0, || 0), still.among(ROUND, 0, || 0));
    }
    judged.cost("after the flood, without other requests", costs);
    let mut costs = Costs::over(BESIDE);
    for _ in 0..BESIDE {
        let others = keys / 4 / BESIDE;
        costs.add(
            flooded.beside(others, &mut new),
            still.beside(others, &mut known),
        );
    }
    judged.cost("while another thread floods", costs);
    for (mut scene, which) in [(flooded, "in the flood"), (still, "without a flood")] {
        let (least, most, due) = scene.drained();
        let got = format!(
            "each of the {SPENT} keys got {least} to {most} permits {which}; its quota allows {due}"
        );
        judged.line(&got, (least, most) == (due, due));
    }
    judged.memory(was, is);
    judged.missed
}

/// Passes over the spent keys in one table before the other table's turn.
const ROUND: u64 = 50;

/// How many times another thread makes a part of the flood.
const BESIDE: u64 = 20;

/// The cost of a decision on a spent key, in the flooded table and in the other one, for each
/// round.
struct Costs(Vec<(f64, f64)>);

impl Costs {
    /// Allocates the memory for this number of rounds.
    fn over(rounds: u64) -> Self {
        Self(Vec::with_capacity(rounds as usize))
    }

    fn add(&mut self, flooded: f64, still: f64) {
        self.0.push((flooded, still));
    }

    /// Returns the median of a figure.
    fn middle(&self, of: impl Fn(&(f64, f64)) -> f64) -> f64 {
        let mut all: Vec<f64> = self.0.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// The allocator's figures: allocated bytes, and the number of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Given {
    bytes: u64,
    calls: u64,
}

impl Given {
    fn now() -> Self {
        Self {
            bytes: ALLOCATOR.now(),
            calls: ALLOCATOR.calls(),
        }
    }
}

/// The number of missed targets.
#[derive(Default)]
struct Judged {
    missed: usize,
}

impl Judged {
    fn line(&mut self, what: &str, is_met: bool) {
        self.missed += usize::from(!is_met);
        println!("    {what}: {}", if is_met { "met" } else { "MISSED" });
    }

    fn cost(&mut self, when: &str, costs: Costs) {
        let ratio = costs.middle(|(flooded, still)| flooded / still);
        let (flooded, still) = (costs.middle(|ns| ns.0), costs.middle(|ns| ns.1));
        let line = format!(
            "ns a decision on a known key {when}: {flooded:.1}, without a flood {still:.1}; ratio {ratio:.2}, target below {SLOWER}"
        );
        self.line(&line, ratio < SLOWER);
    }

    fn memory(&mut self, was: (Option<u64>, Given), is: (Given, Option<u64>)) {
        let ((resident, given), (given_then, resident_then)) = (was, is);
        let calls = given_then.calls - given.calls;
        let line = format!(
            "bytes allocated: {} before the flood, {} after it, {calls} calls",
            given.bytes, given_then.bytes
        );
        self.line(&line, given == given_then);
        if let Some((was, is)) = resident.zip(resident_then) {
            let line = format!("bytes in memory: {was} before the flood, {is} after it");
            self.line(&line, is <= was + PAGES);
        }
    }
}
