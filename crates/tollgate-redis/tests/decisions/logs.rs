//! Sliding logs, against a list of ticks.

use tollgate::Quota;

use super::verbs::{self, Charged, Counts, END, Holder, Model, Taken};
use super::{OPERATIONS, Random};
use crate::client::Reply;
use crate::kind::{Kind, Log};
use crate::limit::Limit;
use crate::rate::Ticks;

/// A log by its definition.
#[derive(Debug, Clone)]
pub(super) struct LogModel {
    log: Log,
    /// The permits, also those that are a period old and were not removed yet.
    ticks: Vec<u64>,
    /// The end of the last ban, as it is stored: 0 if none is.
    ban: u64,
    expiry: i64,
}

impl LogModel {
    pub(super) fn new(random: &mut Random) -> Self {
        let mut model = Self {
            log: Log {
                limit: 1,
                period: 1,
            },
            ticks: Vec::new(),
            ban: 0,
            expiry: -2,
        };
        model.change(random);
        model
    }

    fn last(&self) -> u64 {
        self.ticks.last().copied().unwrap_or(0)
    }

    /// Returns the permits within a period before `now`, or before the last permit if that is later.
    fn live(&self, now: u64) -> Vec<u64> {
        let at = now.max(self.last());
        let ticks = self.ticks.iter().copied();
        ticks.filter(|tick| tick + self.log.period > at).collect()
    }

    /// Returns the first tick at which this holds, if nothing changes before.
    fn first(&self, now: u64, holds: impl Fn(u64) -> bool) -> u64 {
        let ends = self.ticks.iter().map(|tick| tick + self.log.period);
        let mut ends: Vec<_> = ends.chain([now, self.ban]).collect();
        ends.retain(|end| *end >= now);
        ends.sort_unstable();
        ends.into_iter().find(|end| holds(*end)).expect("a tick")
    }

    fn write(&mut self, n: u64, now: u64) {
        let at = now.max(self.last());
        let newest = if n > 0 { at } else { self.last() };
        self.ticks = self.live(now);
        let before = self.ticks.len();
        self.ticks.extend((0..n).map(|_| at));
        assert!(self.ticks.len() <= before.max(2 * self.log.limit as usize));
        if self.ban <= now {
            self.ban = 0;
        }
        let last = self.ban.max(newest + self.log.period);
        self.expiry = ((last - now) / 1000 + 1001) as i64;
        let forgotten = self.first(now, |tick| tick >= self.ban && self.live(tick).is_empty());
        assert!(now + self.expiry as u64 * 1000 > forgotten + 1_000_000);
    }

    fn is_stored(&self) -> bool {
        self.ban > 0 || !self.ticks.is_empty()
    }
}

impl Model for LogModel {
    fn kind(&self) -> Kind {
        Kind::Log(self.log)
    }

    fn change(&mut self, random: &mut Random) {
        let limit = match random.below(16) {
            0 => 1 + random.any_size(3000),
            _ => 1 + random.any_size(20),
        };
        let period = std::time::Duration::from_micros(1 + random.any_size(END - 1));
        let limit = Limit::sliding_log(Quota::per(limit, period)).expect("accepted");
        let Kind::Log(log) = limit.kind else {
            unreachable!()
        };
        self.log = log;
    }

    fn period(&self) -> u64 {
        self.log.period
    }

    fn banned_until(&self) -> u64 {
        self.ban
    }

    fn fits(&self, n: u64, now: u64) -> bool {
        now >= self.ban && self.live(now).len() as u64 + n <= self.log.limit
    }

    fn due(&self, n: u64, now: u64) -> Option<u64> {
        Some(self.first(now, |tick| self.fits(n, tick)))
    }

    fn available(&self, now: u64) -> u64 {
        let fits = |n: &u64| self.fits(*n, now);
        let most = self.log.limit.saturating_sub(self.live(now).len() as u64);
        Some(most).filter(fits).unwrap_or(0)
    }

    fn take(&mut self, n: u64, now: u64, _first: &Holder) -> Taken {
        let at = now.max(self.last());
        if n > 0 {
            self.write(n, now);
        }
        assert!(self.live(now).len() as u64 <= self.log.limit);
        let last = self.live(now).last().copied();
        Taken {
            at,
            remaining: self.available(now),
            reset_after: last.map_or(0, |last| last + self.log.period - at),
            mark: Ticks { whole: at, part: 0 },
        }
    }

    fn give(&mut self, n: u64, mark: Option<Ticks>, now: u64) -> u64 {
        let live = self.live(now);
        let counted = match mark {
            None => live.len(),
            Some(mark) => live.iter().filter(|tick| **tick == mark.whole).count(),
        };
        let n = n.min(counted as u64) as usize;
        if self.ban > now || n == 0 {
            return 0;
        }
        match mark {
            None => self.ticks = live[n..].to_vec(),
            Some(mark) => {
                let at = self.ticks.iter().position(|tick| *tick == mark.whole);
                let at = at.expect("counted");
                self.ticks.drain(at..at + n);
            }
        }
        n as u64
    }

    fn charge(&mut self, n: u64, now: u64, _first: &Holder) -> Charged {
        let at = now.max(self.last());
        let n = n.min((2 * self.log.limit).saturating_sub(self.live(now).len() as u64));
        if n > 0 {
            self.write(n, now);
        }
        let is_paid = |tick| self.live(tick).len() as u64 <= self.log.limit;
        Charged {
            n,
            at,
            debt: (self.live(now).len() as u64).saturating_sub(self.log.limit),
            clear: self.first(now, is_paid),
        }
    }

    fn ban(&mut self, long: u64, now: u64) {
        self.ban = self.ban.max(now + long);
        self.write(0, now);
    }

    fn reset(&mut self) {
        self.ticks.clear();
        self.ban = 0;
    }

    fn stored(&self) -> (&'static [&'static str], Reply, i64) {
        let entries = self.ticks.iter().map(u64::to_string);
        let ban = (self.ban > 0).then(|| format!("b{}", self.ban));
        let entries = entries.chain(ban).map(String::into_bytes);
        let list = Reply::List(entries.map(Reply::Bytes).collect());
        let expiry = if self.is_stored() { self.expiry } else { -2 };
        (&["LRANGE", "0", "-1"], list, expiry)
    }
}

#[test]
fn each_answer_and_each_stored_log_is_exact() {
    let counts = verbs::same(0x0010_6106, |random| {
        vec![
            Box::new(LogModel::new(random)),
            Box::new(LogModel::new(random)),
        ]
    });
    let Counts {
        granted,
        denied,
        never,
        undone,
        refunded,
        charged,
        owed,
        bans,
        limits,
        ..
    } = counts;
    // Otherwise the operations would miss what they are for.
    for count in [
        granted, denied, never, undone, refunded, charged, owed, bans, limits,
    ] {
        assert!(count > OPERATIONS / 100, "{counts:?}");
    }
}
