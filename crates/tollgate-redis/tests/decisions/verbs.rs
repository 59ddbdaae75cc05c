//! Random operations on keys of several kinds whose limits change, while the clock jumps, stands
//! still and goes back. Each answer, and what is stored, must be the model's.

use std::time::Duration;

use tollgate::Denied;

use super::model::{SPAN, micros};
use super::{Episode, OPERATIONS, Random, server};
use crate::client::Reply;
use crate::limit::kind::{Kind, Mark};
use crate::limit::rate::Ticks;
use crate::script::{self, Kinds, Verb};
use crate::server::call::{self, Call, Part};

/// Operations in one transaction.
const LENGTH: usize = 50;

/// The last tick of the clock.
pub(super) const END: u64 = SPAN as u64;

/// What a model says about a grant.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) at: u64,
    pub(super) remaining: u64,
    pub(super) reset_after: u64,
    pub(super) mark: Ticks,
}

/// What a model says about a charge. The debt is paid at a tick.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Charged {
    pub(super) n: u64,
    pub(super) at: u64,
    pub(super) debt: u64,
    pub(super) clear: u64,
}

/// One key, in exact integers and by the definition of its limit. Ticks are microseconds. `first`
/// is the name of the first holder of slots.
pub(super) trait Model {
    fn kind(&self) -> Kind;
    /// Replaces the limit by another one of the kind.
    fn change(&mut self, random: &mut Random);
    /// Returns a time in which permits come back.
    fn period(&self) -> u64;
    /// Returns when the ban ends, or 0.
    fn banned_until(&self) -> u64;
    /// Does what any call about the key does first.
    fn called(&mut self, _now: u64) {}
    fn fits(&self, n: u64, now: u64) -> bool;
    /// Returns the first tick at which `n` permits fit, or `None` if it is not known.
    fn due(&self, n: u64, now: u64) -> Option<u64>;
    fn available(&self, now: u64) -> u64;
    fn take(&mut self, n: u64, now: u64, first: &Holder) -> Taken;
    fn give(&mut self, n: u64, mark: Option<Ticks>, now: u64) -> u64;
    fn charge(&mut self, n: u64, now: u64, first: &Holder) -> Charged;
    fn ban(&mut self, long: u64, now: u64);
    fn renew(&mut self, _n: u64, _mark: Ticks, _now: u64) -> u64 {
        0
    }
    fn reset(&mut self);
    /// Returns the command that reads the key, its reply, and the milliseconds from the last write
    /// to the expiry, or -2 if there is no key.
    fn stored(&self) -> (&'static [&'static str], Reply, i64);
}

/// A holder of a slot: what the names of this process begin with, and a number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) base: Vec<u8>,
    pub(super) number: u64,
}

impl Holder {
    /// Reads the first holder of an argument.
    fn of(arg: &[u8]) -> Self {
        match arg {
            [b'C', numbers @ ..] => {
                let (_, number) = numbers.split_at(24);
                let (number, base) = number.split_first_chunk::<8>().expect("a number");
                Self {
                    base: base[..8].to_vec(),
                    number: f64::from_le_bytes(*number) as u64,
                }
            }
            _ => Self::default(),
        }
    }
}

/// How many operations had which outcome.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Counts {
    pub(super) granted: usize,
    pub(super) denied: usize,
    pub(super) never: usize,
    pub(super) undone: usize,
    pub(super) refunded: usize,
    pub(super) charged: usize,
    pub(super) owed: usize,
    pub(super) bans: usize,
    pub(super) renewed: usize,
    pub(super) limits: usize,
}

struct Key {
    name: Vec<u8>,
    model: Box<dyn Model>,
    /// Grants that can be undone: their permits and marks.
    grants: Vec<(u64, Ticks)>,
}

/// A key of a request, as the reply's reader needs it.
type Owned = Vec<(Vec<u8>, Kind, u64)>;

