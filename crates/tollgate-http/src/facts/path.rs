//! Forms of paths.

use std::borrow::Cow;
use std::str;

/// In which form rules see a path.
///
/// Choose the form in which the routes of the program see it. Otherwise a client can write a path
/// that reaches a route but not the rule for it.
///
/// | sent | [`Decoded`](Self::Decoded) | [`Normalized`](Self::Normalized) |
/// |---|---|---|
/// | `/%6cogin` | `/login` | `/login` |
/// | `/users/a%2fb` | `/users/a%2Fb` | `/users/a%2Fb` |
/// | `/100%25` and `/100%` | `/100%25` | `/100%25` |
/// | `/caf%c3%a9/%ff` | `/café/%FF` | `/café/%FF` |
/// | `/a/../login` | `/a/../login` | `/login` |
/// | `/a/%2e%2E/login` | `/a/../login` | `/login` |
/// | `//login;jsessionid=1` | `//login;jsessionid=1` | `/login` |
///
/// ```
/// use tollgate_http::PathForm;
///
/// assert_eq!(PathForm::Decoded.of("/%6cogin"), "/login");
/// assert_eq!(PathForm::AsSent.of("/%6cogin"), "/%6cogin");
/// assert_eq!(PathForm::Normalized.of("/a/..//%6cogin;v=1"), "/login");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum PathForm {
    /// Escapes are decoded, but those that would make a path ambiguous stay.
    ///
    /// These stay: `%2F`, `%5C`, `%3F` and `%25`, control characters, and bytes that are not UTF-8.
    /// Their digits become upper case. A `\` becomes `%5C`, and a `%` without two digits becomes
    /// `%25`. So a `%` in a decoded path always begins an escape that stayed, and decoding a path
    /// twice is the same as once.
    ///
    /// `.` and `..` stay, since routers such as those of axum and tonic do not resolve them.
    #[default]
    Decoded,
    /// As the client sent it.
    AsSent,
    /// Decoded, and then resolved: without `.` and `..`, without parameters such as `;v=1`, and
    /// with single slashes.
    ///
    /// Use it if a server, such as one behind a proxy, resolves paths like this. A path that leaves
    /// the root stays in it: `/../login` is `/login`.
    Normalized,
}

impl PathForm {
    /// Returns a path in this form. It does not allocate if nothing changes.
    #[must_use]
    pub fn of(self, path: &str) -> Cow<'_, str> {
        match self {
            Self::AsSent => Cow::Borrowed(path),
            Self::Decoded => decoded(path),
            Self::Normalized => normalized(path),
        }
    }
}

fn decoded(path: &str) -> Cow<'_, str> {
    if !path.contains(['%', '\\']) {
        return Cow::Borrowed(path);
    }
    let mut out = String::with_capacity(path.len());
    decode(path, &mut out);
    same_or_new(path, out)
}

fn same_or_new(path: &str, new: String) -> Cow<'_, str> {
    if path == new {
        Cow::Borrowed(path)
    } else {
        Cow::Owned(new)
    }
}

/// Appends a path or segment with its escapes decoded.
fn decode(mut text: &str, out: &mut String) {
    while let Some(at) = text.find(['%', '\\']) {
        let Some((before, rest)) = text.split_at_checked(at) else {
            break;
        };
        out.push_str(before);
        text = if let Some(rest) = rest.strip_prefix('\\') {
            out.push_str("%5C");
            rest
        } else if escape(rest.as_bytes()).is_some() {
            decode_char(rest, out)
        } else {
            out.push_str("%25");
            rest.strip_prefix('%').unwrap_or_default()
        };
    }
    out.push_str(text);
}

/// Appends the character whose escapes a text begins with, and returns what follows. If they are no
/// character, or one that stays, appends the first escape.
fn decode_char<'t>(text: &'t str, out: &mut String) -> &'t str {
    let mut bytes = [0; 4];
    let escapes = text.as_bytes().chunks(3).map_while(escape);
    let mut len: usize = 0;
    for (place, byte) in bytes.iter_mut().zip(escapes) {
        *place = byte;
        len = len.saturating_add(1);
    }
    let found = bytes.get(..len).unwrap_or_default();
    let valid = match str::from_utf8(found) {
        Ok(text) => text,
        Err(error) => {
            let valid = found.get(..error.valid_up_to()).unwrap_or_default();
            str::from_utf8(valid).unwrap_or_default()
        }
    };
    let taken = match valid.chars().next() {
        Some(char) if !stays(char) => {
            out.push(char);
            char.len_utf8().saturating_mul(3)
        }
        _ => {
            out.push('%');
            let digits = text.get(1..3).unwrap_or_default();
            out.extend(digits.chars().map(|digit| digit.to_ascii_uppercase()));
            3
        }
    };
    text.get(taken..).unwrap_or_default()
}

/// Whether a character would change the segments or the end of a path, or would look like another
/// escape, or can't be seen.
fn stays(char: char) -> bool {
    matches!(char, '/' | '\\' | '?' | '%') || char.is_control()
}

/// The byte that an escape at the start of a text stands for.
fn escape(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else {
        return None;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let value = digit(*high)?.checked_mul(16)?.checked_add(digit(*low)?)?;
    value.try_into().ok()
}

fn normalized(path: &str) -> Cow<'_, str> {
    let unchanged =
        !path.contains(['%', '\\', ';']) && !path.contains("//") && !path.contains("/.");
    if unchanged || !path.starts_with('/') {
        return Cow::Borrowed(path);
    }
    let mut out = String::with_capacity(path.len());
    // Whether the last segment is a directory.
    let mut ends = false;
    for segment in path.split('/').skip(1) {
        let segment = segment.split_once(';').map_or(segment, |(name, _)| name);
        let start = out.len();
        out.push('/');
        decode(segment, &mut out);
        let name = out.get(start.saturating_add(1)..).unwrap_or_default();
        ends = matches!(name, "" | "." | "..");
        if ends {
            let up = name == "..";
            out.truncate(start);
            if up {
                out.truncate(out.rfind('/').unwrap_or(0));
            }
        }
    }
    if ends {
        out.push('/');
    }
    same_or_new(path, out)
}
