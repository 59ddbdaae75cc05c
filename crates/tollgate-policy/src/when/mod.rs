//! The conditions under which a rule applies.

use ipnet::IpNet;

use crate::fact::FactName;

/// Conditions of a request. It fulfils them if it fulfils all of `all`, at least one of `any` unless
/// that is empty, and not all of `not`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct When {
    /// Conditions that must all hold.
    pub all: Vec<Condition>,
    /// Alternatives, one of which must hold unless there are none.
    pub any: Vec<When>,
    /// Conditions that must not all hold.
    pub not: Option<Box<When>>,
}

/// A condition of one fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The fact.
    pub fact: FactName,
    /// What its value must be.
    pub test: Test,
}

/// What the value of a fact must be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Test {
    /// There is a value.
    Present,
    /// There is no value.
    Absent,
    /// The value is one of these.
    OneOf(Vec<Pattern>),
}

/// What one value can be compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pattern {
    /// This text.
    Equal(String),
    /// Text that begins with this.
    Prefix(String),
    /// Text that ends with this.
    Suffix(String),
    /// An address in this network.
    Network(IpNet),
}
