//! Measures in rounds in which all contestants take turns, and takes medians.

use std::error::Error;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::contest::Contest;
use super::contestants::timing::Crew;

/// The approximate length of a contestant's slice in a round. It is far shorter than a scheduler's
/// time slice, so most slices are undisturbed even if other programs use the processors.
const SLICE: Duration = Duration::from_micros(500);

/// If there is not enough time for this many rounds, the slices are shorter.
const MIN_ROUNDS: u32 = 3;

/// Turns of the first slice, which calibrates the others. Divided by the number of threads, since
/// they may wait for each other, but at least [`LEAST_TURNS`].
const FIRST_TURNS: u64 = 2_000;

const LEAST_TURNS: u64 = 200;

/// What a decision costs a contestant, with this many threads.
pub(crate) struct Measured<'a> {
    pub(crate) contest: &'a Contest,
    pub(crate) ns: f64,
}

/// Measures every contest, in about `total` for all together.
pub(crate) fn measure<'a>(
    contests: &'a [Contest],
    crew: &Crew<'a>,
    total: Duration,
) -> Result<Vec<Measured<'a>>, Box<dyn Error>> {
    let mut cells: Vec<_> = contests.iter().map(Cell::new).collect();
    let each = total / u32::try_from(cells.len())?;
    let rounds = each.div_duration_f64(SLICE) as u32;
    // An odd number, so that the median is one of the slices.
    let rounds = rounds.max(MIN_ROUNDS) | 1;
    let slice = each / rounds;
    let bar = progress(u64::from(rounds) * cells.len() as u64);
    let start = Instant::now();
    for cell in &mut cells {
        cell.turns = turns_of(slice, cell.time(crew, cell.turns)?);
    }
    for round in 0..rounds {
        // The cost of starting threads is not known in advance, so check the time between rounds.
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

    /// Returns the nanoseconds of a decision.
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

/// Returns how many turns of `ns` nanoseconds fill a slice.
fn turns_of(slice: Duration, ns: f64) -> u64 {
    let turns = slice.as_nanos() as f64 / ns;
    (turns as u64).max(LEAST_TURNS)
}

/// Returns a progress bar on the error output. It is hidden unless that is a terminal.
pub(crate) fn progress(length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar:.green} {percent:>3}%  {msg:25}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(length).with_style(style.progress_chars("━╸─"))
}
