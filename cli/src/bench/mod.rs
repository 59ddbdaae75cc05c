//! `tollgate bench`: what a decision costs on this machine.
//!
//! | file | what |
//! |---|---|
//! | `arguments` | the command-line arguments |
//! | `contestants`, `keyed` | the contestants, shared with the criterion benches |
//! | `peers` | other limiters, with the feature `peers` |
//! | `about` | descriptions of the contestants |
//! | `contest` | each contestant with each number of threads |
//! | `measure` | rounds in which all contestants take turns, and their medians |
//! | `latency` | single decisions, each timed by itself |
//! | `crowding` | whether threads have a core each |
//! | `rows` | the figures as rows of JSON |
//! | `tables`, `scaling`, `quickest` | the figures for the terminal |
//! | `page` | the figures with pictures for a browser |
//! | `machine`, `topology` | the measured machine |
//! | `placement` | which processor each thread runs on |

mod about;
mod arguments;
mod contest;
#[path = "../../../benches/contestants/mod.rs"]
mod contestants;
mod crowding;
#[path = "../../../benches/contestants/keyed.rs"]
mod keyed;
mod latency;
mod machine;
mod measure;
mod page;
#[cfg(feature = "peers")]
mod peers;
mod placement;
mod quickest;
mod rows;
mod scaling;
mod tables;
mod topology;

use std::error::Error;
use std::io::{self, Write};
use std::{panic, thread};

pub(crate) use arguments::Arguments;
use contest::Contest;
use contestants::timing::Crew;
use latency::Latency;
use measure::Measured;
use page::{Findings, Page};
use placement::Placement;
use rows::Scaling;
use topology::Topology;

/// Measures, and prints the figures.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    // Check that the page can be written before measuring anything.
    let page = arguments.report.as_deref().map(Page::create).transpose()?;
    let topology = Topology::of_this_machine();
    let (threads, cores) = (arguments.threads(&topology), topology.cores());
    let contests = contest::all(&threads, arguments.scaling)?;
    let timing = contest::of_timing_alone(&threads);
    let placement = Placement::on(&topology);
    let (measured, latencies) = measure(arguments, &contests, &timing, &placement)?;

    let rows = rows::rows(&measured, cores);
    let contention = scaling::contention(&threads, cores, &measured);
    let machine = match arguments.scaling {
        true => scaling::machine(&topology, &threads, &placement),
        false => placement.note().map(str::to_owned).into_iter().collect(),
    };
    let mut out = io::stdout().lock();
    if arguments.json {
        match arguments.scaling {
            true => {
                let scaling = Scaling::of(&topology, &threads, &placement, &rows);
                serde_json::to_writer_pretty(&mut out, &scaling)?;
            }
            false => serde_json::to_writer_pretty(&mut out, &rows)?,
        }
        writeln!(out)?;
    } else {
        writeln!(out, "{}", machine::headline(cores))?;
        for line in &machine {
            writeln!(out, "{line}")?;
        }
        if !contention.is_empty() {
            write!(out, "\n{}:\n{contention}", scaling::CONTENTION)?;
        }
        write!(out, "{}", quickest::table(&threads, &rows))?;
        write!(out, "{}", tables::tables(&rows))?;
        let scaling = scaling::tables(&threads, cores, &measured, &rows);
        write!(out, "{scaling}")?;
    }
    if let Some(page) = page {
        let path = page.write(&Findings {
            threads: &threads,
            cores,
            machine: &machine,
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

/// Measures the throughput and, if the page shows it, the latency too, with half of the time for
/// each.
///
/// A separate thread measures, because the caller's thread must not be pinned to a processor.
fn measure<'a>(
    arguments: &Arguments,
    contests: &'a [Contest],
    timing: &'a [Contest],
    placement: &Placement,
) -> Result<Found<'a>, Box<dyn Error>> {
    let threads = contests.iter().map(|contest| contest.threads).max();
    let total = arguments.total();
    let pinned = || -> Result<Found<'a>, Box<dyn Error>> {
        thread::scope(|scope| {
            let crew = Crew::hire_with(scope, threads.unwrap_or(1), |n| placement.pin(n));
            if !arguments.has_latency() {
                return Ok((measure::measure(contests, &crew, total)?, Vec::new()));
            }
            let measured = measure::measure(contests, &crew, total / 2)?;
            let latencies = latency::measure([timing, contests], &crew, total / 2)?;
            Ok((measured, latencies))
        })
    };
    let upkeep = contestants::bucket::keep_coarse()?;
    let found = thread::scope(|scope| {
        let measuring = scope.spawn(|| pinned().map_err(|error| error.to_string()));
        measuring
            .join()
            .unwrap_or_else(|cause| panic::resume_unwind(cause))
    });
    drop(upkeep);
    Ok(found?)
}
