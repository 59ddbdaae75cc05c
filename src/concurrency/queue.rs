//! The line of waiters.
//!
//! Everything here happens under one lock. While no caller waits, entering and leaving don't take
//! it. Two invariants hold whenever the lock is free:
//!
//! - The word's flag is set if and only if a waiter stands in line.
//! - The first waiter does not fit, or a thread that made room is on its way to the lock. This
//!   holds because the flag is set by exchanging a word without room: a thread that makes room
//!   later sees the flag in the very word that it changes.
//!
//! To let a waiter in, a thread counts it in the word and then removes it from the line. So a
//! ticket that is neither in line nor refused belongs to a waiter that is inside, and that is how
//! the waiter learns of it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::PoisonError;
use std::task::{Poll, Waker};
use std::vec::Vec;

use super::Concurrency;
use super::word::WAITING;
use crate::outcome::Denied;
use crate::sync::Ordering::Relaxed;
use crate::sync::{MutexGuard, inject_fault};

/// A place in line: lower tickets are earlier.
pub(crate) type QueueTicket = u64;

struct Waiter {
    n: u64,
    waker: Waker,
}

/// The waiters in line.
#[derive(Default)]
pub(super) struct WaitQueue {
    next: QueueTicket,
    waiting: BTreeMap<QueueTicket, Waiter>,
    /// The permits that those in `waiting` wait for.
    permits: u64,
    /// Waiters that were refused because the limit was lowered, with that limit, until they learn
    /// of it.
    refused: BTreeMap<QueueTicket, u64>,
}

/// The result of asking to enter.
pub(super) enum Enqueued {
    Inside,
    Waits(QueueTicket),
    Refused(Denied),
}

/// The state in which a waiter gave up.
pub(super) enum GaveUp {
    /// It had been let in, and is inside.
    Inside,
    /// The next waiters may fit.
    Waiting(LetIn),
    /// This limit had refused it.
    Refused(u64),
}

/// The wakers of waiters that learn of their answer. Dropping it wakes all, even if one panics. The
/// panic resumes at the end.
#[must_use = "dropping it wakes the waiters"]
pub(crate) struct LetIn(Vec<Waker>);

impl WaitQueue {
    fn push(&mut self, n: u64, waker: Waker) -> QueueTicket {
        let ticket = self.next;
        // At one ticket per nanosecond, this takes five centuries to wrap.
        self.next = ticket.wrapping_add(1);
        self.waiting.insert(ticket, Waiter { n, waker });
        // No waiter weighs more than `MAX_CONCURRENCY`, so this does not wrap.
        self.permits = self.permits.wrapping_add(n);
        ticket
    }

    /// Removes a waiter, whose permits then wait no longer.
    fn remove(&mut self, ticket: QueueTicket) -> Option<Waiter> {
        let waiter = self.waiting.remove(&ticket)?;
        self.permits = self.permits.wrapping_sub(waiter.n);
        Some(waiter)
    }

    /// Returns the first waiter in line, and its weight.
    fn first(&self) -> Option<(QueueTicket, u64)> {
        let first = self.waiting.first_key_value();
        first.map(|(ticket, waiter)| (*ticket, waiter.n))
    }

    fn is_first(&self, ticket: QueueTicket) -> bool {
        self.first().is_some_and(|(first, _)| first == ticket)
    }

    /// Removes all waiters that weigh more than `limit`, and returns their wakers.
    fn refuse_above(&mut self, limit: u64) -> Vec<Waker> {
        let heavy = self.waiting.iter().filter(|(_, waiter)| waiter.n > limit);
        let heavy: Vec<QueueTicket> = heavy.map(|(ticket, _)| *ticket).collect();
        self.refused
            .extend(heavy.iter().map(|ticket| (*ticket, limit)));
        let waiters = heavy.iter().filter_map(|ticket| self.remove(*ticket));
        waiters.map(|waiter| waiter.waker).collect()
    }
}

/// Operations on the line. No waker is woken, cloned or dropped under the lock: that runs an
/// executor's code, which may drop a guard and so take the lock.
impl Concurrency {
    pub(super) fn line(&self) -> MutexGuard<'_, WaitQueue> {
        // No code that can panic leaves the line half changed.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a denial if a weight of `n` does not fit into this line any more.
    fn check_line(&self, line: &WaitQueue, n: u64) -> Result<(), Denied> {
        let (waiting, max) = (line.permits, self.max_waiting_permits);
        match n <= max.saturating_sub(waiting) {
            true => Ok(()),
            false => Err(Denied::line_full(n, waiting, max)),
        }
    }

    /// Enters at once if that is possible; otherwise takes the last place in line, unless the line
    /// is full.
    pub(super) fn stand_in_line(&self, n: u64, waker: Waker) -> Enqueued {
        let mut line = self.line();
        let mut word = self.load();
        loop {
            if n > word.limit() {
                return Enqueued::Refused(word.denied(n));
            }
            let has_room = word.has_room(n);
            if word.somebody_waits() || !has_room {
                if let Err(denied) = self.check_line(&line, n) {
                    return Enqueued::Refused(denied);
                }
            }
            // Only a thread that holds the lock changes the flag.
            if word.somebody_waits() {
                return Enqueued::Waits(line.push(n, waker));
            }
            let next = match has_room {
                true => word.with_inside(n),
                false => word.with_waiting(true),
            };
            match self.exchange(word, next) {
                Ok(()) if has_room => return Enqueued::Inside,
                Ok(()) => return Enqueued::Waits(line.push(n, waker)),
                Err(seen) => word = seen,
            }
        }
    }

