//! A limit whose quota changes keeps what was used, in permits.

use std::time::Duration;

use redis::Commands;
use tollgate::{Adjustable, Denied, Keep, ManualClock, Quota, TokenBucket};

use super::logs::send;
use super::model::{Line, SPAN};
use super::{Random, SOME_DAY, server};
use crate::limit::Limit;
use crate::limit::kind::Kind;
use crate::limiter::decision::Grant;
use crate::server::call::{self, Part};

/// A key on a server, with a clock that the test sets. Keys expire on the server's own clock, so
/// the quotas are such that no key is idle soon.
struct Key<'a> {
    name: String,
    now: i128,
    connection: &'a mut redis::Connection,
}

fn kind(limit: &str) -> Kind {
    limit.parse::<Limit>().expect("accepted").kind
}

impl Key<'_> {
    fn part<'b>(&'b self, kind: &'b Kind, n: u64) -> Part<'b> {
        let key = self.name.as_bytes();
        Part { key, kind, n }
    }

    fn take(&mut self, kind: &Kind, n: u64) -> Result<Grant, Denied> {
        let call = call::take(&[self.part(kind, n)]).map_err(|(_, denied)| denied)?;
        let reply = send(&call, self.now, self.connection);
        let taken = call::taken(&[self.part(kind, n)], &reply).expect("a reply");
        let taken = taken.map_err(|(_, denied)| denied)?;
        Ok(Grant::by_server(
            taken.into_iter().next().expect("a part"),
            false,
        ))
    }

    fn uses(&mut self, kind: &Kind, n: u64) {
        drop(self.take(kind, n).expect("a grant"));
    }

    fn reserve(&mut self, kind: &Kind, n: u64, wait: Duration) -> Result<Grant, Denied> {
        let wait = kind.capped_wait(wait);
        let call = call::reserve(self.part(kind, n), wait)?;
        let reply = send(&call, self.now, self.connection);
        let taken = call::reserved(self.part(kind, n), wait, &reply).expect("a reply");
        taken.map(|taken| Grant::by_server(taken, true))
    }

    /// Gives `n` permits of a grant back, as `undo` and `settle` do, or any `n` permits.
    fn give(&mut self, kind: &Kind, n: u64, grant: Option<&Grant>) -> u64 {
        let parts = [(self.part(kind, n), grant.map(Grant::mark))];
        let call = call::give(&parts);
        let reply = send(&call, self.now, self.connection);
        let parts = [(self.part(kind, n), grant.map(Grant::mark))];
        call::given(&parts, &reply).expect("a reply")[0]
    }

    /// Returns the debt.
    fn charge(&mut self, kind: &Kind, n: u64) -> u64 {
        let call = call::charge(&[self.part(kind, n)]);
        let reply = send(&call, self.now, self.connection);
        call::charged(&[self.part(kind, n)], &reply).expect("a reply")[0].debt()
    }

    fn ban(&mut self, kind: &Kind, seconds: u64) {
        let call = call::ban(&[self.part(kind, 0)], Duration::from_secs(seconds));
        send(&call, self.now, self.connection);
    }

    fn available(&mut self, kind: &Kind) -> u64 {
        let call = call::look(&[self.part(kind, 0)]);
        let reply = send(&call, self.now, self.connection);
        kind.available(&call::seen(&[self.part(kind, 0)], &reply).expect("a reply")[0])
    }

    fn banned_for(&mut self, kind: &Kind) -> Option<Duration> {
        let call = call::look(&[self.part(kind, 0)]);
        let reply = send(&call, self.now, self.connection);
        call::seen(&[self.part(kind, 0)], &reply).expect("a reply")[0].banned_for()
    }

    fn pass(&mut self, seconds: i128) {
        self.now += seconds * 1_000_000;
    }

    fn value(&mut self) -> Vec<u8> {
        self.connection.get(&self.name).expect("a value")
    }
}

