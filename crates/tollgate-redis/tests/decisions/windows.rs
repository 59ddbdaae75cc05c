//! Random operations on windows whose limits change, also together with a bucket, while the clock
//! jumps, stands still and goes back.

use std::time::Duration;

use redis::Commands;
use tollgate::{Denied, Quota};

use super::model::{self, Line, SPAN, micros};
use super::stored::refused_and_left;
use super::window_model::{Key, Rule, Stored};
use super::{Episode, OPERATIONS, Random, bucket, quotas, server};
use crate::client::Reply;
use crate::limit::Limit;
use crate::limit::error::LimitError;
use crate::limit::kind::{Kind, Mark, Shape, Taken};
use crate::limit::rate::Ticks;
use crate::script::{self, Kinds, Verb};
use crate::server::call::{self, Part};

/// Operations in one transaction.
const LENGTH: usize = 50;

/// The bucket's number among the keys.
const BUCKET: usize = 2;

#[test]
fn aligned_windows_are_exact() {
    each_answer_and_each_stored_value_is_exact(|_| Shape::Aligned);
}

#[test]
fn windows_opened_by_the_first_hit_are_exact() {
    each_answer_and_each_stored_value_is_exact(|_| Shape::FirstHit);
}

#[test]
fn sliding_windows_are_exact() {
    each_answer_and_each_stored_value_is_exact(|_| Shape::Slides);
}

#[test]
fn windows_that_change_their_shape_are_exact() {
    let shapes = [Shape::Aligned, Shape::FirstHit, Shape::Slides];
    each_answer_and_each_stored_value_is_exact(move |random| shapes[random.below(3) as usize]);
}

#[test]
fn windows_up_to_the_edges_are_accepted_and_no_others() {
    let (most, longest) = ((1 << 52) - 1, Duration::from_micros(SPAN as u64));
    let [micro, nano] = [Duration::from_micros(1), Duration::from_nanos(1)];
    for of in [
        Limit::fixed_window,
        Limit::first_hit_window,
        Limit::sliding_window,
    ] {
        for (n, period) in [(1, micro), (most, micro), (1, longest), (most, longest)] {
            let limit = of(Quota::per(n, period)).expect("accepted");
            assert_eq!(limit.permits(), n);
        }
        let quota = Quota::per(5, micro);
        let period = longest + nano;
        for (quota, error) in [
            (Quota::per(0, micro), LimitError::ZeroPermits),
            (Quota::per(5, Duration::ZERO), LimitError::ZeroPeriod),
            (Quota::per(5, period), LimitError::PeriodTooLong { period }),
            (
                Quota::per(5, micro + nano),
                LimitError::PeriodNotWhole {
                    period: micro + nano,
                },
            ),
            (
                Quota::per(most + 1, micro),
                LimitError::TooManyPermits {
                    n: most + 1,
                    max: most,
                },
            ),
            (quota.burst(6), LimitError::BurstOfWindow { burst: 6, n: 5 }),
            (
                quota.initial(4),
                LimitError::Initial {
                    initial: 4,
                    burst: 5,
                },
            ),
        ] {
            assert_eq!(of(quota), Err(error));
            assert!(error.to_string().starts_with(error.field()), "{error}");
        }
    }
}

