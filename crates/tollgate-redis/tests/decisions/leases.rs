//! The scripts of leases answer as exact arithmetic does, for random messages: new ones, ones that
//! come again or late, from nodes that have forgotten what they hold, and takes and charges beside
//! them.

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate::Quota;

use super::model::Line;
use super::server::on_each_server;
use super::{Episode, OPERATIONS, Random, SOME_DAY};
use crate::lease::holder::Ask;
use crate::limit::Limit;
use crate::limit::kind::Kind;
use crate::server::call::{self, Message, Part};

/// What is used, apart from leases.
#[derive(Debug, Clone)]
enum Used {
    /// The idle tick, in units of 1/n microsecond.
    Bucket { line: Line, idle: u128 },
    Window {
        limit: u128,
        period: u128,
        slides: bool,
        count: u128,
        before: u128,
        /// The number of the window.
        window: u128,
    },
    /// What is out, and when the lease of each holder beside it ends.
    Slots {
        limit: u128,
        lease: u128,
        out: u128,
        holders: Vec<u128>,
    },
}

/// The windows of 1970 begin at 0, and ticks count from 2026 on.
const ORIGIN: u128 = 1_767_225_600_000_000;

impl Used {
    fn advance(&mut self, now: u128) {
        match self {
            Self::Bucket { line, idle } => *idle = (*idle).max(now * line.n),
            Self::Window {
                period,
                count,
                before,
                window,
                ..
            } => {
                let current = (now + ORIGIN) / *period;
                if current > *window {
                    *before = if current == *window + 1 { *count } else { 0 };
                    *count = 0;
                    *window = current;
                }
            }
            Self::Slots { holders, .. } => holders.retain(|ends| *ends > now),
        }
    }

    /// Raises what is used to what was out at a moment, which may be in an earlier window.
    fn floor(&mut self, at: u128, sum: u128, is_now: bool) {
        match self {
            Self::Bucket { line, idle } => *idle = (*idle).max(at * line.n + sum * line.period),
            Self::Window { count, .. } if is_now => *count = (*count).max(sum),
            Self::Window {
                period,
                count,
                before,
                window,
                slides,
                ..
            } => match *window - (at + ORIGIN).saturating_sub(1) / *period {
                0 => *count = (*count).max(sum),
                1 if *slides => *before = (*before).max(sum),
                _ => {}
            },
            Self::Slots { out, .. } => *out = sum,
        }
    }

    fn room(&self, now: u128) -> u128 {
        match self {
            Self::Bucket { line, idle } => {
                (now * line.n + line.reach()).saturating_sub(*idle) / line.period
            }
            Self::Window {
                limit,
                period,
                slides,
                count,
                before,
                window,
            } => {
                let left = (window + 1) * period - (now + ORIGIN);
                let before = if *slides { before * left } else { 0 };
                (limit * period).saturating_sub(before + count * period) / period
            }
            Self::Slots {
                limit,
                out,
                holders,
                ..
            } => limit.saturating_sub(out + holders.len() as u128),
        }
    }

    /// Returns how long a permit takes to refill.
    fn refill(&self) -> u128 {
        let refill = match *self {
            Self::Bucket { line, .. } => line.period / line.n,
            Self::Window { limit, period, .. } => period / limit,
            Self::Slots { .. } => 1000,
        };
        refill.max(1)
    }

    fn draw(&mut self, n: u128) {
        match self {
            Self::Bucket { line, idle } => *idle += n * line.period,
            Self::Window { count, .. } => *count += n,
            Self::Slots { out, .. } => *out += n,
        }
    }

