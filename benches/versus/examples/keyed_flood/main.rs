//! A flood of keys that nobody has seen before, each of which comes once: does anybody who has spent all get a
//! fresh burst by it, how long do decisions on known keys take, and does memory move?
//!
//!     cargo run --release -p tollgate-versus --example keyed_flood [-- --strict --keys 20000000]
//!
//! A hundred keys have spent their burst of 100, of a quota of 100 a minute. A table of a million slots is full of other
//! keys that have all asked just now. Then the new keys come, so many a second by the table's own clock, and after
//! every thousand of them each of the hundred asks again: what they get in all is compared with what their quota says,
//! exactly. Before and after the flood the thousand are keys that the table knows, so that as much else goes through
//! the caches. At the end the hundred ask while another thread asks, for keys that are known and for new ones. With
//! `--strict` a missed target is a failure.

mod scene;

use std::env;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use scene::{BETWEEN, CAPACITY, SPENT, Scene};
use tollgate::Overflow;
use tollgate_versus::keys::{Random, key};
use tollgate_versus::memory::{Counting, resident};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

const USAGE: &str = "keyed_flood [--strict] [--keys N]";

/// Decisions on known keys take less than so many times as long.
const SLOWER: f64 = 2.0;
/// What a program's own pages may come to that it touches for the first time.
const PAGES: u64 = 64 * 4096;

fn main() -> ExitCode {
    let (mut strict, mut keys) = (false, Some(20_000_000));
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--strict" => strict = true,
            "--keys" => keys = arguments.next().and_then(|keys| keys.parse().ok()),
            _ => keys = None,
        }
    }
    let Some(keys) = keys else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let mut missed = 0;
    for (overflow, per_second) in [
        (Overflow::Evict, 10_000_000),
        (Overflow::Evict, 1_000_000),
        (Overflow::Deny, 10_000_000),
        (Overflow::Admit, 10_000_000),
    ] {
        println!("{keys} new keys, {per_second} a second; where there is no room: {overflow:?}");
        let scene = Scene::new(overflow, Duration::from_secs(1) / per_second);
        missed += flood(scene, keys);
        println!();
    }
    match missed {
        0 => println!("all as it should be"),
        _ => println!("{missed} not as they should be"),
    }
    ExitCode::from(u8::from(strict && missed > 0))
}

/// How many targets are missed.
fn flood(mut scene: Scene, keys: u64) -> usize {
    scene.spend();
    let others = SPENT..CAPACITY;
    let came_in = others.filter(|&number| scene.asks(key(number))).count() as u64 + SPENT;
    let tracked = scene.table.len();
    println!("    {came_in} keys came in before it, {tracked} were there then");

    let mut random = Random(keys);
    let mut below = |end: u64| random.bits() % end;
    let passes = keys / BETWEEN;
    let some = passes / 4;
    // The hundred alone, then among others.
    let alone = scene.among(some, 0, || 0);
    let before = scene.among(some, BETWEEN, || key(SPENT + below(CAPACITY - SPENT)));
    let beside_known = scene.beside(keys / 4, || key(SPENT + below(CAPACITY - SPENT)));
    let mut number = CAPACITY;
    let mut new = || {
        number += 1;
        key(number)
    };
    // To ask the system allocates.
    let was = (resident(), Given::now());
    let began = Instant::now();
    let during = scene.among(passes, BETWEEN, &mut new);
    let took = began.elapsed();
    let is = (Given::now(), resident());
    println!("    {:?}", scene.table.stats());
    let ns = took.as_nanos() as f64 / keys as f64;
    println!("    it took {took:.2?}, {ns:.1} ns a new key");

    // Those that came last, of whom most are there.
    let of_late = CAPACITY + (passes * BETWEEN).saturating_sub(CAPACITY / 4);
    let after = scene.among(some, BETWEEN, || key(of_late + below(CAPACITY / 4)));
    let alone_after = scene.among(some, 0, || 0);
    let beside_new = scene.beside(keys / 4, &mut new);

    let mut judged = Judged::default();
    let (least, most, due) = scene.drained();
    let got =
        format!("each of the {SPENT} got {least} to {most} permits in all, and {due} were due");
    judged.line(&got, (least, most) == (due, due));
    for (what, then, before) in [
        ("in it, to before it", during, before),
        ("after it, to before it", after, before),
        (
            "with nobody else, after it to before it",
            alone_after,
            alone,
        ),
        (
            "while another thread asks, for new keys to known ones",
            beside_new,
            beside_known,
        ),
    ] {
        let ratio = then / before;
        let line = format!(
            "ns a decision on a known key {what}: {then:.1} to {before:.1}, {ratio:.2} < {SLOWER}"
        );
        judged.line(&line, ratio < SLOWER);
    }
    judged.memory(was, is);
    judged.missed
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