    /// Tries to enter with a weight of `n`. A caller that must wait gets a ticket, with which it
    /// asks again. The thread that lets it in wakes this waker.
    pub(crate) fn ask(
        &self,
        n: u64,
        ticket: &mut Option<QueueTicket>,
        waker: &Waker,
    ) -> Poll<Result<(), Denied>> {
        let asked = match *ticket {
            Some(ticket) => self.look(ticket, n, waker.clone()),
            None => match self.take(n, false) {
                Ok(()) => Enqueued::Inside,
                Err(denied) if denied.is_permanent() => Enqueued::Refused(denied),
                Err(_) => self.stand_in_line(n, waker.clone()),
            },
        };
        let answer;
        (*ticket, answer) = match asked {
            Enqueued::Inside => (None, Poll::Ready(Ok(()))),
            Enqueued::Refused(denied) => (None, Poll::Ready(Err(denied))),
            Enqueued::Waits(ticket) => (Some(ticket), Poll::Pending),
        };
        answer
    }

    /// Leaves, or gives up a place in line and any room that came with it meanwhile. Dropping the
    /// answer wakes the next waiters.
    pub(crate) fn quit(&self, n: u64, ticket: Option<QueueTicket>, is_inside: bool) -> LetIn {
        let leaves = match ticket.map(|ticket| self.give_up(ticket)) {
            Some(GaveUp::Waiting(let_in)) => return let_in,
            Some(GaveUp::Inside) => true,
            _ => is_inside,
        };
        LetIn(match leaves && self.subtract(n) {
            true => self.hand_over(&mut self.line()),
            false => Vec::new(),
        })
    }

    /// Checks whether this waiter still waits. If so, replaces its waker.
    pub(super) fn look(&self, ticket: QueueTicket, n: u64, mut waker: Waker) -> Enqueued {
        let mut line = self.line();
        if let Some(waiter) = line.waiting.get_mut(&ticket) {
            // The old waker is dropped after the lock.
            core::mem::swap(&mut waiter.waker, &mut waker);
            return Enqueued::Waits(ticket);
        }
        match line.refused.remove(&ticket) {
            Some(limit) => Enqueued::Refused(Denied::never(n, limit)),
            None => Enqueued::Inside,
        }
    }

    /// Gives up a place in line.
    pub(super) fn give_up(&self, ticket: QueueTicket) -> GaveUp {
        let mut line = self.line();
        let was_first = line.is_first(ticket);
        let Some(waiter) = line.remove(ticket) else {
            return match line.refused.remove(&ticket) {
                Some(limit) => GaveUp::Refused(limit),
                None if inject_fault!(KeepsWhatWasHanded) => GaveUp::Refused(0), // FAULT
                None => GaveUp::Inside,
            };
        };
        let keeps = inject_fault!(KeepsItsPermits); // FAULT
        if keeps {
            line.permits = line.permits.wrapping_add(waiter.n);
        }
        self.note_emptied(&line);
        // The next waiter may need less.
        let let_in = match was_first {
            true => self.hand_over(&mut line),
            false => Vec::new(),
        };
        drop(line);
        drop(waiter);
        GaveUp::Waiting(LetIn(let_in))
    }

    /// Lets in the first waiters for as long as there is room.
    #[cold]
    #[inline(never)]
    pub(super) fn let_in(&self) {
        let let_in = LetIn(self.hand_over(&mut self.line()));
        drop(let_in);
    }

    /// Lets in the first waiters like [`let_in`](Self::let_in), but returns their wakers instead of
    /// waking them: all have their room before any waker runs.
    fn hand_over(&self, line: &mut WaitQueue) -> Vec<Waker> {
        let mut let_in = Vec::new();
        let lets_none_in = inject_fault!(LetsNoneIn); // FAULT
        loop {
            let others = line.waiting.len() > 1;
            let Some((first, n)) = line.first() else {
                return let_in;
            };
            let mut word = self.load();
            loop {
                if lets_none_in || !word.has_room(n) {
                    return let_in;
                }
                match self.exchange(word, word.with_inside(n).with_waiting(others)) {
                    Ok(()) => break,
                    Err(seen) => word = seen,
                }
            }
            let_in.extend(line.remove(first).map(|waiter| waiter.waker));
        }
    }

    /// Sets the limit, which must be valid, and returns the previous one.
    pub(super) fn change_limit(&self, limit: u64) -> u64 {
        let mut line = self.line();
        let mut word = self.load();
        while let Err(seen) = self.exchange(word, word.with_limit(limit)) {
            word = seen;
        }
        let lowered = limit < word.limit() && !inject_fault!(LowersSilently); // FAULT
        let mut awake = match lowered {
            true => line.refuse_above(limit),
            false => Vec::new(),
        };
        self.note_emptied(&line);
        awake.extend(self.hand_over(&mut line));
        drop(line);
        drop(LetIn(awake));
        word.limit()
    }

    /// Clears the flag if the line is empty, after a waiter was removed.
    fn note_emptied(&self, line: &WaitQueue) {
        if line.waiting.is_empty() {
            // ORDERING: Relaxed. It publishes nothing, and only a thread that holds the lock sets
            // the flag again.
            self.word.fetch_and(!WAITING, Relaxed);
        }
    }

    /// Returns how many stand in line, and for how many permits.
    pub(super) fn standing(&self) -> (usize, u64) {
        if !self.load().somebody_waits() {
            return (0, 0);
        }
        let line = self.line();
        (line.waiting.len(), line.permits)
    }
}

impl Drop for LetIn {
    fn drop(&mut self) {
        let mut panicked = None;
        for waker in self.0.drain(..) {
            let woken = catch_unwind(AssertUnwindSafe(|| waker.wake()));
            panicked = woken.err().or(panicked);
        }
        if let Some(panic) = panicked {
            resume_unwind(panic);
        }
    }
}
