//! Four threads insert the same new keys into tables of two and four slots, at one tick. Each key
//! is granted the lesser of its burst and its requests. At the end it has one slot, and no slot is
//! claimed. Other models remove or ban keys meanwhile.

use tollgate_shuttle_tests::prelude::*;

use crate::verbs::*;

const THREADS: u64 = 4;
const CALLS: u64 = 7;
const BURST: u64 = 3;
const PERIOD: u64 = 10;
const NOW: Tick = Tick::from_nanos(500);

type Tested = Table<TokenBucket>;

fn limiter(slots: usize, overflow: Overflow) -> Arc<Tested> {
    let quota = Quota::per(1, Duration::from_nanos(PERIOD)).burst(BURST);
    let bucket = TokenBucket::new(quota).expect("a quota");
    Arc::new(table([bucket], slots, overflow))
}

/// All threads take permits, singly or in batches.
fn same_keys<const SLOTS: usize, const KEYS: usize>() {
    let limiter = limiter(SLOTS, Overflow::Deny);
    let ledgers = on_threads(THREADS, &limiter, |limiter, _| takes::<KEYS>(limiter));
    let ledger = Ledger::of_all(ledgers);
    check_table::<_, KEYS>(&limiter, 0);
    assert_eq!(limiter.stats().no_room, 0, "a request found no room");
    for key in 0..KEYS {
        let (asked, held) = (ledger.asked[key], ledger.held(key));
        assert_eq!(held, asked.min(BURST), "not the burst, asked for {asked}");
        reached(if asked > BURST { "a burst" } else { "less" });
    }
}

fn takes<const KEYS: usize>(limiter: &Tested) -> Ledger<KEYS> {
    let mut ledger = Ledger::default();
    for _ in 0..1 + below(CALLS) {
        let key = below(KEYS as u64) as usize;
        match below(6) {
            0 => ledger.batch(limiter, [key, below(KEYS as u64) as usize], NOW),
            1 => {
                let (at, verb) = (limiter.key(&key).at(NOW), one_of(&Verb::taking(1)));
                let answer = ask!(at, verb, &mut None).outcome();
                let n = answer.as_ref().map_or(1, |granted| granted.n().max(1));
                ledger.enter(key, n, answer);
            }
            2 => assert!(limiter.key(&key).at(NOW).available() <= BURST),
            _ => ledger.enter(key, 1, limiter.key(&key).at(NOW).try_acquire()),
        }
    }
    ledger
}

/// Threads also undo grants and remove keys. Each removal allows one more burst, and so does each
/// eviction.
fn forgotten_keys<const SLOTS: usize, const KEYS: usize>(overflow: Overflow) {
    let limiter = limiter(SLOTS, overflow);
    let ledgers = on_threads(THREADS, &limiter, |limiter, _| {
        takes_and_forgets::<KEYS>(limiter)
    });
    let ledger = Ledger::of_all(ledgers);
    check_table::<_, KEYS>(&limiter, 0);
    let stats = limiter.stats();
    assert_eq!(stats.removed, ledger.removed.iter().sum::<u64>());
    let mut evicted = 0;
    for key in 0..KEYS {
        let (held, left) = (ledger.held(key), limiter.key(&key).at(NOW).available());
        let bursts = (held + left).div_ceil(BURST);
        evicted += bursts.saturating_sub(1 + ledger.removed[key]);
        if held > BURST {
            reached("more than a burst");
        }
    }
    if stats.evicted > 0 {
        reached("evicted");
    }
    assert!(evicted <= stats.evicted, "{evicted} bursts too many");
}

fn takes_and_forgets<const KEYS: usize>(limiter: &Tested) -> Ledger<KEYS> {
    let mut ledger = Ledger::<KEYS>::default();
    for _ in 0..CALLS {
        let key = below(KEYS as u64) as usize;
        let view = limiter.key(&key).at(NOW);
        match below(6) {
            0 => ledger.removed[key] += u64::from(limiter.key(&key).remove()),
            1 => {
                if let Some(granted) = ledger.grants[key].pop() {
                    match view.undo(granted) {
                        0 => ledger.grants[key].push(granted),
                        back => assert_eq!(back, granted.n()),
                    }
                }
            }
            _ => ledger.enter(key, 1, view.try_acquire()),
        }
    }
    ledger
}

