//! Runs of models on broken code, which must fail: a fault injected into the crate, or exchanges
//! that are not atomic.

use tollgate::sync::model::{Conditions, Fault};

use crate::run::{Body, broken};

/// Runs a model on code with each of these faults in turn. The model must fail with a message that
/// contains `why`.
pub fn with_faults(
    name: &str,
    faults: impl IntoIterator<Item = Fault>,
    why: &str,
    body: impl Body,
) {
    for fault in faults {
        let conditions = Conditions {
            fault: Some(fault),
            ..Conditions::default()
        };
        let name = format!("{name}, {fault:?}");
        broken(&name, why, conditions, body);
    }
}

/// Runs a model on code whose compare-exchanges are a compare and a separate store. The model must
/// fail with a message that contains `why`.
pub fn stored(name: &str, why: &str, body: impl Body) {
    let conditions = Conditions {
        stores: true,
        ..Conditions::default()
    };
    let name = format!("{name}, compares and stores");
    broken(&name, why, conditions, body);
}
