//! Limits of all kinds in one call.

use std::time::Duration;

use super::logs::LogModel;
use super::model::{Key, Line, Stored};
use super::slots::SlotsModel;
use super::verbs::{self, Charged, END, Holder, Model, Taken};
use super::window_model::{self, Rule};
use super::{OPERATIONS, Random, bucket, quotas};
use crate::client::Reply;
use crate::limit::kind::{Kind, Shape, Window};
use crate::limit::rate::Ticks;

/// A bucket by its definition, which is in [`Key`].
struct BucketModel {
    kind: Kind,
    line: Line,
    stored: Option<Stored>,
}

impl BucketModel {
    fn new(random: &mut Random) -> Self {
        let quota = quotas::random(random);
        Self {
            kind: bucket(quota),
            line: Line::of(quota),
            stored: None,
        }
    }

    fn at(&self, now: u64) -> Key {
        Key::of(self.stored, self.line, now.into())
    }
}

impl Model for BucketModel {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn change(&mut self, random: &mut Random) {
        let stored = self.stored;
        *self = Self {
            stored,
            ..Self::new(random)
        };
    }

    fn period(&self) -> u64 {
        (self.line.period / self.line.n + 1).min(END.into()) as u64
    }

    fn banned_until(&self) -> u64 {
        self.at(0).ban as u64
    }

    fn called(&mut self, now: u64) {
        let called = |stored: Stored| stored.called(self.line, now.into());
        self.stored = self.stored.map(called);
    }

    fn fits(&self, n: u64, now: u64) -> bool {
        self.at(now).grants(n.into(), now.into())
    }

    fn due(&self, n: u64, now: u64) -> Option<u64> {
        Some(self.at(now).due(n.into()) as u64)
    }

    fn available(&self, now: u64) -> u64 {
        self.at(now).available() as u64
    }

    fn take(&mut self, n: u64, now: u64, _first: &Holder) -> Taken {
        let mut key = self.at(now);
        key.take(n.into(), key.now);
        if n > 0 {
            self.stored = Some(key.stored());
        }
        let (whole, part) = (key.idle / self.line.n, key.idle % self.line.n);
        Taken {
            at: now,
            remaining: key.available() as u64,
            reset_after: key.idle.div_ceil(self.line.n) as u64 - now,
            mark: Ticks {
                whole: whole as u64,
                part: part as u64,
            },
        }
    }

    fn give(&mut self, n: u64, mark: Option<Ticks>, now: u64) -> u64 {
        let mut key = self.at(now);
        let mark = mark.map_or(u128::MAX, |mark| {
            u128::from(mark.whole) * self.line.n + u128::from(mark.part)
        });
        let given = key.give(n.into(), mark, false);
        if given > 0 {
            self.stored = Some(key.stored());
        }
        given as u64
    }

    fn charge(&mut self, n: u64, now: u64, _first: &Holder) -> Charged {
        let mut key = self.at(now);
        let before = key.idle;
        let n = key.charge(n.into());
        if key.idle > before {
            self.stored = Some(key.stored());
        }
        let (debt, clear) = key.debt();
        Charged {
            n: n as u64,
            at: now,
            debt: u64::try_from(debt).unwrap_or(u64::MAX),
            clear: match clear {
                Duration::MAX => u64::MAX,
                clear => now + clear.as_micros() as u64,
            },
        }
    }

    fn ban(&mut self, long: u64, now: u64) {
        let mut key = self.at(now);
        key.ban(long.into());
        self.stored = Some(key.stored());
    }

    fn reset(&mut self) {
        self.stored = None;
    }

    fn stored(&self) -> (&'static [&'static str], Reply, i64) {
        let value = self.stored.map(|stored| Reply::Bytes(stored.value()));
        let expiry = self.stored.map_or(-2, |stored| stored.expiry as i64);
        (&["GET"], value.unwrap_or(Reply::Nil), expiry)
    }
}

