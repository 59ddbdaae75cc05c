//! Concurrency, against a map of holders.

use std::collections::BTreeMap;
use std::time::Duration;

use super::verbs::{self, Charged, Counts, END, Holder, Model, Taken};
use super::{OPERATIONS, Random};
use crate::client::Reply;
use crate::kind::{Kind, Slots};
use crate::limit::Limit;
use crate::rate::Ticks;

/// Concurrency by its definition.
#[derive(Debug, Clone)]
pub(super) struct SlotsModel {
    slots: Slots,
    /// When the leases end, also those that ended and were not removed yet, by their numbers.
    holders: BTreeMap<u64, u64>,
    base: Vec<u8>,
    /// The end of the last ban, as it is stored: 0 if none is.
    ban: u64,
    expiry: i64,
}

impl SlotsModel {
    pub(super) fn new(random: &mut Random) -> Self {
        let mut model = Self {
            slots: Slots { limit: 1, lease: 1 },
            holders: BTreeMap::new(),
            base: Vec::new(),
            ban: 0,
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

    fn set_expiry(&mut self, last: u64, now: u64) {
        self.expiry = ((last - now) / 1000 + 1001) as i64;
        assert!(self.last(now) <= last && now + self.expiry as u64 * 1000 > last + 1_000_000);
    }

    fn add(&mut self, n: u64, now: u64, first: &Holder) {
        self.holders.retain(|_, end| *end > now);
        if self.ban <= now {
            self.ban = 0;
        }
        self.base.clone_from(&first.base);
        for number in first.number..first.number + n {
            let known = self.holders.insert(number, now + self.slots.lease);
            assert_eq!(known, None, "a holder's name must be new");
        }
        self.set_expiry(self.last(now), now);
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
            0 => 1 + random.any_size(3000),
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
        let held = mark.map(|mark| self.held(n, mark, now)).unwrap_or_default();
        for number in &held {
            self.holders.remove(number);
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
        self.set_expiry(self.last(now), now);
    }

    fn renew(&mut self, n: u64, mark: Ticks, now: u64) -> u64 {
        let (held, before) = (self.held(n, mark, now), self.last(now));
        for number in &held {
            self.holders.insert(*number, now + self.slots.lease);
        }
        if !held.is_empty() {
            self.set_expiry(self.last(now).max(before), now);
        }
        held.len() as u64
    }

    fn reset(&mut self) {
        self.holders.clear();
        self.ban = 0;
    }

    fn stored(&self) -> (&'static [&'static str], Reply, i64) {
        let holders = self.holders.iter().map(|(number, end)| {
            let name = [&self.base, number.to_string().as_bytes()].concat();
            (*end, name)
        });
        let ban = (self.ban > 0).then(|| (self.ban, b"!".to_vec()));
        let mut all: Vec<_> = holders.chain(ban).collect();
        all.sort();
        let expiry = if all.is_empty() { -2 } else { self.expiry };
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
