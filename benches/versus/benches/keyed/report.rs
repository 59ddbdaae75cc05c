//! Medians, the ratios between them, and which targets they meet.

use tollgate_versus::keys::Spread;

use super::timing::Kind;

/// The conditions of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) keys: u64,
    pub(crate) kind: Kind,
    pub(crate) spread: Spread,
    pub(crate) threads: usize,
}

impl Group {
    fn label(self) -> String {
        let (kind, spread) = (self.kind.name(), self.spread.name());
        let threads = if self.threads == 1 {
            "thread"
        } else {
            "threads"
        };
        format!(
            "{} keys, {spread}, {kind}, {} {threads}",
            self.keys, self.threads
        )
    }
}

/// The nanoseconds of a decision on its thread, for each contestant and round.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) group: Group,
    pub(crate) names: Vec<&'static str>,
    pub(crate) rounds: Vec<Vec<f64>>,
}

/// Returns the median.
pub(crate) fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

impl Measured {
    /// Returns the median of the rounds' ratios.
    fn ratio(&self, above: &str, below: &str) -> f64 {
        let place = |name| self.names.iter().position(|found| *found == name);
        let (Some(above), Some(below)) = (place(above), place(below)) else {
            return f64::NAN;
        };
        middle(self.rounds.iter().map(|ns| ns[above] / ns[below]).collect())
    }

    /// Returns the median of the rounds.
    fn ns(&self, name: &str) -> f64 {
        let Some(place) = self.names.iter().position(|found| *found == name) else {
            return f64::NAN;
        };
        middle(self.rounds.iter().map(|ns| ns[place]).collect())
    }

    /// Prints the figures of all contestants.
    pub(crate) fn print(&self) {
        println!(
            "\n{}: ns a decision on its thread (lowest and highest round), and relative to governor",
            self.group.label()
        );
        for (name, place) in self.names.iter().zip(0..) {
            let of =
                |fold: fn(f64, f64) -> f64| self.rounds.iter().map(|ns| ns[place]).reduce(fold);
            let (least, most) = (of(f64::min), of(f64::max));
            println!(
                "    {name:28} {:8.1}   ({:.1} to {:.1}) {:8.2}",
                self.ns(name),
                least.unwrap_or(f64::NAN),
                most.unwrap_or(f64::NAN),
                self.ratio(name, GOVERNOR),
            );
        }
    }

    /// Returns the figures of each contestant as an object of JSON.
    pub(crate) fn json(&self) -> Vec<String> {
        let Group {
            keys,
            kind,
            spread,
            threads,
        } = self.group;
        let (kind, spread) = (kind.name(), spread.name());
        let object = |name: &&str| {
            let (ns, ratio) = (self.ns(name), self.ratio(name, GOVERNOR));
            format!(
                r#"{{"name": "{name}", "keys": {keys}, "spread": "{spread}", "kind": "{kind}", "threads": {threads}, "ns_per_op": {ns:.1}, "vs_governor": {ratio:.3}}}"#
            )
        };
        self.names.iter().map(object).collect()
    }
}

pub(crate) const FLOOR: &str = "clock and key alone";
pub(crate) const MEMORY: &str = "memory floor";
pub(crate) const MEMORY_MANY: &str = "memory floor, 16 at once";
pub(crate) const GOVERNOR: &str = "governor";
pub(crate) const TABLE: &str = "tollgate";
pub(crate) const MANY: [&str; 3] = [
    "tollgate, 16 at once",
    "tollgate, 32 at once",
    "tollgate, 64 at once",
];

/// From this number of keys on, a table exceeds a core's caches.
const LARGE: u64 = 1_000_000;

/// Prints the ratios with their targets. Returns how many targets are missed.
pub(crate) fn judge(all: &[Measured]) -> usize {
    println!("\nratios");
    let mut missed = 0;
    let mut line = |group: Group, what: &str, value: f64, most: Option<f64>| {
        print!("    {:46} {what:24} {value:6.2}", group.label());
        match most {
            Some(most) if value <= most => println!("   <= {most:<4} met"),
            Some(most) => {
                missed += 1;
                println!("   <= {most:<4} MISSED");
            }
            None => println!(),
        }
    };
    for measured in all {
        let group = measured.group;
        let (judged, large) = (
            group.kind == Kind::Allowed && !is_crowded(all, group),
            group.keys >= LARGE,
        );
        let most = match group.threads {
            1 => Some(if large { 0.45 } else { 0.95 }),
            2 => Some(if large { 0.5 } else { 0.7 }),
            _ => None,
        };
        let most = most.filter(|_| judged);
        line(
            group,
            "relative to governor",
            measured.ratio(TABLE, GOVERNOR),
            most,
        );
        // A target only applies if the keys are at random places in memory.
        let near = large && judged && group.threads == 1 && group.spread == Spread::Uniform;
        let ratio = measured.ratio(TABLE, MEMORY);
        line(
            group,
            "relative to memory floor",
            ratio,
            near.then_some(1.3),
        );
        let ratio = measured.ratio(MANY[0], MEMORY_MANY);
        line(group, "16 at once / its floor", ratio, near.then_some(1.4));
        for (many, n) in MANY.into_iter().zip([16, 32, 64]) {
            let what = format!("{n} at once / one by one");
            let most = (large && judged && group.threads == 1).then_some(0.55);
            line(group, &what, measured.ratio(many, TABLE), most);
        }
    }
    missed
}

/// Returns whether threads that share nothing slow each other down, because they do not have a core
/// each.
fn is_crowded(all: &[Measured], group: Group) -> bool {
    let alone = Group {
        threads: 1,
        ..group
    };
    let alone = all.iter().find(|measured| measured.group == alone);
    let together = all.iter().find(|measured| measured.group == group);
    let (Some(alone), Some(together)) = (alone, together) else {
        return false;
    };
    let crowded = together.ns(FLOOR) > alone.ns(FLOOR) / 0.75;
    if crowded {
        println!(
            "    {}: no targets apply, because the threads do not have a core each",
            group.label()
        );
    }
    crowded
}
