//! Sliding logs, against a list of ticks.

use std::time::{Duration, Instant};

use redis::Commands;
use tollgate::{ManualClock, Quota, SlidingLog, Tick};

use super::verbs::{self, Charged, Counts, END, Holder, Model, Taken};
use super::{Episode, OPERATIONS, Random, SOME_DAY, server, stored};
use crate::client::Reply;
use crate::limit::Limit;
use crate::limit::kind::{Kind, Log, Mark};
use crate::limit::rate::Ticks;
use crate::server::call::{self, Call, Part};

/// A log by its definition.
#[derive(Debug, Clone)]
pub(super) struct LogModel {
    log: Log,
    /// The permits, also those that are a period old and were not removed yet.
    ticks: Vec<u64>,
    /// The end of the last ban, as it is stored: 0 if none is.
    ban: u64,
    is_stored: bool,
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
            is_stored: false,
            expiry: -2,
        };
        model.change(random);
        model
    }

    fn last(&self) -> u64 {
        self.ticks.last().copied().unwrap_or(0)
    }

    /// Returns the permits within a period before `now`, or before the last one if that is later.
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
        self.ticks = self.live(now);
        let before = self.ticks.len();
        self.ticks.extend((0..n).map(|_| at));
        assert!(self.ticks.len() <= before.max(2 * self.log.limit as usize));
        self.wrote(now);
    }

    /// The key expires a second after it says the same as no key.
    fn wrote(&mut self, now: u64) {
        if self.ban <= now {
            self.ban = 0;
        }
        self.is_stored = true;
        let forgotten = self.first(now, |tick| {
            tick >= self.ban && self.ticks.iter().all(|at| at + self.log.period <= tick)
        });
        self.expiry = ((forgotten - now) / 1000 + 1001) as i64;
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
        let period = Duration::from_micros(1 + random.any_size(END - 1));
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
        let from = mark.map_or(Some(0), |mark| {
            live.iter().position(|tick| *tick == mark.whole)
        });
        let from = from.expect("counted");
        self.ticks = [&live[..from], &live[from + n..]].concat();
        self.wrote(now);
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
        self.is_stored = false;
    }

    fn stored(&self) -> (&'static [&'static str], Reply, i64) {
        let mark = self.is_stored.then(|| format!("!{}", self.ban));
        let entries = mark.into_iter();
        let entries = entries.chain(self.ticks.iter().map(u64::to_string));
        let entries = entries.map(|entry| Reply::Bytes(entry.into_bytes()));
        let expiry = if self.is_stored { self.expiry } else { -2 };
        (
            &["LRANGE", "0", "-1"],
            Reply::List(entries.collect()),
            expiry,
        )
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

/// Sends one call at a moment.
pub(super) fn send(call: &Call, now: i128, connection: &mut redis::Connection) -> Reply {
    let mut episode = Episode::new();
    episode.call(call, now);
    let (reply,): (redis::Value,) = episode.pipeline.query(connection).expect("a reply");
    super::reply(reply)
}

#[test]
fn a_log_of_the_core_gives_the_same_answers() {
    server::on_each_server(|connection| {
        let mut random = Random(0x0010_C04E);
        let (mut done, mut tries) = (0, 0);
        while done < OPERATIONS / 100 {
            tries += 1;
            let before = random.0;
            match same_as_core(tries, &mut random, connection) {
                Some(()) => done += 1,
                None => random.0 = before,
            }
        }
    });
}

/// Returns `None` if it takes so long that the key may have expired.
fn same_as_core(
    number: usize,
    random: &mut Random,
    connection: &mut redis::Connection,
) -> Option<()> {
    // The core accepts no longer period for one permit.
    let year = Duration::from_secs(365 * 24 * 3600).as_micros() as u64;
    let period = 1 + random.any_size(year - 1);
    let quota = Quota::per(1 + random.any_size(50), Duration::from_micros(period));
    let core = SlidingLog::with_clock(quota, ManualClock::new()).expect("accepted");
    let kind = Limit::sliding_log(quota).expect("accepted").kind;
    let name = format!("core{number}");
    let (start, mut now) = (Instant::now(), SOME_DAY as u64);
    for _ in 0..100 {
        now = match random.below(8) {
            0..4 => now,
            4 => now
                .saturating_sub(random.any_size(period))
                .max(SOME_DAY as u64),
            5 => now + period - random.below(2),
            _ => now + random.any_size(period),
        };
        let n = random
            .any_size(quota.permits())
            .max(random.below(3))
            .min(kind.most());
        let tick = Tick::from_nanos(now * 1000);
        let parts = [Part {
            key: name.as_bytes(),
            kind: &kind,
            n,
        }];
        let looked = send(&call::look(&parts), now.into(), connection);
        let call = call::take(&parts).expect("not never");
        let taken = send(&call, now.into(), connection);
        if start.elapsed() > Duration::from_millis(900) {
            return None;
        }
        let seen = call::seen(&parts, &looked).expect("a state")[0];
        let refused = kind.refused(&seen, n, 0).map(|(_, denied)| denied);
        assert_eq!(kind.available(&seen), core.at(tick).available());
        assert_eq!(refused.map_or(Ok(()), Err), core.at(tick).check_n(n));
        let wait = refused.map_or(Some(Duration::ZERO), |denied| denied.retry_after());
        assert_eq!(wait, core.at(tick).time_until(n));
        match (
            call::taken(&parts, &taken).expect("a reply"),
            core.at(tick).try_acquire_n(n),
        ) {
            (Ok(ours), Ok(cores)) => {
                let ours = &ours[0].granted;
                assert_eq!((ours.n(), ours.at()), (cores.n(), cores.at()));
                assert_eq!(ours.reset_after(), cores.reset_after());
                assert_eq!(ours.remaining(), core.at(tick).available());
            }
            (ours, cores) => {
                assert_eq!(
                    ours.map_err(|(_, denied)| denied).map(drop),
                    cores.map(drop)
                );
            }
        }
    }
    Some(())
}

#[test]
fn the_largest_log_has_an_entry_for_each_permit() {
    let quota = Quota::per_day(20_000);
    let kind = Limit::sliding_log(quota).expect("accepted").kind;
    server::on_each_server(|connection| {
        let part = |n| Part {
            key: b"large".as_slice(),
            kind: &kind,
            n,
        };
        let taken = |n: u64, now, connection: &mut _| {
            let call = call::take(&[part(n)]).expect("not never");
            let reply = send(&call, now, connection);
            let taken = call::taken(&[part(n)], &reply).expect("a reply");
            taken.map_err(|(_, denied)| denied.retry_after())
        };
        assert!(taken(19_999, SOME_DAY, connection).is_ok());
        assert!(taken(2, SOME_DAY, connection).is_err());
        let last = taken(1, SOME_DAY + 7, connection).expect("a grant");
        assert_eq!(last[0].granted.remaining(), 0);
        let day = Duration::from_secs(24 * 3600);
        let wait = |micros| Some(day - Duration::from_micros(micros));
        assert_eq!(taken(19_999, SOME_DAY + 9, connection), Err(wait(9)));
        assert_eq!(taken(20_000, SOME_DAY + 9, connection), Err(wait(2)));
        let reply = send(&call::charge(&[part(u64::MAX)]), SOME_DAY + 9, connection);
        let charged = call::charged(&[part(u64::MAX)], &reply);
        let charged = charged.expect("a reply")[0];
        assert_eq!((charged.n(), charged.debt()), (20_000, 20_000));
        assert_eq!(charged.clear_after(), wait(2).expect("a wait"));
        assert_eq!(connection.llen("large"), Ok(1 + 40_000));
        let mark = Mark {
            at: Ticks {
                whole: SOME_DAY as u64,
                part: 0,
            },
            is_reserved: false,
            ..Mark::default()
        };
        let parts = [(part(20_000), Some(mark))];
        let reply = send(&call::give(&parts), SOME_DAY + 10, connection);
        assert_eq!(call::given(&parts, &reply), Ok(vec![19_999]));
        assert_eq!(connection.llen("large"), Ok(1 + 20_001));
    });
}

#[test]
fn another_list_is_refused_and_left_alone() {
    let kind = Limit::sliding_log(Quota::per_day(20))
        .expect("accepted")
        .kind;
    server::on_each_server(|connection| {
        for list in [
            &["1"][..],
            &["5", "b0"],
            &["!"],
            &["!-1"],
            &["!1.5"],
            &["!3155760000000001"],
            &["!0", "one"],
            &["!0", "-1"],
            &["!0", "1.5"],
            &["!0", "nan"],
            &["!0", ""],
            &["!0", "1577880000000001"],
            &["!0", "one", "1577880000000000"],
            &["!0", "1577880000000001", "1577880000000000"],
        ] {
            stored::refused_and_left(&kind, connection, |connection| {
                connection.rpush("{t}bad", list).expect("a list")
            });
        }
        stored::refused_and_left(&kind, connection, |connection| {
            connection.set("{t}bad", 1).expect("a value")
        });
    });
}
