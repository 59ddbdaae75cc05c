//! What must be found in the crate's own protocols: a fault in their code, an ordering that is too
//! weak, an exchange that is none.

use tollgate::sync::model::{Conditions, Fault, under};

use crate::run::{Run, broken};

/// A model on code with a fault: it must fail, and say why.
///
/// # Panics
///
/// If it does not.
pub fn with_fault(
    name: &str,
    fault: Fault,
    why: &str,
    bound: Option<usize>,
    body: impl Fn(&mut Run),
) {
    let conditions = Conditions {
        fault: Some(fault),
        ..Conditions::default()
    };
    let name = format!("{name}, {fault:?}");
    broken(&name, why, bound, |run| under(conditions, || body(run)));
}

/// A model on code whose exchanges compare and then store: it must fail, and say why.
///
/// # Panics
///
/// If it does not.
pub fn stored(name: &str, why: &str, bound: Option<usize>, body: impl Fn(&mut Run)) {
    let conditions = Conditions {
        stores: true,
        ..Conditions::default()
    };
    let name = format!("{name}, compares and stores");
    broken(&name, why, bound, |run| under(conditions, || body(run)));
}

/// An atomic operation in the crate's source.
#[derive(Debug, Clone, Copy)]
pub struct Site {
    /// The end of the file's name.
    pub file: &'static str,
    /// The file.
    pub text: &'static str,
    /// What is on the line of the operation, and on no other.
    pub operation: &'static str,
}

impl Site {
    fn line(&self) -> u32 {
        let lines = self.text.lines().enumerate();
        let mut lines = lines.filter(|(_, line)| line.contains(self.operation));
        let (line, _) = lines.next().expect("the operation is in the file");
        assert!(lines.next().is_none(), "{} is there twice", self.operation);
        line as u32 + 1
    }
}

/// A model on code in which the orderings of one operation are `Relaxed`: it must fail, and say
/// why.
///
/// # Panics
///
/// If it does not.
pub fn relaxed(name: &str, site: Site, why: &str, bound: Option<usize>, body: impl Fn(&mut Run)) {
    let conditions = Conditions {
        relaxed: Some((site.file, site.line())),
        ..Conditions::default()
    };
    let name = format!("{name}, {} is Relaxed", site.operation);
    broken(&name, why, bound, |run| under(conditions, || body(run)));
}
