//! What one node does about all its leases: when it asks, and for how much. Nothing here waits, or
//! reads a clock, so a test drives it in virtual time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::lease::demand::{Demand, Fluctuation, Spending};
use crate::lease::holder::{Ask, Holder};
use crate::lease::hot::{Holding, Hot, HotKeys};
use crate::lease::stats::Counts;
use crate::lease::terms::Terms;
use crate::server::call::Leased;

/// At most this many messages are under way.
const AT_ONCE: usize = 128;

/// Messages are sent together, this often: 200 times a second.
const PACE_NS: u64 = 5_000_000;

/// After a failure, nothing is asked about a key for twice this, and after each further one for
/// twice as long as before, up to 64 times.
const BACKOFF_NS: u64 = 5_000_000;

/// A node that waits for its turn asks after this time at the latest: others may have returned
/// permits.
const LONGEST_PAUSE_NS: u64 = 1_000_000_000;

/// What the keeper knows of a key.
#[derive(Debug)]
struct Kept {
    hot: Arc<Hot>,
    holder: Holder,
    demand: Demand,
    /// What was there when the demand was noted before, with what came since, and when it was.
    had: u64,
    noted_ns: u64,
    /// Of a rate, what the server counts as out.
    out: u64,
    /// Whether a spender has asked for a draw since the latest message.
    is_told: bool,
    /// Whether the latest review has seen it.
    is_reviewed: bool,
    /// Whether the keeper's list has it.
    is_listed: bool,
    /// How many permits the latest answer brought.
    got: u64,
    /// How many messages in a row have failed.
    failures: u32,
    /// How many reviews in a row have found that no request came for the key.
    idle: u32,
    /// Whether a message is under way, and since when.
    sent_ns: Option<u64>,
}

/// All leases of a node.
#[derive(Debug)]
pub(crate) struct Keeper {
    terms: Terms,
    /// In an order that a seed reproduces.
    kept: BTreeMap<Box<[u8]>, Kept>,
    /// The keys that are to be looked at.
    list: Vec<Arc<Hot>>,
    in_flight: usize,
    /// Whether a message has failed since the latest answer.
    has_failed: bool,
    /// No message is sent before this.
    send_at_ns: u64,
    review_at_ns: u64,
    cool_at_ns: u64,
    turnaround_ns: u64,
}

/// A message that is to be sent.
#[derive(Debug)]
pub(crate) struct Send {
    pub(crate) hot: Arc<Hot>,
    pub(crate) ask: Ask,
}

impl Keeper {
    pub(crate) fn new(terms: Terms) -> Self {
        Self {
            terms,
            kept: BTreeMap::new(),
            list: Vec::new(),
            in_flight: 0,
            has_failed: false,
            send_at_ns: 0,
            review_at_ns: 0,
            cool_at_ns: 0,
            turnaround_ns: 0,
        }
    }

    /// Returns when the keeper is to be asked again at the latest.
    pub(crate) fn next_ns(&self) -> u64 {
        let waiting = self.list.iter().filter(|hot| {
            let kept = self.kept.get(&hot.user);
            kept.is_some_and(|kept| kept.is_wanted() && kept.sent_ns.is_none())
        });
        // With as many messages under way as may be, the next answer wakes the keeper.
        let next = match self.in_flight < AT_ONCE {
            true => waiting.map(|hot| hot.pause_until_ns()).min(),
            false => None,
        };
        let next = next.unwrap_or(u64::MAX).min(self.review_at_ns);
        next.max(self.send_at_ns)
    }