#[test]
fn unreadable_windows_are_refused_and_left_alone() {
    let kind = Limit::sliding_window(Quota::per(9, Duration::from_secs(1)));
    let kind = kind.expect("accepted").kind;
    let state = |version: u8, numbers: [f64; 4]| {
        let mut value = vec![version];
        value.extend(numbers.map(f64::to_le_bytes).concat());
        value
    };
    let right = state(2, [1.0, 2.0, 3.0, 0.0]);
    let (most, last) = (((1_u64 << 52) - 1) as f64, 4.0 * SPAN as f64);
    server::on_each_server(|connection| {
        for value in [
            Vec::new(),
            right[..32].to_vec(),
            [right.as_slice(), b" "].concat(),
            // A bucket.
            right[..25].to_vec(),
            state(1, [1.0, 2.0, 3.0, 0.0]),
            state(3, [1.0, 2.0, 3.0, 0.0]),
            state(2, [most + 1.0, 2.0, 3.0, 0.0]),
            state(2, [f64::NAN, 2.0, 3.0, 0.0]),
            state(2, [1.0, most + 1.0, 3.0, 0.0]),
            state(2, [1.0, f64::NAN, 3.0, 0.0]),
            state(2, [1.0, 2.0, last, 0.0]),
            state(2, [1.0, 2.0, f64::NAN, 0.0]),
            state(2, [1.0, 2.0, 3.0, -last]),
            state(2, [1.0, 2.0, 3.0, f64::NAN]),
        ] {
            refused_and_left(&kind, connection, |connection| {
                connection.set("{t}bad", value.as_slice()).expect("set")
            });
        }
        refused_and_left(&kind, connection, |connection| {
            connection.lpush("{t}bad", "2").expect("a list")
        });
    });
}

fn each_answer_and_each_stored_value_is_exact(shape: impl Fn(&mut Random) -> Shape) {
    server::on_each_server(|connection| {
        let mut random = Random(0x317D_0777);
        let mut counts = [0; OUTCOMES.len()];
        let (mut done, mut tries) = (0, 0);
        while done < OPERATIONS / LENGTH {
            let before = (random.0, counts);
            let mut episode = Operations::new(tries, &shape, &mut random, &mut counts);
            while episode.sent.len() < LENGTH {
                episode.operate();
            }
            match episode.check(connection) {
                Some(()) => done += 1,
                None => (random.0, counts) = before,
            }
            tries += 1;
        }
        // Otherwise the operations would miss what they are for.
        for (outcome, count) in OUTCOMES.iter().zip(counts) {
            assert!(count > OPERATIONS / 200, "{outcome}: {count}");
        }
    });
}

/// What operations do, each with a count.
const OUTCOMES: [&str; 9] = [
    "granted", "mixed", "denied", "never", "undone", "refunded", "charged", "banned", "changed",
];

/// A key of windows, as the model knows it.
struct Known {
    name: Vec<u8>,
    kind: Kind,
    rule: Rule,
    stored: Option<Stored>,
    /// Grants that can be undone: their permits and marks.
    grants: Vec<(u64, u128)>,
}

/// A check of a reply.
type Check = Box<dyn FnOnce(&Reply)>;

/// What a key must have: its value, and when it expires.
type Value = Option<(Vec<u8>, u128)>;

struct Operations<'a, S> {
    shape: &'a S,
    random: &'a mut Random,
    counts: &'a mut [usize; OUTCOMES.len()],
    number: usize,
    keys: [Known; 2],
    bucket: (Vec<u8>, Kind, Line, Option<model::Stored>),
    clock: i128,
    episode: Episode,
    /// Requests that were denied, with a moment at which to ask again.
    again: Vec<(i128, Vec<(usize, u64)>)>,
    sent: Vec<(String, Check, [Value; 3])>,
}

impl<'a, S: Fn(&mut Random) -> Shape> Operations<'a, S> {
    fn new(
        number: usize,
        shape: &'a S,
        random: &'a mut Random,
        counts: &'a mut [usize; OUTCOMES.len()],
    ) -> Self {
        let name = |key| format!("{{{number}}}{key}").into_bytes();
        let keys = ["a", "b"].map(|key| {
            let (kind, rule) = any_windows(random, shape);
            Known {
                name: name(key),
                kind,
                rule,
                stored: None,
                grants: Vec::new(),
            }
        });
        let quota = quotas::random(random);
        let clock = random.any_size(SPAN as u64).into();
        Self {
            shape,
            random,
            counts,
            number,
            keys,
            bucket: (name("c"), bucket(quota), Line::of(quota), None),
            clock,
            episode: Episode::new(),
            again: Vec::new(),
            sent: Vec::new(),
        }
    }

