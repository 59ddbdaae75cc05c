//! What a layer adds to an empty HTTP service: tollgate's by address, the same with a policy of one
//! rule, and that of tower_governor. One request after another is made, sent and read, by one
//! thread or by two at once, from one address or from ten thousand.
//!
//!     cargo bench -p tollgate-versus --bench http [-- --check --rounds 15 --threads 1]
//!
//! What a layer adds is its time less that of the service alone. All take turns within a round, so
//! that a disturbance affects them alike. The result is the median of the rounds. With `--check` a
//! missed target is a failure. `--json FILE` writes the figures to a file too. Use a quiet machine.

mod lanes;
mod options;
mod report;
mod service;
#[path = "../../../contestants/timing.rs"]
#[allow(dead_code, reason = "shared with the other benches")]
mod timing;

use std::process::ExitCode;
use std::thread;

use crate::service::check;

use lanes::{Case, lanes};
use options::{Options, USAGE};
use report::{Measured, judge, middle};
use timing::{Crew, Runner};
use tollgate_versus::write_json;

/// Requests between two readings of the clock. They take far less than a scheduler's time slice.
const SLICE: u64 = 500;

/// The slices of a lane in a round.
const SLICES: usize = 60;

fn main() -> ExitCode {
    let options = match Options::read() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match measured(&options) {
        Ok(missed) => ExitCode::from(u8::from(options.check && missed > 0)),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures all cases, and returns how many targets are missed.
fn measured(options: &Options) -> Result<usize, String> {
    check()?;
    println!(
        "{:54} none tollgate   policy governor",
        "ns a request; what a layer adds"
    );
    let mut all = Vec::new();
    for case in Case::all(&options.threads) {
        let measured = compare(options.rounds, case)?;
        measured.print();
        all.push(measured);
        let objects: Vec<_> = all.iter().map(Measured::json).collect();
        write_json(options.json.as_deref(), &objects)?;
    }
    Ok(judge(&all))
}

fn compare(rounds: usize, case: Case) -> Result<Measured, String> {
    let lanes = lanes(case)?;
    let rounds = thread::scope(|scope| {
        let crew = Crew::hire(scope, case.threads);
        let round = |_| {
            let mut slices: Vec<_> = lanes.iter().map(|_| Vec::with_capacity(SLICES)).collect();
            for slice in 0..SLICES {
                for turn in 0..lanes.len() {
                    // Each lane comes after each other one equally often.
                    let lane = (turn + slice) % lanes.len();
                    let runner: &dyn Runner = &*lanes[lane].runner;
                    let time = crew.time(runner, case.kind, case.threads, SLICE);
                    let time = time.map_err(|error| format!("{}: {error}", lanes[lane].name))?;
                    slices[lane].push(time.as_nanos() as f64 / SLICE as f64);
                }
            }
            Ok(slices.into_iter().map(middle).collect())
        };
        (0..rounds).map(round).collect::<Result<_, String>>()
    })?;
    Ok(Measured { case, rounds })
}