/// Runs a test with a new key for each name that it asks for.
fn on_keys(test: impl Fn(&mut dyn FnMut(&mut dyn FnMut(Key<'_>)))) {
    server::on_each_server(|connection| {
        let mut number = 0;
        test(&mut |run| {
            number += 1;
            run(Key {
                name: format!("changed{number}"),
                now: SOME_DAY,
                connection,
            });
        });
    });
}

#[test]
fn a_raised_limit_adds_the_difference_and_a_lowered_one_takes_it_away() {
    on_keys(|with_key| {
        for limit in [
            "token-bucket",
            "gcra",
            "leaky-meter",
            "leaky-queue",
            "fixed-window",
            "sliding-window",
            "sliding-log",
        ] {
            for (from, to, taken, left) in [
                ("100/h", "1000/h", 30, 970),
                ("100/h", "1000/h", 100, 900),
                ("1000/h", "100/h", 30, 70),
                ("1000/h", "100/h", 100, 0),
                ("1000/h", "100/h", 300, 0),
                ("7/h", "11/h", 3, 8),
                ("20000/h", "19999/h", 19_998, 1),
            ] {
                with_key(&mut |mut key| {
                    let [from, to] = [from, to].map(|quota| kind(&format!("{limit} {quota}")));
                    key.uses(&from, taken);
                    assert_eq!(key.available(&to), left, "{limit} {from:?} {to:?}");
                    if left > 0 {
                        key.uses(&to, 1);
                        let most = from.most();
                        assert_eq!(key.available(&from), most.saturating_sub(taken + 1));
                    }
                });
            }
        }
    });
}

#[test]
fn one_call_about_several_buckets_keeps_what_was_used_of_each() {
    on_keys(|with_key| {
        with_key(&mut |mut key| {
            let [from, to] = ["100/h", "1000/h"].map(kind);
            let names = ["{t}one", "{t}two"].map(str::to_owned);
            for (name, taken) in names.iter().zip([40, 100]) {
                key.name.clone_from(name);
                key.uses(&from, taken);
            }
            let parts = |n| {
                [&names[0], &names[1]].map(|name| Part {
                    key: name.as_bytes(),
                    kind: &to,
                    n,
                })
            };
            for (n, is_granted) in [(901, false), (900, true)] {
                let call = call::take(&parts(n)).expect("not never");
                let reply = send(&call, key.now, key.connection);
                let taken = call::taken(&parts(n), &reply).expect("a reply");
                assert_eq!(taken.is_ok(), is_granted, "{taken:?}");
            }
            for (name, left) in names.iter().zip([60, 0]) {
                key.name.clone_from(name);
                assert_eq!(key.available(&to), left);
            }
        });
    });
}

#[test]
fn what_the_clock_refills_before_a_change_is_not_used_and_after_it_comes_at_the_new_rate() {
    on_keys(|with_key| {
        with_key(&mut |mut key| {
            let [from, to] = ["100/h", "1000/h"].map(kind);
            key.uses(&from, 100);
            key.pass(1800);
            assert_eq!(key.available(&to), 950);
            key.uses(&to, 50);
            key.pass(180);
            assert_eq!((key.available(&to), key.available(&from)), (950, 50));
        });
    });
}

#[test]
fn a_debt_is_refilled_at_the_new_rate_although_all_later_calls_are_denied() {
    on_keys(|with_key| {
        let [small, large] = ["100/h", "1000/h"].map(kind);
        let mut case = |from: &Kind, to: &Kind, taken, waits: u64| {
            with_key(&mut |mut key| {
                key.uses(from, from.most());
                let denied = key.take(to, taken).map(drop);
                let later = |seconds| Err(Denied::later(taken, Duration::from_secs(seconds)));
                assert_eq!(denied, later(waits));
                for left in [waits - 1, waits - 2, 1] {
                    key.now = SOME_DAY + i128::from(waits - left) * 1_000_000;
                    assert_eq!(key.take(to, taken).map(drop), later(left));
                    key.available(to);
                }
                key.pass(1);
                key.uses(to, taken);
            });
        };
        case(&large, &small, 1, 901 * 36);
        case(&small, &large, 950, 50 * 18 / 5);
    });
}

#[test]
fn a_change_keeps_as_much_as_in_memory() {
    on_keys(|with_key| {
        let mut random = Random(0x00C4_A45E);
        for _ in 0..60 {
            with_key(&mut |mut key| {
                // In units of the core, a permit of each is a whole number.
                let mut quota = || {
                    let n = 1 << random.below(12);
                    let period = Duration::from_secs(3600 << random.below(4));
                    Quota::per(n, period).burst(1 + random.below(400))
                };
                let mut of = quota();
                let core = TokenBucket::new(of).expect("a quota");
                let clock = ManualClock::new();
                let core = Adjustable::with_clock(core, &clock);
                let mut quotas: Vec<_> = (0..20).map(|_| quota()).collect();
                while let Some(next) = quotas.pop() {
                    let kind = super::bucket(of);
                    let n = random.any_size(of.burst_size());
                    assert_eq!(key.available(&kind), core.available(), "{of}");
                    match random.below(3) {
                        0 => assert_eq!(key.charge(&kind, n), core.charge(n).debt(), "{of}"),
                        _ => assert_eq!(
                            key.take(&kind, n).is_ok(),
                            core.try_acquire_n(n).is_ok(),
                            "{of}"
                        ),
                    }
                    let step = Duration::from_secs(random.any_size(3600));
                    key.now += step.as_micros() as i128;
                    clock.advance(step);
                    core.set_quota(next, Keep::Used).expect("a quota");
                    of = next;
                }
            });
        }
    });
}

/// What was used, without rounding, in units of which a permit is the product of both periods.
struct Exact {
    used: u128,
    /// Whose rate refills: that of the last call.
    last: usize,
}

/// Lets two processes with different quotas ask in turn for `n` permits. Returns how many requests
/// are granted, and how many without rounding.
fn alternate(key: &mut Key<'_>, quotas: [Quota; 2], step: u128, n: u64) -> (u128, u128) {
    let (kinds, lines) = (quotas.map(super::bucket), quotas.map(Line::of));
    let permit = lines[0].period * lines[1].period;
    let cost = u128::from(n) * permit;
    let mut exact = Exact { used: 0, last: 0 };
    let (mut granted, mut right) = (0, 0);
    for turn in 0..1_500 {
        let (own, line) = (turn % 2, &lines[turn % 2]);
        let refills = lines[exact.last].n * lines[1 - exact.last].period;
        exact.used = exact.used.saturating_sub(refills * step);
        if exact.used + cost <= line.burst * permit {
            exact.used += cost;
            right += 1;
        }
        exact.last = own;
        key.now += step as i128;
        granted += u128::from(key.take(&kinds[own], n).is_ok());
    }
    (granted, right)
}

#[test]
fn two_processes_with_different_quotas_lose_no_noticeable_permits_to_rounding() {
    on_keys(|with_key| {
        // A script takes some ten microseconds.
        for (one, other, step, n) in [
            ("100/s", "1000/s", 1_100, 1),
            ("7/s", "1000/min", 3_001, 1),
            ("3/us burst 1000", "7/us burst 1000", 11, 77),
            ("10000/s burst 10", "30000/s burst 30", 23, 1),
            ("100000/s burst 10", "150000/s burst 20", 11, 2),
            ("100/d", "1000/d", 10_000_019, 1),
            ("1/h burst 100", "999983/h", 1_009, 1),
        ] {
            with_key(&mut |mut key| {
                let quotas = [one, other].map(|text| text.parse().expect("a quota"));
                let (granted, right) = alternate(&mut key, quotas, step, n);
                println!("{one}, {other}: {granted} of {right}");
                assert!(granted <= right, "{one}, {other}: {granted} of {right}");
                let lost = right - granted;
                assert!(
                    lost <= 1 + right / 50,
                    "{one}, {other}: {granted} of {right}"
                );
                assert!((40..1_400).contains(&right), "{one}, {other}: {right}");
            });
        }
    });
}

#[test]
fn at_one_moment_whole_permits_survive_any_number_of_changes() {
    on_keys(|with_key| {
        let mut random = Random(0xF11_F10);
        for _ in 0..30 {
            with_key(&mut |mut key| {
                // Years, so that no key expires, and of numbers without common divisors.
                let year = 31_557_600_000_000;
                let quotas = [(); 2].map(|()| {
                    let period = Duration::from_micros(year + random.below(year));
                    Quota::per(1 + random.below(1 << 26), period).burst(1 << 20)
                });
                let kinds = quotas.map(super::bucket);
                for taken in 1..50 {
                    let kind = &kinds[taken % 2];
                    key.uses(kind, 1);
                    let left = (1 << 20) - taken as u64;
                    let seen = kinds.map(|kind| key.available(&kind));
                    assert_eq!(seen, [left; 2], "{quotas:?}");
                }
            });
        }
    });
}

#[test]
fn a_value_of_format_1_keeps_its_time_until_it_is_written() {
    on_keys(|with_key| {
        with_key(&mut |mut key| {
            let [small, large, odd] = ["100/h", "1000/h", "7/h"].map(kind);
            let idle = (key.now + 1_440_000_000) as f64;
            let mut value = [(1 << 27) + 1, 0_u32].map(u32::to_le_bytes).concat();
            value.extend([idle, key.now as f64].map(f64::to_le_bytes).concat());
            let () = key.connection.set(&key.name, &value).expect("set");
            let seen = [&small, &large, &odd].map(|kind| key.available(kind));
            assert_eq!(seen, [60, 600, 4]);
            key.uses(&large, 1);
            assert_eq!(key.value().len(), 32);
            assert_eq!((key.available(&large), key.available(&small)), (599, 0));
        });
    });
}

#[test]
fn a_ban_ends_when_it_was_to_end_and_the_bucket_then_refills_from_empty() {
    on_keys(|with_key| {
        for (from, to, per_hour) in [
            ("120/h", "1200/h", 1200),
            ("1200/h", "120/h", 120),
            ("120/h", "240/h burst 120", 240),
        ] {
            for is_written in [false, true] {
                with_key(&mut |mut key| {
                    let [from, to] = [from, to].map(kind);
                    key.uses(&from, 50);
                    key.ban(&from, 600);
                    key.pass(300);
                    let left = Duration::from_secs(300);
                    assert_eq!(key.banned_for(&to), Some(left));
                    assert!(matches!(key.take(&to, 1), Err(Denied::Banned { .. })));
                    if is_written {
                        // A shorter ban changes nothing.
                        key.ban(&to, 10);
                        assert_eq!(key.value().len(), 32);
                    }
                    assert_eq!(key.banned_for(&to), Some(left));
                    key.pass(300);
                    assert_eq!((key.banned_for(&to), key.available(&to)), (None, 0));
                    key.pass(3600 - 61);
                    let used = (61_u64 * per_hour).div_ceil(3600);
                    assert_eq!(key.available(&to), to.most() - used, "{to:?}");
                    key.pass(61);
                    assert_eq!(key.available(&to), to.most());
                });
            }
        }
    });
}

#[test]
fn a_debt_and_what_is_reserved_stay_as_many_permits() {
    on_keys(|with_key| {
        let [small, large] = ["100/h", "1000/h"].map(kind);
        with_key(&mut |mut key| {
            key.uses(&small, 100);
            assert_eq!(key.charge(&small, 50), 50);
            assert_eq!((key.available(&large), key.charge(&large, 0)), (850, 0));
            key.charge(&large, 1);
            assert_eq!((key.available(&small), key.charge(&small, 0)), (0, 51));
            let denied = key.take(&small, 1).expect_err("a denial");
            assert_eq!(
                denied,
                Denied::later(1, Duration::from_secs(52 * 36)),
                "at the rate in force"
            );
        });
        with_key(&mut |mut key| {
            let (hour, step) = (Duration::from_secs(3600), Duration::from_secs(36));
            key.uses(&small, 100);
            let first = key.reserve(&small, 10, hour).expect("a place");
            assert_eq!(first.granted.delay(), step * 10);
            // 110 are used, of which 10 are not due yet.
            let next = key.reserve(&large, 900, hour).expect("a place");
            assert_eq!(next.granted.delay(), Duration::from_micros(36_000_000));
            let last = key.reserve(&small, 1, 100 * hour).expect("a place");
            assert_eq!(last.granted.delay(), step * 911);
        });
    });
}

#[test]
fn a_grant_of_another_quota_gives_back_what_neither_rate_has_refilled() {
    on_keys(|with_key| {
        let [small, large, odd] = ["100/h", "1000/h", "29983/57h burst 1000"].map(kind);
        let mut case = |from: &Kind, to: &Kind, seconds, others, back| {
            with_key(&mut |mut key| {
                let grant = key.take(from, 100).expect("a grant");
                key.pass(seconds);
                if others > 0 {
                    key.uses(to, others);
                }
                let before = key.available(to);
                assert_eq!(key.give(to, 100, Some(&grant)), back, "{from:?} {to:?}");
                let after = key.available(to);
                assert!(after <= before + back && after + 1 >= before + back);
            });
        };
        // All of it at once.
        case(&small, &large, 0, 0, 100);
        case(&small, &large, 0, 50, 100);
        case(&small, &odd, 0, 0, 100);
        case(&odd, &large, 0, 0, 100);
        // The larger rate has refilled 50.
        case(&small, &large, 180, 100, 50);
        // Since the change it has refilled all, and others use what is used now.
        case(&small, &large, 360, 100, 0);
        case(&small, &large, 3600, 100, 0);
        // The larger rate may have refilled them until now.
        case(&large, &small, 0, 0, 100);
        case(&large, &small, 180, 0, 50);
        case(&large, &small, 180, 50, 50);
        case(&large, &small, 360, 10, 0);
    });
}

/// A key says only its last rate, so what another one has refilled in between is not known.
#[test]
fn while_quotas_alternate_a_grant_can_give_back_what_the_faster_one_has_refilled() {
    on_keys(|with_key| {
        with_key(&mut |mut key| {
            let [small, large] = ["100/h", "1000/h"].map(kind);
            let grant = key.take(&small, 100).expect("a grant");
            assert_eq!(key.available(&large), 900);
            key.pass(360);
            assert_eq!(key.available(&large), 1000, "all are refilled");
            key.uses(&small, 100);
            // The rate of the grant has refilled 10.
            assert_eq!(key.give(&small, 100, Some(&grant)), 90);
            assert_eq!(key.available(&small), 90);
        });
    });
}

#[test]
fn whatever_is_given_back_after_changes_was_taken_and_makes_no_other_permits() {
    on_keys(|with_key| {
        let mut random = Random(0x61FE);
        for _ in 0..30 {
            with_key(&mut |mut key| {
                let mut grants = Vec::<(Grant, u64)>::new();
                for _ in 0..60 {
                    let quota = super::quotas::random(&mut random);
                    let bucket = super::bucket(quota);
                    let most = bucket.most();
                    let n = 1 + random.below(most);
                    match random.below(4) {
                        0 => grants.extend(key.take(&bucket, n).ok().map(|grant| (grant, n))),
                        1 => {
                            let wait = Duration::from_micros(random.any_size(SPAN as u64));
                            let grant = key.reserve(&bucket, n, wait).ok();
                            grants.extend(grant.map(|grant| (grant, n)));
                        }
                        2 => key.now += i128::from(random.any_size(1 << 40)),
                        _ if grants.is_empty() => {}
                        _ => {
                            let last = random.below(grants.len() as u64) as usize;
                            let (grant, n) = grants.swap_remove(last);
                            let before = key.available(&bucket);
                            let back = key.give(&bucket, n, Some(&grant));
                            assert!(back <= n);
                            let after = key.available(&bucket);
                            assert!(after <= before.saturating_add(back), "{quota}");
                        }
                    }
                    key.now = key.now.min(SPAN as i128 / 2);
                }
            });
        }
    });
}