    fn count(&mut self, outcome: &str) {
        let known = OUTCOMES.iter().position(|known| *known == outcome);
        self.counts[known.expect("an outcome")] += 1;
    }

    fn now(&self) -> u128 {
        self.clock.clamp(0, SPAN as i128) as u128
    }

    fn at(&self, i: usize) -> Key {
        let key = &self.keys[i];
        Key::of(key.stored, key.rule, self.now())
    }

    fn bucket_at(&self) -> model::Key {
        model::Key::of(self.bucket.3, self.bucket.2, self.now())
    }

    fn owned(&self, request: &[(usize, u64)]) -> Vec<(Vec<u8>, Kind, u64)> {
        let owned = |(i, n): &(usize, u64)| match *i {
            BUCKET => (self.bucket.0.clone(), self.bucket.1, *n),
            i => (self.keys[i].name.clone(), self.keys[i].kind, *n),
        };
        request.iter().map(owned).collect()
    }

    /// Moves the clock, also to where windows end, and by shares of a period.
    fn move_clock(&mut self) {
        let i = self.random.below(2) as usize;
        let (key, period) = (self.at(i), self.keys[i].rule.period as u64);
        let random = &mut *self.random;
        let next = match random.below(16) {
            0..5 => return,
            5..8 => self.clock + i128::from(random.any_size(period)),
            8 => {
                self.clock + i128::from(random.any_size(period.saturating_mul(3).min(SPAN as u64)))
            }
            9 | 10 => key.ends as i128 - i128::from(random.below(2)),
            11 => key.ends as i128 + i128::from(period) - i128::from(random.below(2)),
            12 => self.clock + i128::from(random.any_size(SPAN as u64)),
            13 => {
                self.clock - i128::from(random.any_size(period.saturating_mul(3).min(SPAN as u64)))
            }
            _ => self.clock - i128::from(random.any_size(period)),
        };
        self.clock = match (-10..SPAN as i128 + 10).contains(&next) {
            true => next,
            false => random.below(SPAN as u64).into(),
        };
    }

    /// Returns a number of permits around what a key has and what it can have.
    fn amount(&mut self, i: usize) -> u64 {
        let (available, most) = match i {
            BUCKET => (self.bucket_at().available() as u64, self.bucket.1.most()),
            i => (self.at(i).available() as u64, self.keys[i].kind.most()),
        };
        match self.random.below(8) {
            0 => most,
            1 => most + self.random.below(2),
            2 => available,
            3 => available + 1,
            4 => self.random.below(3),
            _ => self.random.any_size(available.max(3)),
        }
    }

    fn some_windows(&mut self) -> Vec<usize> {
        let all: [&[usize]; 4] = [&[0], &[1], &[0, 1], &[1, 0]];
        all[self.random.below(4) as usize].to_vec()
    }

    fn operate(&mut self) {
        if let Some((at, request)) = self.again.pop() {
            self.clock = at;
            return self.take(request);
        }
        self.move_clock();
        match self.random.below(16) {
            0..6 => {
                let mut which = self.some_windows();
                if self.random.below(3) == 0 {
                    which.insert(self.random.below(which.len() as u64 + 1) as usize, BUCKET);
                }
                let request = which.into_iter().map(|i| (i, self.amount(i))).collect();
                self.take(request);
            }
            6 | 7 => self.look(),
            8..12 => self.give(),
            12 | 13 => self.charge(),
            14 => self.ban(),
            _ => self.change(),
        }
    }

