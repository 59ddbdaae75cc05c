//! A policy with one rule, asked at recorded times.

use tollgate::Tick;

use crate::decided::{Decided, Decider};
use crate::model::{Model, Taken};

pub(super) struct Gate(Model, std::rc::Rc<std::cell::RefCell<Vec<Taken>>>);
pub(super) struct InProgress(Taken);
pub(super) struct Asked { pub(super) ok: bool, pub(super) remaining: Option<u64> }

impl Gate {
    pub(super) fn new(policy: &str) -> Self { Self(Model::new(policy), Default::default()) }
    pub(super) fn ask(&mut self, n: u64, t_ns: u64) -> Asked {
        self.0.clock().set(Tick::from_nanos(t_ns));
        let facts = vec![("user".to_owned(), "ann".to_owned()), ("requested-tokens".to_owned(), n.to_string())];
        let (d, _) = self.0.decide(&facts);
        Asked { ok: d.is_allowed, remaining: d.left }
    }
    pub(super) fn enter(&mut self) -> Option<InProgress> {
        let (d, t) = self.0.decide(&vec![]);
        d.is_allowed.then_some(InProgress(t))
    }
    pub(super) fn leave(&mut self, r: InProgress) { self.0.end(r.0, &Default::default()) }
}
