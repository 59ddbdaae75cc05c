//! The contestants of the measurements, for the benches and for `tollgate bench` alike.

pub(crate) mod bucket;
pub(crate) mod floor;
mod locked;
pub(crate) mod timing;

use std::sync::Mutex;

use tollgate::{ConfigError, SystemClock};

use bucket::{COARSE, Gate, ToldGate};
use locked::{Locked, Told};
use timing::{Aligned, Contestant, Kind, Runner};

/// Where a contestant has the time from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The raw counter.
    Raw,
    System,
    Coarse,
    /// The caller.
    Tick,
}

/// A contestant and what it is called.
#[allow(dead_code, reason = "who measures reads what it shows")]
pub(crate) struct Entry {
    /// For files and JSON.
    pub(crate) name: &'static str,
    /// For people.
    pub(crate) label: &'static str,
    pub(crate) source: Source,
    pub(crate) kind: Kind,
    pub(crate) runner: Box<dyn Runner>,
}

/// All contestants of this kind, the floor first.
pub(crate) fn entries(kind: Kind) -> Result<Vec<Entry>, ConfigError> {
    use Source::{Coarse, Raw, System, Tick};
    type Std<T> = Locked<Mutex<u64>, T>;
    type ParkingLot<T> = Locked<parking_lot::Mutex<u64>, T>;

    let floor: Box<dyn Runner> = match kind {
        Kind::Allowed => boxed(floor::Exchange::new()),
        Kind::Denied => boxed(floor::Load::new()),
    };
    let listed: [(_, _, _, Box<dyn Runner>); 10] = [
        ("floor", "floor", Raw, floor),
        (
            "tollgate_system",
            "token bucket, system",
            System,
            boxed(Gate::new(kind, SystemClock)?),
        ),
        (
            "tollgate_coarse",
            "token bucket, coarse",
            Coarse,
            boxed(Gate::new(kind, &COARSE)?),
        ),
        (
            "tollgate_tick",
            "token bucket, given tick",
            Tick,
            boxed(ToldGate::new(kind)?),
        ),
        (
            "std_mutex_system",
            "std mutex, system",
            System,
            boxed(Std::new(kind, SystemClock)?),
        ),
        (
            "std_mutex_coarse",
            "std mutex, coarse",
            Coarse,
            boxed(Std::new(kind, &COARSE)?),
        ),
        (
            "std_mutex_tick",
            "std mutex, given tick",
            Tick,
            boxed(Std::new(kind, Told)?),
        ),
        (
            "parking_lot_system",
            "parking_lot, system",
            System,
            boxed(ParkingLot::new(kind, SystemClock)?),
        ),
        (
            "parking_lot_coarse",
            "parking_lot, coarse",
            Coarse,
            boxed(ParkingLot::new(kind, &COARSE)?),
        ),
        (
            "parking_lot_tick",
            "parking_lot, given tick",
            Tick,
            boxed(ParkingLot::new(kind, Told)?),
        ),
    ];
    let entry = |(name, label, source, runner)| Entry {
        name,
        label,
        source,
        kind,
        runner,
    };
    Ok(listed.map(entry).into())
}

fn boxed<C: Contestant + 'static>(contestant: C) -> Box<dyn Runner> {
    Box::new(Aligned(contestant))
}
