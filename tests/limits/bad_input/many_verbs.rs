//! Every verb of what has more than one word, with any number, at any tick, in any order: it answers, and
//! what it answers agrees with the verb beside it.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{
    AnyAlgorithm, Charged, Counted, Denied, Granted, Leases, Lend, ManualClock, NoClock, Quota,
    Sharded, SlidingLog, SlottedWindow, Split, Tick,
};

use crate::bad_input::shards::algorithms;
use crate::bad_input::{EDGES, FIFTY_YEARS_NS, any_text};

/// What is called: the verb, a number, and whether time goes on by another, back by it, or is it.
type Call = (u8, u64, u8, u64);

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let number = || {
        prop_oneof![
            (any::<u64>(), 0..64_u32).prop_map(|(n, fewer)| n >> fewer),
            prop::sample::select(EDGES.to_vec()),
            0..20_u64,
        ]
    };
    prop::collection::vec((0..12_u8, number(), 0..8_u8, number()), 1..40)
}

/// The tick of the next call.
fn later(now: u64, how: u8, by: u64) -> u64 {
    match how {
        0 => by,
        1 => now.saturating_sub(by),
        2 | 3 => now,
        _ => now.saturating_add(by % FIFTY_YEARS_NS),
    }
}

/// What a decision must agree with: how many there were before it, and how long there would be to wait.
fn check_decision(
    (n, limit): (u64, u64),
    (available, wait, now): (u64, Option<Duration>, Tick),
    decision: Result<Granted, Denied>,
) {
    match decision {
        Ok(granted) => {
            assert_eq!((granted.n(), wait), (n, Some(Duration::ZERO)));
            // Where a window is ahead of the caller, several parts count there, and tell what remains there.
            let is_ahead = granted.at() > now;
            assert!(n <= available && (is_ahead || granted.remaining() <= available - n));
            assert!(!format!("{granted:?}").is_empty());
        }
        Err(denied) => {
            assert_eq!((denied.requested(), denied.retry_after()), (n, wait));
            assert!(n > available || n == 0, "{denied}");
            let never = denied == Denied::never(n, limit);
            assert_eq!(never, n > limit, "{denied}");
            assert!(wait.is_none_or(|wait| !wait.is_zero()), "{denied}");
        }
    }
}

fn check_charged(n: u64, charged: Charged) {
    assert!(charged.n() <= n, "{charged:?}");
    assert_eq!(
        charged.debt() == 0,
        charged.clear_after().is_zero(),
        "{charged:?}"
    );
}

fn run_sharded(algorithm: AnyAlgorithm, shards: usize, calls: &[Call]) {
    let most = usize::try_from(algorithm.most_parts()).unwrap_or(usize::MAX);
    let Ok(gate) = Sharded::starting_at(algorithm, shards.clamp(1, most), NoClock, Tick::ZERO)
    else {
        return;
    };
    gate.reset();
    let limit = gate.at(Tick::ZERO).available();
    let (mut now, mut kept) = (0, Granted::new(0, Tick::ZERO));
    for &(verb, n, how, by) in calls {
        now = later(now, how, by);
        let tick = Tick::from_nanos(now);
        let view = gate.at(tick).from_shard(by as usize);
        let available = view.available();
        assert!(available <= limit, "{gate:?}");
        match verb {
            0..=2 => {
                let wait = view.time_until(n);
                let decision = view.try_acquire_n(n);
                check_decision((n, limit), (available, wait, tick), decision);
                kept = decision.unwrap_or(kept);
            }
            3 | 4 => {
                kept = view.take_up_to(n);
                // Fewer than there are, where the parts do not count at one tick.
                assert!(kept.n() <= n.min(available), "{gate:?}");
                assert_eq!(kept.n() == 0, n.min(available) == 0, "{gate:?}");
                // Where a rate is not exact, a part that was full has a permit a nanosecond later.
                let (left, most) = (view.available(), available - kept.n());
                assert!(
                    left <= most && most - left <= gate.shards() as u64,
                    "{gate:?}"
                );
            }
            5 => check_charged(n, view.charge(n)),
            6 => assert!(view.refund(n) <= n),
            7 => assert!(view.undo(kept) <= kept.n()),
            // One that no limiter gave.
            8 => {
                let forged = Granted::new(n, Tick::from_nanos(by)).with_mark(n);
                assert!(view.undo(forged) <= n);
            }
            9 => {
                let level = view.level();
                assert!(level.floor() <= level.ceil(), "{gate:?}");
                assert!(!view.is_idle() || available == limit, "{gate:?}");
            }
            10 => assert!(format!("{gate:?}{view:?}").contains("Sharded")),
            _ => gate.reset(),
        }
    }
}