/// Windows by their definition, which is in [`window_model::Key`].
struct WindowModel {
    kind: Kind,
    rule: Rule,
    stored: Option<window_model::Stored>,
}

impl WindowModel {
    fn new(random: &mut Random) -> Self {
        let shapes = [Shape::Aligned, Shape::FirstHit, Shape::Slides];
        let shape = shapes[random.below(3) as usize];
        Self::of(shape, random)
    }

    fn of(shape: Shape, random: &mut Random) -> Self {
        let (limit, period) = (1 + random.any_size(30), 1 + random.any_size(END - 1));
        Self {
            kind: Kind::Window(Window {
                limit,
                period,
                shape,
            }),
            rule: Rule {
                limit: limit.into(),
                period: period.into(),
                shape,
            },
            stored: None,
        }
    }

    fn at(&self, now: u64) -> window_model::Key {
        window_model::Key::of(self.stored, self.rule, now.into())
    }
}

impl Model for WindowModel {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn change(&mut self, random: &mut Random) {
        let stored = self.stored;
        *self = Self {
            stored,
            ..Self::of(self.rule.shape, random)
        };
    }

    fn period(&self) -> u64 {
        self.rule.period as u64
    }

    fn banned_until(&self) -> u64 {
        self.at(0).ban as u64
    }

    fn fits(&self, n: u64, now: u64) -> bool {
        self.at(now).grants(n.into(), now.into())
    }

    fn due(&self, n: u64, now: u64) -> Option<u64> {
        Some(self.at(now).due(n.into()) as u64)
    }

    fn available(&self, now: u64) -> u64 {
        self.at(now).available() as u64
    }

    fn take(&mut self, n: u64, now: u64, _first: &Holder) -> Taken {
        let mut key = self.at(now);
        key.count += u128::from(n);
        if n > 0 {
            self.stored = Some(key.stored());
        }
        Taken {
            at: key.counted_at() as u64,
            remaining: key.available() as u64,
            reset_after: key.forgotten().saturating_sub(key.counted_at()) as u64,
            mark: Ticks {
                whole: key.ends as u64,
                part: 0,
            },
        }
    }

    fn give(&mut self, n: u64, mark: Option<Ticks>, now: u64) -> u64 {
        let mut key = self.at(now);
        let given = key.give(n.into(), mark.map(|mark| mark.whole.into()));
        if given > 0 {
            self.stored = Some(key.stored());
        }
        given as u64
    }

    fn charge(&mut self, n: u64, now: u64, _first: &Holder) -> Charged {
        let mut key = self.at(now);
        let charged = key.charge(n.into());
        if charged > 0 {
            self.stored = Some(key.stored());
        }
        let (debt, clear) = key.debt();
        Charged {
            n: charged as u64,
            at: key.counted_at() as u64,
            debt: debt as u64,
            clear: clear as u64,
        }
    }

    fn ban(&mut self, long: u64, now: u64) {
        let mut key = self.at(now);
        key.ban(long.into());
        self.stored = Some(key.stored());
    }

    fn reset(&mut self) {
        self.stored = None;
    }

    fn stored(&self) -> (&'static [&'static str], Reply, i64) {
        let value = self.stored.map(|stored| Reply::Bytes(stored.value()));
        let expiry = self.stored.map_or(-2, |stored| stored.expiry as i64);
        (&["GET"], value.unwrap_or(Reply::Nil), expiry)
    }
}

#[test]
fn each_answer_of_limits_of_all_kinds_in_one_call_is_exact() {
    let counts = verbs::same(0xA11_0A11, |random| {
        vec![
            Box::new(LogModel::new(random)),
            Box::new(SlotsModel::new(random)),
            Box::new(BucketModel::new(random)),
            Box::new(WindowModel::new(random)),
        ]
    });
    assert!(counts.granted > OPERATIONS / 20, "{counts:?}");
}
