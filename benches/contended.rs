//! Measures two threads that request permits from one limit without a pause: the number of
//! decisions, how evenly the threads share them, and the slowest latencies, beside mutexes. All
//! take turns in one run.
//!
//!     cargo bench --bench contended --all-features -- [--strict] [--threads N] [--seconds S]
//!         [--json FILE] [NAME...]
//!
//! In a round, the threads use each limiter for 100 ms. There are nine rounds, or fewer if the
//! seconds pass. The results are the medians of the rounds' figures and of their ratios. With
//! `--strict` a missed target is a failure. `--json` writes the results to a file too. Use a quiet
//! machine with two cores or more. With another number of threads, or with named contestants, the
//! bench only compares the limiter with an exchange of one word.

#![allow(clippy::disallowed_types, reason = "no model runs a bench")]

#[allow(dead_code, reason = "not every bench needs all of them")]
mod contestants;

use std::process::ExitCode;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use contestants::bucket::{bucket, keep_coarse};
use contestants::floor::Counted;
use contestants::sampling::Sampled;
use contestants::timing::{Aligned, Contestant, Kind, PerThread};
use contestants::window::{self, LockedLog, LockedLogNow};
use contestants::{Entry, entries};
use tollgate::clock::NoClock;
use tollgate::{Adjustable, Concurrency, Keyed, Tick, TokenBucket};

/// The cost of a decision before threads backed off after a lost exchange, as a multiple of the
/// contended floor. The target is half of it.
const WITHOUT_WAITING: [(&str, f64); 7] = [
    ("slots_system", 1.25),
    ("slots_tick", 0.81),
    ("log_system", 3.66),
    ("log_tick", 2.87),
    ("hot_key_tick", 0.86),
    ("adjustable_tick", 1.41),
    ("concurrency", 0.91),
];

/// An exchange of one word between the same clock and the same arithmetic as a limiter has.
const RAW: &str = "raw_system";

/// How long the threads use one limiter.
const RACE: Duration = Duration::from_millis(100);

/// Decisions between two checks of whether to stop.
const BATCH: u64 = 64;

/// The most latencies that a thread keeps; newer ones replace older ones.
const SAMPLES: usize = 1 << 19;

/// The most latencies that all threads keep, since they are searched after each race.
const ALL_SAMPLES: usize = 1 << 22;

/// One key that all threads use.
struct HotKey(Keyed<TokenBucket>);

impl Contestant for HotKey {
    #[inline(always)]
    fn decide(&self, turn: u64) -> bool {
        self.0
            .key(&7_u64)
            .at(Tick::from_nanos(turn))
            .try_acquire()
            .is_ok()
    }
}

struct Changing(Adjustable<TokenBucket, NoClock>);

impl Contestant for Changing {
    #[inline(always)]
    fn decide(&self, turn: u64) -> bool {
        self.0.at(Tick::from_nanos(turn)).try_acquire().is_ok()
    }
}

/// A decision here is to enter and to leave.
struct Inside(Concurrency);

impl Contestant for Inside {
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        self.0.try_enter().is_ok()
    }
}

type Named = (&'static str, Box<dyn Sampled>);

fn all() -> Vec<Named> {
    let of = |entry: Entry| (entry.name, entry.runner);
    let each = entries(Kind::Allowed).expect("quotas that can be represented");
    let mut all: Vec<Named> = each.into_iter().map(of).collect();
    let bucket = bucket(Kind::Allowed).expect("a quota");
    let key = Keyed::new(bucket, 1000).expect("a capacity");
    let changing = Adjustable::starting_at(bucket, NoClock, Tick::ZERO);
    all.push((RAW, Box::new(Aligned(Counted::new()))));
    all.push(("hot_key_tick", Box::new(Aligned(HotKey(key)))));
    all.push(("adjustable_tick", Box::new(Aligned(Changing(changing)))));
    let locked = LockedLogNow(LockedLog::new(Kind::Allowed));
    all.push(("mutex_log_system", Box::new(Aligned(locked))));
    let locked = window::Told(LockedLog::new(Kind::Allowed), Kind::Allowed);
    all.push(("mutex_log_tick", Box::new(PerThread(locked))));
    let inside = Inside(Concurrency::new(1000).expect("a limit"));
    all.push(("concurrency", Box::new(Aligned(inside))));
    all
}

/// The figures of a race of two threads.
struct Race {
    /// The cost of a decision on its thread.
    ns: f64,
    /// The slowest thread's share of all decisions.
    share: f64,
}

/// The latency of single decisions.
struct Tail {
    /// The 99.9th percentile, in nanoseconds.
    p999: f64,
    /// The 99.99th percentile, in nanoseconds.
    p9999: f64,
}

/// Runs `run` on `threads` threads at once, until the race is over.
fn race<T: Send>(
    threads: usize,
    run: impl Fn(&dyn Fn() -> bool) -> T + Sync,
) -> (Duration, Vec<T>) {
    let (ready, over) = (Barrier::new(threads + 1), AtomicU64::new(0));
    let thread = || {
        ready.wait();
        // ORDERING: Relaxed. It publishes nothing; a thread that sees it late only makes another
        // batch.
        run(&|| over.load(Relaxed) == 0)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(thread)).collect();
        ready.wait();
        let start = Instant::now();
        thread::sleep(RACE);
        over.swap(1, Relaxed);
        let took = start.elapsed();
        let join = |thread: thread::ScopedJoinHandle<'_, T>| thread.join().expect("no panic");
        (took, threads.into_iter().map(join).collect())
    })
}

