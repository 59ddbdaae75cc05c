//! The quotas of a table's plans, which are changed while others decide on keys, by either plan: no
//! decision mixes two quotas, also when a version's bits come again, and no permit comes from
//! nowhere; also if somebody who decides stops for ever. And each fault in that is found.

use std::sync::Arc;
use std::time::Duration;

use tollgate::adjustable::Keep;
use tollgate::sync::model::{Fault, Stop, stopping};
use tollgate::{Overflow, Quota, Tick};
use tollgate_shuttle_tests::{
    Books, Table, WRONG, Watched, act, actor, below, check_table, model, one_of, reached, stored,
    table, with_fault,
};

/// Who does how much.
#[derive(Debug, Clone, Copy)]
struct Cast {
    slots: usize,
    plans: u64,
    setters: u64,
    changes: u64,
    deciders: u64,
    calls: u64,
    /// One of those who decide stops for ever, before one of so many operations.
    stops: Option<u64>,
}

/// Two who change it five times each, and three who decide.
const MANY: Cast = Cast {
    slots: 2,
    plans: 1,
    setters: 2,
    changes: 5,
    deciders: 3,
    calls: 8,
    stops: None,
};
/// With two plans, and room for all keys. A change of one plan leaves words of the other as they
/// are, so that a version must not come again: who sleeps so long and finds the very same word may
/// decide by the old one.
const PLANS: Cast = Cast {
    slots: 4,
    plans: 2,
    setters: 1,
    changes: 3,
    ..MANY
};
/// One changes it so often that versions come again, while two decide twice.
const FEW: Cast = Cast {
    setters: 1,
    changes: 7,
    deciders: 2,
    calls: 2,
    ..MANY
};

const KEYS: usize = 3;
const LIMITS: [u64; 5] = [3, 5, 6, 7, 9];
const HIGHEST: u64 = 9;
const NOW: Tick = Tick::from_nanos(5);

type Tested<const IDLES: bool> = Table<Watched<IDLES>>;

fn sets<const IDLES: bool>(limiter: &Tested<IDLES>, cast: Cast) {
    for _ in 0..cast.changes {
        let quota = Quota::per(one_of(&LIMITS), Duration::from_secs(1));
        let plan = limiter.plan(below(cast.plans) as usize);
        let set = plan.set_quota_at(quota, Keep::AsIs, NOW);
        set.expect("a quota of a plan");
    }
}

fn decides<const IDLES: bool>(limiter: &Tested<IDLES>, cast: Cast, books: &mut Books<KEYS>) {
    for _ in 0..cast.calls {
        let key = below(KEYS as u64) as usize;
        let view = limiter.plan(below(cast.plans) as usize).key(&key).at(NOW);
        match below(6) {
            0 => {
                let left = view.available();
                assert!(left <= HIGHEST, "two quotas are mixed: {left} left");
            }
            1 => books.enter(key, 2, Ok(view.take_up_to(2))),
            // A key that has gone to the other plan and back gives back what it was granted before,
            // or a part of it.
            2 if cast.plans == 1 => {
                if let Some(granted) = books.grants[key].pop() {
                    match view.undo(granted) {
                        0 => {
                            reached("nothing comes back of before a change");
                            books.grants[key].push(granted);
                        }
                        back => assert_eq!(back, granted.n(), "two quotas are mixed"),
                    }
                }
            }
            _ => books.enter(key, 1, view.try_acquire()),
        }
    }
}

fn changed<const IDLES: bool>(cast: Cast) {
    let plans = [LIMITS[2], LIMITS[1]].map(Watched::<IDLES>::of);
    let plans = plans.into_iter().take(cast.plans as usize);
    let limiter = Arc::new(table(plans, cast.slots, Overflow::Deny));
    let setters = (0..cast.setters).map(|_| {
        let limiter = Arc::clone(&limiter);
        actor(move || {
            sets(&limiter, cast);
            (Books::default(), 0)
        })
    });
    let deciders = (0..cast.deciders).map(|number| {
        let limiter = Arc::clone(&limiter);
        actor(move || {
            let stops = cast.stops.filter(|_| number == 0);
            let stop = Stop::Operations(stops.map_or(u64::MAX, below));
            let mut books = Books::default();
            let stopped = stopping(stop, || decides(&limiter, cast, &mut books)).is_none();
            (books, usize::from(stopped))
        })
    });
    let told = act(setters.chain(deciders).collect());
    let (books, stopped): (Vec<_>, Vec<_>) = told.into_iter().unzip();
    let stopped = stopped.into_iter().sum();
    if stopped > 0 {
        reached("one stops");
    }
    check(&limiter, &Books::of_all(books), stopped);
}

fn check<const IDLES: bool>(limiter: &Tested<IDLES>, books: &Books<KEYS>, stopped: usize) {
    let stats = limiter.stats();
    if stats.expired > 0 {
        reached("taken over");
    }
    check_table::<_, KEYS>(limiter, stopped);
    // Each time that a key came into the table it was fresh, and unless idle ones are, too, there
    // were only fewer since.
    let fresh = |key: usize| {
        let left = limiter.key(&key).at(NOW).available();
        assert!(left <= HIGHEST, "two quotas are mixed: {left} left");
        let mut grants = books.grants[key].iter();
        let is_wrong = grants.any(|granted| granted.n() == WRONG);
        assert!(!is_wrong, "two quotas are mixed");
        books.held(key).div_ceil(HIGHEST)
    };
    let fresh: u64 = (0..KEYS).map(fresh).sum();
    assert!(
        IDLES || fresh <= stats.inserted,
        "permits come from nowhere"
    );
}

const MIXED: &str = "two quotas are mixed | permits come from nowhere | not as many keys";

#[test]
fn nothing_is_mixed() {
    let name = "keyed_quota::nothing_is_mixed";
    let all = ["nothing comes back of before a change"];
    model(name, 3_000, &all, || changed::<false>(MANY));
    model(&format!("{name}, few"), 6_000, &[], || {
        changed::<false>(FEW)
    });
    let two = format!("{name}, two plans");
    model(&two, 3_000, &[], || changed::<false>(PLANS));
    // A word that is fresh again is the very same one: no version comes again.
    let idle = Cast { slots: 2, ..PLANS };
    let all = ["taken over"];
    model(&format!("{two}, idle"), 3_000, &all, move || {
        changed::<true>(idle)
    });
    for fault in [
        Fault::SweepsNothing,
        Fault::SparesClaims,
        Fault::ReadsUnchecked,
    ] {
        with_fault(name, fault, MIXED, || changed::<false>(FEW));
    }
    with_fault(name, Fault::UndoesOldMarks, MIXED, || {
        changed::<false>(MANY)
    });
    let why = format!("{MIXED} | exceeded max_steps | a claim is left");
    stored(name, &why, || changed::<false>(MANY));
}

#[test]
fn who_stops_stops_nobody() {
    let cast = Cast {
        stops: Some(150),
        ..PLANS
    };
    let name = "keyed_quota::who_stops_stops_nobody";
    model(name, 3_000, &["one stops"], move || changed::<false>(cast));
}
