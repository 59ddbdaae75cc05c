//! Another caller reserves permits of a member between the taking and a lost race. The permits that
//! callers use keep the bound, each at the tick at which it is used.

use std::sync::Mutex;

use tollgate::compose::{BoxMember, Closed, Exempt, OrElse, OwnLimiter, Shadow};
use tollgate::traits::{GiveBackLimiter, ReserveLimiter};
use tollgate::{Adjustable, Keyed};
use tollgate_audit::{Audit, Bounded, Log};

use super::scripted::{Scripted, Step};
use crate::support::*;

/// Ten permits a second, and at most ten at once.
const LIMITS: [&str; 6] = [
    "token-bucket 10/s",
    "gcra 10/s",
    "leaky-meter 10/s",
    "intervals 10/s",
    "intervals 10/s greedy",
    "sliding-window 10/s",
];

/// A limit on which callers can wait.
type Waits<'l> = &'l (dyn ReserveLimiter<Clock = ManualClock> + Sync);

type Member<'m> = BoxMember<'m, ManualClock>;

/// Makes a member of a limiter.
type OfOne = for<'l> fn(&'l Limiter<AnyAlgorithm, ManualClock>) -> Member<'l>;

/// Calls `play` with each kind of limit, and the member that takes from it.
fn with_each_limit(algorithm: AnyAlgorithm, play: &dyn Fn(&str, Waits<'_>, Member<'_>)) {
    let clock = ManualClock::at(tick(8_000_000_000));
    let kinds: [(&str, OfOne); 6] = [
        ("a limiter", |one| Box::new(one)),
        ("a limiter of the user's own", |one| {
            Box::new(OwnLimiter(one))
        }),
        ("a counted limiter", |one| Box::new(Counted::new(one))),
        ("the first of two", |one| Box::new(OrElse::new(one, Exempt))),
        ("the second of two", |one| {
            Box::new(OrElse::new(Closed, one))
        }),
        ("a shadow", |one| Box::new(Shadow::new(one))),
    ];
    for (kind, member) in kinds {
        let one = Limiter::with_clock(algorithm, clock.clone());
        play(kind, &one, member(&one));
    }
    let one = Adjustable::with_clock(algorithm, clock.clone());
    play("an adjustable limiter", &one, Box::new(&one));
    let table = Keyed::with_clock(algorithm, 8, clock).expect("a table");
    play(
        "a key of a table",
        &table.key("a"),
        Box::new(table.key("a")),
    );
}

/// Takes from the member, and from one that denies after `meanwhile`.
fn lose_a_race(member: Member<'_>, many: bool, now: Tick, meanwhile: &(dyn Fn(Tick) + Sync)) {
    let rival = |step, now| {
        (step == Step::Take).then(|| {
            meanwhile(now);
            Denied::later(1, Duration::from_secs(1))
        })
    };
    let rival = Scripted::last(&rival);
    let rival = rival.member();
    let denied = match many {
        false => {
            let all = All::new((member, rival)).expect("two");
            all.at(now).try_acquire_n(4).map(drop)
        }
        true => {
            let others = (0..8).map(|_| -> Member<'_> { Box::new(Exempt) });
            let members = [member, Box::new(rival)].into_iter().chain(others);
            let all = All::new(members.collect::<Vec<_>>()).expect("ten");
            all.at(now).try_acquire_n(4).map(drop)
        }
    };
    assert!(denied.is_err(), "the rival denies");
}

#[test]
fn what_a_lost_race_rolls_back_is_not_granted_beside_a_reservation() {
    for (text, many) in LIMITS.iter().flat_map(|text| [(text, false), (text, true)]) {
        let algorithm = algorithm(text);
        with_each_limit(algorithm, &|kind, limit, member| {
            let (now, log) = (limit.clock().now(), Mutex::new((Log::new(), Tick::ZERO)));
            lose_a_race(member, many, now, &|now| {
                // At the first time only: later on, the composition takes nothing of a limit with a
                // line, or from no limit at all.
                let (log, due) = &mut *log.lock().expect("no panic");
                if *due == Tick::ZERO {
                    let reserved = limit.reserve_until_at(10, Tick::MAX, now).expect("a place");
                    *due = reserved.due();
                    assert!(*due > now, "{text}: {kind}");
                    log.grant(*due, 10);
                }
            });
            let (mut log, due) = log.into_inner().expect("no panic");
            for after in 0..25 {
                let then = due.saturating_add(Duration::from_millis(after * 100));
                log.grant(then, limit.take_up_to_at(10, then).n());
            }
            let history: Audit = [log].into_iter().collect();
            if let Err(excess) = history.check(&algorithm.bound()) {
                panic!("{text}: {kind}, {many}: {excess}");
            }
        });
    }
}

#[test]
fn without_a_reservation_a_lost_race_gives_everything_back() {
    for (text, many) in LIMITS.iter().flat_map(|text| [(text, false), (text, true)]) {
        with_each_limit(algorithm(text), &|kind, limit, member| {
            let now = limit.clock().now();
            let _ = limit.try_acquire_n_at(3, now).expect("available");
            let rounds = Mutex::new(0);
            lose_a_race(member, many, now, &|now| {
                let mut rounds = rounds.lock().expect("no panic");
                *rounds += 1;
                if *rounds == 2 {
                    let _ = limit.try_acquire_n_at(2, now).expect("available");
                }
            });
            assert_eq!(rounds.into_inner().expect("no panic"), 3, "{text}: {kind}");
            let actual = limit.available_at(now);
            assert_eq!(actual, 10 - 3 - 2, "{text}: {kind}, {many}");
        });
    }
}

/// The permits of a queue leave one by one. A newcomer leaves after all who were told when.
#[test]
fn a_queue_keeps_its_distances_after_a_lost_race() {
    let queue = algorithm("leaky-queue 10/s burst 20");
    with_each_limit(queue, &|kind, limit, member| {
        let (now, dues) = (limit.clock().now(), Mutex::new(Vec::new()));
        lose_a_race(member, false, now, &|now| {
            let granted = limit.try_acquire_n_at(1, now).expect("there is room");
            dues.lock().expect("no panic").push(granted.due());
        });
        let mut dues = dues.into_inner().expect("no panic");
        dues.push(limit.try_acquire_n_at(1, now).expect("there is room").due());
        for pair in dues.windows(2) {
            let distance = pair[1].saturating_since(pair[0]);
            assert!(distance >= Duration::from_millis(100), "{kind}: {dues:?}");
        }
    });
}

/// The word can't tell debt from a reservation.
#[test]
fn debt_that_was_charged_in_between_keeps_what_was_taken() {
    let clock = ManualClock::new();
    let bucket = TokenBucket::new(Quota::per_second(10)).expect("a quota");
    for (charged, left) in [(6, 4), (7, 0)] {
        let one = Limiter::with_clock(bucket, clock.clone());
        let is_first = Mutex::new(true);
        lose_a_race(Box::new(&one), false, one.now(), &|now| {
            if std::mem::take(&mut *is_first.lock().expect("no panic")) {
                one.at(now).charge(charged);
            }
        });
        assert_eq!(one.available(), left);
    }
}

#[test]
fn a_limiter_without_reservations_undoes() {
    let clock = ManualClock::new();
    let bucket = TokenBucket::new(Quota::per_second(40)).expect("a quota");
    let sharded = Sharded::with_clock(bucket, clock.clone()).expect("shards");
    let granted = sharded.try_acquire_n(5).expect("available");
    assert_eq!(sharded.roll_back_at(granted, sharded.now()), 5);
    assert_eq!(sharded.available(), 40);
}
