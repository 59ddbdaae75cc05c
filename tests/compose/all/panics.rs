//! Users' code that panics while a composition takes: everything that was taken comes back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tollgate::compose::{BoxMember, Exempt, Member, Members, OrElse, Shadow};

use super::scripted::{Scripted, Step};
use super::{Bucket, algorithm, bucket};
use crate::support::*;

/// A member of the user's own.
type Own<'s> = &'s (dyn Member<ManualClock> + Send + Sync + 's);

/// A request, from a composition of these limits.
type Request = fn(&[Bucket; 2], &Concurrency, Own<'_>);

/// Forms of compositions.
const FORMS: [(&str, Request); 10] = [
    ("two", |[a, _], _, own| request((a, own))),
    ("two boxed", |[a, _], _, own| {
        request([boxed(a), boxed(own)]);
    }),
    ("three", |[a, b], _, own| request((a, b, own))),
    ("three boxed", |[a, b], _, own| {
        request([boxed(own), boxed(a), boxed(b)]);
    }),
    ("with a concurrency", |[a, _], room, own| {
        request((a, room, own));
    }),
    ("one twice", |[a, b], room, own| {
        request((a, b, a, (room, own)));
    }),
    ("eight", |rates, room, own| {
        request((rates, room, [Exempt; 4], own));
    }),
    ("nine", |rates, room, own| {
        request((own, [Exempt; 5], (rates, room)));
    }),
    ("a list", |[a, b], room, own| {
        request(vec![boxed(own), boxed(room), boxed(a), boxed(b)]);
    }),
    ("a composition inside", |rates, _, own| {
        request((All::new(rates).expect("two limits"), own));
    }),
];

fn boxed<'m>(member: impl Member<ManualClock> + Send + Sync + 'm) -> BoxMember<'m, ManualClock> {
    Box::new(member)
}

/// Takes a permit of each member.
fn request<M: Members<ManualClock>>(members: M) {
    let all = All::new(members).expect("limits");
    drop(all.try_acquire());
}

/// Limits in this order in memory, so that requests take from the user's own member last.
#[repr(C)]
struct OwnLast<'s> {
    rates: [Bucket; 2],
    room: Concurrency,
    own: Scripted<'s>,
}

/// Sends a request of this form, and checks that it panicked as it should, and that nothing stayed
/// taken then. The user's own member panics at this step, after it denied this many times.
fn panic_at(step: Step, after: u64, can_undo: bool, (form, request): (&str, Request)) {
    let label = format!("{form}: at {step:?} after {after} denials, {can_undo}");
    let clock = ManualClock::new();
    let (taken, takes) = (AtomicU64::new(0), AtomicU64::new(0));
    let at = |now: Step, tick: Tick| {
        let is_early = now == Step::Take && takes.fetch_add(1, Relaxed) < after;
        assert!(is_early || now != step, "a member's own panic");
        match now {
            Step::Take if !is_early => taken.fetch_add(1, Relaxed),
            Step::GiveBack => taken.fetch_sub(1, Relaxed),
            _ => 0,
        };
        is_early.then(|| Denied::later(1, Duration::from_nanos(tick.as_nanos() + 1)))
    };
    let mut own = Scripted::new(&at);
    own.can_undo = can_undo;
    let limits = OwnLast {
        rates: [bucket(5, &clock), bucket(5, &clock)],
        room: Concurrency::new(3).expect("a limit"),
        own,
    };
    let OwnLast { rates, room, own } = &limits;
    let outcome = catch_unwind(AssertUnwindSafe(|| request(rates, room, own.member())));
    assert!(outcome.is_err(), "{label}");
    let left = rates.each_ref().map(Limiter::available);
    let actual = (left, room.inside(), taken.load(Relaxed));
    assert_eq!(actual, ([5; 2], 0, 0), "{label}");
}

#[test]
fn a_member_that_panics_leaves_nothing_taken() {
    let places = [
        (Step::Check, 0),
        (Step::Take, 0),
        (Step::Take, 1),
        (Step::Take, 2),
    ];
    for (step, after) in places {
        for form in FORMS {
            for can_undo in [false, true] {
                panic_at(step, after, can_undo, form);
            }
        }
    }
}

/// Denies when it is taken from.
fn denies(step: Step, _: Tick) -> Option<Denied> {
    (step == Step::Take).then(|| Denied::later(1, Duration::from_secs(1)))
}

#[test]
fn a_member_that_panics_when_it_gives_back_stops_no_other() {
    let rate = bucket(5, &ManualClock::new());
    let room = Concurrency::new(3).expect("a limit");
    let panics = |step, _| {
        assert!(step != Step::GiveBack, "a member's own panic");
        None
    };
    let (panics, denies) = (Scripted::new(&panics), Scripted::last(&denies));
    let (panics, denies) = (panics.member(), denies.member());
    let few = All::new((&rate, panics, &room, denies)).expect("limits");
    let many = All::new((&rate, [Exempt; 6], (panics, &room, denies))).expect("limits");
    assert!(catch_unwind(AssertUnwindSafe(|| drop(few.try_acquire()))).is_err());
    assert_eq!((rate.available(), room.inside()), (5, 0));
    assert!(catch_unwind(AssertUnwindSafe(|| drop(many.try_acquire()))).is_err());
    assert_eq!((rate.available(), room.inside()), (5, 0));
}

/// A share counts that it denied when the common pool has granted.
#[test]
fn a_share_that_panics_when_it_counts_leaves_nothing_taken() {
    let clock = ManualClock::new();
    let [rate, pool] = [5, 5].map(|n| bucket(n, &clock));
    let room = Concurrency::new(3).expect("a limit");
    let panics = |step, now| {
        assert!(step != Step::Count, "a member's own panic");
        denies(step, now)
    };
    let share = Scripted::new(&panics);
    let choice = || OrElse::new(share.member(), &pool);
    let requests: [&dyn Fn(); 5] = [
        &|| request((&rate, choice())),
        &|| request((&room, Shadow::new(choice()))),
        &|| request((&rate, OrElse::new(choice(), &rate))),
        &|| request((&room, OrElse::new(share.member(), choice()))),
        &|| request((&rate, [Exempt; 7], (&room, boxed(choice())))),
    ];
    for (number, request) in requests.into_iter().enumerate() {
        let outcome = catch_unwind(AssertUnwindSafe(request));
        assert!(outcome.is_err(), "{number}");
        let actual = (rate.available(), pool.available(), room.inside());
        assert_eq!(actual, (5, 5, 0), "{number}");
    }
}

/// A clock that panics when it is read this many times.
struct Panics(AtomicU64);

impl Clock for Panics {
    fn now(&self) -> Tick {
        let left = self.0.fetch_sub(1, Relaxed);
        assert!(left > 1, "a clock's own panic");
        Tick::ZERO
    }
}

/// The clock is read once for a request, and again after each lost race.
#[test]
fn a_clock_that_panics_after_a_lost_race_leaves_nothing_taken() {
    for readings in 2..=4 {
        let clock = Panics(AtomicU64::new(readings));
        let rate = Limiter::unstarted(algorithm(5), &clock);
        let room = Concurrency::new(3).expect("a limit");
        let denies = Scripted::last(&denies);
        let own = denies.member();
        let few = All::new((&rate, &room, own)).expect("limits");
        let outcome = catch_unwind(AssertUnwindSafe(|| drop(few.try_acquire())));
        assert!(outcome.is_err(), "{readings}");
        assert_eq!((rate.at(Tick::ZERO).available(), room.inside()), (5, 0));
    }
}
