//! Our token bucket as the adapter of x/time/rate uses it: on a word of its own, so that the quota
//! can change.

use std::collections::BTreeMap;

use tollgate::algorithm::Gauge;
use tollgate::error::QuotaError;
use tollgate::store::{AtomicWord, View, WordCell, WordStore};
use tollgate_replay::TIE;
use tollgate_replay::prelude::*;

/// A word and its reservations.
pub(super) struct Bucket {
    algorithm: TokenBucket,
    cell: WordCell,
    rate: f64,
    /// Whether it was set to a level between its units.
    is_between: bool,
    held: BTreeMap<u64, Held>,
}

/// A reservation. Its position in the word is known as long as the quota does not change.
pub(super) struct Held {
    pub(super) granted: Granted,
    pub(super) is_stale: bool,
}

/// A decision and the level before it.
pub(super) struct Decided {
    pub(super) decision: Result<Granted, Denied>,
    pub(super) before: f64,
}

impl Bucket {
    /// Creates a fresh bucket with this rate, a double in tokens a second, and burst.
    pub(super) fn new(limit: f64, burst: u64) -> Result<Self, QuotaError> {
        Ok(Self {
            algorithm: TokenBucket::new(quota(limit, burst))?,
            cell: WordCell::new(0),
            rate: limit,
            is_between: false,
            held: BTreeMap::new(),
        })
    }

    /// Changes the rate and burst.
    pub(super) fn set(&mut self, t: Tick, limit: f64, burst: u64) -> Result<(), QuotaError> {
        let next = self.algorithm.with_quota(quota(limit, burst))?;
        let same = next.quota() == self.algorithm.quota();
        let word = self.algorithm.carry_over(self.word(), t, &next);
        self.cell.swap(word);
        (self.algorithm, self.rate) = (next, limit);
        self.held
            .values_mut()
            .for_each(|held| held.is_stale |= !same);
        Ok(())
    }

    /// Notes whether this level lies between its units.
    pub(super) fn look(&mut self, t: Tick, tokens: f64) {
        self.is_between = (self.tokens(t) - tokens).abs() > self.near();
    }

