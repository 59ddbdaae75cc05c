//! Defects of the crate's own protocols that models must find: a fault in the code, an ordering
//! that is too weak, an exchange that is not atomic.

use tollgate::sync::model::{Conditions, Fault, under};

use crate::run::{Run, broken};

/// Runs a model on code with an injected fault. The model must fail with the message `why`.
///
/// # Panics
///
/// If the model does not fail, or fails with another message.
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

/// Runs a model on code whose compare-exchange is a load, a comparison and a store. The model must
/// fail with the message `why`.
///
/// # Panics
///
/// If the model does not fail, or fails with another message.
pub fn stored(name: &str, why: &str, bound: Option<usize>, body: impl Fn(&mut Run)) {
    let conditions = Conditions {
        stores: true,
        ..Conditions::default()
    };
    let name = format!("{name}, compares and stores");
    broken(&name, why, bound, |run| under(conditions, || body(run)));
}

/// An atomic operation in the crate's source code.
#[derive(Debug, Clone, Copy)]
pub struct Site {
    /// The end of the file's path.
    pub file: &'static str,
    /// The text of the file.
    pub text: &'static str,
    /// A text that occurs on the operation's line, and on no other.
    pub operation: &'static str,
}

impl Site {
    fn line(&self) -> u32 {
        let lines = self.text.lines().enumerate();
        let mut lines = lines.filter(|(_, line)| line.contains(self.operation));
        let (line, _) = lines.next().expect("the operation is in the file");
        assert!(lines.next().is_none(), "{} occurs twice", self.operation);
        line as u32 + 1
    }
}

/// Runs a model on code in which the orderings of one operation are `Relaxed`. The model must fail
/// with the message `why`.
///
/// # Panics
///
/// If the model does not fail, or fails with another message.
pub fn relaxed(name: &str, site: Site, why: &str, bound: Option<usize>, body: impl Fn(&mut Run)) {
    let conditions = Conditions {
        relaxed: Some((site.file, site.line())),
        ..Conditions::default()
    };
    let name = format!("{name}, {} is Relaxed", site.operation);
    broken(&name, why, bound, |run| under(conditions, || body(run)));
}
