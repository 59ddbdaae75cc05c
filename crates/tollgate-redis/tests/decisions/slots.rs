//! Concurrency, against a map of holders.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use redis::Commands;

use super::logs::send;
use super::verbs::{self, Charged, Counts, END, Holder, Model, Taken};
use super::{OPERATIONS, Random, SOME_DAY, server, stored};
use crate::client::Reply;
use crate::limit::Limit;
use crate::limit::kind::{Kind, Mark, Slots};
use crate::limit::rate::Ticks;
use crate::server::call::{self, Part};

/// Concurrency by its definition.
#[derive(Debug, Clone)]
pub(super) struct SlotsModel {
    slots: Slots,
    /// When the leases end, also those that ended and were not removed yet, by their numbers.
    holders: BTreeMap<u64, u64>,
    base: Vec<u8>,
    /// The end of the last ban, as it is stored: 0 if none is.
    ban: u64,
    is_stored: bool,
    expiry: i64,
}

impl SlotsModel {
    pub(super) fn new(random: &mut Random) -> Self {
        let mut model = Self {
            slots: Slots { limit: 1, lease: 1 },
            holders: BTreeMap::new(),
            base: Vec::new(),
            ban: 0,
            is_stored: false,
            expiry: -2,
        };
        model.change(random);
        model
    }

    fn live(&self, now: u64) -> u64 {
        self.holders.values().filter(|end| **end > now).count() as u64
    }

    fn last(&self, now: u64) -> u64 {
        let ends = self.holders.values().chain([&self.ban, &now]);
        *ends.max().expect("one")
    }

    /// The key expires a second after the last lease and the ban have ended.
    fn wrote(&mut self, now: u64) {
        self.is_stored = true;
        self.expiry = ((self.last(now) - now) / 1000 + 1001) as i64;
    }

    fn forget_ban(&mut self, now: u64) {
        if self.ban <= now {
            self.ban = 0;
        }
    }

    fn add(&mut self, n: u64, now: u64, first: &Holder) {
        self.holders.retain(|_, end| *end > now);
        self.forget_ban(now);
        self.base.clone_from(&first.base);
        for number in first.number..first.number + n {
            let known = self.holders.insert(number, now + self.slots.lease);
            assert_eq!(known, None, "a holder's name must be new");
        }
        self.wrote(now);
    }

    /// Returns which holders of a grant still hold their slots.
    fn held(&self, n: u64, mark: Ticks, now: u64) -> Vec<u64> {
        let holders = mark.whole..mark.whole + n;
        let is_held = |number: &u64| self.holders.get(number).is_some_and(|end| *end > now);
        holders.filter(is_held).collect()
    }
}

impl Model for SlotsModel {
    fn kind(&self) -> Kind {
        Kind::Slots(self.slots)
    }

    fn change(&mut self, random: &mut Random) {
        let limit = match random.below(16) {
            0 => 1 + random.any_size(1999),
            _ => 1 + random.any_size(20),
        };
        let lease = Duration::from_micros(1000 + random.any_size(END - 1000));
        let limit = Limit::concurrency(limit, lease).expect("accepted");
        let Kind::Slots(slots) = limit.kind else {
            unreachable!()
        };
        self.slots = slots;
    }

    fn period(&self) -> u64 {
        self.slots.lease
    }

    fn banned_until(&self) -> u64 {
        self.ban
    }

    fn fits(&self, n: u64, now: u64) -> bool {
        now >= self.ban && self.live(now) + n <= self.slots.limit
    }

    /// Slots may be given back or renewed, so it is known only for those that are free.
    fn due(&self, n: u64, now: u64) -> Option<u64> {
        let is_free = self.live(now) + n <= self.slots.limit;
        is_free.then(|| self.ban.max(now))
    }

    fn available(&self, now: u64) -> u64 {
        let free = self.slots.limit.saturating_sub(self.live(now));
        if now < self.ban { 0 } else { free }
    }

    fn take(&mut self, n: u64, now: u64, first: &Holder) -> Taken {
        if n > 0 {
            self.add(n, now, first);
        }
        assert!(self.live(now) <= self.slots.limit);
        let ends = self.holders.values().copied().max().unwrap_or(0);
        Taken {
            at: now,
            remaining: self.available(now),
            reset_after: ends.saturating_sub(now),
            mark: Ticks {
                whole: first.number,
                part: 0,
            },
        }
    }

