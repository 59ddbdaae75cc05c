//! What a request has under a name: nothing, a value, or several.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// The most parameters of a query, cookies, or lines of a header that are read. The values behind
/// them are not known.
pub(super) const MAX_PARTS: usize = 256;

/// A request has several values of one name that differ, or more values than are read. It is not
/// known which value the service reads, so none is a key.
///
/// ```
/// use http::Request;
/// use tollgate_http::{Ambiguous, RequestFacts};
///
/// let request = Request::get("/?a=1&a=2").body(())?;
/// assert_eq!(RequestFacts::new(&request).query("a"), Err(Ambiguous));
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ambiguous;

impl fmt::Display for Ambiguous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request has several values of a name that differ, or more than are read")
    }
}

impl Error for Ambiguous {}

/// The values of a name, in their order.
#[derive(Debug, Default)]
pub(super) struct Found<'r> {
    first: Option<Cow<'r, str>>,
    /// The other values. Left out if all values are equal.
    others: Vec<Cow<'r, str>>,
    /// Whether there can be more.
    pub(super) more: bool,
}

impl<'r> Found<'r> {
    pub(super) fn push(&mut self, value: Cow<'r, str>) {
        match &self.first {
            None => self.first = Some(value),
            Some(first) if self.others.is_empty() && *first == value => {}
            Some(_) => self.others.push(value),
        }
    }

    /// Returns the value, or `None` if there is none.
    pub(super) fn single(self) -> Result<Option<Cow<'r, str>>, Ambiguous> {
        match self.others.is_empty() && !self.more {
            true => Ok(self.first),
            false => Err(Ambiguous),
        }
    }
}

impl<'r> Extend<Cow<'r, str>> for Found<'r> {
    fn extend<I: IntoIterator<Item = Cow<'r, str>>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

#[cfg(feature = "policy")]
impl<'r> From<Found<'r>> for tollgate_policy::FactValues<'r> {
    fn from(found: Found<'r>) -> Self {
        let values = found.first.into_iter().chain(found.others);
        let values = Self::of(values.map(tollgate_policy::FactValue::from));
        match found.more {
            true => values.and_more(),
            false => values,
        }
    }
}
