//! Random operations on two keys whose rates change, while the clock jumps, stands still and goes
//! back.

use std::time::Duration;

use tollgate::Denied;

use super::model::{Key, Line, SPAN, Stored, micros};
use super::{Episode, OPERATIONS, Random, bucket, quotas, server};
use crate::client::Reply;
use crate::limit::kind::{Kind, Mark};
use crate::limit::rate::Ticks;
use crate::script::{self, Kinds, Verb};
use crate::server::call::{self, Part};

/// Operations in one transaction.
const LENGTH: usize = 50;

#[test]
fn each_answer_and_each_stored_value_is_exact() {
    server::on_each_server(|connection| {
        let mut random = Random(0x7011_6A7E);
        let mut counts = Counts::default();
        let (mut done, mut tries) = (0, 0);
        while done < OPERATIONS / LENGTH {
            let before = (random.0, counts);
            match episode(tries, &mut random, &mut counts, connection) {
                Some(()) => done += 1,
                None => (random.0, counts) = before,
            }
            tries += 1;
        }
        // Otherwise the operations would miss what they are for.
        println!("{counts:?}");
        let Counts {
            granted,
            reserved,
            denied,
            never,
            undone,
            charged,
            given,
            bans,
            rates,
        } = counts;
        for count in [
            granted, reserved, denied, never, undone, charged, given, bans, rates,
        ] {
            assert!(count > OPERATIONS / 100, "{counts:?}");
        }
    });
}

/// How many operations had which outcome.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    granted: usize,
    reserved: usize,
    denied: usize,
    never: usize,
    undone: usize,
    given: usize,
    charged: usize,
    bans: usize,
    rates: usize,
}

/// A key of an episode, as the model knows it.
struct Known {
    name: Vec<u8>,
    kind: Kind,
    line: Line,
    stored: Option<Stored>,
    /// Grants that can be undone: their permits and marks, at the line's rate, and whether
    /// they are reserved.
    grants: Vec<(u64, u128, bool)>,
}

impl Known {
    /// Returns the key before a call about it.
    fn at(&self, now: u128) -> Key {
        Key::of(self.stored, self.line, now)
    }

    /// Returns the key as a call sees it.
    fn called(&mut self, now: u128) -> Key {
        self.stored = self.stored.map(|stored| stored.called(self.line, now));
        self.at(now)
    }

    fn part(&self, n: u64) -> Part<'_> {
        Part {
            key: &self.name,
            kind: &self.kind,
            n,
        }
    }

    fn set_rate(&mut self, random: &mut Random) {
        let quota = quotas::random(random);
        self.kind = bucket(quota);
        self.line = Line::of(quota);
        self.grants.clear();
    }
}

/// A moment, the request for it, and how long it may wait.
type Again = (i128, Vec<(usize, u64)>, u128);

type Check = Box<dyn FnOnce(&Reply)>;

/// An operation that was sent: what its reply must be, and what both keys must then have.
struct Sent {
    what: String,
    check: Check,
    stored: [Option<Stored>; 2],
}