    fn give(&mut self, n: u64, mark: Option<Ticks>, now: u64) -> u64 {
        let Some(mark) = mark else {
            return 0;
        };
        let held = self.held(n, mark, now);
        if n > 0 && self.live(now) > 0 {
            let is_left = |number: &u64, end: &mut u64| *end > now && !held.contains(number);
            self.holders.retain(is_left);
        }
        if !held.is_empty() {
            self.wrote(now);
        }
        held.len() as u64
    }

    fn charge(&mut self, n: u64, now: u64, first: &Holder) -> Charged {
        let n = n.min((2 * self.slots.limit).saturating_sub(self.live(now)));
        if n > 0 {
            self.add(n, now, first);
        }
        Charged {
            n,
            at: now,
            debt: self.live(now).saturating_sub(self.slots.limit),
            clear: self.last(now),
        }
    }

    fn ban(&mut self, long: u64, now: u64) {
        self.ban = self.ban.max(now + long);
        self.wrote(now);
    }

    fn renew(&mut self, n: u64, mark: Ticks, now: u64) -> u64 {
        let held = self.held(n, mark, now);
        for number in &held {
            self.holders.insert(*number, now + self.slots.lease);
        }
        if !held.is_empty() {
            self.forget_ban(now);
            self.wrote(now);
        }
        held.len() as u64
    }

    fn reset(&mut self) {
        self.holders.clear();
        self.ban = 0;
        self.is_stored = false;
    }

    fn stored(&self) -> (&'static [&'static str], Reply, i64) {
        let holders = self.holders.iter().map(|(number, end)| {
            let name = [&self.base, number.to_string().as_bytes()].concat();
            (*end as i64, name)
        });
        let mark = self.is_stored.then(|| (-(self.ban as i64), b"!".to_vec()));
        let mut all: Vec<_> = holders.chain(mark).collect();
        all.sort();
        let expiry = if self.is_stored { self.expiry } else { -2 };
        let all = all
            .into_iter()
            .flat_map(|(end, name)| [name, end.to_string().into_bytes()]);
        let list = Reply::List(all.map(Reply::Bytes).collect());
        (&["ZRANGE", "0", "-1", "WITHSCORES"], list, expiry)
    }
}

#[test]
fn each_answer_and_each_holder_is_exact() {
    let counts = verbs::same(0x5107_5107, |random| {
        vec![
            Box::new(SlotsModel::new(random)),
            Box::new(SlotsModel::new(random)),
        ]
    });
    let Counts {
        granted,
        denied,
        never,
        undone,
        renewed,
        charged,
        owed,
        bans,
        limits,
        refunded,
    } = counts;
    assert_eq!(refunded, 0, "a slot is given back by its grant only");
    for count in [
        granted, denied, never, undone, renewed, charged, owed, bans, limits,
    ] {
        assert!(count > OPERATIONS / 100, "{counts:?}");
    }
}

/// A grant, as its answers tell: it holds its slots from a tick until another.
struct Held {
    n: u64,
    mark: Mark,
    from: u64,
    until: u64,
}

#[test]
fn at_no_tick_are_more_slots_held_than_the_limit() {
    server::on_each_server(|connection| {
        let mut random = Random(0x5107);
        let (mut done, mut full, mut tries) = (0, 0, 0);
        while done < OPERATIONS / 100 {
            tries += 1;
            let before = random.0;
            match history(tries, &mut random, connection) {
                Some(is_full) => {
                    done += 1;
                    full += usize::from(is_full);
                }
                None => random.0 = before,
            }
        }
        assert!(full > done / 2, "all slots are held at some tick");
    });
}

