//! A limit for each key: tollgate's table, governor's keyed limiter with its default hasher and
//! with tollgate's, mutexes in a concurrent map, and a map behind a lock. All keys are inserted
//! before the timing. All limiters exist at once and take turns, so that a disturbance affects them
//! alike.
//!
//!     cargo bench -p tollgate-versus --bench keyed -- --strict --keys 1000000 --threads 1
//!
//! The result is the median of the rounds' ratios. With `--strict` a missed target is a failure.
//! `--json FILE` writes the figures to a file too. Use a quiet machine.

mod course;
mod floor;
mod limiters;
mod options;
mod report;
#[path = "../../../contestants/timing.rs"]
#[allow(dead_code, reason = "shared with the other benches")]
mod timing;

use std::hash::RandomState;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use tollgate_versus::keys::{Spread, key};
use tollgate_versus::peers::{GovernorByKey, Locked, Mutexes, governor_by_key};
use tollgate_versus::write_json;

use course::Course;
use floor::{Memory, MemoryMany};
use limiters::{Floor, Many, Row, Table, limit, table};
use options::{Options, USAGE};
use report::{FLOOR, GOVERNOR, Group, MANY, MEMORY, MEMORY_MANY, Measured, TABLE, judge, middle};
use timing::{Crew, Kind};

/// tollgate's hasher.
type Hasher = foldhash::quality::RandomState;

/// Decisions between two clock readings. They take far less than a scheduler's time slice, so most
/// slices are undisturbed even if other programs use the processors.
const SLICE: u64 = 2000;

/// The slices of a round.
const SLICES: u64 = 200;

fn main() -> ExitCode {
    let options = match Options::read() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut all = Vec::new();
    for &keys in &options.keys {
        for &kind in &options.kinds {
            if let Err(error) = of_kind(&options, keys, kind, &mut all) {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        }
    }
    let missed = judge(&all);
    match missed {
        0 => println!("\nall targets met"),
        _ => println!("\n{missed} targets missed"),
    }
    ExitCode::from(u8::from(options.strict && missed > 0))
}

/// All limiters, filled with all keys.
struct Limiters {
    floor: Floor,
    memory: Memory,
    governor: GovernorByKey<RandomState>,
    rehashed: GovernorByKey<Hasher>,
    mutexes: Mutexes,
    locked: Locked,
    table: Table,
}

impl Limiters {
    fn filled(kind: Kind, keys: u64) -> Self {
        let numbers: Vec<u64> = (0..keys).map(key).collect();
        let limit = limit(kind);
        let table = fill(TABLE, table(kind, keys), &numbers);
        Self {
            floor: Floor(kind),
            memory: Memory::new(kind, table.slots()),
            governor: fill(GOVERNOR, governor_by_key(limit), &numbers),
            rehashed: fill(
                "governor, tollgate's hasher",
                governor_by_key(limit),
                &numbers,
            ),
            mutexes: fill("DashMap of mutexes", Mutexes::new(limit), &numbers),
            locked: fill("RwLock of a HashMap", Locked::new(limit), &numbers),
            table,
        }
    }
}

/// Requests a permit for each key twice. Both are allowed, so every limiter knows all keys before
/// the timing.
fn fill<L: Row>(name: &str, limiter: L, keys: &[u64]) -> L {
    let start = Instant::now();
    let allowed = limiter.decide(keys);
    let ns = start.elapsed().as_nanos() as f64 / keys.len() as f64;
    println!(
        "    {name:28} {ns:8.1} ns a new key, {allowed} of {} allowed, {} the second time",
        keys.len(),
        limiter.decide(keys),
    );
    limiter
}

/// Measures all limiters with all keys, and adds the figures to those of all kinds.
fn of_kind(
    options: &Options,
    keys: u64,
    kind: Kind,
    all: &mut Vec<Measured>,
) -> Result<(), String> {
    println!("\n{keys} keys, {}: filling", kind.name());
    let limiters = Limiters::filled(kind, keys);
    println!("    {:?}", limiters.table.stats());
    let many = (
        Many::<16>(&limiters.table),
        Many::<32>(&limiters.table),
        Many::<64>(&limiters.table),
    );
    let memory_many = MemoryMany::<16>(&limiters.memory);
    let rows: [(&str, &dyn Row); 11] = [
        (FLOOR, &limiters.floor),
        (MEMORY, &limiters.memory),
        (MEMORY_MANY, &memory_many),
        (GOVERNOR, &limiters.governor),
        ("governor, tollgate's hasher", &limiters.rehashed),
        ("DashMap of mutexes", &limiters.mutexes),
        ("RwLock of a HashMap", &limiters.locked),
        (TABLE, &limiters.table),
        (MANY[0], &many.0),
        (MANY[1], &many.1),
        (MANY[2], &many.2),
    ];
    // Denied decisions are measured with one spread only.
    let spreads = options
        .spreads
        .iter()
        .filter(|spread| kind == Kind::Allowed || **spread == Spread::Uniform);
    for &spread in spreads {
        // From a million keys on, the sequence exceeds every cache.
        let sequence = spread.sequence(keys, if keys < 1_000_000 { 1 << 20 } else { 1 << 24 });
        for &threads in &options.threads {
            let group = Group {
                keys,
                kind,
                spread,
                threads,
            };
            let measured = compare(options.rounds, group, &rows, &sequence)?;
            measured.print();
            all.push(measured);
            let objects: Vec<_> = all.iter().flat_map(Measured::json).collect();
            write_json(options.json.as_deref(), &objects)?;
        }
    }
    println!("    {:?}", limiters.table.stats());
    Ok(())
}

fn compare(
    rounds: usize,
    group: Group,
    rows: &[(&'static str, &dyn Row)],
    sequence: &[u64],
) -> Result<Measured, String> {
    let courses: Vec<_> = rows
        .iter()
        .map(|(name, row)| (*name, Course::new(*row, sequence)))
        .collect();
    let names = rows.iter().map(|(name, _)| *name).collect();
    let rounds = thread::scope(|scope| {
        let crew = Crew::hire(scope, group.threads);
        let round = |_| {
            courses
                .iter()
                .map(|course| time(&crew, course, group))
                .collect()
        };
        (0..rounds).map(round).collect::<Result<_, _>>()
    })?;
    Ok(Measured {
        group,
        names,
        rounds,
    })
}

/// Returns the nanoseconds of a decision on its thread: the median of many slices, after a warm-up
/// that fills the caches with this limiter's data.
fn time<'j>(
    crew: &Crew<'j>,
    (name, course): &'j (&'static str, Course<'_>),
    group: Group,
) -> Result<f64, String> {
    let Group {
        keys,
        kind,
        threads,
        ..
    } = group;
    let time = |turns| {
        let time = crew.time(course, kind, threads, turns);
        time.map_err(|error| format!("{name}: {error}"))
    };
    time(keys.clamp(100_000, 1_000_000) / threads as u64)?;
    let slices = (0..SLICES).map(|_| Ok(time(SLICE)?.as_nanos() as f64 / SLICE as f64));
    Ok(middle(slices.collect::<Result<_, String>>()?))
}
