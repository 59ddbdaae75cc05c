//! Forms of paths.

use std::borrow::Cow;

use percent_encoding::{percent_decode_str, percent_encode_byte};

/// In which form rules see a path.
///
/// Choose the form in which the routes of the program see a path. Otherwise a client can write a
/// path that reaches a route but not the rule for it: `/%6cogin` or `/a/../login` for `/login`.
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
    /// Escapes are decoded, apart from those that would make a path ambiguous.
    ///
    /// These stay: `%2F`, `%5C`, `%3F` and `%25`, control characters, and bytes that are not UTF-8.
    /// Their digits become upper case. If one of these characters is sent without an escape, it
    /// gets one: a `\` becomes `%5C`, and a `%` without two digits `%25`. So paths with the same
    /// segments have the same text, and decoding a path twice is the same as once.
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
    if !path.contains(changes) {
        return Cow::Borrowed(path);
    }
    let mut out = String::with_capacity(path.len());
    for (index, segment) in path.split('/').enumerate() {
        if index > 0 {
            out.push('/');
        }
        decode(segment, &mut out);
    }
    same_or_new(path, out)
}

fn normalized(path: &str) -> Cow<'_, str> {
    let changes = |char| char == ';' || changes(char);
    let unchanged = !path.contains(changes) && !path.contains("//") && !path.contains("/.");
    if path == "*" || (unchanged && path.starts_with('/')) {
        return Cow::Borrowed(path);
    }
    let mut out = String::with_capacity(path.len());
    // Whether the last segment names a directory.
    let mut is_directory = false;
    for segment in path.strip_prefix('/').unwrap_or(path).split('/') {
        let segment = segment.split_once(';').map_or(segment, |(name, _)| name);
        let start = out.len();
        out.push('/');
        decode(segment, &mut out);
        let name = out.get(start.saturating_add(1)..).unwrap_or_default();
        is_directory = matches!(name, "" | "." | "..");
        if is_directory {
            let is_parent = name == "..";
            out.truncate(start);
            if is_parent {
                out.truncate(out.rfind('/').unwrap_or(0));
            }
        }
    }
    if is_directory {
        out.push('/');
    }
    same_or_new(path, out)
}

fn same_or_new(path: &str, new: String) -> Cow<'_, str> {
    if path == new {
        Cow::Borrowed(path)
    } else {
        Cow::Owned(new)
    }
}

/// Appends a segment with its escapes decoded, and with escapes for what stays.
fn decode(segment: &str, out: &mut String) {
    let bytes: Cow<'_, [u8]> = percent_decode_str(segment).into();
    let escape = |out: &mut String, bytes: &[u8]| {
        out.extend(bytes.iter().map(|byte| percent_encode_byte(*byte)));
    };
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            if stays(char) {
                escape(out, char.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                out.push(char);
            }
        }
        escape(out, chunk.invalid());
    }
}

/// Whether a character of a segment has an escape in each decoded path: it would change the
/// segments or end the path, would look like an escape, or can't be seen.
fn stays(char: char) -> bool {
    matches!(char, '/' | '\\' | '?' | '%') || char.is_control()
}

/// Whether a character of a path can be written in another way.
fn changes(char: char) -> bool {
    char != '/' && stays(char)
}
