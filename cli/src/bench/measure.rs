//! Rounds in which all contestants take turns, and their medians.

use std::error::Error;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::contest::Contest;
use super::contestants::timing::Crew;

/// How long a contestant is timed in a round, about. Far shorter than the time a system lets a
/// thread run, so that most slices are undisturbed even where other programs want the processors.
const SLICE: Duration = Duration::from_micros(500);

/// With less time than this many rounds need, the slices are shorter.
const MIN_ROUNDS: u32 = 3;

/// Turns of the slice from which the length of the others is reckoned: fewer where many threads
/// may wait for each other, and never fewer than [`LEAST_TURNS`].
const FIRST_TURNS: u64 = 2_000;

const LEAST_TURNS: u64 = 200;

/// What a contestant needs for a decision, with so many threads.
pub(crate) struct Measured<'a> {
    pub(crate) contest: &'a Contest,
    pub(crate) ns: f64,
}

/// Measures each contest in about `total` for all.
pub(crate) fn measure<'a>(
    contests: &'a [Contest],
    crew: &Crew<'a>,
    total: Duration,
) -> Result<Vec<Measured<'a>>, Box<dyn Error>> {
    let mut cells: Vec<_> = contests.iter().map(Cell::new).collect();
    let each = total / u32::try_from(cells.len())?;
    let rounds = each.div_duration_f64(SLICE) as u32;
    // Odd, so that the median is one of the slices.
    let rounds = rounds.max(MIN_ROUNDS) | 1;
    let slice = each / rounds;
    let bar = progress(u64::from(rounds) * cells.len() as u64);
    let start = Instant::now();
    for cell in &mut cells {
        cell.turns = turns_of(slice, cell.time(crew, cell.turns)?);
    }
    for round in 0..rounds {
        // What starting threads and the system's scheduling cost is seen as one goes.
        if round >= MIN_ROUNDS && start.elapsed() > total {
            break;
        }
        for cell in &mut cells {
            bar.set_message(cell.contest.entry.label());
            let ns = cell.time(crew, cell.turns)?;
            cell.samples.push(ns);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(cells.into_iter().map(Cell::finish).collect())
}

struct Cell<'a> {
    contest: &'a Contest,
    turns: u64,
    samples: Vec<f64>,
}

impl<'a> Cell<'a> {
    fn new(contest: &'a Contest) -> Self {
        Self {
            contest,
            turns: (FIRST_TURNS / contest.threads as u64).max(LEAST_TURNS),
            samples: Vec::new(),
        }
    }

    /// Nanoseconds a decision.
    fn time(&self, crew: &Crew<'a>, turns: u64) -> Result<f64, String> {
        let Contest { entry, threads } = self.contest;
        let taken = crew
            .time(&*entry.runner, entry.kind, *threads, turns)
            .map_err(|error| format!("{}: {error}", entry.label()))?;
        Ok(taken.as_nanos().max(1) as f64 / turns as f64)
    }

    fn finish(mut self) -> Measured<'a> {
        self.samples.sort_by(f64::total_cmp);
        let median = self.samples.get(self.samples.len() / 2);
        Measured {
            contest: self.contest,
            ns: median.copied().unwrap_or(f64::NAN),
        }
    }
}

/// How many turns of so many nanoseconds fill a slice.
fn turns_of(slice: Duration, ns: f64) -> u64 {
    let turns = slice.as_nanos() as f64 / ns;
    (turns as u64).max(LEAST_TURNS)
}

/// A bar on the error output, which shows nothing unless that is a terminal.
pub(crate) fn progress(length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar:.green} {percent:>3}%  {msg:25}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(length).with_style(style.progress_chars("━╸─"))
}
