//! The slots that a node has leased of a key: the node never says that it keeps fewer than are in
//! use, and a slot comes back once, while callers enter and leave, grants are renewed or lapse, and
//! a task withdraws.

use std::sync::atomic::Ordering;

use tollgate::sync::model::AtomicU64;
use tollgate_loom_tests::prelude::*;

#[allow(dead_code, reason = "a model does not need all")]
#[path = "../../../crates/tollgate-redis/src/lease/generations.rs"]
mod generations;
#[allow(dead_code, reason = "a model does not need all")]
#[path = "../../../crates/tollgate-redis/src/lease/slot_pool.rs"]
mod slot_pool;
#[allow(dead_code, reason = "a model does not need all")]
#[path = "../../../crates/tollgate-redis/src/lease/slots_held.rs"]
mod slots_held;

use slot_pool::SlotPool;

/// The atomics of a pool.
mod sync {
    pub(super) use std::sync::atomic::Ordering;
    pub(super) use tollgate::sync::model::AtomicU64;
}

/// A tick at which the node's lease ends, far away.
const END_NS: u64 = 1 << 40;

/// The lease of a slot. A generation that began at 0 has lapsed after twice of it.
const LEASE_NS: u64 = 8000;
const LATE_NS: u64 = 2 * LEASE_NS;

fn pool(idle: u64) -> SlotPool {
    let pool = SlotPool::new(LEASE_NS);
    let _ = pool.answered(0, 0, idle, END_NS, 1);
    pool
}

/// Slots that are idle or in use.
trait Keeps: Send + Sync + 'static {
    /// Returns two idle slots.
    fn new() -> Self;
    fn enter(&self) -> bool;
    fn leave(&self);
    /// Takes out what is idle, and returns how many slots the node then says it keeps.
    fn withdraw(&self) -> u64;
    fn idle(&self) -> u64;
}

impl Keeps for SlotPool {
    fn new() -> Self {
        pool(2)
    }

    fn enter(&self) -> bool {
        let entered = SlotPool::enter(self, 0, 1);
        entered.is_some_and(|entered| self.adopt(entered.generation, 1))
    }

    fn leave(&self) {
        assert_eq!(SlotPool::leave(self, 0, 1), 1);
    }

    fn withdraw(&self) -> u64 {
        SlotPool::withdraw(self, 0, 0).0
    }

    fn idle(&self) -> u64 {
        self.held().at(0).1
    }
}

/// Broken: two words, whatever the order of the steps.
struct TwoWords<const ENTERS_LATE: bool, const LEAVES_EARLY: bool, const READS_EARLY: bool> {
    idle: AtomicU64,
    in_use: AtomicU64,
}

impl<const ENTERS_LATE: bool, const LEAVES_EARLY: bool, const READS_EARLY: bool>
    TwoWords<ENTERS_LATE, LEAVES_EARLY, READS_EARLY>
{
    fn take(&self) -> bool {
        let mut idle = self.idle.load(Ordering::SeqCst);
        while let Some(left) = idle.checked_sub(1) {
            let exchanged =
                self.idle
                    .compare_exchange(idle, left, Ordering::SeqCst, Ordering::SeqCst);
            match exchanged {
                Ok(_) => return true,
                Err(seen) => idle = seen,
            }
        }
        false
    }
}