    fn take(&mut self, request: Vec<(usize, u64)>) {
        let owned = self.owned(&request);
        let mut call = match call::take(&parts_of(&owned)) {
            Ok(call) => call,
            Err((i, denied)) => {
                let (n, most) = (request[i].1, owned[i].1.most());
                assert!(n > most);
                assert_eq!(denied, Denied::never(n, most));
                return self.count("never");
            }
        };
        if self.random.below(4) == 0 {
            // The script for all kinds decides as the shorter ones do.
            call.script = script::script(Verb::Take, Kinds::All);
        }
        let now = self.now();
        let (mut granted, mut refused) = (Vec::new(), None::<(u128, (usize, Denied))>);
        for (position, (i, n)) in request.iter().enumerate() {
            let count = u128::from(*n);
            let (grants, due, ban) = match *i {
                BUCKET => {
                    let key = self.bucket_at();
                    (key.grants(count, now), key.due(count), key.ban)
                }
                i => {
                    let key = self.at(i);
                    (key.grants(count, now), key.due(count), key.ban)
                }
            };
            assert_eq!(grants, due == now);
            if !grants && refused.as_ref().is_none_or(|(longest, _)| due > *longest) {
                refused = Some((due, (position, denied(*n, now, due, ban))));
            }
            // remaining, at, reset_after, mark
            granted.push(match *i {
                BUCKET => {
                    let mut key = self.bucket_at();
                    key.take(count, key.now);
                    let idle = micros(key.idle.div_ceil(key.line.n) - now);
                    let (whole, part) = (key.idle / key.line.n, key.idle % key.line.n);
                    (key.available(), now, idle, ticks(whole, part))
                }
                i => {
                    let mut key = self.at(i);
                    key.count += count;
                    let reset = key.forgotten().saturating_sub(key.counted_at());
                    let reset = micros(reset);
                    (key.available(), key.counted_at(), reset, ticks(key.ends, 0))
                }
            });
        }
        let expected = match refused {
            Some((due, (i, denied))) => {
                self.count("denied");
                if due <= SPAN && self.random.below(2) == 0 {
                    let due = due as i128;
                    self.again = vec![(due, request.clone()), (due - 1, request.clone())];
                }
                Err((i, denied))
            }
            None => {
                self.count("granted");
                for (i, n) in &request {
                    self.taken(*i, *n, request.len());
                }
                Ok(granted)
            }
        };
        let what = format!("take {request:?}");
        self.send(what, &call, move |reply| {
            let taken = call::taken(&parts_of(&owned), reply).expect("a reply");
            let taken = taken.map(|taken| {
                let told = |taken: Taken| {
                    let granted = taken.granted;
                    let at = u128::from(granted.at().as_nanos()) / 1000;
                    let (remaining, reset) = (granted.remaining(), granted.reset_after());
                    (u128::from(remaining), at, reset, taken.mark)
                };
                taken.into_iter().map(told).collect::<Vec<_>>()
            });
            assert_eq!(taken, expected);
        });
    }

    fn taken(&mut self, i: usize, n: u64, parts: usize) {
        if n == 0 {
            return;
        }
        if i == BUCKET {
            let mut key = self.bucket_at();
            key.take(n.into(), key.now);
            self.bucket.3 = Some(key.stored());
            if parts > 1 {
                self.count("mixed");
            }
            return;
        }
        let mut key = self.at(i);
        key.count += u128::from(n);
        self.keys[i].stored = Some(key.stored());
        self.keys[i].grants.push((n, key.ends));
    }

    fn look(&mut self) {
        let request = vec![
            (0, self.random.any_size(100)),
            (1, 1 + self.random.any_size(u64::MAX - 1)),
        ];
        let owned = self.owned(&request);
        let call = call::look(&parts_of(&owned));
        let states = [self.at(0), self.at(1)];
        self.send("look".to_owned(), &call, move |reply| {
            let parts = parts_of(&owned);
            let seen = call::seen(&parts, reply).expect("a reply");
            for ((seen, part), state) in seen.iter().zip(&parts).zip(&states) {
                let available = part.kind.available(seen);
                assert_eq!(u128::from(available), state.available());
                let ban = (state.ban > 0).then(|| micros(state.ban - state.now));
                assert_eq!(seen.banned_for(), ban);
                let refused = part.kind.refused(seen, part.n, 0).map(|(_, denied)| denied);
                let expected = match u128::from(part.n) {
                    n if n > state.rule.limit => Some(Denied::never(part.n, part.kind.most())),
                    n if state.grants(n, state.now) => None,
                    n => Some(denied(part.n, state.now, state.due(n), state.ban)),
                };
                assert_eq!(refused, expected);
            }
        });
    }