    /// Returns the messages that are to be sent now.
    pub(crate) fn messages(&mut self, keys: &HotKeys, counts: &Counts, now_ns: u64) -> Vec<Send> {
        for hot in keys.told() {
            // One that was removed has a successor, or will have one.
            if !keys.has(&hot) {
                continue;
            }
            let kept = self.kept.entry(hot.user.clone()).or_insert_with(|| Kept {
                hot,
                holder: Holder::default(),
                demand: Demand::default(),
                had: 0,
                out: 0,
                noted_ns: now_ns,
                is_told: false,
                is_reviewed: true,
                is_listed: false,
                got: 0,
                failures: 0,
                idle: 0,
                sent_ns: None,
            });
            kept.is_told = true;
            kept.list(&mut self.list);
        }
        if now_ns >= self.review_at_ns {
            self.review_at_ns = now_ns.saturating_add(self.terms.review_ns);
            for kept in self.kept.values_mut() {
                if let Some(slots) = kept.hot.slots() {
                    slots.pool.lapse(now_ns);
                }
                kept.is_reviewed = false;
                kept.list(&mut self.list);
            }
        }
        if now_ns >= self.cool_at_ns {
            self.cool_at_ns = now_ns.saturating_add(1_000_000_000);
            keys.cool();
        }
        let mut messages = Vec::new();
        if now_ns < self.send_at_ns {
            return messages;
        }
        let (terms, turnaround_ns) = (self.terms, self.turnaround_ns);
        for hot in std::mem::take(&mut self.list) {
            // One that was removed may have a successor.
            let kept = self.kept.get_mut(&hot.user);
            let Some(kept) = kept.filter(|kept| Arc::ptr_eq(&kept.hot, &hot)) else {
                continue;
            };
            kept.is_listed = false;
            if hot.is_lost(now_ns) || kept.is_given_up(now_ns) {
                self.remove(keys, &hot);
                continue;
            }
            let is_due = kept.is_told && now_ns >= hot.pause_until_ns() || !kept.is_reviewed;
            if is_due && self.in_flight < AT_ONCE && kept.sent_ns.is_none() {
                if let Some(ask) = kept.message(keys, counts, terms, turnaround_ns, now_ns) {
                    self.in_flight = self.in_flight.saturating_add(1);
                    kept.sent_ns = Some(now_ns);
                    counts.asked(&ask);
                    messages.push(Send {
                        hot: Arc::clone(&hot),
                        ask,
                    });
                }
            }
            if kept.is_wanted() {
                kept.list(&mut self.list);
            }
        }
        if !messages.is_empty() {
            counts.sent();
            self.send_at_ns = now_ns.saturating_add(PACE_NS);
        }
        messages
    }

