//! The same operations on the core's limiters, which decide in memory.

use std::time::{Duration, Instant};

use tollgate::algorithm::{Debt, GiveBack};
use tollgate::{Gcra, LeakyBucket, Limiter, ManualClock, Quota, Tick, TokenBucket};

use super::{Episode, OPERATIONS, Random, SOME_DAY, bucket, server};
use crate::client::Reply;
use crate::limit::Limit;
use crate::limit::kind::{Kind, Mark};
use crate::limit::rate::Rate;
use crate::server::call::{self, Call, Part};

/// Operations on one key.
pub(super) const LENGTH: usize = 50;

#[test]
fn at_rates_that_the_core_represents_exactly_every_answer_is_the_same() {
    server::on_each_server(|connection| {
        let mut random = Random(0xC0_4E);
        let (mut tries, mut done) = (0, 0);
        while done < OPERATIONS / LENGTH {
            // At most 11 permits in a whole number of nanoseconds, once reduced.
            let n = 1 + random.below(11);
            let most = 300 * 86_400_000_000_000 / 1_000_000;
            let period = n + random.any_size(most);
            let times = 1 + random.below(1000);
            let period = Duration::from_nanos(period * times);
            let quota = Quota::per(n * times, period).burst(1 + random.any_size(1000));
            let Ok(rate) = Rate::new(quota) else { continue };
            let (now, seed) = (SOME_DAY as u64 + random.any_size(1 << 47), random.next());
            let mut pair = Pair {
                name: format!("exact{tries}"),
                step: rate.micros_up(rate.cost(1)),
                kind: bucket(quota),
                connection,
                now,
            };
            let exact = Ok(());
            let free = random.any_size(quota.burst_size() + 1);
            if tries % 4 == 3 {
                pair.kind = Limit::leaky_queue(quota, free).expect("accepted").kind;
            }
            let result = match tries % 4 {
                0 => TokenBucket::new(quota).map(|core| pair.same(core, seed)),
                1 => Gcra::new(quota).map(|core| pair.same(core, seed)),
                2 => LeakyBucket::meter(quota).map(|core| pair.same(core, seed)),
                _ => LeakyBucket::queue(quota).map(|core| pair.same(core.free(free), seed)),
            };
            match result {
                Ok(None) | Err(_) => {}
                Ok(Some(same)) => {
                    assert_eq!(same, exact);
                    done += 1;
                }
            }
            tries += 1;
        }
    });
}

#[test]
fn at_other_rates_the_core_is_less_than_a_unit_earlier_and_at_most_a_nanosecond_later() {
    server::on_each_server(|connection| {
        let mut random = Random(0x1_4A7E);
        let (mut tries, mut done, mut off) = (0, 0, 0);
        while done < OPERATIONS / LENGTH {
            // The reduced number of permits has a prime factor that the period lacks. Without
            // these periods of whole microseconds, hardly any permit would be due on one.
            let n = [13, 17, 1009, 26_000, 999_999][random.below(5) as usize];
            // Of the second kind, the next permits are due a small fraction of a nanosecond after a
            // microsecond, which may be less than the core's unit.
            let (period, burst) = match random.below(2) {
                0 => (1 + random.below(100_000), n),
                _ => (n * (1 + random.below(3)) + 1, 1 + random.below(5)),
            };
            let quota = Quota::per(n, Duration::from_micros(period)).burst(burst);
            let Ok(rate) = Rate::new(quota) else { continue };
            let now = SOME_DAY as u64;
            let mut pair = Pair {
                name: format!("other{tries}"),
                step: rate.micros_up(rate.cost(1)),
                kind: bucket(quota),
                connection,
                now,
            };
            let core = TokenBucket::new(quota).expect("accepted");
            if let Some(differences) = pair.nearly_same(core, random.next()) {
                off += differences.len();
                for difference in &differences {
                    println!("{quota}: {difference}");
                }
                done += 1;
            }
            tries += 1;
        }
        println!("{off} of {} decisions differ", done * LENGTH);
        assert!(off > 0, "the operations miss what they are for");
    });
}

