//! Decisions that wait for the end of their request.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tollgate_policy::{Decision, Policy};

/// A decision that its caller ends later, by a token. After a time it ends by itself: it keeps its
/// permits, and frees its places.
#[derive(Debug)]
pub(crate) struct Held {
    life: Duration,
    most: usize,
    all: Mutex<All>,
}

#[derive(Debug, Default)]
struct All {
    by_token: HashMap<u128, Decision<Arc<Policy>>>,
    /// All have the same life, so the first one ends first. Those that have ended stay here.
    order: VecDeque<(Instant, u128)>,
}

impl Held {
    pub(crate) fn new(life: Duration, most: usize) -> Self {
        Self {
            life,
            most,
            all: Mutex::default(),
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
        let now = Instant::now();
        let lapsed = self.take_lapsed(now);
        let mut all = self.lock();
        if all.order.len() >= self.most {
            return Err(Box::new(decision));
        }
        let before = all.by_token.insert(token, decision);
        all.order.push_back((now + self.life, token));
        drop(all);
        // They may free places, which takes longer than the lock should be held.
        drop((lapsed, before));
        Ok(())
    }

    /// Returns the decision of a token, once.
    pub(crate) fn take(&self, token: &str) -> Option<Decision<Arc<Policy>>> {
        let token = parse(token)?;
        drop(self.take_lapsed(Instant::now()));
        self.lock().by_token.remove(&token)
    }

    /// Returns the decisions whose time is over.
    pub(crate) fn take_lapsed(&self, now: Instant) -> Vec<Decision<Arc<Policy>>> {
        let mut lapsed = Vec::new();
        let mut all = self.lock();
        while let Some((_, token)) = all.order.front().copied().filter(|(end, _)| *end <= now) {
            all.order.pop_front();
            lapsed.extend(all.by_token.remove(&token));
        }
        lapsed
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

fn parse(token: &str) -> Option<u128> {
    let is_token = token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    u128::from_str_radix(token, 16).ok().filter(|_| is_token)
}