    /// Reads the answer to the message about a key, or that there is none and for how long nothing
    /// is to be asked.
    pub(crate) fn answered(
        &mut self,
        keys: &HotKeys,
        counts: &Counts,
        hot: &Arc<Hot>,
        answer: Result<Leased, u64>,
        now_ns: u64,
    ) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let terms = self.terms;
        if answer.is_ok() && std::mem::take(&mut self.has_failed) {
            // The server is back, also for the other keys.
            for kept in self.kept.values().filter(|kept| kept.failures > 0) {
                kept.hot.pause_until(now_ns);
            }
        }
        self.has_failed |= answer.is_err();
        // The key may have been lost since, and have a successor.
        let kept = self.kept.get_mut(&hot.user);
        let Some(kept) = kept.filter(|kept| Arc::ptr_eq(&kept.hot, hot)) else {
            return;
        };
        let sent_ns = kept.sent_ns.take().unwrap_or(now_ns);
        let leased = match answer {
            Ok(leased) => leased,
            Err(pause_ns) => {
                kept.failures = kept.failures.saturating_add(1);
                // One message can get lost.
                hot.set_failed(kept.failures > 1);
                let backoff_ns = BACKOFF_NS << kept.failures.min(6);
                hot.pause_until(now_ns.saturating_add(pause_ns.max(backoff_ns)));
                kept.is_told = true;
                kept.list(&mut self.list);
                return;
            }
        };
        let took_ns = now_ns.saturating_sub(sent_ns);
        self.turnaround_ns = self.turnaround_ns.saturating_mul(7).saturating_add(took_ns) / 8;
        let wanted = kept.holder.unanswered().map_or(0, |(ask, _)| ask.wants);
        let Some(brought) = kept.holder.answered(leased.answer) else {
            return;
        };
        let until = brought.sent_ns.saturating_add(terms.spendable_ns());
        let mark = kept.demand.target() / 2;
        let none = keys.next_number();
        kept.failures = 0;
        kept.got = brought.granted;
        hot.set_failed(false);
        // All that a denied request is told, before it sees the lease.
        let banned_until_ns = match leased.ban.saturating_mul(1000) {
            0 => 0,
            ban_ns => now_ns.saturating_add(ban_ns),
        };
        hot.banned_until_ns
            .store(banned_until_ns, Ordering::Relaxed);
        if brought.granted < wanted {
            let wait_ns = leased.wait.saturating_mul(1000);
            // The server grants nothing before this. A denied request is told when this node asks
            // again.
            hot.none_until_ns
                .store(sent_ns.saturating_add(wait_ns), Ordering::Relaxed);
            // At random, so that no node always asks just before another one.
            let pause_ns = terms.pause_ns();
            let pause_ns = pause_ns / 2 + pause_ns / 1024 * (keys.hash(&none) % 1024);
            let turn_ns = leased.turn.saturating_mul(1000).min(LONGEST_PAUSE_NS);
            let until_ns = now_ns.saturating_add(pause_ns.max(turn_ns));
            hot.pause_until(until_ns);
            hot.due_ns
                .store(until_ns.saturating_add(took_ns), Ordering::Relaxed);
        }
        let (held, lapsed) = hot.answered(now_ns, &brought, until, mark, none);
        match hot.slots() {
            Some(_) => (kept.had, kept.noted_ns) = (held, now_ns),
            // What was spent while the message was under way is seen at the next one.
            None => {
                for count in [&mut kept.had, &mut kept.out] {
                    *count = count.saturating_add(brought.granted);
                    *count = count.saturating_sub(brought.lost);
                }
            }
        }
        counts.answered(&brought);
        counts.lapsed(lapsed);
        if brought.granted < wanted {
            kept.is_told = true;
            kept.list(&mut self.list);
        } else {
            // The spender that reaches the mark asks. There is none if the pool is empty.
            kept.is_told &= held == 0 || held < hot.largest.load(Ordering::Relaxed);
            if wanted > 0 {
                hot.forget();
            }
        }
        let is_idle = kept.idle >= 2 && hot.missed.load(Ordering::Relaxed) == 0;
        let is_over = held == 0 && is_idle && hot.holding(now_ns).in_use == 0;
        if is_over || hot.is_lost(now_ns) {
            self.remove(keys, hot);
        }
    }

    /// Removes a key of which nothing is held.
    fn remove(&mut self, keys: &HotKeys, hot: &Arc<Hot>) {
        let kept = self.kept.get(&hot.user);
        if kept.is_some_and(|kept| Arc::ptr_eq(&kept.hot, hot)) {
            let _ = self.kept.remove(&hot.user);
        }
        if keys.has(hot) {
            keys.remove(hot);
        }
    }

    /// Gives back what is not in use, and draws nothing more.
    pub(crate) fn wind_down(&mut self) {
        self.terms.most = 0;
        for kept in self.kept.values_mut() {
            kept.is_reviewed = false;
            kept.list(&mut self.list);
        }
    }

    /// Returns whether the node holds anything, or may get something.
    pub(crate) fn holds(&self, now_ns: u64) -> bool {
        self.kept.values().any(|kept| {
            let Holding {
                permits, in_use, ..
            } = kept.hot.holding(now_ns);
            kept.sent_ns.is_some() || permits > 0 || in_use > 0
        })
    }

    /// Returns the messages that give everything back.
    pub(crate) fn closing(&mut self, keys: &HotKeys, counts: &Counts, now_ns: u64) -> Vec<Send> {
        let mut messages = Vec::new();
        for kept in self.kept.values_mut() {
            let number = keys.next_number();
            let (_, returns, lapsed) = kept.hot.withdraw(now_ns, 0, number);
            counts.lapsed(lapsed);
            if returns > 0 {
                let ask = Ask {
                    number,
                    keeps: 0,
                    returns,
                    wants: 0,
                };
                counts.asked(&ask);
                messages.push(Send {
                    hot: Arc::clone(&kept.hot),
                    ask,
                });
            }
        }
        messages
    }
}

impl Kept {
    /// Returns whether the keeper is to look at the key.
    const fn is_wanted(&self) -> bool {
        self.is_told || !self.is_reviewed
    }

    /// Returns whether a review finds that messages about the key fail, that nothing is held, and
    /// that no request came.
    fn is_given_up(&self, now_ns: u64) -> bool {
        let Holding {
            permits, in_use, ..
        } = self.hot.holding(now_ns);
        let is_failing = self.failures > 0 && self.sent_ns.is_none() && !self.is_reviewed;
        let is_asked_for = self.hot.missed.load(Ordering::Relaxed) > 0;
        is_failing && permits == 0 && in_use == 0 && !is_asked_for
    }

