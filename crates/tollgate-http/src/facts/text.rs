//! Texts of headers, queries and cookies.

use std::borrow::Cow;

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};
use percent_encoding::percent_decode;

use super::found::Found;
use super::lists::is_list;

/// The values of a header: one of a list, and otherwise one for each line. Bytes that are not UTF-8
/// become U+FFFD.
pub(super) fn header<'h>(headers: &'h HeaderMap, name: &str) -> Found<'h> {
    let mut found = Found::default();
    let mut lines = headers.get_all(name).iter().map(text);
    let Some(first) = lines.next() else {
        return found;
    };
    match lines.next() {
        None => found.push(first),
        Some(second) if is_list(name) => found.push(joined(first, second, lines, name)),
        Some(second) => found.extend([first, second].into_iter().chain(lines)),
    }
    found
}

/// The lines of a header as one text.
fn joined<'h>(
    mut text: Cow<'h, str>,
    second: Cow<'h, str>,
    lines: impl Iterator<Item = Cow<'h, str>>,
    name: &str,
) -> Cow<'h, str> {
    // HTTP/2 sends cookies in several lines.
    let separator = match name.eq_ignore_ascii_case(COOKIE.as_str()) {
        true => "; ",
        false => ", ",
    };
    for line in std::iter::once(second).chain(lines) {
        let text = text.to_mut();
        text.push_str(separator);
        text.push_str(&line);
    }
    text
}

/// The largest number of all lines of a header.
pub(super) fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    let lines = headers.get_all(name).iter();
    let numbers = lines.filter_map(|line| line.to_str().ok()?.trim().parse().ok());
    numbers.max()
}

fn text(line: &HeaderValue) -> Cow<'_, str> {
    String::from_utf8_lossy(line.as_bytes())
}

/// The values of a parameter of a query.
pub(super) fn query<'q>(query: &'q str, name: &str) -> Found<'q> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let mut found = Found::default();
    found.extend(
        pairs
            .inspect(looked_at)
            .filter(|(key, _)| is_form(key, name))
            .map(|(_, value)| form(value)),
    );
    found
}

/// Whether a text in the form of a query is this name.
fn is_form(text: &str, name: &str) -> bool {
    let mut rest = name.as_bytes();
    let mut pieces = text.split('+');
    let first = pieces.next().unwrap_or_default();
    strip_decoded(&mut rest, first)
        && pieces.all(|piece| {
            let space = rest.strip_prefix(b" ");
            rest = space.unwrap_or_default();
            space.is_some() && strip_decoded(&mut rest, piece)
        })
        && rest.is_empty()
}

/// Takes a decoded text off the start of another. Returns whether it begins with it.
fn strip_decoded(rest: &mut &[u8], text: &str) -> bool {
    percent_decode(text.as_bytes()).all(|byte| rest.split_off_first() == Some(&byte))
}

/// Decodes a text in the form of a query.
fn form(text: &str) -> Cow<'_, str> {
    if !text.contains('+') {
        return lossy(percent_decode(text.as_bytes()).into());
    }
    let spaced = text.replace('+', " ");
    let decoded = percent_decode(spaced.as_bytes()).decode_utf8_lossy();
    Cow::Owned(decoded.into_owned())
}

fn lossy(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// The values of a cookie, of all lines.
pub(super) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Found<'h> {
    let lines = headers.get_all(COOKIE).iter();
    let pairs = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    let mut found = Found::default();
    found.extend(pairs.filter_map(|pair| {
        looked_at(&(pair, pair));
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let (key, value) = pair.split_at_checked(equals)?;
        if !percent_decode(key.trim_ascii()).eq(name.bytes()) {
            return None;
        }
        let value = value.strip_prefix(b"=")?.trim_ascii();
        let quoted = value.strip_prefix(b"\"");
        let inside = quoted.and_then(|value| value.strip_suffix(b"\""));
        Some(lossy(percent_decode(inside.unwrap_or(value)).into()))
    }));
    found
}

#[cfg(not(test))]
#[inline]
fn looked_at<T>(_: &T) {}

#[cfg(test)]
use super::tests::looked_at;