impl<const ENTERS_LATE: bool, const LEAVES_EARLY: bool, const READS_EARLY: bool> Keeps
    for TwoWords<ENTERS_LATE, LEAVES_EARLY, READS_EARLY>
{
    fn new() -> Self {
        Self {
            idle: AtomicU64::new(2),
            in_use: AtomicU64::new(0),
        }
    }

    fn enter(&self) -> bool {
        if ENTERS_LATE {
            let taken = self.take();
            self.in_use.fetch_add(taken.into(), Ordering::SeqCst);
            return taken;
        }
        self.in_use.fetch_add(1, Ordering::SeqCst);
        let taken = self.take();
        self.in_use.fetch_sub((!taken).into(), Ordering::SeqCst);
        taken
    }

    fn leave(&self) {
        if LEAVES_EARLY {
            self.in_use.fetch_sub(1, Ordering::SeqCst);
            self.idle.fetch_add(1, Ordering::SeqCst);
        } else {
            self.idle.fetch_add(1, Ordering::SeqCst);
            self.in_use.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn withdraw(&self) -> u64 {
        if READS_EARLY {
            let in_use = self.in_use.load(Ordering::SeqCst);
            self.idle.swap(0, Ordering::SeqCst);
            return in_use;
        }
        self.idle.swap(0, Ordering::SeqCst);
        self.in_use.load(Ordering::SeqCst)
    }

    fn idle(&self) -> u64 {
        self.idle.load(Ordering::SeqCst)
    }
}

/// Two slots are idle. A caller enters, another one enters and leaves, and the task withdraws. The
/// server gives what the node does not keep to others.
fn is_kept<K: Keeps>(run: &mut Run) {
    run.explore(|layout| {
        let slots = Arc::new(K::new());
        let (one, other, task) = (Arc::clone(&slots), Arc::clone(&slots), Arc::clone(&slots));
        let (inside, kept) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (entered, told) = (Arc::clone(&inside), Arc::clone(&kept));
        let actors = vec![
            actor(move || {
                entered.fetch_add(one.enter().into(), Ordering::Relaxed);
            }),
            actor(move || {
                if other.enter() {
                    other.leave();
                }
            }),
            actor(move || {
                told.fetch_add(task.withdraw(), Ordering::Relaxed);
            }),
        ];
        layout.act(actors);
        let (inside, kept) = (inside.load(Ordering::Relaxed), kept.load(Ordering::Relaxed));
        let holds = inside + slots.idle();
        assert!(holds <= kept, "{holds} slots are held, of {kept}");
    });
}

#[test]
fn a_node_keeps_what_it_says() {
    model(
        "node_slots::a_node_keeps_what_it_says",
        Some(3),
        is_kept::<SlotPool>,
    );
    let held = "slots are held";
    // A slot that becomes idle between the two steps of the task is in neither count.
    let name = "node_slots::withdraws and then reads what is in use";
    broken(
        name,
        held,
        Some(3),
        is_kept::<TwoWords<false, false, false>>,
    );
    let name = "node_slots::takes a slot before it is in use";
    broken(name, held, Some(3), is_kept::<TwoWords<true, false, false>>);
    let name = "node_slots::is no longer in use before it is idle";
    broken(name, held, Some(3), is_kept::<TwoWords<false, true, false>>);
    let name = "node_slots::reads what is in use before it withdraws";
    broken(name, held, Some(3), is_kept::<TwoWords<false, false, true>>);
}

/// Slots with generations.
trait Returns: Send + Sync + 'static {
    fn new(pool: SlotPool) -> Self;
    fn pool(&self) -> &SlotPool;
    fn give(&self, generation: u64) -> u64;
}

impl Returns for SlotPool {
    fn new(pool: SlotPool) -> Self {
        pool
    }

    fn pool(&self) -> &SlotPool {
        self
    }

    fn give(&self, generation: u64) -> u64 {
        SlotPool::give(self, LATE_NS, generation, 1)
    }
}

/// Broken: a slot is idle before it is taken out of its generation.
struct LeavesFirst(SlotPool);

impl Returns for LeavesFirst {
    fn new(pool: SlotPool) -> Self {
        Self(pool)
    }

    fn pool(&self) -> &SlotPool {
        &self.0
    }

    fn give(&self, generation: u64) -> u64 {
        let left = self.0.leave(LATE_NS, 1);
        let _ = self.0.adopt(generation, 1);
        left
    }
}

/// Two slots are in use: one of a guard, and one of a grant that lapses while it is given back.
fn comes_back_once<R: Returns>(run: &mut Run) {
    run.explore(|layout| {
        let slots = pool(2);
        let guard = slots.enter(0, 1).expect("a slot");
        assert!(slots.adopt(guard.generation, 1));
        let grant = slots.enter(0, 1).expect("a slot").generation;
        let slots = Arc::new(R::new(slots));
        let (caller, task) = (Arc::clone(&slots), Arc::clone(&slots));
        let actors = vec![
            actor(move || _ = caller.give(grant)),
            actor(move || task.pool().lapse(LATE_NS)),
        ];
        layout.act(actors);
        let (in_use, idle) = slots.pool().held().at(LATE_NS);
        assert_eq!((in_use, idle), (1, 1), "the guard's is in use");
    });
}

/// A grant is renewed while it lapses: it is in use if it was renewed, and then comes back.
fn is_renewed_or_lapses(run: &mut Run) {
    run.explore(|layout| {
        let slots = Arc::new(pool(1));
        let grant = slots.enter(0, 1).expect("a slot").generation;
        let renewed = Arc::new(AtomicU64::new(0));
        let (caller, task, by_caller) =
            (Arc::clone(&slots), Arc::clone(&slots), Arc::clone(&renewed));
        let actors = vec![
            actor(move || {
                let generation = caller.renew(LATE_NS, grant, 1);
                by_caller.store(generation.unwrap_or(0), Ordering::Relaxed);
            }),
            actor(move || task.lapse(LATE_NS)),
        ];
        layout.act(actors);
        let renewed = renewed.load(Ordering::Relaxed);
        let (in_use, _) = slots.held().at(LATE_NS);
        assert_eq!(in_use, u64::from(renewed > 0));
        assert_eq!(slots.give(LATE_NS, renewed, 1), in_use);
        assert_eq!(slots.held().at(LATE_NS), (0, 1));
    });
}

#[test]
fn a_slot_comes_back_once() {
    model(
        "node_slots::a_slot_comes_back_once",
        Some(3),
        comes_back_once::<SlotPool>,
    );
    broken(
        "node_slots::leaves before its generation",
        "is in use",
        Some(3),
        comes_back_once::<LeavesFirst>,
    );
    model(
        "node_slots::a_grant_is_renewed_or_lapses",
        Some(3),
        is_renewed_or_lapses,
    );
}

/// A caller enters while the task learns that the slot is lost: it does not enter, or its slot is
/// lost.
#[test]
fn a_lost_slot_is_in_use_by_no_one() {
    model(
        "node_slots::a_lost_slot_is_in_use_by_no_one",
        Some(3),
        |run| {
            run.explore(|layout| {
                let slots = Arc::new(pool(1));
                let (caller, task) = (Arc::clone(&slots), Arc::clone(&slots));
                let inside = Arc::new(AtomicU64::new(0));
                let entered = Arc::clone(&inside);
                let actors = vec![
                    actor(move || {
                        let is_in = caller.enter(0, 1).is_some();
                        entered.store(is_in.into(), Ordering::Relaxed);
                    }),
                    actor(move || _ = task.answered(0, 1, 0, END_NS, 1)),
                ];
                layout.act(actors);
                let is_in = inside.load(Ordering::Relaxed) == 1;
                assert_eq!(slots.is_lost(0), is_in);
                assert_eq!(slots.held().at(0), (0, 0));
            });
        },
    );
}
