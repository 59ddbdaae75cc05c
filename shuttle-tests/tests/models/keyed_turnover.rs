//! Six keys in tables of two and four slots, at ticks that differ between threads. Keys expire, are
//! evicted, are removed, and return. Each key keeps its bound over the ticks at which its grants
//! are counted, except that it starts fresh after each eviction or removal. Some models stop
//! threads forever in the middle: then all other threads still end, and later callers find a slot.

use tollgate_shuttle_tests::prelude::*;

/// The size of a model.
#[derive(Debug, Clone, Copy)]
struct Size {
    slots: usize,
    overflow: Overflow,
    threads: u64,
    calls: u64,
    keys: u64,
    /// Whether threads remove keys.
    forgets: bool,
    /// How many threads stop forever.
    stop: u64,
}

/// Four threads of eight calls on six keys. Keys leave the table only when they are idle.
const IDLE: Size = Size {
    slots: 2,
    overflow: Overflow::Deny,
    threads: 4,
    calls: 8,
    keys: 6,
    forgets: false,
    stop: 0,
};
/// Keys are evicted and removed too.
const ALL: Size = Size {
    overflow: Overflow::Evict,
    forgets: true,
    ..IDLE
};
/// Three threads of four calls on three keys, for faults that need few steps at the right places.
const FEW: Size = Size {
    threads: 3,
    calls: 4,
    keys: 3,
    ..IDLE
};
/// Two of five threads stop.
const STOP: Size = Size {
    threads: 5,
    stop: 2,
    ..ALL
};

const KEYS: usize = 6;
const PROMISE: Promise = Promise {
    burst: 2,
    permits: 1,
    period: 4,
};
/// A tick at which all keys are idle, and the time after which they are idle again.
const LATER: u64 = 10_000;

type Tested = Table<TokenBucket>;

fn limiter(size: Size) -> Arc<Tested> {
    let quota = Quota::per(PROMISE.permits, Duration::from_nanos(PROMISE.period));
    let bucket = TokenBucket::new(quota.burst(PROMISE.burst)).expect("a quota");
    Arc::new(table([bucket], size.slots, size.overflow))
}

/// Takes permits of all keys, and sometimes removes one. Its time advances by itself.
fn goes_on(limiter: &Tested, size: Size, ledger: &mut Ledger<KEYS>) {
    let mut now = 100 + below(12);
    for _ in 0..size.calls {
        now += below(5);
        let (key, at) = (below(size.keys) as usize, Tick::from_nanos(now));
        let view = limiter.key(&key).at(at);
        match below(8) {
            0 if size.forgets => ledger.removed[key] += u64::from(limiter.key(&key).remove()),
            0 => ledger.batch(limiter, [key, below(size.keys) as usize], at),
            1 => assert!(view.available() <= PROMISE.burst),
            2 => ledger.enter(key, 2, view.try_acquire_n(2)),
            _ => ledger.enter(key, 1, view.try_acquire()),
        }
    }
}

fn turnover(size: Size) {
    let limiter = limiter(size);
    let told = on_threads(size.threads, &limiter, move |limiter, number| {
        let before = (number < size.stop).then_some(80);
        let mut ledger = Ledger::default();
        let stopped = stops(before, || goes_on(limiter, size, &mut ledger));
        (ledger, usize::from(stopped))
    });
    let (ledger, stopped): (Vec<_>, Vec<_>) = told.into_iter().unzip();
    let stopped = stopped.into_iter().sum();
    check(&limiter, &Ledger::of_all(ledger), stopped);
    for key in 0..KEYS {
        let later = Tick::from_nanos(LATER * (key as u64 + 1));
        let has_come = limiter.key(&key).at(later).try_acquire().is_ok();
        assert!(has_come, "no room for a later caller");
    }
    check_table::<_, KEYS>(&limiter, stopped);
}

fn check(limiter: &Tested, ledger: &Ledger<KEYS>, stopped: usize) {
    let stats = limiter.stats();
    for (count, what) in [
        (limiter.claims() as u64, "a claim remains"),
        (stats.expired, "an idle key expired"),
        (stats.evicted, "evicted"),
        (stats.removed, "removed"),
        (stats.no_room, "no room"),
    ] {
        if count > 0 {
            reached(what);
        }
    }
    check_table::<_, KEYS>(limiter, stopped);
    // The statistics count removals of stopped threads, which the record lacks.
    let untold = stats.removed - ledger.removed.iter().sum::<u64>();
    let is_told = (untold, ledger.no_room) == (0, stats.no_room);
    assert!(
        is_told || stopped > 0,
        "the statistics and the record differ: {stats:?}"
    );
    let evicted = |key: usize| {
        let losses = PROMISE.losses(&ledger.grants[key]);
        losses.saturating_sub(ledger.removed[key])
    };
    let evicted: u64 = (0..KEYS).map(evicted).sum();
    assert!(evicted <= stats.evicted + untold, "more than was promised");
}

/// The messages of a table that grants too much or loses a slot.
const WRONG: &str = "more than was promised | a key has two slots | the statistics do not add up | a claim remains | no room";

#[test]
fn idle_keys_leave() {
    let name = "keyed_turnover::idle_keys_leave";
    let all = ["an idle key expired", "no room"];
    let four = Size { slots: 4, ..IDLE };
    model(name, 5_000, &all, || turnover(IDLE));
    let of_four = format!("{name}, 4 slots");
    model(&of_four, 5_000, &all, move || turnover(four));
    model(&format!("{name}, few"), 10_000, &all, || turnover(FEW));
    let faults = [
        Fault::LooksOnce,
        Fault::TakesWhoIsBusy,
        Fault::RaisesAfterwards,
        Fault::Zero(source::horizon()),
        Fault::Blind(source::release()),
    ];
    with_faults(name, faults, WRONG, || turnover(IDLE));
    stored(name, WRONG, || turnover(IDLE));
}

#[test]
fn keys_are_evicted_and_forgotten() {
    let name = "keyed_turnover::keys_are_evicted_and_forgotten";
    let all = ["an idle key expired", "evicted", "removed"];
    let four = Size { slots: 4, ..ALL };
    model(name, 5_000, &all, || turnover(ALL));
    let of_four = format!("{name}, 4 slots");
    model(&of_four, 5_000, &all, move || turnover(four));
    with_faults(name, [Fault::SkipsByFree], WRONG, move || turnover(four));
}

#[test]
fn a_stopped_thread_stops_no_other() {
    let name = "keyed_turnover::a_stopped_thread_stops_no_other";
    let all = [
        "a thread stops",
        "a claim remains",
        "an idle key expired",
        "evicted",
    ];
    let denies = Size {
        slots: 4,
        overflow: Overflow::Deny,
        ..STOP
    };
    model(name, 5_000, &all, || turnover(STOP));
    let denied = format!("{name}, 4 slots, denied");
    model(&denied, 5_000, &all[..3], move || turnover(denies));
    let why = "no room for a later caller";
    with_faults(name, [Fault::WaitsForClaims], why, move || turnover(denies));
}
