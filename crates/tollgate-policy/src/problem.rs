//! What is wrong with a policy, and where.

use std::error::Error;
use std::fmt;

/// Where something is in a file. Both numbers count from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// Whether a policy with this problem can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The policy can't be used.
    Error,
    /// The policy can be used, but probably does not do what was meant.
    Warning,
}

/// One thing that is wrong with a policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Problem {
    /// Whether the policy can be used.
    pub severity: Severity,
    /// Where it is, if the policy comes from a file that has positions.
    pub position: Option<Position>,
    /// The field, such as `rule "login": limit`.
    pub field: String,
    /// The value as it is written, or an empty text if it is missing.
    pub value: String,
    /// What is wrong and what is allowed.
    pub message: String,
}

/// All errors and warnings of a policy, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Problems {
    list: Vec<Problem>,
    file: Option<String>,
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.list {
            writeln!(f, "{}", problem.message)?;
        }
        Ok(())
    }
}

impl Error for Problems {}
