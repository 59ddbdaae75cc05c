//! A limiter and its sequence of keys, as a contestant. Each series of decisions continues in the
//! sequence.

use std::sync::atomic::{AtomicU64, Ordering};

use super::limiters::Row;
use super::timing::{Player, Runner};

/// The same keys in the same order for every limiter.
pub(crate) struct Course<'a> {
    limiter: &'a dyn Row,
    keys: &'a [u64],
    dealt: AtomicU64,
}

impl<'a> Course<'a> {
    pub(crate) const fn new(limiter: &'a dyn Row, keys: &'a [u64]) -> Self {
        let dealt = AtomicU64::new(0);
        Self {
            limiter,
            keys,
            dealt,
        }
    }
}

/// 2^64 over the golden ratio. Multiples of it keep the threads' starting places apart.
const APART: u64 = 0x9e37_79b9_7f4a_7c15;

impl Runner for Course<'_> {
    fn prepare(&self) {}

    fn player(&self, _threads: usize) -> Box<dyn Player + '_> {
        // ORDERING: Relaxed. The count publishes nothing.
        let place = self
            .dealt
            .fetch_add(1, Ordering::Relaxed)
            .wrapping_mul(APART);
        let from = (u128::from(place) * self.keys.len() as u128) >> 64;
        Box::new(Lane {
            limiter: self.limiter,
            keys: self.keys,
            next: self.keys.get(from as usize..).unwrap_or_default(),
        })
    }
}

/// The keys of one thread.
struct Lane<'a> {
    limiter: &'a dyn Row,
    keys: &'a [u64],
    next: &'a [u64],
}

impl Player for Lane<'_> {
    fn run(&mut self, _first: u64, turns: u64) -> u64 {
        let (mut left, mut allowed) = (turns as usize, 0);
        while left > 0 {
            if self.next.is_empty() {
                self.next = self.keys;
            }
            let (now, later) = self.next.split_at(left.min(self.next.len()));
            allowed += self.limiter.decide(now);
            left -= now.len();
            self.next = later;
        }
        allowed
    }
}
