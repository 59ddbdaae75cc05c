//! What must be found in the crate's own protocols: a fault in their code, and exchanges that are
//! none.

use tollgate::sync::model::{Conditions, Fault};

use crate::run::{Body, broken};

/// A model on code with a fault: it must fail, and say why.
///
/// # Panics
///
/// If it does not.
pub fn with_fault(name: &str, fault: Fault, why: &str, body: impl Body) {
    let conditions = Conditions {
        fault: Some(fault),
        ..Conditions::default()
    };
    let name = format!("{name}, {fault:?}");
    broken(&name, why, conditions, body);
}

/// A model on code whose exchanges compare and then store: it must fail, and say why.
///
/// # Panics
///
/// If it does not.
pub fn stored(name: &str, why: &str, body: impl Body) {
    let conditions = Conditions {
        stores: true,
        ..Conditions::default()
    };
    let name = format!("{name}, compares and stores");
    broken(&name, why, conditions, body);
}
