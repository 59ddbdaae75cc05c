//! Texts of headers, queries and cookies.

use std::borrow::Cow;
use std::num::IntErrorKind;

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};
use percent_encoding::percent_decode;

use super::found::{Found, MAX_PARTS};
use super::lists::is_list;

/// The values of a header: one for each line, or one for all lines if the header is a list. Bytes
/// that are not UTF-8 become U+FFFD.
pub(super) fn header<'h>(headers: &'h HeaderMap, name: &str) -> Found<'h> {
    let mut found = Found::default();
    let mut lines = headers.get_all(name).iter().map(text);
    let Some(first) = lines.next() else {
        return found;
    };
    match lines.next() {
        None => found.push(first),
        Some(second) if is_list(name) => found.push(joined(first, second, lines, name)),
        Some(second) => {
            found.extend([first, second]);
            found.extend(lines.by_ref().take(MAX_PARTS - 2));
            found.more = lines.next().is_some();
        }
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

/// The largest number of all lines of a header. One that is too large counts as the largest.
pub(super) fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    let number = |line: &HeaderValue| match line.to_str().ok()?.trim().parse::<u64>() {
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Some(u64::MAX),
        number => number.ok(),
    };
    headers.get_all(name).iter().filter_map(number).max()
}

fn text(line: &HeaderValue) -> Cow<'_, str> {
    String::from_utf8_lossy(line.as_bytes())
}

/// The bytes of a parameter's name, decoded.
pub(super) fn form_name(sent: &[u8]) -> impl Iterator<Item = u8> {
    let pieces = sent.split(|byte| *byte == b'+').enumerate();
    pieces.flat_map(|(index, piece)| {
        let space = (index > 0).then_some(b' ');
        space.into_iter().chain(percent_decode(piece))
    })
}

/// Decodes a value in the form of a query.
pub(super) fn form(sent: &[u8]) -> Cow<'_, str> {
    if !sent.contains(&b'+') {
        return lossy(percent_decode(sent).into());
    }
    let space = |byte: &u8| if *byte == b'+' { b' ' } else { *byte };
    let spaced: Vec<u8> = sent.iter().map(space).collect();
    let decoded = percent_decode(&spaced).decode_utf8_lossy();
    Cow::Owned(decoded.into_owned())
}

/// The bytes of a cookie's name, decoded.
pub(super) fn cookie_name(sent: &[u8]) -> impl Iterator<Item = u8> {
    percent_decode(sent.trim_ascii())
}

/// Decodes the value of a cookie.
pub(super) fn cookie_value(sent: &[u8]) -> Cow<'_, str> {
    let value = sent.trim_ascii();
    let quoted = value.strip_prefix(b"\"");
    let inside = quoted.and_then(|value| value.strip_suffix(b"\""));
    lossy(percent_decode(inside.unwrap_or(value)).into())
}

fn lossy(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}
