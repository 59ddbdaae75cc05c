//! The contestants of the benches and of `tollgate bench`.
//!
//! To add one, write a [`Contestant`], or a [`Handled`] one if each thread has its own handle, and
//! add a line to [`entries`].

pub(crate) mod bucket;
pub(crate) mod floor;
mod locked;
#[allow(dead_code, reason = "the benches do not time single decisions")]
pub(crate) mod sampling;
mod sharded;
pub(crate) mod timing;
pub(crate) mod window;

use std::sync::Mutex;

use tollgate::clock::SystemClock;
use tollgate::error::LimiterError;

use bucket::{COARSE, Measured, ToldLimiter};
use floor::{Exchange, Load, Private};
use locked::{Locked, Told};
use sampling::Sampled;
use sharded::{Lending, Shards, ToldShards};
use timing::{Aligned, Contestant, Handled, Kind, PerThread};
use window::{Log, Slots};

/// A contestant's time source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The raw counter.
    Raw,
    System,
    Coarse,
    /// The caller passes a tick.
    Tick,
    /// The contestant's own clock, by name.
    #[allow(dead_code, reason = "not every measurement has such contestants")]
    Own(&'static str),
}

/// A contestant and its names.
#[allow(dead_code, reason = "each program reads the fields that it shows")]
pub(crate) struct Entry {
    /// The name in files and JSON.
    pub(crate) name: &'static str,
    /// The name in tables, without the time source.
    pub(crate) subject: &'static str,
    pub(crate) source: Source,
    pub(crate) kind: Kind,
    pub(crate) runner: Box<dyn Sampled>,
}

#[allow(dead_code, reason = "each program calls what it shows")]
impl Entry {
    /// Returns the name in tables, with the time source.
    pub(crate) fn label(&self) -> String {
        let source = match self.source {
            Source::Raw => return self.subject.to_owned(),
            Source::System => "system",
            Source::Coarse => "coarse",
            Source::Tick => "given tick",
            Source::Own(clock) => clock,
        };
        format!("{}, {source}", self.subject)
    }
}

/// Returns all contestants of this kind. The floors come first: on one word for all threads, and on
/// a word for each thread.
pub(crate) fn entries(kind: Kind) -> Result<Vec<Entry>, LimiterError> {
    use Source::{Coarse, Raw, System, Tick};
    type Std<T> = Locked<Mutex<u64>, T>;
    type ParkingLot<T> = Locked<parking_lot::Mutex<u64>, T>;

    let mut entries = Vec::new();
    let mut add = |name, subject, source, runner| {
        entries.push(Entry {
            name,
            subject,
            source,
            kind,
            runner,
        });
    };
    let (floor, private) = floors(kind);
    add("floor", "floor", Raw, floor);
    add("private", "private words", Raw, private);

    let bucket = "token bucket";
    let limiter = shared(Measured::new(kind, SystemClock)?);
    add("tollgate_system", bucket, System, limiter);
    let limiter = shared(Measured::new(kind, &COARSE)?);
    add("tollgate_coarse", bucket, Coarse, limiter);
    add(
        "tollgate_tick",
        bucket,
        Tick,
        shared(ToldLimiter::new(kind)?),
    );

    add(
        "sharded_system",
        "sharded",
        System,
        shared(Shards::new(kind)?),
    );
    let shards = shared(ToldShards::new(kind)?);
    add("sharded_tick", "sharded", Tick, shards);
    let lending = per_thread(Lending::new(kind, SystemClock)?);
    add("lease_system", "lease", System, lending);
    let lending = per_thread(Lending::new(kind, &COARSE)?);
    add("lease_coarse", "lease", Coarse, lending);

    add(
        "slots_system",
        "60 slots",
        System,
        shared(Slots::new(kind)?),
    );
    let slots = per_thread(window::Told::slots(kind)?);
    add("slots_tick", "60 slots", Tick, slots);
    add("log_system", "log of 1000", System, shared(Log::new(kind)?));
    let log = per_thread(window::Told::log(kind)?);
    add("log_tick", "log of 1000", Tick, log);

    let mutex = "std mutex";
    let limiter = shared(Std::new(kind, SystemClock)?);
    add("std_mutex_system", mutex, System, limiter);
    let limiter = shared(Std::new(kind, &COARSE)?);
    add("std_mutex_coarse", mutex, Coarse, limiter);
    add("std_mutex_tick", mutex, Tick, shared(Std::new(kind, Told)?));

    let mutex = "parking_lot";
    let limiter = shared(ParkingLot::new(kind, SystemClock)?);
    add("parking_lot_system", mutex, System, limiter);
    let limiter = shared(ParkingLot::new(kind, &COARSE)?);
    add("parking_lot_coarse", mutex, Coarse, limiter);
    let limiter = shared(ParkingLot::new(kind, Told)?);
    add("parking_lot_tick", mutex, Tick, limiter);
    Ok(entries)
}

/// Returns the floor on a shared word, and the floor on private words.
fn floors(kind: Kind) -> (Box<dyn Sampled>, Box<dyn Sampled>) {
    match kind {
        Kind::Allowed => (shared(Exchange::new()), per_thread(Private(Exchange::new))),
        Kind::Denied => (shared(Load::new()), per_thread(Private(Load::new))),
    }
}

fn shared<C: Contestant + 'static>(contestant: C) -> Box<dyn Sampled> {
    Box::new(Aligned(contestant))
}

fn per_thread<C: Handled + 'static>(contestant: C) -> Box<dyn Sampled> {
    Box::new(PerThread(contestant))
}
