//! Defects of the crate's own protocols that models must find: a fault in the code, an ordering
//! that is too weak, an exchange that is not atomic.

use tollgate::sync::model::{Conditions, Fault, under};

use crate::run::{Model, Run, broken};
use crate::source::Operation;

impl<B: Fn(&mut Run)> Model<'_, B> {
    /// Sets loom's bound on preemptions for the broken code.
    #[must_use = "only what runs after it has this bound"]
    pub fn bound(self, bound: Option<usize>) -> Self {
        Self { bound, ..self }
    }

    /// Runs the model on code with each of these faults in turn. It must fail with the message
    /// `why`.
    pub fn finds(self, faults: impl IntoIterator<Item = Fault>, why: &str) -> Self {
        for fault in faults {
            let conditions = Conditions {
                fault: Some(fault),
                ..Conditions::default()
            };
            self.fails(&format!("{fault:?}"), why, conditions);
        }
        self
    }

    /// Runs the model on code whose compare-exchange is a load, a comparison and a store. It must
    /// fail with the message `why`.
    pub fn stored(self, why: &str) -> Self {
        let conditions = Conditions {
            stores: true,
            ..Conditions::default()
        };
        self.fails("compares and stores", why, conditions);
        self
    }

    /// Runs the model on code in which the orderings of one of these operations are `Relaxed`, of
    /// each in turn. It must fail with the message `why`.
    pub fn relaxed<const N: usize>(self, operations: [Operation; N], why: &str) -> Self {
        self.finds(operations.map(Fault::Relaxed), why)
    }

    fn fails(&self, defect: &str, why: &str, conditions: Conditions) {
        let name = format!("{}, {defect}", self.name);
        broken(&name, why, self.bound, |run| {
            under(conditions, || (self.body)(run));
        });
    }
}