/// Runs random operations on new keys for each transaction.
pub(super) fn same(seed: u64, models: impl Fn(&mut Random) -> Vec<Box<dyn Model>>) -> Counts {
    let all = std::cell::Cell::new(Counts::default());
    server::on_each_server(|connection| {
        let mut random = Random(seed);
        let mut counts = Counts::default();
        let (mut done, mut tries) = (0, 0);
        while done < OPERATIONS / LENGTH {
            let before = (random.0, counts);
            let keys = models(&mut random).into_iter().enumerate();
            let keys = keys.map(|(i, model)| Key {
                name: format!("{{{tries}}}{i}").into_bytes(),
                model,
                grants: Vec::new(),
            });
            let keys = keys.collect();
            match run(tries, keys, &mut random, &mut counts, connection) {
                Some(()) => done += 1,
                None => (random.0, counts) = before,
            }
            tries += 1;
        }
        println!("{counts:?}");
        all.set(counts);
    });
    all.get()
}

type Check = Box<dyn FnOnce(&Reply)>;

/// An operation that was sent: what its reply must be, and what the keys must then have.
struct Sent {
    what: String,
    check: Check,
    stored: Vec<(Reply, i64)>,
}

fn run(
    number: usize,
    mut keys: Vec<Key>,
    random: &mut Random,
    counts: &mut Counts,
    connection: &mut redis::Connection,
) -> Option<()> {
    // A clock before 2026 stands still at 0.
    let mut clock = random.below(END) * random.below(8).min(1);
    let mut sent = Episode::new();
    let mut checks = Vec::<Sent>::new();
    let mut again: Vec<(u64, Vec<(usize, u64)>)> = Vec::new();
    while checks.len() < LENGTH {
        let request = match again.pop() {
            Some((at, request)) => {
                clock = at;
                Some(request)
            }
            None => {
                clock = moved(clock, random, &keys);
                None
            }
        };
        let verb = if request.is_some() {
            0
        } else {
            random.below(16)
        };
        let request = request.unwrap_or_else(|| some(&keys, clock, random));
        let what = format!("{verb} {request:?}");
        let operation = match verb {
            0..6 => take(&mut keys, clock, &request, random, counts, &mut again),
            6 => Some(look(&mut keys, clock, &request)),
            7..11 => Some(give(&mut keys, clock, &request, random, counts)),
            11 => renew(&mut keys, clock, &request, random, counts),
            12 | 13 => Some(charge(&mut keys, clock, &request, counts)),
            14 => Some(ban(&mut keys, clock, &request, random, counts)),
            _ => reset(&mut keys, request[0].0, random, counts),
        };
        let Some((call, check)) = operation else {
            continue;
        };
        sent.call(&call, clock.into());
        let mut stored = Vec::new();
        for key in &keys {
            let (command, reply, expiry) = key.model.stored();
            let reading = sent.pipeline.cmd(command[0]).arg(key.name.as_slice());
            for argument in &command[1..] {
                reading.arg(argument);
            }
            sent.pipeline.cmd("PTTL").arg(key.name.as_slice());
            stored.push((reply, expiry));
        }
        let limits: Vec<_> = keys.iter().map(|key| key.model.kind()).collect();
        let what = format!("transaction {number}, {limits:?}, at {clock}: {what}");
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
        for (stored, expiry) in sent.stored {
            assert_eq!(replies.next(), Some(stored));
            let Some(Reply::Int(left)) = replies.next() else {
                panic!("no time to live");
            };
            let least = if expiry < 0 {
                expiry
            } else {
                expiry - took as i64
            };
            assert!(
                (least..=expiry).contains(&left),
                "{least} <= {left} <= {expiry}"
            );
        }
        drop(shown);
    }
    Some(())
}