    fn give(&mut self) {
        let mut request = Vec::new();
        for i in self.some_windows() {
            let held = self.keys[i].grants.len() as u64;
            request.push(if held > 0 && self.random.below(3) > 0 {
                let last = self.random.below(held) as usize;
                let (n, mark) = self.keys[i].grants.swap_remove(last);
                // Most grants are undone as a whole, so that windows close.
                let n = if self.random.below(3) == 0 {
                    self.random.any_size(n)
                } else {
                    n
                };
                (i, n, Some(mark))
            } else {
                (i, self.amount(i), None)
            });
        }
        let marks: Vec<_> = request
            .iter()
            .map(|(_, _, mark)| {
                let at = mark.map(|mark| ticks(mark, 0));
                at.map(|at| Mark {
                    at,
                    is_reserved: false,
                    ..Mark::default()
                })
            })
            .collect();
        let plain: Vec<_> = request.iter().map(|(i, n, _)| (*i, *n)).collect();
        let owned = self.owned(&plain);
        let marked: Vec<_> = parts_of(&owned).into_iter().zip(marks.clone()).collect();
        let call = call::give(&marked);
        drop(marked);
        let mut expected = Vec::new();
        for (i, n, mark) in &request {
            let mut key = self.at(*i);
            let given = key.give((*n).into(), *mark);
            if given > 0 {
                self.keys[*i].stored = Some(key.stored());
                self.count(if mark.is_some() { "undone" } else { "refunded" });
            }
            expected.push(given as u64);
        }
        self.send(format!("give {request:?}"), &call, move |reply| {
            let parts: Vec<_> = parts_of(&owned).into_iter().zip(marks).collect();
            assert_eq!(call::given(&parts, reply), Ok(expected));
        });
    }

    fn charge(&mut self) {
        let mut request = Vec::new();
        for i in self.some_windows() {
            let n = match self.random.below(4) {
                0 => self.random.any_size(u64::MAX),
                _ => self.amount(i),
            };
            request.push((i, n));
        }
        let owned = self.owned(&request);
        let call = call::charge(&parts_of(&owned));
        let mut expected = Vec::new();
        for (i, n) in &request {
            let mut key = self.at(*i);
            let charged = key.charge((*n).into());
            if charged > 0 {
                self.keys[*i].stored = Some(key.stored());
                self.count("charged");
            }
            let (debt, clear) = key.debt();
            let clear_after = match clear {
                clear if clear > SPAN => Duration::MAX,
                clear => micros(clear - key.now),
            };
            expected.push((charged as u64, debt as u64, clear_after));
        }
        self.send(format!("charge {request:?}"), &call, move |reply| {
            let charged = call::charged(&parts_of(&owned), reply).expect("a reply");
            let charged = charged.iter().map(|c| (c.n(), c.debt(), c.clear_after()));
            assert_eq!(charged.collect::<Vec<_>>(), expected);
        });
    }

    fn ban(&mut self) {
        let i = self.random.below(2) as usize;
        let long = match self.random.below(4) {
            0 => 0,
            1 => self.random.any_size(SPAN as u64),
            _ => self.random.any_size(self.keys[i].rule.period as u64),
        };
        let owned = self.owned(&[(i, 0)]);
        let call = call::ban(&parts_of(&owned), Duration::from_micros(long));
        let mut key = self.at(i);
        if long > 0 {
            key.ban(long.into());
            self.keys[i].stored = Some(key.stored());
            self.count("banned");
        }
        let expected = micros(key.ban.saturating_sub(key.now));
        self.send(format!("ban {i} for {long}"), &call, move |reply| {
            assert_eq!(call::banned(&parts_of(&owned), reply), Ok(vec![expected]));
        });
    }

