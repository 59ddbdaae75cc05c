//! The bound of a bucket, in exact fractions: over any interval of `d` at most the burst and what
//! the rate allows in `d` and one unit more, which is less than a quarter of a nanosecond. Each
//! change of quota or clock within the interval adds one unit of the quotas.

use tollgate::algorithm::Rebase;
use tollgate_audit::{Audit, Bound, Bounded, Log};

use crate::algorithm::quotas::{elsewhere, exact};
use crate::support::algorithms::sharded;
use crate::support::reference::bucket::greatest_common_divisor;
use crate::support::*;
use crate::whole_burst::{PERIODS, any_tick, bucket};

/// A grant, and the history before it: the nanoseconds spent with each of two quotas, and how many
/// units of each may count as time.
#[derive(Debug, Clone, Copy)]
struct Entry {
    n: u64,
    spent: [u64; 2],
    units: [u64; 2],
    /// Which of the quotas granted it.
    quota: usize,
}

/// Whether an entry's quota has units that lose no fraction.
type IsExact = [bool; 2];

/// Checks every interval that begins and ends with a grant. An interval that begins with one quota
/// may have its burst; another quota adds only its rate.
fn check(entries: &[Entry], quotas: [Quota; 2], is_exact: IsExact, label: &str) -> u64 {
    let periods = quotas.map(|quota| quota.period().as_nanos() as i128);
    let rates = quotas.map(|quota| i128::from(quota.permits()));
    let mut above_the_rate = 0;
    for (first, from) in entries.iter().enumerate() {
        let mut taken = 0;
        for to in &entries[first..] {
            taken += i128::from(to.n);
            // In permits times both periods, times four for quarters of a nanosecond.
            let scale = 4 * periods[0] * periods[1];
            let burst = i128::from(quotas[from.quota].burst_size());
            let made = |quarters: fn(u64, u64) -> i128| {
                let made = [0, 1].map(|i| {
                    let spent = to.spent[i] - from.spent[i];
                    let own = u64::from(i == from.quota);
                    let units = to.units[i] - from.units[i] + own;
                    let units = if is_exact[i] { 0 } else { units };
                    quarters(spent, units) * rates[i] * periods[1 - i]
                });
                made[0] + made[1]
            };
            let rate = made(|spent, _| 4 * i128::from(spent));
            let units = made(|_, units| i128::from(units));
            let over = (taken - burst) * scale - rate;
            assert!(
                over <= 0 || over < units,
                "{label}: {from:?} to {to:?}, {taken} taken"
            );
            above_the_rate += u64::from(over > 0);
        }
    }
    above_the_rate
}

/// A word that is used, changed and moved.
struct History {
    algorithms: [AnyAlgorithm; 2],
    quota: usize,
    word: u64,
    now: Tick,
    entry: Entry,
    entries: Vec<Entry>,
}

impl History {
    fn new(quotas: [Quota; 2], kind: u64, now: Tick) -> Self {
        let entry = Entry {
            n: 0,
            spent: [0; 2],
            units: [0; 2],
            quota: 0,
        };
        Self {
            algorithms: quotas.map(|quota| bucket(quota, kind)),
            quota: 0,
            word: 0,
            now,
            entry,
            entries: Vec::new(),
        }
    }

    fn algorithm(&self) -> &AnyAlgorithm {
        &self.algorithms[self.quota]
    }

    fn take(&mut self, n: u64) {
        let (next, granted) = self.algorithm().take_up_to(self.word, self.now, n);
        self.word = next;
        let entry = Entry {
            n: granted.n(),
            quota: self.quota,
            ..self.entry
        };
        self.entries.extend((entry.n > 0).then_some(entry));
    }

    fn pass(&mut self, ns: u64) {
        self.now = tick(self.now.as_nanos() + ns);
        self.entry.spent[self.quota] += ns;
    }

    /// Lets time pass until a permit is due, or about that long.
    fn pass_until_due(&mut self, random: &mut Random) {
        let wait = match self.algorithm().step(self.word, self.now, 1) {
            Err(Denied::Later { retry_after, .. }) => retry_after.as_nanos() as u64,
            _ => 1,
        };
        self.pass(match random.below(4) {
            0 => wait - 1,
            1 => wait + random.upto(wait),
            _ => wait,
        });
    }

    fn change(&mut self) {
        let [one, other] = [self.quota, 1 - self.quota].map(|quota| &self.algorithms[quota]);
        self.word = one.carry_over(self.word, self.now, other);
        self.quota = 1 - self.quota;
        self.entry.units[self.quota] += 1;
    }

    fn rebase(&mut self, to: Tick) {
        self.word = self.algorithm().rebase(self.word, self.now, to);
        self.now = to;
        self.entry.units[self.quota] += 1;
    }
}

