//! Decisions that wait for the end of their request.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::time::Instant;
use tollgate_policy::{Decision, Policy};

/// A decision that its caller ends later, by a token. After a time it ends by itself: it keeps its
/// permits, and frees its places.
#[derive(Debug)]
pub(crate) struct Held {
    life: Duration,
    most: usize,
    all: Mutex<All>,
    /// Decisions for which there was no room.
    pub(crate) refused: AtomicU64,
}

#[derive(Debug, Default)]
struct All {
    by_token: HashMap<u128, (Instant, Decision<Arc<Policy>>)>,
    /// All have the same life, so the first one ends first. Those that were ended early stay here
    /// for a while.
    order: VecDeque<(Instant, u128)>,
}

impl Held {
    pub(crate) fn new(life: Duration, most: usize) -> Self {
        Self {
            // The end of a longer life might be beyond the end of time.
            life: life.min(Duration::from_secs(365 * 86_400)),
            most,
            all: Mutex::default(),
            refused: AtomicU64::new(0),
        }
    }

    /// Makes a token that nobody can guess. `None` if the system has no random numbers.
    pub(crate) fn token() -> Option<String> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        Some(format!("{:032x}", u128::from_be_bytes(bytes)))
    }

    /// Keeps a decision, or returns it if there is no room.
    pub(crate) fn keep(
        &self,
        token: &str,
        decision: Decision<Arc<Policy>>,
    ) -> Result<(), Box<Decision<Arc<Policy>>>> {
        let Some(token) = parse(token) else {
            return Err(Box::new(decision));
        };
        let mut all = self.lock();
        if all.by_token.len() >= self.most {
            return Err(Box::new(decision));
        }
        if all.order.len() >= self.most.saturating_mul(2) {
            // Half of them or more were ended early, so this is rare.
            let All { by_token, order } = &mut *all;
            order.retain(|(_, token)| by_token.contains_key(token));
        }
        let end = Instant::now() + self.life;
        all.by_token.insert(token, (end, decision));
        all.order.push_back((end, token));
        Ok(())
    }

    /// Returns whether one more decision can be held.
    pub(crate) fn has_room(&self) -> bool {
        self.lock().by_token.len() < self.most
    }

    /// Returns the decision of a token, once. One whose time is over stays for
    /// [`take_lapsed`](Self::take_lapsed): who takes it frees its places, also those of stores.
    pub(crate) fn take(&self, token: &str) -> Option<Decision<Arc<Policy>>> {
        let token = parse(token)?;
        let mut all = self.lock();
        let is_in_time = all.by_token.get(&token)?.0 > Instant::now();
        let taken = is_in_time.then(|| all.by_token.remove(&token));
        taken.flatten().map(|(_, decision)| decision)
    }

    /// Returns the decisions whose time is over.
    pub(crate) fn take_lapsed(&self, now: Instant) -> Vec<Decision<Arc<Policy>>> {
        let mut lapsed = Vec::new();
        let mut all = self.lock();
        while let Some((_, token)) = all.order.front().copied().filter(|(end, _)| *end <= now) {
            all.order.pop_front();
            lapsed.extend(all.by_token.remove(&token).map(|(_, decision)| decision));
        }
        lapsed
    }

    /// Returns all decisions, also those whose time is not over.
    pub(crate) fn take_all(&self) -> Vec<Decision<Arc<Policy>>> {
        let all = std::mem::take(&mut *self.lock());
        let held = all.by_token.into_values();
        held.map(|(_, decision)| decision).collect()
    }

    /// Returns how many decisions are held.
    pub(crate) fn len(&self) -> usize {
        self.lock().by_token.len()
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        // No step leaves it half done.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends decisions whose callers do not: they keep their permits, and free their places, also those
/// of stores.
pub(crate) async fn end(decisions: Vec<Decision<Arc<Policy>>>) {
    /// How many stores are asked at once.
    const AT_ONCE: usize = 256;
    stream::iter(decisions)
        .for_each_concurrent(AT_ONCE, |decision| async move {
            let _ = decision.settle_async(&()).await;
        })
        .await;
}

fn parse(token: &str) -> Option<u128> {
    let is_token = token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    u128::from_str_radix(token, 16).ok().filter(|_| is_token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Arc<Policy> {
        let text = "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = 'concurrency 1'";
        Arc::new(Policy::from_toml(text).unwrap())
    }

    /// Asks for the only place, and holds it.
    fn hold(held: &Held, policy: &Arc<Policy>) -> Option<String> {
        let decision = policy.decide_owned(&[("user", "ann")]);
        let token = Held::token().unwrap();
        let is_held = decision.is_allowed() && held.keep(&token, decision).is_ok();
        is_held.then_some(token)
    }

    #[tokio::test(start_paused = true)]
    async fn a_decision_ends_when_its_time_is_over() {
        let (held, policy) = (Held::new(Duration::from_secs(60), 9), policy());
        let token = hold(&held, &policy).unwrap();
        tokio::time::advance(Duration::from_millis(59_999)).await;
        assert!(hold(&held, &policy).is_none());
        assert_eq!(held.len(), 1);
        tokio::time::advance(Duration::from_millis(1)).await;
        // Its place is free as soon as it is dropped, and its token says nothing any more.
        assert_eq!(held.take_lapsed(Instant::now()).len(), 1);
        assert!(hold(&held, &policy).is_some());
        assert!(held.take(&token).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_too_late_even_if_nobody_looked() {
        let (held, policy) = (Held::new(Duration::from_secs(60), 9), policy());
        let token = hold(&held, &policy).unwrap();
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(held.take(&token).is_none());
        drop(held.take_lapsed(Instant::now()));
        assert!(hold(&held, &policy).is_some());
    }

    #[tokio::test]
    async fn at_the_end_all_places_are_free() {
        let (held, policy) = (Held::new(Duration::from_secs(60), 9), policy());
        let token = hold(&held, &policy).unwrap();
        assert!(hold(&held, &policy).is_none());
        end(held.take_all()).await;
        assert!(held.take(&token).is_none());
        drop(held.take_lapsed(Instant::now()));
        assert!(hold(&held, &policy).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_were_ended_leave_room() {
        let (held, policy) = (Held::new(Duration::from_secs(60), 2), policy());
        for _ in 0..100 {
            let token = hold(&held, &policy).unwrap();
            drop(held.take(&token).unwrap());
            assert!(held.lock().order.len() <= 4);
        }
        assert_eq!(held.len(), 0);
    }

    #[test]
    fn only_tokens_are_tokens() {
        let held = Held::new(Duration::from_secs(60), 9);
        for text in ["", "0", "+0000000000000000000000000000000", &"g".repeat(32)] {
            assert!(held.take(text).is_none());
        }
    }
}
