//! The quotas of a table's plans change while other threads decide on keys under either plan. No
//! decision mixes two quotas, even when a version's bits repeat, and no permit is created, even if
//! a deciding thread stops forever. The models find each injected fault.

use tollgate_shuttle_tests::prelude::*;

/// The size of a model.
#[derive(Debug, Clone, Copy)]
struct Size {
    slots: usize,
    plans: u64,
    setters: u64,
    changes: u64,
    deciders: u64,
    calls: u64,
    /// One deciding thread stops forever, before an operation drawn below this number.
    stops: Option<u64>,
}

/// Two threads change the quota five times each, and three decide.
const MANY: Size = Size {
    slots: 2,
    plans: 1,
    setters: 2,
    changes: 5,
    deciders: 3,
    calls: 8,
    stops: None,
};
/// Two plans, and a slot for each key. A change of one plan does not touch the words of the other.
/// So versions must not repeat here: a thread that sleeps until a version repeats, and then finds
/// an equal word, may decide by the old quota.
const PLANS: Size = Size {
    slots: 4,
    plans: 2,
    setters: 1,
    changes: 3,
    ..MANY
};
/// One thread changes the quota until versions repeat, while two threads decide twice.
const FEW: Size = Size {
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

fn sets<const IDLES: bool>(limiter: &Tested<IDLES>, size: Size) {
    for _ in 0..size.changes {
        let quota = Quota::per(one_of(&LIMITS), Duration::from_secs(1));
        let plan = below(size.plans) as usize;
        let set = limiter.set_plan_quota_at(plan, quota, Keep::AsIs, NOW);
        set.expect("a quota of a plan");
    }
}

fn decides<const IDLES: bool>(limiter: &Tested<IDLES>, size: Size, ledger: &mut Ledger<KEYS>) {
    for _ in 0..size.calls {
        let key = below(KEYS as u64) as usize;
        let view = limiter
            .key(&key)
            .with_plan(below(size.plans) as usize)
            .at(NOW);
        match below(6) {
            0 => {
                let left = view.available();
                assert!(left <= HIGHEST, "two quotas are mixed: {left} left");
            }
            1 => ledger.enter(key, 2, Ok(view.take_up_to(2))),
            // With two plans this is left out: a key that moved to the other plan and back returns
            // what it was granted before, or a part of it.
            2 if size.plans == 1 => {
                if let Some(granted) = ledger.grants[key].pop() {
                    match view.undo(granted) {
                        0 => {
                            reached("undo after a change returns nothing");
                            ledger.grants[key].push(granted);
                        }
                        back => assert_eq!(back, granted.n(), "two quotas are mixed"),
                    }
                }
            }
            _ => ledger.enter(key, 1, view.try_acquire()),
        }
    }
}

fn changed<const IDLES: bool>(size: Size) {
    let plans = [LIMITS[2], LIMITS[1]].map(Watched::<IDLES>::of);
    let plans = plans.into_iter().take(size.plans as usize);
    let limiter = Arc::new(table(plans, size.slots, Overflow::Deny));
    let threads = size.setters + size.deciders;
    let told = on_threads(threads, &limiter, move |limiter, number| {
        let mut ledger = Ledger::default();
        if number < size.setters {
            sets(limiter, size);
            return (ledger, 0);
        }
        let before = size.stops.filter(|_| number == size.setters);
        let stopped = stops(before, || decides(limiter, size, &mut ledger));
        (ledger, usize::from(stopped))
    });
    let (ledger, stopped): (Vec<_>, Vec<_>) = told.into_iter().unzip();
    check(&limiter, &Ledger::of_all(ledger), stopped.into_iter().sum());
}

fn check<const IDLES: bool>(limiter: &Tested<IDLES>, ledger: &Ledger<KEYS>, stopped: usize) {
    let stats = limiter.stats();
    if stats.expired > 0 {
        reached("an idle key expired");
    }
    check_table::<_, KEYS>(limiter, stopped);
    // A key is fresh each time it enters the table. Unless idle keys become fresh again, its
    // permits only decrease from there.
    let fresh = |key: usize| {
        let left = limiter.key(&key).at(NOW).available();
        assert!(left <= HIGHEST, "two quotas are mixed: {left} left");
        let mut grants = ledger.grants[key].iter();
        let is_wrong = grants.any(|granted| granted.n() == WRONG);
        assert!(!is_wrong, "two quotas are mixed");
        ledger.held(key).div_ceil(HIGHEST)
    };
    let fresh: u64 = (0..KEYS).map(fresh).sum();
    assert!(IDLES || fresh <= stats.inserted, "permits were created");
}

const MIXED: &str = "two quotas are mixed | permits were created | the statistics do not add up";

#[test]
fn nothing_is_mixed() {
    let name = "keyed_quota::nothing_is_mixed";
    let all = ["undo after a change returns nothing"];
    model(name, 3_000, &all, || changed::<false>(MANY));
    let few = format!("{name}, few");
    model(&few, 6_000, &[], || changed::<false>(FEW));
    let two = format!("{name}, two plans");
    model(&two, 3_000, &[], || changed::<false>(PLANS));
    // A fresh key's word is always 0, so versions must not repeat here either.
    let idle = Size { slots: 2, ..PLANS };
    let (two, all) = (format!("{two}, idle"), ["an idle key expired"]);
    model(&two, 3_000, &all, move || changed::<true>(idle));
    let faults = [
        Fault::Idle(source::migrate()),
        Fault::Idle(source::release()),
        Fault::ReadsUnchecked,
    ];
    with_faults(name, faults, MIXED, || changed::<false>(FEW));
    let undoes = [Fault::UndoesOldMarks];
    with_faults(name, undoes, MIXED, || changed::<false>(MANY));
    let why = format!("{MIXED} | exceeded max_steps | a claim remains");
    stored(name, &why, || changed::<false>(MANY));
}

#[test]
fn a_stopped_thread_stops_no_other() {
    let size = Size {
        stops: Some(150),
        ..PLANS
    };
    let name = "keyed_quota::a_stopped_thread_stops_no_other";
    let all = ["a thread stops"];
    model(name, 3_000, &all, move || changed::<false>(size));
}