/// Threads also ban keys. After a ban nothing is granted and nothing is returned.
fn banned_keys<const SLOTS: usize, const KEYS: usize>() {
    let until = Tick::from_nanos(NOW.as_nanos() + 1000);
    let limiter = limiter(SLOTS, Overflow::Deny);
    // The bans that were set. This is not part of the model.
    let banned = Mutex::new([false; KEYS]);
    let both = Arc::new((limiter, banned));
    on_threads(THREADS, &both, move |both, _| {
        takes_and_bans(&both.0, until, &both.1)
    });
    let (limiter, banned) = &*both;
    check_table::<_, KEYS>(limiter, 0);
    let banned = *banned.lock().unwrap_or_else(PoisonError::into_inner);
    for (key, _) in banned.into_iter().enumerate().filter(|(_, banned)| *banned) {
        let there = |at| limiter.key(&key).at(Tick::from_nanos(at)).available();
        let until = until.as_nanos();
        let actual = [there(until), there(until + PERIOD)];
        assert_eq!(actual, [0, 1], "a ban was lifted");
    }
}

fn takes_and_bans<const KEYS: usize>(limiter: &Tested, until: Tick, banned: &Mutex<[bool; KEYS]>) {
    let banned = || banned.lock().unwrap_or_else(PoisonError::into_inner);
    let mut held: [Vec<Granted>; KEYS] = [(); KEYS].map(|()| Vec::new());
    for _ in 0..CALLS {
        let key = below(KEYS as u64) as usize;
        let view = limiter.key(&key).at(NOW);
        let was_banned = banned()[key];
        let passed = match below(8) {
            0 => {
                view.ban(until).expect("there is room");
                banned()[key] = true;
                0
            }
            1 => held[key].pop().map_or(0, |granted| view.undo(granted)),
            2 => view.refund(1),
            3 => view.available(),
            4 => view.take_up_to(1).n(),
            _ => match view.try_acquire() {
                Ok(granted) => {
                    held[key].push(granted);
                    granted.n()
                }
                Err(_) => 0,
            },
        };
        if was_banned {
            reached("a key is banned");
            assert_eq!(passed, 0, "a ban was lifted");
        }
    }
}

const TWICE: &str = "not the burst | a key has two slots | a request found no room | the statistics do not add up | bursts too many";

#[test]
fn the_same_new_keys() {
    let name = "keyed::the_same_new_keys";
    let both = ["a burst", "less"];
    model(name, 5_000, &both, same_keys::<2, 2>);
    model(&format!("{name}, 4 slots"), 5_000, &both, same_keys::<4, 3>);
    with_faults(name, [Fault::WaitsForClaims], TWICE, same_keys::<2, 2>);
    stored(name, TWICE, same_keys::<2, 2>);
}

#[test]
fn forgotten_meanwhile() {
    let name = "keyed::forgotten_meanwhile";
    let (evict, deny) = (Overflow::Evict, Overflow::Deny);
    let more = ["more than a burst"];
    model(name, 5_000, &more, move || forgotten_keys::<2, 2>(deny));
    let four = format!("{name}, 4 slots");
    model(&four, 5_000, &more, move || forgotten_keys::<4, 3>(deny));
    let evicted = format!("{name}, or evicted");
    model(&evicted, 5_000, &["evicted"], move || {
        forgotten_keys::<2, 3>(evict)
    });
    let faults = [Fault::LooksOnce, Fault::Blind(source::release())];
    with_faults(name, faults, TWICE, move || forgotten_keys::<2, 2>(deny));
    let blindly = [Fault::Blind(source::decision())];
    with_faults(name, blindly, TWICE, move || forgotten_keys::<2, 3>(deny));
}

#[test]
fn banned_meanwhile() {
    let name = "keyed::banned_meanwhile";
    model(name, 5_000, &["a key is banned"], banned_keys::<2, 2>);
    let undoes = [Fault::UndoesOldMarks];
    with_faults(name, undoes, "a ban was lifted", banned_keys::<2, 2>);
}