fn run_leases(algorithm: AnyAlgorithm, total: u64, calls: &[Call]) {
    let total = total.clamp(1, algorithm.most_lent().max(1));
    let Ok(gate) = Leases::with_clock(algorithm, total, ManualClock::new()) else {
        return;
    };
    gate.limiter().reset();
    let limit = gate.limiter().available();
    let mut now = 0;
    let mut leases = vec![gate.lease(total / 2)];
    for &(verb, n, how, by) in calls {
        now = later(now, how, by);
        gate.limiter().clock().set(Tick::from_nanos(now));
        assert!(gate.limiter().available() <= limit);
        let of = by as usize % leases.len();
        let is_one_of_many = leases.len() > 1;
        let lease = &mut leases[of];
        match verb {
            0..=3 => {
                let (held, there) = (lease.held(), gate.limiter().available());
                let most = limit.saturating_add(lease.size());
                match lease.try_acquire_n(n) {
                    Ok(()) => assert!(n <= held + there, "{lease:?}"),
                    Err(denied) => {
                        assert_eq!(denied.requested(), n);
                        assert_eq!(denied == Denied::never(n, most), n > most, "{denied}");
                    }
                }
                assert!(lease.held() <= lease.size(), "{lease:?}");
            }
            4 => {
                let held = lease.held();
                assert!(lease.give_back() <= held && lease.held() == 0);
            }
            5 | 6 => leases.push(gate.lease(n)),
            7 if is_one_of_many => drop(leases.swap_remove(of)),
            8 => assert!(gate.try_acquire_n(n).map_or(0, |granted| granted.n()) <= n),
            9 => check_charged(n, gate.limiter().charge(n)),
            10 => gate.limiter().reset(),
            _ => assert!(format!("{gate:?}{lease:?}").contains("Lease")),
        }
        let sizes = leases.iter().map(|lease| lease.size());
        assert_eq!(gate.lent(), sizes.sum::<u64>());
        assert!(gate.lent() <= total);
    }
    drop(leases);
    assert_eq!(gate.lent(), 0);
}

fn run_slotted(quota: Quota, slots: usize, calls: &[Call]) {
    let Ok(gate) = SlottedWindow::with_clock(quota, slots, NoClock) else {
        return;
    };
    let limit = quota.permits();
    let (mut now, mut kept) = (0, Granted::new(0, Tick::ZERO));
    for &(verb, n, how, by) in calls {
        now = later(now, how, by);
        let tick = Tick::from_nanos(now);
        let available = gate.available_at(tick);
        assert_eq!(available, limit.saturating_sub(gate.counted_at(tick)));
        match verb {
            0..=2 => {
                let wait = gate.time_until_at(n, tick);
                let decision = gate.try_acquire_n_at(n, tick);
                check_decision((n, limit), (available, wait, tick), decision);
                kept = decision.unwrap_or(kept);
            }
            3 | 4 => {
                kept = gate.take_up_to_at(n, tick);
                assert_eq!(kept.n(), n.min(available), "{gate:?}");
            }
            5 | 6 => check_charged(n, gate.charge_at(n, tick)),
            7 => assert!(gate.refund_at(n, tick) <= n),
            8 => assert!(gate.undo_at(kept, tick) <= kept.n()),
            9 => {
                let forged = Granted::new(n, Tick::from_nanos(by)).with_mark(by);
                assert!(gate.undo_at(forged, tick) <= n);
            }
            _ => assert!(format!("{gate:?}").contains("SlottedWindow")),
        }
    }
}

