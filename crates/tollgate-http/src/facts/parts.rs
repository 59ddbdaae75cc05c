//! The parameters of a query and the cookies of a request.
//!
//! If there are few, they are searched for each name. If there are many, they are put into a table
//! once, in which a name is found without a look at the others. So the work for a request is one
//! pass over its bytes, and does not grow with the product of its length and the number of names.

use std::borrow::Cow;
use std::sync::OnceLock;

use http::HeaderMap;
use http::header::COOKIE;

use super::found::{Found, MAX_PARTS};
use super::text::{cookie_name, cookie_value, form, form_name};

/// The longest query, and the longest cookies, that are searched for each name, in bytes. They have
/// at most `MAX_PARTS` parts.
const SHORT: usize = 480;

/// The most lines of cookies that are searched for each name.
const FEW_LINES: usize = 8;

/// A name and a value, as they were sent.
type Part<'r> = (&'r [u8], &'r [u8]);

/// Many parts, in the order of the hashes of their names.
#[derive(Debug, Clone)]
pub(super) struct Table<'r> {
    parts: Box<[(u64, Part<'r>)]>,
    /// Whether there are more.
    more: bool,
}

/// The table of a request with many parts, made when a name is first looked for.
pub(super) type Many<'r> = OnceLock<Table<'r>>;

/// Finds the values of a parameter.
pub(super) fn parameter<'r>(query: &'r str, many: &Many<'r>, name: &str) -> Found<'r> {
    let parameters = || {
        let parts = query.as_bytes().split(|byte| *byte == b'&');
        let parts = parts.filter(|part| !part.is_empty());
        parts.map(|part| split(part, b'=').unwrap_or((part, b"")))
    };
    let is_name = |sent: &[u8]| form_name(sent).eq(name.bytes());
    match query.len() > SHORT {
        false => of_few(parameters(), is_name, form),
        true => {
            let table = many.get_or_init(|| Table::of(parameters(), |sent| hash(form_name(sent))));
            table.find(hash(name.bytes()), is_name, form)
        }
    }
}

/// Finds the values of a cookie, in all lines.
pub(super) fn cookie<'r>(headers: &'r HeaderMap, many: &Many<'r>, name: &str) -> Found<'r> {
    let cookies = || {
        let lines = headers.get_all(COOKIE).iter();
        let parts = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
        parts.filter_map(|part| split(part, b'='))
    };
    let is_name = |sent: &[u8]| cookie_name(sent).eq(name.bytes());
    let mut lines = headers.get_all(COOKIE).iter();
    let first: usize = lines.by_ref().take(FEW_LINES).map(|line| line.len()).sum();
    match first > SHORT || lines.next().is_some() {
        false => of_few(cookies(), is_name, cookie_value),
        true => {
            let table = many.get_or_init(|| Table::of(cookies(), |sent| hash(cookie_name(sent))));
            table.find(hash(name.bytes()), is_name, cookie_value)
        }
    }
}

/// Finds the values of a name in a few parts.
fn of_few<'r>(
    parts: impl Iterator<Item = Part<'r>>,
    is_name: impl Fn(&[u8]) -> bool,
    value: fn(&'r [u8]) -> Cow<'r, str>,
) -> Found<'r> {
    let mut found = Found::default();
    let named = parts.inspect(looked_at).filter(|(name, _)| is_name(name));
    found.extend(named.map(|(_, sent)| value(sent)));
    found
}

impl<'r> Table<'r> {
    fn of(mut parts: impl Iterator<Item = Part<'r>>, hash: impl Fn(&[u8]) -> u64) -> Self {
        let read = parts.by_ref().take(MAX_PARTS).inspect(looked_at);
        let mut read: Box<[_]> = read.map(|part| (hash(part.0), part)).collect();
        // Stable: the values of a name stay in their order.
        read.sort_by_key(|(hash, _)| *hash);
        Self {
            parts: read,
            more: parts.next().is_some(),
        }
    }

    fn find(
        &self,
        hash: u64,
        is_name: impl Fn(&[u8]) -> bool,
        value: fn(&'r [u8]) -> Cow<'r, str>,
    ) -> Found<'r> {
        let start = self.parts.partition_point(|(other, _)| *other < hash);
        let parts = self.parts.get(start..).unwrap_or_default().iter();
        let same = parts.take_while(|(other, _)| *other == hash);
        let same = same.map(|(_, part)| *part);
        let mut found = of_few(same, is_name, value);
        found.more = self.more;
        found
    }
}

/// Splits a part at the first of these bytes.
fn split(part: &[u8], at: u8) -> Option<Part<'_>> {
    let end = part.iter().position(|byte| *byte == at)?;
    let (name, value) = part.split_at_checked(end)?;
    Some((name, value.get(1..).unwrap_or_default()))
}

/// Returns the hash of a name: FNV-1a. A client can choose names with the same hash. They are
/// compared one by one, and there are at most `MAX_PARTS`.
fn hash(name: impl Iterator<Item = u8>) -> u64 {
    name.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(not(test))]
#[inline]
fn looked_at(_: &Part<'_>) {}

#[cfg(test)]
use super::tests::looked_at;