fn episode(
    number: usize,
    random: &mut Random,
    counts: &mut Counts,
    connection: &mut redis::Connection,
) -> Option<()> {
    let mut keys: [Known; 2] = ["a", "b"].map(|name| {
        let quota = quotas::random(random);
        Known {
            name: format!("{{{number}}}{name}").into_bytes(),
            kind: bucket(quota),
            line: Line::of(quota),
            stored: None,
            grants: Vec::new(),
        }
    });
    let mut clock = i128::from(random.any_size(SPAN as u64));
    let mut sent = Episode::new();
    let mut checks = Vec::<Sent>::new();
    let mut again: Vec<Again> = Vec::new();
    while checks.len() < LENGTH {
        let mut asked = None;
        match again.pop() {
            Some((at, request, wait)) => {
                clock = at;
                asked = Some((request, wait));
            }
            None => clock = moved(clock, random, &keys),
        }
        let now = clock.clamp(0, SPAN as i128) as u128;
        let verb = if asked.is_some() { 0 } else { random.below(16) };
        let (call, what, check): (_, _, Check) = match verb {
            0..6 => {
                let (request, wait) = asked.unwrap_or_else(|| {
                    let request = request(&keys, now, random);
                    let line = &keys[request[0].0].line;
                    let wait = match request.len() == 1 && random.below(3) == 0 {
                        true => {
                            let wait = random.any_size((line.reach() / line.n) as u64);
                            let kind = &keys[request[0].0].kind;
                            kind.capped_wait(Duration::from_micros(wait)).into()
                        }
                        false => 0,
                    };
                    (request, wait)
                });
                let parts: Vec<_> = request.iter().map(|(i, n)| keys[*i].part(*n)).collect();
                let asked = match wait {
                    0 => call::take(&parts),
                    wait => call::reserve(parts[0], wait as u64).map_err(|denied| (0, denied)),
                };
                let call = match asked {
                    Ok(mut call) => {
                        // The script for all kinds decides as the shorter ones do.
                        if wait == 0 && random.below(4) == 0 {
                            call.script = script::script(Verb::Take, Kinds::All);
                        }
                        call
                    }
                    Err((i, denied)) => {
                        let (key, n) = request[i];
                        let burst = keys[key].kind.most();
                        assert!(n > burst, "{request:?}");
                        assert_eq!(denied, Denied::never(n, burst));
                        counts.never += 1;
                        continue;
                    }
                };
                let (expected, longest) = take(&mut keys, now, &request, wait);
                match &expected {
                    Ok(granted) => {
                        counts.granted += 1;
                        let delayed = granted.iter().any(|granted| !granted.3.is_zero());
                        counts.reserved += usize::from(delayed);
                    }
                    Err(_) => counts.denied += 1,
                }
                if let Some(due) = longest.filter(|due| *due <= SPAN && random.below(2) == 0) {
                    again = vec![
                        (due as i128, request.clone(), wait),
                        (due as i128 - 1, request.clone(), wait),
                    ];
                }
                let owned = owned(&keys, &request);
                let what = format!("{request:?}");
                (
                    call,
                    what,
                    Box::new(move |reply| {
                        let parts = parts_of(&owned);
                        let taken = match wait {
                            0 => call::taken(&parts, reply).expect("a reply"),
                            wait => call::reserved(parts[0], wait as u64, reply)
                                .expect("a reply")
                                .map(|taken| vec![taken])
                                .map_err(|denied| (0, denied)),
                        };
                        let taken = taken.map(|taken| {
                            let taken = taken.into_iter().map(|taken| {
                                let (granted, mark) = (taken.granted, taken.mark);
                                assert_eq!(u128::from(granted.at().as_nanos()), now * 1000);
                                (
                                    granted.n(),
                                    granted.remaining(),
                                    granted.reset_after(),
                                    granted.delay(),
                                    mark,
                                )
                            });
                            taken.collect::<Vec<_>>()
                        });
                        assert_eq!(taken, expected);
                    }),
                )
            }
            6 | 7 => {
                let request = vec![
                    (0, random.any_size(100)),
                    (1, 1 + random.any_size(u64::MAX - 1)),
                ];
                let parts: Vec<_> = request.iter().map(|(i, n)| keys[*i].part(*n)).collect();
                let call = call::look(&parts);
                let owned = owned(&keys, &request);
                let states = [0, 1].map(|i: usize| keys[i].called(now));
                (
                    call,
                    "look".to_owned(),
                    Box::new(move |reply| {
                        let parts = parts_of(&owned);
                        let seen = call::seen(&parts, reply).expect("a reply");
                        for ((seen, part), state) in seen.iter().zip(&parts).zip(&states) {
                            let available = part.kind.available(seen);
                            assert_eq!(u128::from(available), state.available());
                            let ban = (state.ban > 0).then(|| micros(state.ban - now));
                            assert_eq!(seen.banned_for(), ban);
                            let refused = part.kind.refused(seen, part.n, 0);
                            let granted = refused.map_or(Ok(()), |(_, denied)| Err(denied));
                            let expected = match u128::from(part.n) {
                                n if n > state.line.burst => {
                                    Err(Denied::never(part.n, part.kind.most()))
                                }
                                n if state.grants(n, now) => Ok(()),
                                _ => Err(denied(state, part.n)),
                            };
                            assert_eq!(granted, expected);
                        }
                    }),
                )
            }
            8..12 => {
                let mut request = Vec::new();
                for i in some_keys(random) {
                    let held = keys[i].grants.len() as u64;
                    request.push(if held > 0 && random.below(3) > 0 {
                        let (n, mark, is_reserved) =
                            keys[i].grants.swap_remove(random.below(held) as usize);
                        let n = n.min(random.any_size(n).max(n / 2));
                        (i, n, Some((mark, is_reserved)))
                    } else {
                        (i, amount(&keys[i], now, random), None)
                    });
                }
                let marks = |keys: &[Known; 2]| -> Vec<Option<Mark>> {
                    let mark = |(i, _, mark): &(usize, u64, Option<(u128, bool)>)| {
                        mark.map(|(mark, is_reserved)| Mark {
                            at: ticks(&keys[*i].line, mark),
                            is_reserved,
                            ..Mark::default()
                        })
                    };
                    request.iter().map(mark).collect()
                };
                let marks = marks(&keys);
                let parts = request.iter().map(|(i, n, _)| keys[*i].part(*n));
                let parts: Vec<_> = parts.zip(marks.iter().copied()).collect();
                let call = call::give(&parts);
                let mut expected = Vec::new();
                for (i, n, mark) in &request {
                    let mut key = keys[*i].called(now);
                    let (mark_at, is_reserved) = mark.unwrap_or((u128::MAX, false));
                    let back = key.give((*n).into(), mark_at, is_reserved);
                    if back > 0 {
                        keys[*i].stored = Some(key.stored());
                        counts.undone += usize::from(mark.is_some());
                        counts.given += 1;
                    }
                    expected.push(back as u64);
                }
                let what = format!("give {request:?}");
                let plain: Vec<_> = request.iter().map(|(i, n, _)| (*i, *n)).collect();
                let owned = owned(&keys, &plain);
                (
                    call,
                    what,
                    Box::new(move |reply| {
                        let parts: Vec<_> = parts_of(&owned).into_iter().zip(marks).collect();
                        assert_eq!(call::given(&parts, reply), Ok(expected));
                    }),
                )
            }
            12 | 13 => {
                let mut request = Vec::new();
                for i in some_keys(random) {
                    let n = match random.below(4) {
                        0 => random.any_size(u64::MAX),
                        _ => amount(&keys[i], now, random),
                    };
                    request.push((i, n));
                }
                let owned = owned(&keys, &request);
                let call = call::charge(&parts_of(&owned));
                let mut expected = Vec::new();
                for (i, n) in &request {
                    let mut key = keys[*i].called(now);
                    let before = key.idle;
                    let charged = key.charge((*n).into());
                    if key.idle > before {
                        keys[*i].stored = Some(key.stored());
                        counts.charged += 1;
                    }
                    let (debt, clear_after) = key.debt();
                    expected.push((
                        charged as u64,
                        u64::try_from(debt).unwrap_or(u64::MAX),
                        clear_after,
                    ));
                }
                let what = format!("charge {request:?}");
                (
                    call,
                    what,
                    Box::new(move |reply| {
                        let charged = call::charged(&parts_of(&owned), reply).expect("a reply");
                        let charged = charged.iter().map(|c| (c.n(), c.debt(), c.clear_after()));
                        assert_eq!(charged.collect::<Vec<_>>(), expected);
                    }),
                )
            }
            14 => {
                let i = random.below(2) as usize;
                let long = match random.below(4) {
                    0 => 0,
                    1 => random.any_size(SPAN as u64),
                    _ => random.any_size(1 << 24),
                };
                let call = call::ban(&[keys[i].part(0)], Duration::from_micros(long));
                let mut key = keys[i].called(now);
                if long > 0 {
                    key.ban(long.into());
                    keys[i].stored = Some(key.stored());
                    counts.bans += 1;
                }
                let expected = micros(key.ban.saturating_sub(now));
                let owned = owned(&keys, &[(i, 0)]);
                (
                    call,
                    format!("ban {i} for {long}"),
                    Box::new(move |reply| {
                        assert_eq!(call::banned(&parts_of(&owned), reply), Ok(vec![expected]));
                    }),
                )
            }
            _ => {
                let i = random.below(2) as usize;
                if random.below(2) == 0 {
                    keys[i].set_rate(random);
                    counts.rates += 1;
                    continue;
                }
                let call = call::reset(&[keys[i].part(0)]);
                let known = keys[i].stored.take().is_some();
                keys[i].grants.clear();
                (
                    call,
                    format!("reset {i}"),
                    Box::new(move |reply| {
                        assert_eq!(*reply, Reply::Int(known.into()));
                    }),
                )
            }
        };
        sent.call(&call, clock);
        for key in &keys {
            sent.inspect(&key.name);
        }
        let rates = keys.each_ref().map(|key| key.kind);
        let stored = keys.each_ref().map(|key| key.stored);
        let what = format!("episode {number}, {rates:?}, at {clock}: {what}");
        checks.push(Sent {
            what,
            check,
            stored,
        });
    }
    let (mut replies, took) = sent.run(connection)?;
    for sent in checks {
        let said = replies.next().expect("a reply");
        let shown = Shown(sent.what);
        (sent.check)(&said);
        for stored in sent.stored {
            let value = stored.map_or(Reply::Nil, |stored| Reply::Bytes(stored.value()));
            assert_eq!(replies.next(), Some(value));
            let left = match replies.next() {
                Some(Reply::Int(left)) => i128::from(left),
                other => panic!("{other:?}"),
            };
            let most = stored.map_or(-2, |stored| stored.expiry as i128);
            let least = stored.map_or(-2, |stored| stored.expiry as i128 - i128::from(took));
            assert!(
                (least..=most).contains(&left),
                "{least} <= {left} <= {most}"
            );
        }
        drop(shown);
    }
    Some(())
}