fn run_log(quota: Quota, calls: &[Call]) {
    let Ok(gate) = SlidingLog::with_clock(quota, NoClock) else {
        return;
    };
    let limit = quota.permits();
    let mut now = 0;
    for &(verb, n, how, by) in calls {
        now = later(now, how, by);
        let tick = Tick::from_nanos(now);
        let available = gate.available_at(tick);
        assert!(available <= limit);
        match verb {
            0..=6 => {
                let wait = gate.time_until_at(n, tick);
                let decision = gate.try_acquire_n_at(n, tick);
                check_decision((n, limit), (available, wait, tick), decision);
            }
            7..=9 => {
                let granted = gate.take_up_to_at(n, tick);
                assert_eq!(granted.n(), n.min(available));
                assert_eq!(gate.available_at(tick), available - granted.n());
            }
            _ => assert!(format!("{gate:?}").contains("SlidingLog")),
        }
    }
}

/// What it counts is what was answered.
fn run_counted(algorithm: AnyAlgorithm, calls: &[Call]) {
    let gate = Sharded::with_shards(algorithm, 1, ManualClock::new()).expect("one part");
    let gate = Counted::new(gate);
    let (mut now, mut granted, mut permits, mut denied) = (0, 0, 0_u64, 0);
    let (mut returned, mut charged) = (0_u64, 0_u64);
    for &(verb, n, how, by) in calls {
        now = later(now, how, by);
        gate.gate().clock().set(Tick::from_nanos(now));
        match verb {
            0..=4 => match gate.try_acquire_n(n) {
                Ok(grant) => {
                    granted += u64::from(n > 0);
                    permits = permits.wrapping_add(grant.n());
                }
                Err(_) => denied += u64::from(n > 0),
            },
            5..=7 => {
                let took = gate.take_up_to(n).n();
                granted += u64::from(took > 0);
                permits = permits.wrapping_add(took);
            }
            8 | 9 => charged = charged.wrapping_add(gate.charge(n).n()),
            _ => returned = returned.wrapping_add(gate.refund(n)),
        }
        let counts = gate.counts();
        assert_eq!(
            (counts.granted, counts.permits, counts.denied),
            (granted, permits, denied)
        );
        assert_eq!((counts.returned, counts.charged), (returned, charged));
    }
}

/// One call of each verb, at each edge of numbers and ticks, fresh and after a call.
#[test]
fn every_verb_answers_at_every_edge() {
    let calls = |how, tick| {
        let verbs = (0..12).flat_map(move |verb| EDGES.map(|n| (verb, n, how, tick)));
        verbs.collect::<Vec<_>>()
    };
    for tick in EDGES {
        for how in [0, 1, 7] {
            let calls = calls(how, tick);
            for algorithm in algorithms() {
                for shards in [1, 2, 5] {
                    run_sharded(algorithm, shards, &calls);
                }
                run_leases(algorithm, 3, &calls);
                run_counted(algorithm, &calls);
            }
            for (n, period, slots) in [(1, 1, 1), (3, 60, 60), (1000, 1_000_000_000, 10)] {
                let quota = Quota::per(n, Duration::from_nanos(period));
                run_slotted(quota, slots, &calls);
                run_log(quota, &calls);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn any_verbs_of_shards_and_leases_answer_in_any_order(
        algorithm in prop_oneof![any_text::algorithm(), prop::sample::select(algorithms())],
        shards in 1..17_usize,
        (total, fewer) in (any::<u64>(), 0..64_u32),
        calls in calls(),
    ) {
        run_sharded(algorithm, shards, &calls);
        run_leases(algorithm, total >> fewer, &calls);
        run_counted(algorithm, &calls);
    }

    #[test]
    fn any_verbs_of_slots_and_logs_answer_in_any_order(
        (n, n_bits) in (any::<u64>(), 0..64_u32),
        (slot, slot_bits) in (any::<u64>(), 0..64_u32),
        slots in 1..70_usize,
        calls in calls(),
    ) {
        let period = (slot >> slot_bits).saturating_mul(slots as u64);
        let quota = |n| Quota::per(n, Duration::from_nanos(period));
        run_slotted(quota(n >> n_bits), slots, &calls);
        run_log(quota(n >> n_bits.max(54)), &calls);
    }
}