fn take(
    keys: &mut [Key],
    now: u64,
    request: &[(usize, u64)],
    random: &mut Random,
    counts: &mut Counts,
    again: &mut Vec<(u64, Vec<(usize, u64)>)>,
) -> Option<(Call, Check)> {
    let owned = owned(keys, request);
    let mut call = match call::take(&parts_of(&owned)) {
        Ok(call) => call,
        Err((i, denied)) => {
            let (_, kind, n) = owned[i];
            assert!(n > kind.most());
            assert_eq!(denied, Denied::never(n, kind.most()));
            counts.never += 1;
            return None;
        }
    };
    // The script for all kinds decides as the shorter ones do.
    if random.below(4) == 0 {
        call.script = script::script(Verb::Take, Kinds::All);
    }
    for (i, _) in request {
        keys[*i].model.called(now);
    }
    let mut refused: Option<(u64, (usize, Denied))> = None;
    for (position, (i, n)) in request.iter().enumerate() {
        let model = &*keys[*i].model;
        if !model.fits(*n, now) {
            let (due, denied) = denied(model, *n, now);
            if refused.is_none_or(|(longest, _)| due > longest) {
                refused = Some((due, (position, denied)));
            }
        }
    }
    let expected = match refused {
        Some((due, refused)) => {
            counts.denied += 1;
            if due > now && due <= END && random.below(2) == 0 {
                *again = vec![(due, request.to_vec()), (due - 1, request.to_vec())];
            }
            Err(refused)
        }
        None => {
            counts.granted += 1;
            let taken = request.iter().zip(&call.args).map(|((i, n), arg)| {
                let key = &mut keys[*i];
                let taken = key.model.take(*n, now, &Holder::of(arg));
                if *n > 0 {
                    key.grants.push((*n, taken.mark));
                }
                (*n, taken)
            });
            Ok(taken.collect::<Vec<_>>())
        }
    };
    let check = move |reply: &Reply| {
        let taken = call::taken(&parts_of(&owned), reply).expect("a reply");
        let taken = taken.map(|taken| {
            let taken = taken.into_iter().map(|taken| {
                let granted = taken.granted;
                let said = Taken {
                    at: granted.at().as_nanos() / 1000,
                    remaining: granted.remaining(),
                    reset_after: granted.reset_after().as_micros() as u64,
                    mark: taken.mark,
                };
                (granted.n(), said)
            });
            taken.collect::<Vec<_>>()
        });
        assert_eq!(taken, expected);
    };
    Some((call, Box::new(check)))
}

/// Returns the denial of a request that does not fit, and when it is due, for comparison.
fn denied(model: &dyn Model, n: u64, now: u64) -> (u64, Denied) {
    let until = |due: u64| (due <= END).then(|| Duration::from_micros(due - now));
    let ban = model.banned_until();
    match model.due(n, now) {
        Some(due) => {
            assert!(due > now && !model.fits(n, due - 1) && model.fits(n, due));
            let denied = match (ban > now, until(due)) {
                (true, wait) => Denied::banned(n, wait),
                (false, Some(wait)) => Denied::later(n, wait),
                (false, None) => Denied::stuck(n),
            };
            (due, denied)
        }
        None if ban > now => (ban, Denied::banned(n, until(ban))),
        None => (now, Denied::busy(n)),
    }
}

fn look(keys: &mut [Key], now: u64, request: &[(usize, u64)]) -> (Call, Check) {
    for (i, _) in request {
        keys[*i].model.called(now);
    }
    let owned = owned(keys, request);
    let call = call::look(&parts_of(&owned));
    let expected = request.iter().map(|(i, n)| {
        let model = &*keys[*i].model;
        let most = model.kind().most();
        let denied = match *n {
            n if n > most => Some(Denied::never(n, most)),
            n if model.fits(n, now) => None,
            n => Some(denied(model, n, now).1),
        };
        let ban = model.banned_until().saturating_sub(now);
        let ban = (ban > 0).then(|| Duration::from_micros(ban));
        (model.available(now), denied, ban)
    });
    let expected: Vec<_> = expected.collect();
    let check = move |reply: &Reply| {
        let parts = parts_of(&owned);
        let seen = call::seen(&parts, reply).expect("a reply");
        let said = seen.iter().zip(&parts).map(|(seen, part)| {
            let denied = part.kind.refused(seen, part.n, 0);
            let available = part.kind.available(seen);
            (available, denied.map(|(_, why)| why), seen.banned_for())
        });
        assert_eq!(said.collect::<Vec<_>>(), expected);
    };
    (call, Box::new(check))
}

