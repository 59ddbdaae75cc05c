//! `tollgate bench`: what a decision costs on this machine.
//!
//! | file | what |
//! |---|---|
//! | `arguments` | what can be asked for |
//! | `contestants` | what is measured: shared with the criterion benches |
//! | `contest` | each of them with each number of threads |
//! | `measure` | rounds in which all take turns, and their medians |
//! | `latency` | single decisions, each timed by itself |
//! | `crowding` | whether threads have a core each |
//! | `rows` | the figures, as rows of JSON |
//! | `tables`, `scaling` | the figures, for the terminal |
//! | `page` | the figures with pictures, for a browser |
//! | `machine` | where they come from |

mod arguments;
mod contest;
#[path = "../../../benches/contestants/mod.rs"]
mod contestants;
mod crowding;
mod latency;
mod machine;
mod measure;
mod page;
mod rows;
mod scaling;
mod tables;

use std::error::Error;
use std::io::{self, Write};
use std::thread;

pub(crate) use arguments::Arguments;
use contest::Contest;
use contestants::timing::Crew;
use latency::Latency;
use machine::Cores;
use measure::Measured;
use page::{Findings, Page};

/// Measures, and prints the figures.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    // Before anything is measured, so that nobody waits for what can't be written.
    let page = arguments.report.as_deref().map(Page::create).transpose()?;
    let threads = arguments.threads();
    let contests = contest::all(&threads)?;
    let timing = contest::of_timing_alone(&threads);
    let (measured, latencies) = measure(arguments, &contests, &timing)?;

    let cores = Cores::of_this_machine();
    let rows = rows::rows(&measured, cores);
    let contention = scaling::contention(&threads, cores, &measured);
    let mut out = io::stdout().lock();
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &rows)?;
        writeln!(out)?;
    } else {
        writeln!(out, "{}", machine::headline())?;
        if !contention.is_empty() {
            write!(out, "\n{contention}")?;
        }
        write!(out, "{}", tables::tables(&rows))?;
        let scaling = scaling::tables(&threads, cores, &measured, &rows);
        write!(out, "{scaling}")?;
    }
    if let Some(page) = page {
        let path = page.write(&Findings {
            threads: &threads,
            contention,
            rows: &rows,
            latencies: &latencies,
        })?;
        if !arguments.json {
            writeln!(out, "\n{}", path.display())?;
        }
    }
    out.flush()?;
    Ok(())
}

type Found<'a> = (Vec<Measured<'a>>, Vec<Latency<'a>>);

/// The throughput; and the latency too, in half of the time, if there is to be a page.
fn measure<'a>(
    arguments: &Arguments,
    contests: &'a [Contest],
    timing: &'a [Contest],
) -> Result<Found<'a>, Box<dyn Error>> {
    let threads = contests.iter().map(|contest| contest.threads).max();
    let total = arguments.total();
    let upkeep = contestants::bucket::keep_coarse()?;
    let found = thread::scope(|scope| -> Result<_, Box<dyn Error>> {
        let crew = Crew::hire(scope, threads.unwrap_or(1));
        if arguments.report.is_none() {
            return Ok((measure::measure(contests, &crew, total)?, Vec::new()));
        }
        let measured = measure::measure(contests, &crew, total / 2)?;
        let latencies = latency::measure([timing, contests], &crew, total / 2)?;
        Ok((measured, latencies))
    });
    drop(upkeep);
    found
}