/// Returns one or both keys, in any order.
fn some_keys(random: &mut Random) -> Vec<usize> {
    let all: [&[usize]; 4] = [&[0], &[1], &[0, 1], &[1, 0]];
    all[random.below(4) as usize].to_vec()
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

/// Returns the next moment of the server's clock.
fn moved(clock: i128, random: &mut Random, keys: &[Known; 2]) -> i128 {
    let line = &keys[random.below(2) as usize].line;
    let permit = (line.period / line.n + 1).min(SPAN) as u64;
    let step = match random.below(12) {
        0..4 => return clock,
        4..7 => i128::from(random.any_size(permit)),
        7 | 8 => i128::from(random.any_size(permit.saturating_mul(8).min(SPAN as u64))),
        9 => i128::from(random.any_size(SPAN as u64)),
        _ => -i128::from(random.any_size(permit.saturating_mul(2).min(SPAN as u64))),
    };
    match clock + step {
        next if next < -10 || next > SPAN as i128 + 10 => i128::from(random.below(SPAN as u64)),
        next => next,
    }
}

/// Returns a number of permits around what the key has and what it can have.
fn amount(key: &Known, now: u128, random: &mut Random) -> u64 {
    let available = key.at(now).available() as u64;
    match random.below(8) {
        0 => key.kind.most(),
        1 => key.kind.most() + random.below(2),
        2 => available,
        3 => available + 1,
        4 => random.below(3),
        _ => random.any_size(available.max(3)),
    }
}

fn request(keys: &[Known; 2], now: u128, random: &mut Random) -> Vec<(usize, u64)> {
    let indexes: &[usize] = match random.below(8) {
        0 => &[0, 1],
        1 => &[1, 0],
        2..5 => &[1],
        _ => &[0],
    };
    indexes
        .iter()
        .map(|i| (*i, amount(&keys[*i], now, random)))
        .collect()
}

/// What the model expects of a granted part: permits, the rest, when it is idle, the delay, the
/// mark.
type Expected = Result<Vec<(u64, u64, Duration, Duration, Ticks)>, (usize, Denied)>;

/// Takes from the model, and returns its answer and when a denied request would be granted.
fn take(
    keys: &mut [Known; 2],
    now: u128,
    request: &[(usize, u64)],
    wait: u128,
) -> (Expected, Option<u128>) {
    for (i, _) in request {
        keys[*i].called(now);
    }
    let mut states = keys.each_ref().map(|key| key.at(now));
    let (mut granted, mut refused) = (Vec::new(), None);
    for (position, (i, n)) in request.iter().enumerate() {
        let state = &mut states[*i];
        if !state.grants_within((*n).into(), now, wait) {
            let due = match state.due((*n).into()) {
                due if state.ban > 0 => due,
                due => due - wait,
            };
            assert!(due > now);
            if wait == 0 {
                assert!(state.grants((*n).into(), due));
                assert!(!state.grants((*n).into(), due - 1));
            }
            if refused.as_ref().is_none_or(|(longest, _)| due > *longest) {
                refused = Some((due, (position, denied_until(state, *n, due))));
            }
        }
        let delay = state.due((*n).into()).saturating_sub(now);
        state.take((*n).into(), now + delay);
        let delay = micros(delay);
        let idle = micros(state.idle.div_ceil(state.line.n) - now);
        let mark = ticks(&state.line, state.idle);
        granted.push((*n, state.available() as u64, idle, delay, mark));
    }
    if let Some((due, refused)) = refused {
        return (Err(refused), Some(due));
    }
    for ((i, n), (.., mark)) in request.iter().zip(&granted) {
        let key = &mut keys[*i];
        if *n > 0 {
            key.stored = Some(states[*i].stored());
            let mark = u128::from(mark.whole) * key.line.n + u128::from(mark.part);
            key.grants.push((*n, mark, wait > 0));
        }
    }
    (Ok(granted), None)
}

fn denied(state: &Key, n: u64) -> Denied {
    denied_until(state, n, state.due(n.into()))
}

fn denied_until(state: &Key, n: u64, due: u128) -> Denied {
    let wait = (due <= SPAN).then(|| micros(due - state.now));
    match (state.ban > 0, wait) {
        (true, wait) => Denied::banned(n, wait),
        (false, Some(wait)) => Denied::later(n, wait),
        (false, None) => Denied::stuck(n),
    }
}

fn ticks(line: &Line, units: u128) -> Ticks {
    Ticks {
        whole: (units / line.n) as u64,
        part: (units % line.n) as u64,
    }
}

fn owned(keys: &[Known; 2], request: &[(usize, u64)]) -> Vec<(Vec<u8>, Kind, u64)> {
    let owned = |(i, n): &(usize, u64)| (keys[*i].name.clone(), keys[*i].kind, *n);
    request.iter().map(owned).collect()
}

fn parts_of(owned: &[(Vec<u8>, Kind, u64)]) -> Vec<Part<'_>> {
    owned
        .iter()
        .map(|(key, kind, n)| Part { key, kind, n: *n })
        .collect()
}
