//! What a flood costs, and what becomes of memory.
//!
//! A hundred keys have spent their burst of 100, of a quota of 100 a minute. A table of a million
//! slots is as full as it was made for of other keys, which have all asked just now. Then the new
//! keys come, at a rate by the table's own time, each once. After every thousand of them each of
//! the hundred asks again: what they get in all is compared with what their quota says, exactly.
//!
//! What their decisions cost is compared with those in a table that is not flooded, where the
//! thousand are keys that it knows, so that as much else goes through the caches. The two take
//! turns, and the middle one of the ratios counts. At last another thread does the flooding.

use std::time::{Duration, Instant};

use tollgate::Overflow;
use tollgate_versus::keys::{Random, key};
use tollgate_versus::memory::resident;

use crate::ALLOCATOR;
use crate::scene::{BETWEEN, CAPACITY, SPENT, Scene};

/// The most that a flood may slow down decisions on known keys, as a factor.
const SLOWER: f64 = 2.0;
/// What a program's own pages may come to that it touches for the first time.
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
        println!("{keys} new keys, {per_second} a second; where there is no room: {overflow:?}");
        missed += flood(overflow, Duration::from_secs(1) / per_second, keys);
        println!();
    }
    missed
}

/// How many targets one `Overflow` misses.
fn flood(overflow: Overflow, step: Duration, keys: u64) -> usize {
    let (mut still, mut flooded) = (Scene::full(overflow, step), Scene::full(overflow, step));
    println!("    {} keys were there before it", flooded.table.len());
    let mut random = Random(keys);
    let mut known = || key(SPENT + random.bits() % (CAPACITY - SPENT));
    let mut new = (CAPACITY..).map(key);
    let mut new = || new.next().unwrap_or(0);
    let rounds = keys.div_ceil(ROUND * BETWEEN);

    let mut costs = Costs::over(rounds);
    // To ask the system allocates.
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
        "    {} are there after it: {} came in, {} made room as idle, {} were evicted, {} found no room",
        stats.tracked, stats.inserted, stats.expired, stats.evicted, stats.no_room
    );
    let ns = took.as_nanos() as f64 / (rounds * ROUND * BETWEEN) as f64;
    println!("    {ns:.1} ns a new key, with a tenth of the known ones");

    let mut judged = Judged::default();
    judged.cost("in the flood", costs);
    let mut costs = Costs::over(rounds / 4);
    for _ in 0..rounds / 4 {
        costs.add(
            flooded.among(ROUND, BETWEEN, &mut known),
            still.among(ROUND, BETWEEN, &mut known),
        );
    }
    judged.cost("after it", costs);
    let mut costs = Costs::over(rounds / 4);
    for _ in 0..rounds / 4 {
        costs.add(flooded.among(ROUND, 0, || 0), still.among(ROUND, 0, || 0));
    }
    judged.cost("after it, with nobody else", costs);
    let mut costs = Costs::over(BESIDE);
    for _ in 0..BESIDE {
        let others = keys / 4 / BESIDE;
        costs.add(
            flooded.beside(others, &mut new),
            still.beside(others, &mut known),
        );
    }
    judged.cost("while another thread floods", costs);
    for mut scene in [flooded, still] {
        let (least, most, due) = scene.drained();
        let got = format!("each of the {SPENT} got {least} to {most} permits, and {due} were due");
        judged.line(&got, (least, most) == (due, due));
    }
    judged.memory(was, is);
    judged.missed
}

/// How many passes over the spent keys are made in one table before it is the other's turn.
const ROUND: u64 = 50;

/// How often another thread floods a while.
const BESIDE: u64 = 20;

/// What a decision on a spent key costs, in the flooded table and in the other, round by round.
struct Costs(Vec<(f64, f64)>);

impl Costs {
    /// With memory for this number of rounds.
    fn over(rounds: u64) -> Self {
        Self(Vec::with_capacity(rounds as usize))
    }

    fn add(&mut self, flooded: f64, still: f64) {
        self.0.push((flooded, still));
    }

    /// The middle one of this.
    fn middle(&self, of: impl Fn(&(f64, f64)) -> f64) -> f64 {
        let mut all: Vec<f64> = self.0.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// What the allocator has given: bytes that are out, and how often.
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

/// What was looked at.
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
            "ns a decision on a known key {when}, to one in a table that is not: {flooded:.1} to {still:.1}, {ratio:.2} < {SLOWER}"
        );
        self.line(&line, ratio < SLOWER);
    }

    fn memory(&mut self, was: (Option<u64>, Given), is: (Given, Option<u64>)) {
        let ((resident, given), (given_then, resident_then)) = (was, is);
        let calls = given_then.calls - given.calls;
        let line = format!(
            "bytes allocated: {} before it, {} after it, {calls} calls",
            given.bytes, given_then.bytes
        );
        self.line(&line, given == given_then);
        if let Some((was, is)) = resident.zip(resident_then) {
            let line = format!("bytes in memory: {was} before it, {is} after it");
            self.line(&line, is <= was + PAGES);
        }
    }
}