fn give(
    keys: &mut [Key],
    now: u64,
    request: &[(usize, u64)],
    random: &mut Random,
    counts: &mut Counts,
) -> (Call, Check) {
    let mut asked = Vec::new();
    for (i, n) in request {
        asked.push(match some_grant(&mut keys[*i], random) {
            Some((n, mark)) => (*i, n, Some(mark)),
            None => (*i, *n, None),
        });
    }
    let plain: Vec<_> = asked.iter().map(|(i, n, _)| (*i, *n)).collect();
    let owned = owned(keys, &plain);
    let marks: Vec<_> = asked
        .iter()
        .map(|(.., at)| {
            at.map(|at| Mark {
                at,
                is_reserved: false,
                ..Mark::default()
            })
        })
        .collect();
    let parts: Vec<_> = parts_of(&owned).into_iter().zip(marks.clone()).collect();
    let call = call::give(&parts);
    let mut expected = Vec::new();
    for (i, n, mark) in asked {
        keys[i].model.called(now);
        let given = keys[i].model.give(n, mark, now);
        let count = match mark {
            Some(_) => &mut counts.undone,
            None => &mut counts.refunded,
        };
        *count += usize::from(given > 0);
        expected.push(given);
    }
    let check = move |reply: &Reply| {
        let parts: Vec<_> = parts_of(&owned).into_iter().zip(marks).collect();
        assert_eq!(call::given(&parts, reply), Ok(expected));
    };
    (call, Box::new(check))
}

/// Returns a grant, or a part of one, that is then given back. Sometimes it stays known, so it is
/// given back twice.
fn some_grant(key: &mut Key, random: &mut Random) -> Option<(u64, Ticks)> {
    let held = key.grants.len() as u64;
    if held == 0 || random.below(3) == 0 {
        return None;
    }
    let which = random.below(held) as usize;
    let (n, mark) = match random.below(4) {
        0 => key.grants[which],
        _ => key.grants.swap_remove(which),
    };
    Some((n.min(random.any_size(n).max(n / 2)), mark))
}

fn renew(
    keys: &mut [Key],
    now: u64,
    request: &[(usize, u64)],
    random: &mut Random,
    counts: &mut Counts,
) -> Option<(Call, Check)> {
    let mut asked = request.iter().map(|(i, _)| *i);
    let i = asked.find(|i| matches!(keys[*i].model.kind(), Kind::Slots(_)))?;
    let key = &mut keys[i];
    let held = key.grants.len() as u64;
    let which = (held > 0).then(|| random.below(held) as usize)?;
    let (n, at) = key.grants[which];
    let expected = key.model.renew(n, at, now);
    counts.renewed += usize::from(expected > 0);
    let mark = Mark {
        at,
        is_reserved: false,
        ..Mark::default()
    };
    let owned = owned(keys, &[(i, n)]);
    let call = call::renew(parts_of(&owned)[0], mark);
    let check = move |reply: &Reply| {
        let parts = [(parts_of(&owned)[0], Some(mark))];
        assert_eq!(call::given(&parts, reply), Ok(vec![expected]));
    };
    Some((call, Box::new(check)))
}

fn charge(
    keys: &mut [Key],
    now: u64,
    request: &[(usize, u64)],
    counts: &mut Counts,
) -> (Call, Check) {
    let owned = owned(keys, request);
    let call = call::charge(&parts_of(&owned));
    let charged = request.iter().zip(&call.args).map(|((i, n), arg)| {
        keys[*i].model.called(now);
        let charged = keys[*i].model.charge(*n, now, &Holder::of(arg));
        counts.charged += usize::from(charged.n > 0);
        counts.owed += usize::from(charged.debt > 0);
        let clear_after = match charged.clear {
            _ if charged.debt == 0 => Duration::ZERO,
            clear if clear > END => Duration::MAX,
            clear => micros((clear - now).into()),
        };
        (charged.n, charged.at, charged.debt, clear_after)
    });
    let expected: Vec<_> = charged.collect();
    let check = move |reply: &Reply| {
        let charged = call::charged(&parts_of(&owned), reply).expect("a reply");
        let said = charged.iter().map(|c| {
            let at = c.at().as_nanos() / 1000;
            (c.n(), at, c.debt(), c.clear_after())
        });
        assert_eq!(said.collect::<Vec<_>>(), expected);
    };
    (call, Box::new(check))
}

