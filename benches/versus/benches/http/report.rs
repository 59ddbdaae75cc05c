//! Medians, and which targets they meet.

use super::lanes::{Case, GOVERNOR, NONE, POLICY, TOLLGATE};
use super::timing::Kind;

/// The most nanoseconds that tollgate's layer may add.
const MOST: f64 = 200.0;

/// The most that it may add relative to tower_governor's.
const SHARE: f64 = 0.7;

/// The most that a lane may add, as multiples of what tower_governor's layer adds to an allowed
/// request without fields.
const MULTIPLES: [(usize, &str, Kind, bool, f64); 5] = [
    (TOLLGATE, "tollgate", Kind::Allowed, false, 0.6),
    (TOLLGATE, "tollgate", Kind::Allowed, true, 3.9),
    (TOLLGATE, "tollgate", Kind::Denied, false, 1.9),
    (POLICY, "policy", Kind::Allowed, false, 2.3),
    (POLICY, "policy", Kind::Denied, false, 3.4),
];

/// The nanoseconds of a request on its thread, for each service and round.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) case: Case,
    pub(crate) rounds: Vec<Vec<f64>>,
}

/// Returns the median.
pub(crate) fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

impl Measured {
    /// Returns the median of the rounds.
    fn of(&self, figure: impl Fn(&[f64]) -> f64) -> f64 {
        middle(self.rounds.iter().map(|ns| figure(ns)).collect())
    }

    /// Returns what a layer adds.
    fn added(&self, lane: usize) -> f64 {
        self.of(|ns| ns[lane] - ns[NONE])
    }

    /// Returns what tollgate's layer adds relative to tower_governor's.
    fn share(&self) -> f64 {
        self.of(|ns| (ns[TOLLGATE] - ns[NONE]) / (ns[GOVERNOR] - ns[NONE]))
    }

    pub(crate) fn print(&self) {
        print!(
            "    {:48} {:6.0}",
            self.case.label(),
            self.of(|ns| ns[NONE])
        );
        for lane in [TOLLGATE, POLICY, GOVERNOR] {
            print!(" {:8.0}", self.added(lane));
        }
        println!();
    }

    /// Returns the figures as an object of JSON.
    pub(crate) fn json(&self) -> String {
        let Case {
            kind,
            has_fields,
            addresses,
            threads,
        } = self.case;
        let (kind, none) = (kind.name(), self.of(|ns| ns[NONE]));
        let [tollgate, policy, governor] =
            [TOLLGATE, POLICY, GOVERNOR].map(|lane| self.added(lane));
        format!(
            r#"{{"kind": "{kind}", "fields": {has_fields}, "addresses": {addresses}, "threads": {threads}, "none_ns": {none:.1}, "tollgate_adds_ns": {tollgate:.1}, "policy_adds_ns": {policy:.1}, "governor_adds_ns": {governor:.1}}}"#
        )
    }
}

/// Prints what is judged. Returns how many targets are missed.
pub(crate) fn judge(all: &[Measured]) -> usize {
    let mut missed = 0;
    println!("\nwhat tollgate adds");
    let mut line = |case: Case, what: &str, value: f64, most: f64| {
        let verdict = match value <= most {
            true => "met",
            false => {
                missed += 1;
                "MISSED"
            }
        };
        println!(
            "    {:48} {what:20} {value:7.2}   <= {most:<4} {verdict}",
            case.label()
        );
    };
    for measured in all {
        line(measured.case, "ns", measured.added(TOLLGATE), MOST);
        line(
            measured.case,
            "relative to governor",
            measured.share(),
            SHARE,
        );
    }
    let plain = |case: Case| {
        let mut all = all.iter();
        let plain = all.find(|it| {
            it.case
                == Case {
                    kind: Kind::Allowed,
                    has_fields: false,
                    ..case
                }
        });
        plain.map_or(f64::NAN, |it| it.added(GOVERNOR))
    };
    for measured in all {
        let case = measured.case;
        for (lane, name, kind, has_fields, most) in MULTIPLES {
            if (kind, has_fields) == (case.kind, case.has_fields) {
                let multiple = measured.added(lane) / plain(case);
                line(case, &format!("{name}, multiple"), multiple, most);
            }
        }
    }
    match missed {
        0 => println!("\nall targets met"),
        _ => println!("\n{missed} targets missed"),
    }
    missed
}