    fn back(&mut self, now: u128, n: u128) {
        match self {
            Self::Bucket { line, idle } => *idle = (*idle - n * line.period).max(now * line.n),
            Self::Window { count, .. } => *count = count.saturating_sub(n),
            Self::Slots { out, .. } => *out -= n,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Lease {
    out: u128,
    ends: u128,
    number: u64,
    kept: u64,
    granted: u64,
}

/// A key with its leases.
#[derive(Debug, Clone)]
pub(crate) struct Reference {
    used: Used,
    leases: BTreeMap<[u8; 8], Lease>,
    /// The last turn of a node that waits, and how long it takes until that of the node that asked
    /// last, if it is to wait.
    turn: u128,
    pub(crate) mine: u128,
    /// Whether what is out is refilled, which is a mistake.
    pub(crate) refills_what_is_out: bool,
}

impl Reference {
    pub(crate) fn of(limit: &Limit, quota: Quota, slides: bool, now: u128) -> Self {
        Self {
            used: used(&limit.kind, quota, slides, now),
            leases: BTreeMap::new(),
            turn: 0,
            mine: 0,
            refills_what_is_out: false,
        }
    }

    /// Returns the number of a node's latest message, if the node has a lease.
    pub(crate) fn latest(&mut self, now: u128, node: [u8; 8]) -> Option<u64> {
        self.settle(now);
        self.leases.get(&node).map(|lease| lease.number)
    }

    /// Takes permits back.
    pub(crate) fn give_back(&mut self, now: u128, n: u64) {
        self.used.back(now, n.into());
    }

    /// Returns how many nodes have a lease.
    pub(crate) fn nodes(&self) -> usize {
        self.leases.len()
    }

    /// Returns how many microseconds it takes until there is a permit, at most.
    pub(crate) fn wait(&self, now: u128) -> u128 {
        match &self.used {
            Used::Bucket { line, idle } => {
                let due = (idle + line.period).saturating_sub(line.reach());
                due.div_ceil(line.n).saturating_sub(now)
            }
            Used::Window { .. } if self.used.room(now) > 0 => 0,
            Used::Window {
                limit,
                period,
                slides,
                count,
                before,
                window,
            } => {
                let left = (window + 1) * period - (now + ORIGIN);
                // A permit of the window before stops to count each period / before.
                match *slides && *before > 0 && count < limit {
                    true => left.min(period / before + 1),
                    false => left,
                }
            }
            Used::Slots { .. } => 0,
        }
    }

    fn out(&self) -> u128 {
        self.leases.values().map(|lease| lease.out).sum()
    }

    fn settle(&mut self, now: u128) {
        self.used.advance(now);
        if self.refills_what_is_out {
            return self.leases.retain(|_, lease| lease.ends > now);
        }
        let mut ended: Vec<_> = self
            .leases
            .iter()
            .map(|(node, lease)| (lease.ends, *node))
            .collect();
        ended.retain(|(ends, _)| *ends <= now);
        ended.sort_unstable();
        for (ends, node) in ended {
            let out = self.out();
            self.used.floor(ends, out, false);
            self.leases.remove(&node);
        }
        let out = self.out();
        self.used.floor(now, out, true);
    }

    /// Returns the number, what is kept and what is granted.
    pub(crate) fn ask(&mut self, now: u128, message: &Message) -> [u64; 3] {
        self.settle(now);
        self.mine = 0;
        let Message { node, ask, life } = *message;
        let lease = self.leases.get(&node).copied();
        if let Some(lease) = lease.filter(|lease| ask.number <= lease.number) {
            return [lease.number, lease.kept, lease.granted];
        }
        let has = lease.map_or(0, |lease| lease.out);
        let kept = u128::from(ask.keeps).min(has);
        let back = u128::from(ask.returns).min(has - kept);
        self.used.back(now, back);
        if let Used::Slots { out, .. } = &mut self.used {
            *out -= has - kept - back;
        }
        let room = self.used.room(now);
        let wants = u128::from(ask.wants);
        let refill = self.used.refill();
        let between = refill + refill / 2;
        let shares = 1 + self.turn.saturating_sub(now).div_ceil(between).max(1);
        let granted = wants.min(room.div_ceil(shares));
        self.used.draw(granted);
        if granted < wants && (granted == room || self.turn > now) {
            let due = now + self.wait(now);
            self.turn = (self.turn.max(due) + between).min(due + 1_000_000);
            self.mine = self.turn - now;
        }
        self.leases.remove(&node);
        if kept + granted > 0 {
            let lease = Lease {
                out: kept + granted,
                ends: now + u128::from(life),
                number: ask.number,
                kept: kept as u64,
                granted: granted as u64,
            };
            self.leases.insert(node, lease);
        }
        [ask.number, kept as u64, granted as u64]
    }

    /// Frees the slot of a holder, of which this says when its lease ends.
    pub(crate) fn give(&mut self, now: u128, ends: u128) {
        self.settle(now);
        if let Used::Slots { holders, .. } = &mut self.used {
            if let Some(index) = holders.iter().position(|end| *end == ends) {
                let _ = holders.swap_remove(index);
            }
        }
    }

    /// Takes permits whether or not they fit.
    fn charge(&mut self, now: u128, n: u64) {
        self.settle(now);
        self.used.draw(n.into());
    }

    pub(crate) fn take(&mut self, now: u128, n: u64) -> bool {
        self.settle(now);
        let fits = self.used.room(now) >= u128::from(n);
        match &mut self.used {
            _ if !fits => {}
            Used::Slots { lease, holders, .. } => {
                let ends = now + *lease;
                holders.extend((0..n).map(|_| ends));
            }
            used => used.draw(n.into()),
        }
        fits
    }
}

fn used(kind: &Kind, quota: Quota, slides: bool, now: u128) -> Used {
    match kind {
        Kind::Bucket(_) => Used::Bucket {
            line: Line::of(quota),
            idle: 0,
        },
        Kind::Slots(slots) => Used::Slots {
            limit: slots.limit.into(),
            lease: slots.lease.into(),
            out: 0,
            holders: Vec::new(),
        },
        _ => {
            let period = quota.period().as_micros();
            Used::Window {
                limit: quota.permits().into(),
                period,
                slides,
                count: 0,
                before: 0,
                window: (now + ORIGIN) / period,
            }
        }
    }
}

/// One step, and what the reference says of it.
enum Step {
    /// The answer, how many permits are wanted, and the waits if fewer are granted. Also how many
    /// nodes have a lease.
    Asked([u64; 3], u64, usize, [u128; 2]),
    /// Whether the permits are granted, and how many they are.
    Taken(bool, u64),
    Charged(u64),
}

#[test]
fn each_answer_about_a_lease_is_exact() {
    on_each_server(|connection| {
        let mut random = Random(11);
        let mut seen = [0_u32; 7];
        for episode in 0..(OPERATIONS / 8).min(2000) {
            let quota = Quota::per(
                1 + random.any_size(5_000),
                Duration::from_micros(1_000_000 + random.any_size(60_000_000)),
            )
            .burst(1 + random.any_size(3_000));
            let slides = episode % 4 == 2;
            let limit = match episode % 4 {
                0 => Limit::token_bucket(quota),
                1 => Limit::fixed_window(quota),
                2 => Limit::sliding_window(quota),
                _ => Limit::concurrency(
                    1 + random.below(40),
                    Duration::from_micros(1000 + random.any_size(1_000_000)),
                ),
            };
            let Ok(limit) = limit else { continue };
            let kind = limit.kind;
            let life = 1 + random.any_size(1_000_000);
            let key = format!("leased:{episode}:{}", random.next()).into_bytes();
            let mut now = SOME_DAY as u128 + u128::from(random.any_size(60_000_000));
            let mut reference = Reference::of(&limit, quota, slides, now);
            let mut numbers = [0_u64; 4];
            let (mut calls, mut steps, mut edge) = (Episode::new(), Vec::new(), None);
            for _ in 0..80 {
                let period = quota.period().as_micros();
                now = match edge.take() {
                    Some(edge) => edge,
                    None => now + u128::from(random.any_size(2 * life)),
                };
                if random.below(4) == 0 && !matches!(kind, Kind::Slots(_)) {
                    // Leases live across the next edge of a window. The next step is at its first
                    // microsecond.
                    let next = (now + 1 + ORIGIN).div_ceil(period) * period - ORIGIN;
                    now = now.max(next - 1 - u128::from(random.any_size(life)));
                    edge = Some(next);
                }
                let does = random.below(16);
                let most = kind.most().min(100_000);
                let part = |n| Part {
                    key: &key,
                    kind: &kind,
                    n,
                };
                if does == 0 && !matches!(kind, Kind::Slots(_)) {
                    let n = random.any_size(most);
                    calls.call(&call::charge_beside(part(n)), now as i128);
                    reference.charge(now, n);
                    steps.push(Step::Charged(n));
                    continue;
                }
                if does < 4 {
                    let n = random.any_size(most);
                    if n > kind.most() {
                        continue;
                    }
                    let call = call::take_beside(part(n)).expect("leases");
                    calls.call(&call, now as i128);
                    steps.push(Step::Taken(reference.take(now, n), n));
                    continue;
                }
                let index = random.below(4) as usize;
                let node = [index as u8; 8];
                reference.settle(now);
                let out = reference
                    .leases
                    .get(&node)
                    .map_or(0, |lease| lease.out as u64);
                // One that comes again, or late, or the next one.
                let number = match random.below(6) {
                    0 => numbers[index],
                    1 => numbers[index].saturating_sub(1),
                    _ => numbers[index] + 1,
                };
                numbers[index] = numbers[index].max(number);
                let keeps = random.any_size(out + 1);
                let ask = Ask {
                    number,
                    keeps,
                    returns: random.any_size((out + 1).saturating_sub(keeps)),
                    wants: random.any_size(most),
                };
                let message = Message { node, ask, life };
                calls.call(&call::ask(part(0), &message).expect("leases"), now as i128);
                let answer = reference.ask(now, &message);
                let wait = match answer[2] < ask.wants {
                    true => reference.wait(now),
                    false => 0,
                };
                let wait = [wait, reference.mine];
                steps.push(Step::Asked(answer, ask.wants, reference.nodes(), wait));
            }
            let Some((replies, _)) = calls.run(connection) else {
                continue;
            };
            for (step, reply) in steps.into_iter().zip(replies) {
                match step {
                    Step::Asked(expected, wants, nodes, wait) => {
                        let leased = call::leased(&reply).expect("an answer");
                        let answer = leased.answer;
                        let told = [answer.number, answer.keeps, answer.granted];
                        assert_eq!(told, expected, "{kind:?}, life {life}");
                        let [wait, turn] = wait;
                        let told = [leased.wait, leased.turn].map(u128::from);
                        assert_eq!(told, [wait, turn], "{kind:?}");
                        seen[0] += u32::from(answer.granted > 0);
                        seen[1] += u32::from(answer.granted < wants);
                        seen[2] += u32::from(answer.keeps > 0);
                        seen[3] += u32::from(nodes > 1);
                    }
                    Step::Charged(n) => {
                        let parts = [Part {
                            key: &key,
                            kind: &kind,
                            n,
                        }];
                        let charged = call::charged(&parts, &reply).expect("an answer");
                        assert_eq!(charged[0].n(), n, "{kind:?}");
                        seen[6] += u32::from(n > 0);
                    }
                    Step::Taken(expected, n) => {
                        let parts = [Part {
                            key: &key,
                            kind: &kind,
                            n,
                        }];
                        let taken = call::taken(&parts, &reply);
                        let taken = taken.unwrap_or_else(|_| panic!("{parts:?} {reply:?}"));
                        // One of no permits is right if it is read.
                        let granted = if n == 0 { expected } else { taken.is_ok() };
                        assert_eq!(granted, expected, "{kind:?}, life {life}");
                        seen[if granted { 4 } else { 5 }] += 1;
                    }
                }
            }
        }
        println!("{seen:?}");
        assert!(seen.iter().all(|seen| *seen > 20), "{seen:?}");
    });
}

/// While a key is banned, each node hears for how long, and gets nothing. However often nodes ask,
/// no turn lies further behind than a second after there is a permit.
#[test]
fn a_banned_key_says_for_how_long_and_its_turns_do_not_pile_up() {
    const HOUR: u64 = 3_600_000_000;
    on_each_server(|connection| {
        for limit in [
            Limit::token_bucket(Quota::per_second(10)),
            Limit::fixed_window(Quota::per_hour(10)),
            Limit::concurrency(10, Duration::from_secs(10)),
        ] {
            let kind = limit.expect("a limit").kind;
            let key = format!("banned:{kind:?}").into_bytes();
            let part = Part {
                key: &key,
                kind: &kind,
                n: 0,
            };
            let (mut calls, now) = (Episode::new(), SOME_DAY as u64);
            calls.call(&call::ban(&[part], Duration::from_secs(3600)), now.into());
            for number in 1..200 {
                let message = Message {
                    node: [(number % 5) as u8; 8],
                    ask: Ask {
                        number,
                        keeps: 0,
                        returns: 0,
                        wants: 5,
                    },
                    life: 1_000_000,
                };
                let call = call::ask(part, &message).expect("leases");
                calls.call(&call, (now + number).into());
            }
            let replies = calls.replies(connection);
            for (reply, number) in replies.skip(1).zip(1..) {
                let leased = call::leased(&reply).expect("an answer");
                assert_eq!((leased.answer.keeps, leased.answer.granted), (0, 0));
                assert_eq!(leased.ban, HOUR - number, "{kind:?}");
                let due = leased.wait.max(leased.ban);
                assert!(leased.turn <= due + 1_000_000, "{kind:?}: {leased:?}");
            }
        }
    });
}