/// Returns whether all slots were held at a tick, or `None` if it takes so long that the key may
/// have expired.
fn history(number: usize, random: &mut Random, connection: &mut redis::Connection) -> Option<bool> {
    let (limit, lease) = (1 + random.below(5), 1000 + random.any_size(1 << 40));
    let kind = Limit::concurrency(limit, Duration::from_micros(lease));
    let kind = kind.expect("accepted").kind;
    let name = format!("history{number}");
    let (start, mut now) = (Instant::now(), SOME_DAY as u64);
    let mut all: Vec<Held> = Vec::new();
    for _ in 0..100 {
        now += random.below(3) / 2 * random.below(lease / 2);
        let n = 1 + random.below(limit);
        let part = |n| Part {
            key: name.as_bytes(),
            kind: &kind,
            n,
        };
        let verb = random.below(4);
        if verb < 2 {
            let call = call::take(&[part(n)]).expect("not never");
            let reply = send(&call, now.into(), connection);
            let taken = call::taken(&[part(n)], &reply).expect("a reply");
            if let Ok(taken) = taken {
                let mark = Mark {
                    at: taken[0].mark,
                    is_reserved: false,
                    ..Mark::default()
                };
                let (from, until) = (now, now + lease);
                all.push(Held {
                    n,
                    mark,
                    from,
                    until,
                });
            }
        } else if !all.is_empty() {
            let which = random.below(all.len() as u64) as usize;
            let Held { n, mark, .. } = all[which];
            let parts = [(part(n), Some(mark))];
            let (call, until) = match verb {
                2 => (call::renew(part(n), mark), now + lease),
                _ => (call::give(&parts), now),
            };
            let reply = send(&call, now.into(), connection);
            if start.elapsed() > Duration::from_millis(900) {
                return None;
            }
            // What has ended is neither renewed nor given back.
            let held = if now < all[which].until { n } else { 0 };
            assert_eq!(call::given(&parts, &reply), Ok(vec![held]));
            if held > 0 {
                all[which].until = until;
            }
        }
    }
    let held_at = |tick| {
        let held = all
            .iter()
            .filter(|held| held.from <= tick && tick < held.until);
        held.map(|held| held.n).sum::<u64>()
    };
    let most = all.iter().map(|held| held_at(held.from)).max();
    assert!(most <= Some(limit), "{most:?} of {limit}");
    Some(most == Some(limit))
}

#[test]
fn another_value_is_refused_and_left_alone() {
    let limit = Limit::concurrency(20, Duration::from_secs(60));
    let kind = limit.expect("accepted").kind;
    server::on_each_server(|connection| {
        for members in [
            &[("5", "a")][..],
            &[("0", "a")],
            &[("-5", "a")],
            &[("5", "!")],
            &[("-1.5", "!")],
            &[("-inf", "!")],
            &[("-3155760000000001", "!")],
            &[("0", "!"), ("-1", "a")],
            &[("0", "!"), ("5.5", "a")],
            &[("0", "!"), ("inf", "a")],
            &[("0", "!"), ("3155760000000001", "a")],
        ] {
            stored::refused_and_left(&kind, connection, |connection| {
                connection.zadd_multiple("{t}bad", members).expect("a set")
            });
        }
        stored::refused_and_left(&kind, connection, |connection| {
            connection.set("{t}bad", 1).expect("a value")
        });
    });
}

#[test]
fn the_holder_with_the_number_0_is_renewed_and_gives_its_slot_back() {
    let limit = Limit::concurrency(1, Duration::from_secs(60));
    let kind = limit.expect("accepted").kind;
    server::on_each_server(|connection| {
        let part = Part {
            key: b"zero",
            kind: &kind,
            n: 1,
        };
        let mut take = call::take(&[part]).expect("not never");
        // The number of the first holder. A process counts from 0.
        take.args[0][25..33].copy_from_slice(&0.0_f64.to_le_bytes());
        let mark = Mark::default();
        let given = |call: &call::Call, connection: &mut _| {
            let reply = send(call, SOME_DAY, connection);
            call::given(&[(part, Some(mark))], &reply)
        };
        let reply = send(&take, SOME_DAY, connection);
        let taken = call::taken(&[part], &reply).expect("a reply");
        assert_eq!(taken.expect("a grant")[0].mark, mark.at);
        assert_eq!(given(&call::renew(part, mark), connection), Ok(vec![1]));
        let give = call::give(&[(part, Some(mark))]);
        assert_eq!(given(&give, connection), Ok(vec![1]));
        assert_eq!(given(&give, connection), Ok(vec![0]));
    });
}
