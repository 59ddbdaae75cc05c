//! A policy with one rule, asked at recorded times.

use tollgate::Tick;

use crate::guide::decided::{Decided, Decider};
use crate::guide::lines::{End, Pairs};
use crate::guide::{Held, Tested};

pub(super) struct Gate(Tested);

/// A request that holds a place.
pub(super) struct InProgress(Held);

impl Gate {
    pub(super) fn new(policy: &str) -> Self {
        Self(Tested::new(policy))
    }

    /// Asks for `n` permits at a time.
    pub(super) fn ask(&mut self, n: u64, t_ns: u64) -> Decided {
        self.0.clock().set(Tick::from_nanos(t_ns));
        let fact = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let facts = vec![
            fact("user", "ann"),
            fact("requested-tokens", &n.to_string()),
        ];
        let (decided, held) = self.0.decide(&facts);
        self.0.end(held, &End::default());
        decided
    }

    /// Asks for a place, and holds it.
    pub(super) fn enter(&mut self) -> Option<InProgress> {
        let (decided, held) = self.0.decide(&Pairs::new());
        decided.is_allowed.then_some(InProgress(held))
    }

    pub(super) fn leave(&mut self, request: InProgress) {
        self.0.end(request.0, &End::default());
    }
}