/// A key on a server, and a limiter of the core.
pub(super) struct Pair<'a> {
    pub(super) name: String,
    /// How far the clock moves: microseconds.
    pub(super) step: u64,
    pub(super) kind: Kind,
    pub(super) connection: &'a mut redis::Connection,
    /// Microseconds.
    pub(super) now: u64,
}

impl Pair<'_> {
    fn part(&self, n: u64) -> Part<'_> {
        Part {
            key: self.name.as_bytes(),
            kind: &self.kind,
            n,
        }
    }

    fn send(&mut self, call: &Call) -> Option<Reply> {
        let mut episode = Episode::new();
        episode.call(call, self.now.into());
        episode.run(self.connection)?.0.next()
    }

    fn tick(&self) -> Tick {
        Tick::from_nanos(self.now * 1000)
    }

    /// Moves the clock by up to 10 steps, or back by up to one.
    fn move_clock(&mut self, random: &mut Random) {
        let step = self.step;
        match random.below(8) {
            0..3 => {}
            3 => self.now -= random.any_size(step).min(self.now - SOME_DAY as u64),
            4 => self.now += random.any_size(step * 10),
            _ => self.now += random.any_size(step),
        }
    }

    /// Returns `None` if it takes so long that the key may have expired.
    pub(super) fn same<A: GiveBack + Debt>(
        &mut self,
        core: A,
        seed: u64,
    ) -> Option<Result<(), String>> {
        let core = Limiter::with_clock(core, ManualClock::new());
        let (start, mut random) = (Instant::now(), Random(seed | 1));
        let mut grants = Vec::new();
        for operation in 0..LENGTH {
            self.move_clock(&mut random);
            let view = core.at(self.tick());
            let n = 1 + random.any_size(self.kind.most());
            let (ours, cores) = match random.below(10) {
                0..5 => {
                    let reply = match call::take(&[self.part(n)]) {
                        Ok(call) => self.send(&call)?,
                        Err((_, denied)) => {
                            assert_eq!(view.try_acquire_n(n), Err(denied));
                            continue;
                        }
                    };
                    let ours = call::taken(&[self.part(n)], &reply).expect("a reply");
                    match (ours, view.try_acquire_n(n)) {
                        (Ok(mut ours), Ok(cores)) => {
                            let ours = ours.pop()?;
                            // Ours are whole microseconds already.
                            let said = |granted: &tollgate::Granted| {
                                let (reset, delay) = (granted.reset_after(), granted.delay());
                                let (at, left) = (granted.at().as_nanos(), granted.remaining());
                                format!("{at} {left} {:?} {:?}", up(reset), up(delay))
                            };
                            let texts = (said(&ours.granted), said(&cores));
                            grants.push((n, ours.mark, cores));
                            texts
                        }
                        (Err((_, ours)), Err(cores)) => (
                            format!("{:?}", ours.retry_after()),
                            format!("{:?}", cores.retry_after().map(up)),
                        ),
                        (ours, cores) => (format!("{ours:?}"), format!("{cores:?}")),
                    }
                }
                5 | 6 if !grants.is_empty() => {
                    let last = random.below(grants.len() as u64) as usize;
                    let (n, mark, cores) = grants.swap_remove(last);
                    if self.now * 1000 < cores.at().as_nanos() {
                        // The core then gives back as at the tick of the grant.
                        continue;
                    }
                    let mark = Mark {
                        at: mark,
                        is_reserved: false,
                        ..Mark::default()
                    };
                    let parts = [(self.part(n), Some(mark))];
                    let call = call::give(&parts);
                    let reply = self.send(&call)?;
                    let given = call::given(&[(self.part(n), Some(mark))], &reply);
                    (
                        format!("{:?}", given),
                        format!("{:?}", Ok::<_, ()>(vec![view.undo(cores)])),
                    )
                }
                7 => {
                    let call = call::give(&[(self.part(n), None)]);
                    let reply = self.send(&call)?;
                    let given = call::given(&[(self.part(n), None)], &reply);
                    (
                        format!("{:?}", given),
                        format!("{:?}", Ok::<_, ()>(vec![view.refund(n)])),
                    )
                }
                8 => {
                    let cores = view.charge(n);
                    let n = match self.kind {
                        // The largest debt of the core's windows is smaller.
                        Kind::Window(_) => cores.n(),
                        _ => n,
                    };
                    let call = call::charge(&[self.part(n)]);
                    let reply = self.send(&call)?;
                    let ours = call::charged(&[self.part(n)], &reply).expect("a reply")[0];
                    (
                        format!("{} {} {:?}", ours.n(), ours.debt(), ours.clear_after()),
                        format!(
                            "{} {} {:?}",
                            cores.n(),
                            cores.debt(),
                            up(cores.clear_after())
                        ),
                    )
                }
                _ => {
                    let call = call::look(&[self.part(n)]);
                    let reply = self.send(&call)?;
                    let ours = call::seen(&[self.part(n)], &reply).expect("a reply")[0];
                    (
                        self.kind.available(&ours).to_string(),
                        view.available().to_string(),
                    )
                }
            };
            if start.elapsed() > Duration::from_millis(900) {
                return None;
            }
            if ours != cores {
                let what = format!(
                    "{:?}, operation {operation}: {ours}, not {cores}",
                    self.kind
                );
                return Some(Err(what));
            }
        }
        Some(Ok(()))
    }

    /// Takes and charges, and returns the decisions that differ. The core may be a nanosecond late,
    /// or a quarter of one early.
    fn nearly_same(&mut self, core: TokenBucket, seed: u64) -> Option<Vec<String>> {
        let core = Limiter::with_clock(core, ManualClock::new());
        let (start, mut random) = (Instant::now(), Random(seed | 1));
        let mut differences = Vec::new();
        let mut due = None;
        for _ in 0..LENGTH {
            match due.take() {
                Some(due) => self.now = due,
                None => self.move_clock(&mut random),
            }
            let now = self.tick();
            let [sooner, later] = [self.now * 1000 - 1, self.now * 1000 + 1].map(Tick::from_nanos);
            let n = 1 + random.any_size(self.kind.most() - 1);
            let call = call::take(&[self.part(n)]).expect("not never");
            let reply = self.send(&call)?;
            if start.elapsed() > Duration::from_millis(900) {
                return None;
            }
            let ours = call::taken(&[self.part(n)], &reply).expect("a reply");
            let remaining = match (ours, core.at(now).try_acquire_n(n)) {
                (Ok(ours), Ok(_)) => ours[0].granted.remaining(),
                (Ok(ours), Err(cores)) => {
                    assert_eq!(cores.retry_after(), Some(Duration::from_nanos(1)));
                    differences.push(format!("{n} permits at {}us", self.now));
                    // It would be granted a nanosecond later.
                    assert_eq!(core.at(now).charge(n).n(), n);
                    ours[0].granted.remaining()
                }
                (Err((_, ours)), Err(cores)) => {
                    let (ours, cores) = (ours.retry_after()?, cores.retry_after()?);
                    let nanosecond = Duration::from_nanos(1);
                    let earlier = up(cores.saturating_sub(nanosecond));
                    let later = up(cores.saturating_add(nanosecond));
                    assert!(earlier <= ours && ours <= later, "{ours:?}, {cores:?}");
                    // Or the microsecond before, at which the core may be early.
                    let then = self.now + ours.as_micros() as u64 - random.below(2);
                    due = Some(then.max(self.now + 1));
                    continue;
                }
                (Err((_, ours)), Ok(granted)) => {
                    // The permit comes within a quarter of a nanosecond.
                    let wait = ours.retry_after()?;
                    assert_eq!(wait, Duration::from_micros(1), "{:?}", self.kind);
                    differences.push(format!("{n} permits before {}us", self.now + 1));
                    assert_eq!(core.at(now).undo(granted), n);
                    due = Some(self.now + 1);
                    continue;
                }
            };
            let (least, most) = (core.at(sooner).available(), core.at(later).available());
            assert!(
                least <= remaining && remaining <= most,
                "{least} {remaining} {most}"
            );
        }
        Some(differences)
    }
}

/// Rounds up to whole microseconds, which a server's clock counts.
fn up(wait: Duration) -> Duration {
    match wait {
        Duration::MAX => wait,
        wait => Duration::from_micros(wait.as_nanos().div_ceil(1000) as u64),
    }
}