fn ban(
    keys: &mut [Key],
    now: u64,
    request: &[(usize, u64)],
    random: &mut Random,
    counts: &mut Counts,
) -> (Call, Check) {
    let owned = owned(keys, request);
    let long = match random.below(4) {
        0 => 0,
        1 => random.any_size(END),
        _ => random.any_size(keys[request[0].0].model.period()),
    };
    let call = call::ban(&parts_of(&owned), Duration::from_micros(long));
    let mut expected = Vec::new();
    for (i, _) in request {
        keys[*i].model.called(now);
        if long > 0 {
            keys[*i].model.ban(long, now);
            counts.bans += 1;
        }
        let until = keys[*i].model.banned_until();
        expected.push(Duration::from_micros(until.saturating_sub(now)));
    }
    let check = move |reply: &Reply| {
        assert_eq!(call::banned(&parts_of(&owned), reply), Ok(expected));
    };
    (call, Box::new(check))
}

/// Resets a key, or changes its limit.
fn reset(
    keys: &mut [Key],
    i: usize,
    random: &mut Random,
    counts: &mut Counts,
) -> Option<(Call, Check)> {
    if random.below(3) > 0 {
        keys[i].model.change(random);
        // The mark of a bucket has a part of its rate.
        if matches!(keys[i].model.kind(), Kind::Bucket(_)) {
            keys[i].grants.clear();
        }
        counts.limits += 1;
        return None;
    }
    let owned = owned(keys, &[(i, 0)]);
    let known = keys[i].model.stored().2 >= 0;
    keys[i].model.reset();
    let check = move |reply: &Reply| assert_eq!(*reply, Reply::Int(known.into()));
    Some((call::reset(&parts_of(&owned)), Box::new(check)))
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
fn moved(clock: u64, random: &mut Random, keys: &[Key]) -> u64 {
    let key = &keys[random.below(keys.len() as u64) as usize];
    let period = key.model.period();
    let next = match random.below(12) {
        0..4 => return clock,
        4..6 => clock + random.any_size(period / 4 + 1),
        6 => clock + random.any_size(period.saturating_mul(2).min(END)),
        // Some permits are then a period old, and others are not.
        7 => {
            let n = 1 + random.below(key.model.kind().most());
            let due = key.model.due(n, clock).unwrap_or(clock + period);
            due - random.below(2).min(due - clock)
        }
        8 => clock + random.any_size(END),
        _ => clock.saturating_sub(random.any_size(period)),
    };
    if next > END { random.below(END) } else { next }
}

/// Returns some of the keys in any order, and a number of permits around what each has.
fn some(keys: &[Key], now: u64, random: &mut Random) -> Vec<(usize, u64)> {
    let mut chosen = vec![random.below(keys.len() as u64) as usize];
    for i in 0..keys.len() {
        if !chosen.contains(&i) && random.below(3) == 0 {
            let place = random.below(chosen.len() as u64 + 1) as usize;
            chosen.insert(place, i);
        }
    }
    let amount = |i: usize, random: &mut Random| {
        let (model, most) = (&keys[i].model, keys[i].model.kind().most());
        let available = model.available(now);
        match random.below(16) {
            0 => most,
            1 => most + 1,
            2..5 => available,
            5 => available + 1,
            6 => random.any_size(3 * most),
            7 => 0,
            _ => 1 + random.any_size(available.max(2) / 2),
        }
    };
    let chosen = chosen.into_iter();
    chosen.map(|i| (i, amount(i, random))).collect()
}

fn owned(keys: &[Key], request: &[(usize, u64)]) -> Owned {
    let owned = |(i, n): &(usize, u64)| (keys[*i].name.clone(), keys[*i].model.kind(), *n);
    request.iter().map(owned).collect()
}

fn parts_of(owned: &Owned) -> Vec<Part<'_>> {
    let parts = owned.iter();
    parts
        .map(|(key, kind, n)| Part { key, kind, n: *n })
        .collect()
}