fn race_for_numbers(contestant: &dyn Sampled, threads: usize) -> Race {
    let (took, made) = race(threads, |goes_on| {
        let (mut player, mut made) = (contestant.player(threads), 0);
        while goes_on() {
            let allowed = player.run(made, BATCH);
            assert_eq!(allowed, BATCH, "a decision was denied");
            made += BATCH;
        }
        made
    });
    let all: u64 = made.iter().sum();
    let least = made.iter().min().copied().unwrap_or(0);
    Race {
        ns: took.as_nanos() as f64 * threads as f64 / all as f64,
        share: least as f64 / all as f64,
    }
}

fn race_for_tails(contestant: &dyn Sampled, threads: usize) -> Tail {
    let clock = &quanta::Clock::new();
    let (_, taken) = race(threads, |goes_on| {
        let (mut sampler, mut made) = (contestant.sampler(threads), 0);
        let mut taken = vec![0; SAMPLES.min(ALL_SAMPLES / threads)];
        while goes_on() {
            for batch in taken.chunks_mut(BATCH as usize) {
                sampler.sample(made, clock, batch);
                made += BATCH;
                if !goes_on() {
                    break;
                }
            }
        }
        taken.truncate(usize::try_from(made).unwrap_or(usize::MAX));
        taken
    });
    let mut taken = taken.concat();
    let mut all_but_one_in = |n: usize| {
        let place = taken.len() - taken.len() / n - 1;
        let (_, counts, _) = taken.select_nth_unstable(place);
        clock.delta_as_nanos(0, *counts) as f64
    };
    Tail {
        p999: all_but_one_in(1000),
        p9999: all_but_one_in(10_000),
    }
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The rounds of one contestant.
struct Seen {
    name: &'static str,
    rounds: Vec<(Race, Tail)>,
}

impl Seen {
    fn middle(&self, of: impl Fn(&(Race, Tail)) -> f64) -> f64 {
        middle(self.rounds.iter().map(of).collect())
    }
}

/// The figures of all contestants, and whether a target was missed.
struct Figures {
    seen: Vec<Seen>,
    missed: bool,
    /// The targets as objects of JSON.
    targets: Vec<String>,
}

impl Figures {
    fn rounds(&self, name: &str) -> &[(Race, Tail)] {
        let seen = self.seen.iter().find(|seen| seen.name == name);
        seen.map_or(&[], |seen| &seen.rounds)
    }

    /// Returns the median of the rounds' ratios.
    fn ratio(&self, above: &str, below: &str, of: impl Fn(&(Race, Tail)) -> f64) -> f64 {
        let rounds = self.rounds(above).iter().zip(self.rounds(below));
        middle(rounds.map(|(above, below)| of(above) / of(below)).collect())
    }

    fn judge(&mut self, what: &str, value: f64, is_met: bool, target: &str) {
        self.missed |= !is_met;
        let verdict = if is_met { "met" } else { "MISSED" };
        println!("{what:68} {value:6.2}   {target:8} {verdict}");
        self.targets.push(format!(
            r#"{{"what": "{what}", "value": {value:.2}, "target": "{target}", "met": {is_met}}}"#
        ));
    }

    /// Prints the figures of all contestants. Returns them as objects of JSON.
    fn print(&self, threads: usize) -> Vec<String> {
        println!(
            "{:20} {:>8} {:>8} {:>9} {:>9}",
            "", "ns", "share", "p99.9", "p99.99"
        );
        let line = |seen: &Seen| {
            let ns = seen.middle(|(race, _)| race.ns);
            let share = seen.middle(|(race, _)| race.share);
            let p999 = seen.middle(|(_, tail)| tail.p999);
            let p9999 = seen.middle(|(_, tail)| tail.p9999);
            let name = seen.name;
            println!("{name:20} {ns:8.2} {share:8.2} {p999:9.0} {p9999:9.0}");
            format!(
                r#"{{"name": "{name}", "threads": {threads}, "ns_per_op": {ns:.2}, "share": {share:.3}, "p999_ns": {p999:.0}, "p9999_ns": {p9999:.0}}}"#
            )
        };
        let lines = self.seen.iter().map(line).collect();
        println!();
        lines
    }

    fn judge_the_word(&mut self) {
        for (clock, than_parking_lot, than_std) in [
            ("tick", 3.5, 4.5),
            ("coarse", 3.5, 4.5),
            ("system", 2.3, 2.3),
        ] {
            let word = format!("tollgate_{clock}");
            for (mutex, least) in [("parking_lot", than_parking_lot), ("std_mutex", than_std)] {
                let value = self.ratio(&format!("{mutex}_{clock}"), &word, |(race, _)| race.ns);
                let what = format!("one word, {clock}: throughput relative to {mutex}");
                self.judge(&what, value, value >= least, &format!(">= {least}"));
            }
            let least = self.rounds(&word).iter().map(|(race, _)| race.share);
            let share = middle(least.collect());
            let what = format!("one word, {clock}: the slower thread's share");
            self.judge(&what, share, share >= 0.25, ">= 0.25");
            let value = self.ratio(&word, &format!("parking_lot_{clock}"), |(_, tail)| {
                tail.p999
            });
            let what = format!("one word, {clock}: p99.9 relative to parking_lot");
            self.judge(&what, value, value <= 1.0, "<= 1");
            let value = self.ratio(&word, &format!("std_mutex_{clock}"), |(_, tail)| tail.p9999);
            let what = format!("one word, {clock}: p99.99 relative to std");
            self.judge(&what, value, value <= 1.0, "<= 1");
        }
    }

    /// Compares a limiter with an exchange that retries at once.
    fn judge_waiting(&mut self, threads: usize) {
        let word = "tollgate_system";
        let value = self.ratio(RAW, word, |(race, _)| race.ns);
        let what = format!("one word, system, {threads} threads: throughput relative to raw");
        self.judge(&what, value, value >= 0.9, ">= 0.9");
        let value = self.ratio(word, RAW, |(_, tail)| tail.p999);
        let what = format!("one word, system, {threads} threads: p99.9 relative to raw");
        self.judge(&what, value, value <= 1.2, "<= 1.2");
    }

    fn judge_the_log(&mut self) {
        for clock in ["system", "tick"] {
            let locked = format!("mutex_log_{clock}");
            let value = self.ratio(&format!("log_{clock}"), &locked, |(race, _)| race.ns);
            let what = format!("log, {clock}: time relative to a std mutex around a ring");
            self.judge(&what, value, value <= 1.0, "<= 1");
        }
    }

    fn judge_the_others(&mut self) {
        for (name, before) in WITHOUT_WAITING {
            let value = before / self.ratio(name, "floor", |(race, _)| race.ns);
            let what = format!("{name}: throughput relative to retrying at once");
            self.judge(&what, value, value >= 2.0, ">= 2");
        }
    }
}

/// Returns the argument after this option.
fn after(option: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != option);
    arguments.nth(1)
}

