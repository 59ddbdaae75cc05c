//! What a server says of its limits: parsers for clients.

use std::time::{Duration, SystemTime};

use http::HeaderMap;

use crate::Unit;

/// What a server says of its limits in an answer's fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ServerLimits {
    /// `Retry-After`, in either form.
    pub retry_after: Option<Duration>,
    /// The limits, of any generation of fields.
    pub limits: Vec<ServerLimit>,
}

/// One limit of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ServerLimit {
    /// Its name, empty if the fields have none.
    pub name: String,
    /// How many permits a window has.
    pub quota: Option<u64>,
    /// The length of a window.
    pub window: Option<Duration>,
    /// How many permits are left.
    pub remaining: Option<u64>,
    /// How long until the limit resets.
    pub reset: Option<Duration>,
    /// What it counts.
    pub unit: Unit,
    /// The key of the partition.
    pub partition: Option<Vec<u8>>,
}

impl ServerLimits {
    /// Reads the fields of an answer. Malformed fields are ignored, and absurd values are capped.
    #[must_use]
    pub fn read(headers: &HeaderMap, now: SystemTime) -> Self {
        todo!()
    }
}