    fn at(&self, t: Tick) -> View<WordStore<'_, TokenBucket>> {
        WordStore::new(&self.algorithm, &self.cell).at(t)
    }

    pub(super) fn word(&self) -> u64 {
        self.cell.load()
    }

    /// Restores an earlier word.
    pub(super) fn restore(&self, word: u64) {
        self.cell.swap(word);
    }

    /// Returns the available permits, with fractions. Negative if some are owed or reserved.
    pub(super) fn tokens(&self, t: Tick) -> f64 {
        self.tokens_of(self.word(), t)
    }

    pub(super) fn tokens_of(&self, word: u64, t: Tick) -> f64 {
        self.algorithm.quota().burst_size() as f64 - self.algorithm.level(word, t).as_f64()
    }

    /// Returns the permits that the clock makes in a nanosecond.
    pub(super) fn per_ns(&self) -> f64 {
        self.rate / 1e9
    }

    /// Returns the time that it takes to make these tokens, in tenths of a millisecond. A millionth
    /// of that unit, the least difference that counts, is a tenth of a nanosecond.
    pub(super) fn as_time(&self, tokens: f64) -> f64 {
        tokens / self.rate * 1e4
    }

    /// Returns whether levels are rounded, by at most a nanosecond of permits: if the rate is not
    /// one of at most 11 permits in a whole number of nanoseconds, or if it adopted a level between
    /// its units.
    pub(super) fn rounds(&self) -> bool {
        let quota = self.algorithm.quota();
        let (n, period) = (u128::from(quota.permits()), quota.period().as_nanos());
        self.is_between || (1..=11).all(|few| few * period % n != 0)
    }

    /// Returns the smallest difference of levels that counts: a tenth of a nanosecond.
    pub(super) fn near(&self) -> f64 {
        TIE.min(self.per_ns() / 10.0)
    }

    /// Takes `n` permits that are available now.
    pub(super) fn allow(&self, t: Tick, n: u64) -> Decided {
        let copy = WordCell::new(self.word());
        let now = WordStore::new(&self.algorithm, &copy)
            .at(t)
            .reserve_until(n, t);
        let decided = self.decided(t, n, t, |view| view.try_acquire_n(n));
        assert_eq!(
            now, decided.decision,
            "reserve_until(n, now) and try_acquire_n(n)"
        );
        assert_eq!(copy.load(), self.word(), "the words after both");
        decided
    }

    /// Takes `n` permits that are available at `latest`.
    pub(super) fn reserve(&self, t: Tick, n: u64, latest: Tick) -> Decided {
        self.decided(t, n, latest, |view| view.reserve_until(n, latest))
    }

    /// Returns the decision after checking that the verbs agree with each other.
    fn decided(
        &self,
        t: Tick,
        n: u64,
        latest: Tick,
        ask: impl Fn(&View<WordStore<'_, TokenBucket>>) -> Result<Granted, Denied>,
    ) -> Decided {
        let view = self.at(t);
        let (before, whole, wait) = (self.tokens(t), view.available(), view.time_until(n));
        let fits = (whole as f64 - TIE..whole as f64 + 1.0 + TIE).contains(&before.max(0.0));
        assert!(fits, "{whole} are available of {before}");
        let decision = ask(&view);
        let foretold = match &decision {
            Ok(granted) => {
                assert_eq!((granted.n(), granted.at()), (n, t));
                Some(granted.due().saturating_since(t))
            }
            Err(denied) => denied
                .retry_after()
                .map(|late| late + latest.saturating_since(t)),
        };
        assert_eq!(wait, foretold, "time_until({n}) and the decision");
        Decided { decision, before }
    }

    /// Records the reservation with this number, or that nothing was reserved.
    pub(super) fn keep(&mut self, id: u64, granted: Option<Granted>) {
        let is_stale = false;
        match granted {
            Some(granted) => drop(self.held.insert(id, Held { granted, is_stale })),
            None => drop(self.held.remove(&id)),
        }
    }

    pub(super) fn held(&self, id: u64) -> Option<&Held> {
        self.held.get(&id)
    }

    /// Cancels a reservation if its position is known.
    pub(super) fn cancel(&self, t: Tick, id: u64) {
        if let Some(Held {
            granted,
            is_stale: false,
        }) = self.held(id)
        {
            let (before, n) = (self.tokens(t), granted.n());
            // A reservation may be cancelled again.
            let granted = Granted::new(n, granted.at())
                .with_mark(granted.mark())
                .with_ready_at(granted.due());
            let (kept, back) = self.at(t).cancel(granted, n);
            let came_back = self.tokens(t) - before;
            assert!(came_back <= back as f64 + TIE && back <= n && kept.n() == 0);
            assert!(
                came_back > back as f64 - 1.0 - TIE,
                "a fraction counts whole"
            );
        }
    }

    /// Sets the level to `tokens`, or lower by less than a unit. The marks of the reservations
    /// above `above` move with the word.
    pub(super) fn hold(&mut self, t: Tick, tokens: f64, above: u64) {
        let (mut low, mut high) = (0, u64::MAX - 1);
        while low < high {
            let word = low + (high - low) / 2;
            if self.tokens_of(word, t) <= tokens + self.near() / 10.0 {
                high = word;
            } else {
                low = word + 1;
            }
        }
        let was = self.cell.swap(low);
        for held in self.held.values_mut() {
            let mark = held.granted.mark();
            if mark > above {
                let moved = i128::from(mark) + i128::from(low) - i128::from(was);
                let granted = std::mem::replace(&mut held.granted, Granted::new(0, t));
                held.granted = granted.with_mark(u64::try_from(moved).unwrap_or(0));
            }
        }
        self.look(t, tokens);
    }
}

/// Returns the quota for a rate in tokens a second: the first convergent fraction that equals the
/// double. A rate that a `Quota` can't hold becomes the largest that it can.
fn quota(limit: f64, burst: u64) -> Quota {
    let (n, period_ns) = fraction(limit);
    Quota::per(n, Duration::from_nanos(period_ns)).burst(burst)
}

fn fraction(x: f64) -> (u64, u64) {
    const SECOND: u128 = 1_000_000_000;
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i32 - 1075;
    let mantissa = u128::from(bits & ((1 << 52) - 1) | 1 << 52);
    let (mut over, mut under) = match exponent {
        0..64 => (mantissa << exponent, SECOND),
        -96..0 => (mantissa, SECOND << -exponent),
        64.. => return (u64::MAX, 1),
        _ => return (0, 1),
    };
    let (mut p, mut q) = ((0_u128, 1_u128), (1_u128, 0_u128));
    while under > 0 {
        let whole = over / under;
        (over, under) = (under, over % under);
        p = (p.1, whole * p.1 + p.0);
        q = (q.1, whole * q.1 + q.0);
        if p.1 as f64 * 1e9 / q.1 as f64 == x {
            break;
        }
    }
    let fits = |x: u128| u64::try_from(x).unwrap_or(u64::MAX);
    (fits(p.1), fits(q.1))
}