/// Returns the number after this option.
fn number_after(option: &str) -> Option<usize> {
    after(option)?.parse().ok().filter(|number| *number > 0)
}

fn main() -> ExitCode {
    let upkeep = keep_coarse().expect("a thread can be started");
    let mut contestants = all();
    let named = |name: &str| std::env::args().skip(1).any(|argument| argument == name);
    if contestants.iter().any(|(name, _)| named(name)) {
        contestants.retain(|(name, _)| named(name));
    }
    let has = |wanted| std::env::args().any(|argument| argument == wanted);
    // `cargo test` only checks that it runs.
    let rounds = if has("--bench") { 9 } else { 1 };
    let seconds = number_after("--seconds").map_or(u64::MAX, |seconds| seconds as u64);
    let unseen = |(name, _): &Named| Seen {
        name,
        rounds: Vec::new(),
    };
    let mut seen: Vec<Seen> = contestants.iter().map(unseen).collect();
    let threads = number_after("--threads").unwrap_or(2);
    let start = Instant::now();
    for _ in 0..rounds {
        for (seen, (_, contestant)) in seen.iter_mut().zip(&contestants) {
            contestant.prepare();
            let numbers = race_for_numbers(&**contestant, threads);
            contestant.prepare();
            seen.rounds
                .push((numbers, race_for_tails(&**contestant, threads)));
        }
        if start.elapsed().as_secs() >= seconds {
            break;
        }
    }
    drop(upkeep);
    let mut figures = Figures {
        seen,
        missed: false,
        targets: Vec::new(),
    };
    let rows = figures.print(threads);
    let has_both = |name: &&str| !figures.rounds(name).is_empty();
    if [RAW, "tollgate_system"].iter().all(has_both) {
        figures.judge_waiting(threads);
    }
    if threads == 2 && figures.seen.len() == all().len() {
        figures.judge_the_word();
        figures.judge_the_log();
        figures.judge_the_others();
    }
    if let Some(file) = after("--json") {
        let [rows, targets] = [rows, figures.targets].map(|lines| lines.join(",\n"));
        let json = format!("{{\"rows\": [\n{rows}\n], \"targets\": [\n{targets}\n]}}\n");
        std::fs::write(file, json).expect("a file that can be written");
    }
    ExitCode::from(u8::from(figures.missed && has("--strict")))
}
