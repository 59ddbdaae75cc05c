//! The figures, as rows of JSON.

use serde::Serialize;

use super::contest::Contest;
use super::contestants::Source;
use super::crowding::{Crowding, times_one_thread};
use super::measure::Measured;
use super::placement::{Placed, Placement};
use super::topology::{Cores, Figures, Topology};

/// Figures of which the larger is at most this many times the smaller are a tie.
pub(crate) const TIE: f64 = 1.1;

/// One object of the JSON.
#[derive(Serialize)]
pub(crate) struct Row<'a> {
    #[serde(skip)]
    pub(crate) contest: &'a Contest,
    name: String,
    pub(crate) threads: usize,
    pub(crate) ns_per_op: f64,
    pub(crate) mops: f64,
    pub(crate) vs_floor: f64,
    pub(crate) vs_mutex: f64,
    /// Nothing if one thread was not measured.
    pub(crate) vs_one_thread: Option<f64>,
    /// Whether so many threads don't have a core each.
    pub(crate) crowded: bool,
}

/// What `--scaling` adds to the rows.
#[derive(Serialize)]
pub(crate) struct Scaling<'a> {
    topology: Figures,
    /// Nothing if threads were not pinned.
    placement: Option<Vec<Placed>>,
    rows: &'a [Row<'a>],
}

impl<'a> Scaling<'a> {
    pub(crate) fn of(
        topology: &Topology,
        threads: &[usize],
        placement: &Placement,
        rows: &'a [Row<'a>],
    ) -> Self {
        Self {
            topology: topology.figures(),
            placement: threads.iter().map(|&n| placement.placed(n)).collect(),
            rows,
        }
    }
}

/// The figures with what follows from them, in the order of the measurements.
pub(crate) fn rows<'a>(measured: &[Measured<'a>], cores: Cores) -> Vec<Row<'a>> {
    let row = |one: &Measured<'a>| {
        let (contest, threads) = (one.contest, one.contest.threads);
        let entry = &contest.entry;
        let times = times_one_thread(entry.name, entry.kind, threads, measured);
        Row {
            contest,
            name: contest.name(),
            threads,
            ns_per_op: rounded(one.ns),
            mops: rounded(1e3 * threads as f64 / one.ns),
            vs_floor: rounded(one.ns / peer(measured, contest, "floor")),
            vs_mutex: rounded(peer(measured, contest, mutex_of(entry.source)) / one.ns),
            vs_one_thread: times.map(rounded),
            crowded: Crowding::of(threads, cores, measured).is_some(),
        }
    };
    measured.iter().map(row).collect()
}

/// What the named contestant needs for the same kind of decision with as many threads.
fn peer(measured: &[Measured<'_>], contest: &Contest, name: &str) -> f64 {
    let found = measured
        .iter()
        .find(|other| other.contest.is_peer(name, contest));
    found.map_or(f64::NAN, |other| other.ns)
}

/// The mutex with the same clock.
const fn mutex_of(source: Source) -> &'static str {
    match source {
        Source::Raw | Source::System | Source::Own(_) => "std_mutex_system",
        Source::Coarse => "std_mutex_coarse",
        Source::Tick => "std_mutex_tick",
    }
}

/// To four places: more would be noise.
fn rounded(figure: f64) -> f64 {
    (figure * 1e4).round() / 1e4
}

/// To three digits, or to the whole: what a person takes in, and narrow.
pub(crate) fn short(figure: f64) -> String {
    let decimals = match figure {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{figure:.decimals$}")
}
