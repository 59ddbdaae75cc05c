//! The answers of an algorithm to each load, on a manual clock.

use std::error::Error;
use std::time::Duration;

use serde::Serialize;
use tollgate::algorithm::ChangeQuota;
use tollgate::{AnyAlgorithm, Limiter, ManualClock, Tick};

use super::loads::{self, Load};
use super::subjects::{LIMIT, PERIOD_NS, Subject};

/// The contents of an algorithm's picture.
#[derive(Debug, Serialize)]
pub(crate) struct Recorded {
    pub(crate) name: &'static str,
    #[serde(skip)]
    pub(crate) title: &'static str,
    /// The algorithm as it prints itself.
    pub(crate) algorithm: String,
    pub(crate) limit: u64,
    pub(crate) period_ns: u64,
    pub(crate) loads: Vec<Answered>,
}

/// The answers to one load.
#[derive(Debug, Serialize)]
pub(crate) struct Answered {
    pub(crate) name: &'static str,
    #[serde(skip)]
    pub(crate) title: &'static str,
    pub(crate) requests: Vec<Request>,
}

/// One request for one permit.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Request {
    pub(crate) at_ns: u64,
    /// When the request may go, or `None` if it was denied.
    pub(crate) leaves_ns: Option<u64>,
}

impl Recorded {
    pub(crate) fn of(subject: &Subject) -> Result<Self, Box<dyn Error>> {
        let algorithm: AnyAlgorithm = subject.text.parse()?;
        let quota = algorithm.quota();
        if (quota.permits(), quota.burst_size()) != (LIMIT, LIMIT)
            || quota.period() != Duration::from_nanos(PERIOD_NS)
        {
            return Err(format!("{}: its quota differs from the others", subject.text).into());
        }
        Ok(Self {
            name: subject.name,
            title: subject.title,
            algorithm: algorithm.to_string(),
            limit: LIMIT,
            period_ns: PERIOD_NS,
            loads: loads::all()
                .iter()
                .map(|load| answer(algorithm, load))
                .collect(),
        })
    }
}

/// Asks a fresh limiter for each permit of the load at its time.
fn answer(algorithm: AnyAlgorithm, load: &Load) -> Answered {
    let clock = ManualClock::new();
    let limiter = Limiter::with_clock(algorithm, clock.clone());
    let ask = |&at_ns: &u64| {
        clock.set(Tick::from_nanos(at_ns));
        let granted = limiter.try_acquire().ok();
        let leaves = granted.map(|granted| limiter.now().saturating_add(granted.delay()));
        Request {
            at_ns,
            leaves_ns: leaves.map(Tick::as_nanos),
        }
    };
    Answered {
        name: load.name,
        title: load.title,
        requests: load.at_ns.iter().map(ask).collect(),
    }
}