/// Returns a quota of a small burst, often one of a few permits each nanosecond.
fn any_quota(random: &mut Random) -> (Quota, bool) {
    let burst = 1 + random.upto(15);
    let (others, exact) = (elsewhere(), exact());
    let one_of = |all: &[Quota], random: &mut Random| all[random.below(all.len() as u64) as usize];
    let quota = match random.below(4) {
        0 => one_of(&exact, random),
        1 => one_of(&others, random),
        // Period and rate have no common divisor in most cases.
        2 => Quota::per_second(1 + random.below(10 * SECOND)),
        _ => {
            let period = PERIODS[random.below(4) as usize];
            per_ns(1 + random.below(1000), period)
        }
    };
    let quota = quota.burst(burst).initial(burst);
    let (n, period) = (quota.permits(), quota.period().as_nanos() as u64);
    let is_exact = n / greatest_common_divisor(n, period) <= 11;
    (quota, is_exact)
}

#[test]
fn over_any_interval_the_bound_is_that_of_one_unit_more() {
    let mut random = Random(0x0070_11a7_eb31);
    let histories = if cfg!(debug_assertions) { 2000 } else { 40_000 };
    let (mut grants, mut above_the_rate, mut changes) = (0, 0, 0);
    for turn in 0..histories {
        let ((one, is_one), (mut other, mut is_other)) =
            (any_quota(&mut random), any_quota(&mut random));
        // The products of longer periods do not fit 128 bits.
        if one.period().as_nanos().max(other.period().as_nanos()) > u128::from(DAY) {
            continue;
        }
        if turn % 3 == 0 {
            (other, is_other) = (one, is_one);
        }
        let mut history = History::new([one, other], turn, any_tick(&mut random));
        for _ in 0..60 {
            match random.below(12) {
                0..=5 => history.take(1),
                6 => history.take(1 + random.below(one.burst_size())),
                7..=9 => history.pass_until_due(&mut random),
                10 if turn % 3 == 1 => history.change(),
                11 if turn % 3 == 2 => history.rebase(any_tick(&mut random)),
                _ => history.pass(random.upto(3)),
            }
        }
        let label = format!("{one}, {other}, history {turn}");
        let over = check(&history.entries, [one, other], [is_one, is_other], &label);
        grants += history.entries.len();
        above_the_rate += over;
        changes += history.entry.units[0] + history.entry.units[1];
    }
    // The unit counts: without it, the bound would not hold.
    assert!(grants > 10_000 && changes > 1000, "{grants}, {changes}");
    assert!(above_the_rate > 100, "{above_the_rate}");
}

/// Returns the grants of a bucket that is asked for one permit after another, each at the tick that
/// the denial says, from these shards or one word.
fn recorded(algorithm: AnyAlgorithm, shards: usize, start: Tick) -> Audit {
    let (mut log, mut now) = (Log::new(), start);
    let whole = Limiter::unstarted(algorithm, NoClock);
    let parts = sharded(algorithm, shards.max(1));
    for _ in 0..100 {
        let answer = match shards {
            0 => whole.at(now).try_acquire(),
            _ => parts.at(now).try_acquire(),
        };
        match answer {
            Ok(granted) => drop(log.granted(&granted)),
            Err(denied) => now = now.saturating_add(denied.retry_after().expect("in time")),
        }
    }
    [log].into_iter().collect()
}

/// The bound that an algorithm states is kept by what it grants, at every rate, and is no looser
/// than a unit: it does not allow a permit that comes a nanosecond early.
#[test]
fn the_audit_allows_one_unit_and_no_nanosecond() {
    let mut random = Random(0x0070_11a7_eb32);
    let (mut above_the_rate, mut tried) = (0, 0);
    for (kind, quota) in elsewhere().into_iter().enumerate() {
        let quota = quota.burst(7).initial(7);
        let algorithm = bucket(quota, kind as u64);
        let bound = algorithm.bound();
        assert_eq!(Bound::of_quota(quota), Ok(bound), "{quota}");
        assert_eq!(bound.allows(Duration::ZERO), 7, "{quota}");
        let period = quota.period().as_nanos();
        for shards in [0, 1, 2, 7] {
            for _ in 0..10 {
                let audit = recorded(algorithm, shards, any_tick(&mut random));
                if let Err(excess) = audit.check(&bound) {
                    panic!("{quota} in {shards}: {excess}");
                }
            }
        }
        // After the burst, permit `k` may come less than a unit before `k * period / n`.
        let allowed_from = |k: u128| k * period / u128::from(quota.permits());
        for k in 1..50 {
            let due = allowed_from(k);
            let allows = |ns: u128| bound.allows(Duration::from_nanos(ns as u64));
            assert!(allows(due.saturating_sub(1)) < 7 + k, "{quota}: {k}");
            assert!(allows(due + 1) >= 7 + k, "{quota}: {k}");
            above_the_rate +=
                u64::from(allows(due) >= 7 + k && due * u128::from(quota.permits()) < k * period);
            tried += 1;
        }
    }
    assert!(above_the_rate > tried / 20, "{above_the_rate} of {tried}");
}

/// At exact rates the audit allows nothing but the rate.
#[test]
fn at_exact_rates_the_audit_allows_no_unit() {
    for quota in exact() {
        let (n, period) = (u128::from(quota.permits()), quota.period().as_nanos());
        let bound = bucket(quota, 2).bound();
        for ns in (0..1000).chain((1..100).map(|k| k * period / n)) {
            let right = u128::from(quota.burst_size()) + n * ns / period;
            let length = Duration::from_nanos(ns as u64);
            assert_eq!(bound.allows(length), right, "{quota} in {ns} ns");
        }
    }
}
