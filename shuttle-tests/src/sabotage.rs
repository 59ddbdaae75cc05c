//! What must be found in the crate's own protocols: a mistake in their code, and exchanges that are none.

use tollgate::primitive::modelled::{Conditions, Mistake};

use crate::run::{Body, broken};

/// A model on code with a mistake: it must fail, and say why.
///
/// # Panics
///
/// If it does not.
pub fn mistaken(name: &str, mistake: Mistake, why: &str, body: impl Body) {
    let conditions = Conditions {
        mistake: Some(mistake),
        ..Conditions::default()
    };
    let name = format!("{name}, {mistake:?}");
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