    /// Changes a limit, or resets a key.
    fn change(&mut self) {
        let i = self.random.below(2) as usize;
        if self.random.below(2) == 0 {
            (self.keys[i].kind, self.keys[i].rule) = any_windows(self.random, self.shape);
            return self.count("changed");
        }
        let owned = self.owned(&[(i, 0)]);
        let known = self.keys[i].stored.take().is_some();
        self.send(
            format!("reset {i}"),
            &call::reset(&parts_of(&owned)),
            move |reply| {
                assert_eq!(*reply, Reply::Int(known.into()));
            },
        );
    }

    fn send(&mut self, what: String, call: &call::Call, check: impl FnOnce(&Reply) + 'static) {
        self.episode.call(call, self.clock);
        let value = |i: usize| {
            let stored = self.keys[i].stored;
            stored.map(|stored| (stored.value(), stored.expiry))
        };
        let bucket = self.bucket.3.map(|stored| (stored.value(), stored.expiry));
        let values = [value(0), value(1), bucket];
        for name in [&self.keys[0].name, &self.keys[1].name, &self.bucket.0] {
            self.episode.inspect(name);
        }
        let rules = self.keys.each_ref().map(|key| key.rule);
        let what = format!(
            "episode {}, {rules:?}, at {}: {what}",
            self.number, self.clock
        );
        self.sent.push((what, Box::new(check), values));
    }

    /// Runs the operations, and compares with the model. Returns `None` if keys may have expired.
    fn check(self, connection: &mut redis::Connection) -> Option<()> {
        let (mut replies, took) = self.episode.run(connection)?;
        for (what, check, values) in self.sent {
            let shown = Shown(what);
            check(&replies.next().expect("a reply"));
            for value in values {
                let (value, most) = match value {
                    Some((value, expiry)) => (Reply::Bytes(value), expiry as i128),
                    None => (Reply::Nil, -2),
                };
                assert_eq!(replies.next(), Some(value));
                let Some(Reply::Int(left)) = replies.next() else {
                    panic!("no time to live");
                };
                let least = most - if most < 0 { 0 } else { i128::from(took) };
                assert!((least..=most).contains(&left.into()), "{left}, not {most}");
            }
            drop(shown);
        }
        Some(())
    }
}

/// Says which operation was checked when a check failed.
struct Shown(String);

impl Drop for Shown {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0);
        }
    }
}

/// Returns windows from the smallest to the largest that are accepted.
fn any_windows(random: &mut Random, shape: &impl Fn(&mut Random) -> Shape) -> (Kind, Rule) {
    let most = (1 << 52) - 1;
    let limit = match random.below(4) {
        0 => 1 + random.below(10),
        1 => most - random.any_size(most - 1),
        _ => random.any_size(most).max(1),
    };
    let period = match random.below(4) {
        0 => 1 + random.below(10),
        1 => SPAN as u64 - random.any_size(SPAN as u64 - 1),
        2 => 1_000_000 * (1 + random.below(100)),
        _ => random.any_size(SPAN as u64).max(1),
    };
    let shape = shape(random);
    let quota = Quota::per(limit, Duration::from_micros(period));
    let kind = match shape {
        Shape::Aligned => Limit::fixed_window(quota),
        Shape::FirstHit => Limit::first_hit_window(quota),
        Shape::Slides => Limit::sliding_window(quota),
    };
    let rule = Rule {
        limit: limit.into(),
        period: period.into(),
        shape,
    };
    (kind.expect("accepted").kind, rule)
}

fn denied(n: u64, now: u128, due: u128, ban: u128) -> Denied {
    let wait = (due <= SPAN).then(|| micros(due - now));
    match (ban > 0, wait) {
        (true, wait) => Denied::banned(n, wait),
        (false, Some(wait)) => Denied::later(n, wait),
        (false, None) => Denied::stuck(n),
    }
}

fn ticks(whole: u128, part: u128) -> Ticks {
    Ticks {
        whole: whole as u64,
        part: part as u64,
    }
}

fn parts_of(owned: &[(Vec<u8>, Kind, u64)]) -> Vec<Part<'_>> {
    owned
        .iter()
        .map(|(key, kind, n)| Part { key, kind, n: *n })
        .collect()
}