    /// Enters the key in the keeper's list.
    fn list(&mut self, list: &mut Vec<Arc<Hot>>) {
        if !std::mem::replace(&mut self.is_listed, true) {
            list.push(Arc::clone(&self.hot));
        }
    }

    /// Returns the message about the key, if there is anything to ask or to return.
    fn message(
        &mut self,
        keys: &HotKeys,
        counts: &Counts,
        terms: Terms,
        turnaround_ns: u64,
        now_ns: u64,
    ) -> Option<Ask> {
        let reviews = !std::mem::replace(&mut self.is_reviewed, true);
        // A review may come before the node's turn to draw.
        let may_draw = now_ns >= self.hot.pause_until_ns();
        let is_told = may_draw && std::mem::replace(&mut self.is_told, false);
        if let Some((ask, first_ns)) = self.holder.unanswered() {
            // It has the same number, so it takes effect once.
            if now_ns < first_ns.saturating_add(terms.spendable_ns() / 2) {
                return Some(ask);
            }
            self.holder.give_up();
        }
        let Holding {
            permits: has,
            in_use,
            until_ns,
        } = self.hot.holding(now_ns);
        let missed = self.hot.missed.swap(0, Ordering::Relaxed);
        let largest = self.hot.largest.swap(0, Ordering::Relaxed);
        let is_asked_for = match self.hot.slots() {
            Some(slots) => {
                let lowest = slots.pool.lowest();
                let idle = Fluctuation {
                    highest: self.had.max(has),
                    lowest: lowest.unwrap_or(has).min(has),
                    missed,
                };
                self.demand.note_slots(idle, reviews, terms.most);
                slots.pool.rearm(self.demand.target() / 2);
                lowest.is_some() || missed > 0
            }
            None => {
                let spent = self.had.saturating_sub(has);
                let spending = Spending {
                    spent,
                    missed,
                    largest,
                    for_ns: now_ns.saturating_sub(self.noted_ns),
                    turnaround_ns,
                };
                self.demand.note(spending, terms.most);
                spent > 0 || missed > 0
            }
        };
        // Parts of what requests need, at several nodes, would be kept for ever and of use to none.
        let is_stuck = missed > 0 && self.got == 0 && has > 0 && has < largest;
        (self.had, self.noted_ns) = (has, now_ns);
        self.idle = match is_asked_for {
            false if reviews => self.idle.saturating_add(1),
            false => self.idle,
            true => 0,
        };
        let mut target = self.demand.target();
        if self.idle >= 2 {
            target = 0;
        }
        // What a node holds beyond twice the target is of more use to others. Slots come back, so
        // those are that were not used.
        let keep = match self.hot.slots() {
            _ if is_stuck => 0,
            Some(_) => target,
            None => target.saturating_mul(2),
        };
        let ends_soon = until_ns < now_ns.saturating_add(terms.life_ns / 2);
        let wants = match may_draw && !is_stuck {
            true => target.saturating_sub(has),
            false => 0,
        };
        let is_short = (is_told || missed > 0) && wants > 0;
        let is_untold = terms.is_window && reviews && self.out > has;
        let renews = ends_soon && (has > 0 || in_use > 0);
        let has_reason = is_short || is_untold || has > keep || renews;
        if !has_reason && (self.idle < 2 || in_use > 0) {
            return None;
        }
        let number = keys.next_number();
        if is_stuck {
            // For another time than other nodes, so that some get enough.
            let pause_ns = keys.hash(&number) % terms.review_ns.max(1);
            self.hot.pause_until(now_ns.saturating_add(pause_ns));
            self.is_told = true;
        }
        let (keeps, returns, lapsed) = self.hot.withdraw(now_ns, keep, number);
        counts.lapsed(lapsed);
        if self.hot.slots().is_none() {
            (self.had, self.out) = (keeps, keeps);
        }
        let ask = Ask {
            number,
            keeps,
            returns,
            wants,
        };
        self.holder.ask(now_ns, ask).then_some(ask)
    }
}
