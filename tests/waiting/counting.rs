//! A clock that counts its readings, and a gate that keeps an account.

use std::future::Future;
use std::sync::Mutex;

use std::time::Duration;

use tollgate::primitive::{AtomicU64, Ordering};
use tollgate::{
    Charged, Clock, DebtGate, Denied, Gate, GiveBackGate, Granted, ManualClock, ReserveGate,
    Sleeps, Tick, Timer,
};

/// A manual clock whose readings are counted.
#[derive(Debug, Clone)]
pub(crate) struct Counting<'c> {
    pub(crate) clock: ManualClock,
    pub(crate) readings: &'c Readings,
}

/// How often a clock was read.
#[derive(Debug, Default)]

pub(crate) struct Readings(AtomicU64);

impl Readings {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn one_more(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Clock for Counting<'_> {
    fn now(&self) -> Tick {
        self.readings.one_more();
        self.clock.now()
    }
}

impl Sleeps for Counting<'_> {
    fn sleep_until(&self, due: Tick, now: Tick) -> Tick {
        // What it says when somebody wakes is a reading.
        self.readings.one_more();
        self.clock.sleep_until(due, now)
    }
}

impl Timer for Counting<'_> {
    type Sleep = <ManualClock as Timer>::Sleep;

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        self.clock.sleep(duration)
    }
}

/// Where permits went.
#[derive(Debug, Default, Clone)]
pub(crate) struct Account {
    pub(crate) reserved: u64,
    pub(crate) came_back: u64,
    pub(crate) lost: u64,
    /// Of each reservation when it was due, in the order in which they were made.
    pub(crate) dues: Vec<Tick>,
}

/// A gate that keeps an account of what is reserved and cancelled.
#[derive(Debug, Default)]
pub(crate) struct Audited<G> {
    pub(crate) gate: G,
    pub(crate) account: Mutex<Account>,
}

impl<G> Audited<G> {
    pub(crate) fn new(gate: G) -> Self {
        Self {
            gate,
            account: Mutex::new(Account::default()),
        }
    }

    pub(crate) fn account(&self) -> Account {
        self.account.lock().expect("nobody panicked").clone()
    }
}

impl<G: Gate> Gate for Audited<G> {
    type Clock = G::Clock;

    fn clock(&self) -> &G::Clock {
        self.gate.clock()
    }

    fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        self.gate.try_acquire_n_at(n, now)
    }

    fn take_up_to_at(&self, n: u64, now: Tick) -> Granted {
        self.gate.take_up_to_at(n, now)
    }

    fn available_at(&self, now: Tick) -> u64 {
        self.gate.available_at(now)
    }
}

impl<G: GiveBackGate> GiveBackGate for Audited<G> {
    fn undo_at(&self, granted: Granted, now: Tick) -> u64 {
        self.gate.undo_at(granted, now)
    }

    fn refund_at(&self, n: u64, now: Tick) -> u64 {
        self.gate.refund_at(n, now)
    }
}

impl<G: DebtGate> DebtGate for Audited<G> {
    fn charge_at(&self, n: u64, now: Tick) -> Charged {
        self.gate.charge_at(n, now)
    }
}

impl<G: ReserveGate> ReserveGate for Audited<G> {
    fn reserve_until_at(&self, n: u64, latest: Tick, now: Tick) -> Result<Granted, Denied> {
        let granted = self.gate.reserve_until_at(n, latest, now)?;
        let mut account = self.account.lock().expect("nobody panicked");
        account.reserved += n;
        account.dues.push(granted.due());
        Ok(granted)
    }

    fn waiting_at(&self, now: Tick) -> u64 {
        self.gate.waiting_at(now)
    }

    fn cancel_at(&self, granted: Granted, n: u64, now: Tick) -> (Granted, u64) {
        let (kept, back) = self.gate.cancel_at(granted, n, now);
        let mut account = self.account.lock().expect("nobody panicked");
        account.came_back += back;
        account.lost += n - back;
        (kept, back)
    }
}

/// Moves the clock from one who sleeps to the next until `done`; who is not asleep is given time to get there.
pub(crate) fn run_until(clock: &ManualClock, mut done: impl FnMut() -> bool) {
    while !done() {
        match clock.next_sleeper() {
            Some(tick) => clock.set(tick.max(clock.now())),
            None => std::thread::yield_now(),
        }
    }
}

/// Polls a future once, with a waker that does nothing.
pub(crate) fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.poll(&mut context) {
        std::task::Poll::Ready(done) => Some(done),
        std::task::Poll::Pending => None,
    }
}
