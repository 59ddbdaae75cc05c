//! Measures each `Overflow` under each kind of flood, and prints Markdown tables.
//!
//! A hundred victims spent their burst of 100 in several grants, and a hundred others in one grant.
//! Keys that took one permit each fill the rest of the table. Then the flood comes. A victim is
//! reset if it has more permits afterwards than its quota gives. The check of a victim only reads.

use std::time::Duration;

use foldhash::quality::FixedState;
use tollgate::Keyed;
use tollgate::keyed::Overflow;

use crate::floods::{ByGrants, Flood, Flooded};
use crate::scene::{SPENT, bucket};

const OVERFLOWS: [Overflow; 3] = [Overflow::Evict, Overflow::Deny, Overflow::Admit];

/// New keys a second, by the table's clock. A victim's bucket refills in a minute. Five million
/// keys of the slow flood take 50 seconds; after a minute a reset would not show.
const FAST: u32 = 10_000_000;
const SLOW: u32 = 100_000;
const MOST_SLOW: u64 = 5_000_000;

/// A table, and the number of new keys a second.
#[derive(Clone, Copy)]
struct Case {
    capacity: u64,
    per_second: u32,
    keys: u64,
    seed: u64,
}

/// Prints the tables, and returns how many targets are missed.
pub(crate) fn print(keys: u64, seed: u64) -> usize {
    let fast = [1000, 10_000, 100_000, 1_000_000].map(|capacity| (capacity, FAST));
    let cases = fast.into_iter().chain([(10_000, SLOW)]);
    let cases = cases.map(|(capacity, per_second)| Case {
        capacity,
        per_second,
        keys: match per_second {
            SLOW => keys.min(MOST_SLOW),
            _ => keys,
        },
        seed,
    });
    let cases: Vec<Case> = cases.collect();
    let mut targets = Targets::default();

    println!("{} new keys in each case.", grouped(keys));
    println!(
        "Of each pair, the first figure is for victims with several grants, the second for those with one:\n"
    );
    println!(
        "| table | a new key takes | `Evict`: reset | evicted | denied | `Deny`: reset | denied | `Admit`: reset | not recorded |"
    );
    println!("|{}", "---|".repeat(9));
    for case in &cases {
        for flood in Flood::ALL {
            println!("{}", case.victims(flood, &mut targets));
        }
    }
    println!("\nNew keys until a client's own spent key is reset:\n");
    println!("| table | `Evict` | `Deny` | `Admit` |");
    println!("|{}", "---|".repeat(4));
    for case in &cases {
        println!("{}", case.own_key(&mut targets));
    }
    println!();
    targets.print();
    targets.missed.len()
}

impl Case {
    fn flooded(self, overflow: Overflow, victims: u64) -> Flooded {
        let table = Keyed::new(bucket(), self.capacity as usize).expect("a valid capacity");
        let table = table.with_hasher(FixedState::with_seed(self.seed));
        let step = Duration::from_secs(1) / self.per_second;
        Flooded::new(table.with_overflow(overflow), self.capacity, victims, step)
    }

    fn name(self) -> String {
        let slow = if self.per_second == SLOW {
            ", slow flood"
        } else {
            ""
        };
        format!("`Keyed` {}{slow}", grouped(self.capacity))
    }

    /// Returns the row of one kind of flood against two hundred victims.
    fn victims(self, flood: Flood, targets: &mut Targets) -> String {
        let mut row = format!("| {} | {} |", self.name(), flood.name());
        for overflow in OVERFLOWS {
            let (reset, counts) = self.flooded(overflow, SPENT).flood(flood, self.keys);
            let [several, one] = reset;
            row.push_str(&format!(" {several}, {one} |"));
            if overflow == Overflow::Evict {
                row.push_str(&format!(" {} |", grouped(counts.evicted)));
                targets.judge(self, flood, reset);
            }
            row.push_str(&format!(" {} |", grouped(counts.no_room)));
        }
        row
    }

    /// Returns the row for one client that sends new keys, each with a whole burst, until its own
    /// spent key is reset.
    fn own_key(self, targets: &mut Targets) -> String {
        let mut row = format!("| {} |", self.name());
        for overflow in OVERFLOWS {
            let mut flooded = self.flooded(overflow, 1);
            let after = flooded.until_reset(Flood::WholeBurst, self.keys);
            let [several, one] = after.map(|keys| keys.map_or("never".into(), grouped));
            row.push_str(&format!(" {several}, {one} |"));
            if let (Overflow::Evict, [Some(keys), _]) = (overflow, after) {
                let (table, keys) = (self.name(), grouped(keys));
                let line =
                    format!("{table}: a client's own spent key is reset after {keys} new keys");
                targets.missed.push(line);
            }
        }
        row
    }
}

/// The targets of `Evict`.
#[derive(Default)]
struct Targets {
    missed: Vec<String>,
}

impl Targets {
    fn judge(&mut self, case: Case, flood: Flood, reset: ByGrants<u64>) {
        // At the end of a slow flood the victims are nearly full again. Victims in the same class
        // as the flood's keys have then spent less than those keys, and correctly leave first.
        let is_fast = case.per_second == FAST;
        let most: ByGrants<Option<u64>> = match flood {
            Flood::OnePermit => [Some(0), Some(0)],
            Flood::WholeBurst => [Some(0), is_fast.then_some(1)],
            Flood::TwoHalves => [is_fast.then_some(5), None],
        };
        let victims = ["several grants", "one grant"];
        for ((reset, most), victims) in reset.into_iter().zip(most).zip(victims) {
            if let Some(most) = most.filter(|most| reset > *most) {
                let (table, takes) = (case.name(), flood.name());
                self.missed.push(format!(
                    "{table}, a new key takes {takes}: {reset} victims with {victims} are reset; target: at most {most}"
                ));
            }
        }
    }

    fn print(&self) {
        for line in &self.missed {
            println!("MISSED by `Evict`: {line}");
        }
    }
}

/// Formats a number with a space between thousands, from 10 000 on.
fn grouped(n: u64) -> String {
    match n {
        0..10_000 => n.to_string(),
        _ => {
            let digits = n.to_string();
            let first = digits.len() % 3;
            let mut grouped = String::new();
            for (at, digit) in digits.char_indices() {
                if at > 0 && at % 3 == first {
                    grouped.push(' ');
                }
                grouped.push(digit);
            }
            grouped
        }
    }
}
