//! Patterns of paths.

use std::fmt;

use super::error::{PatternError, PatternErrorKind};
use super::glob::{Glob, escape};

/// The characters that are special in a segment, besides those of a glob.
const SPECIAL: &str = "{}";

/// A pattern of a path: segments, some of them wildcards.
///
/// `*` is one segment, `**` any number of them including none, `{name}` one segment that the key
/// can use as `path:name`, and `v*` a segment that begins with `v`. Empty segments and the query
/// are ignored: `/login/` and `//login?next=/` match `/login`. A path is compared as it is: the
/// program decodes `%2e` and resolves `..` before it supplies the path, if its routes do.
///
/// ```
/// use tollgate_policy::when::PathPattern;
///
/// let pattern = PathPattern::parse("/users/{user}/files/**").unwrap();
/// assert!(pattern.matches("/users/alice/files/a/b"));
/// assert_eq!(pattern.capture("/users/alice/files", "user"), Some("alice"));
/// assert_eq!(pattern.capture("/users/alice", "user"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PathPattern {
    segments: Box<[Segment]>,
}

/// A segment of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Segment {
    Literal(Box<str>),
    /// `*`
    One,
    /// `{name}`
    Capture(Box<str>),
    Glob(Glob),
    /// `**`
    Rest,
}

impl Segment {
    fn parse(text: &str, offset: usize) -> Result<Self, PatternError> {
        let error = |at: usize, kind| Err(PatternError::new(offset + at, kind));
        if text == "*" {
            return Ok(Self::One);
        }
        if text == "**" {
            return Ok(Self::Rest);
        }
        let inner = text
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'));
        if let Some(name) = inner {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            if name.is_empty() || !name.bytes().all(allowed) {
                return error(1, PatternErrorKind::CaptureName);
            }
            return Ok(Self::Capture(name.into()));
        }
        let mut before = '\0';
        for (at, char) in text.char_indices() {
            let escaped = before == '\\';
            match char {
                '?' => return error(at, PatternErrorKind::Query),
                '{' | '}' if !escaped => return error(at, PatternErrorKind::Brace),
                '*' if before == '*' => return error(at - 1, PatternErrorKind::DoubleStar),
                _ => {}
            }
            // An escaped character is not the start of anything.
            before = if escaped { '\0' } else { char };
        }
        let glob = Glob::parse_at(text, offset, SPECIAL)?;
        Ok(match glob.literal() {
            Some(text) => Self::Literal(text.into()),
            None => Self::Glob(glob),
        })
    }

    /// Whether a segment of a path matches. `**` stands for more than one, so it does not.
    fn matches(&self, segment: &str) -> bool {
        match self {
            Self::Literal(text) => **text == *segment,
            Self::One | Self::Capture(_) => true,
            Self::Glob(glob) => glob.matches(segment),
            Self::Rest => false,
        }
    }

    /// Whether each segment that matches `other` matches this one.
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Rest) | (Self::Rest, _) => false,
            (Self::One | Self::Capture(_), _) => true,
            (Self::Glob(glob), Self::Literal(text)) => glob.matches(text),
            (this, other) => this == other,
        }
    }

    /// Whether no segment matches both. `false` can also mean that it is not known.
    fn is_disjoint(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Literal(text), Self::Literal(other)) => text != other,
            (Self::Literal(text), Self::Glob(glob)) | (Self::Glob(glob), Self::Literal(text)) => {
                !glob.matches(text)
            }
            _ => false,
        }
    }

    fn is_rest(&self) -> bool {
        matches!(self, Self::Rest)
    }
}

impl PathPattern {
    /// Whether no path matches both. `false` can also mean that it is not known.
    pub(super) fn is_disjoint(&self, other: &Self) -> bool {
        let has_rest = |path: &Self| path.segments.iter().any(Segment::is_rest);
        let is_open = has_rest(self) || has_rest(other);
        if !is_open && self.segments.len() != other.segments.len() {
            return true;
        }
        // After `**` it is not known which segments are compared.
        let mut pairs = self.segments.iter().zip(&other.segments);
        let mut pairs = pairs
            .by_ref()
            .take_while(|(a, b)| !a.is_rest() && !b.is_rest());
        pairs.any(|(segment, other)| segment.is_disjoint(other))
    }

    /// Reads a pattern. `\*`, `\\`, `\{` and `\}` stand for the characters themselves.
    ///
    /// # Errors
    ///
    /// Returns an error that says where the mistake is and what is allowed.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let error = |at, kind| Err(PatternError::new(at, kind));
        if !text.starts_with('/') {
            return error(0, PatternErrorKind::NoSlash);
        }
        let mut segments: Vec<Segment> = Vec::new();
        let mut offset = 0;
        for part in text.split('/') {
            if !part.is_empty() {
                let segment = Segment::parse(part, offset)?;
                if let Segment::Capture(name) = &segment {
                    if segments.contains(&segment) {
                        let kind = PatternErrorKind::DuplicateCapture(name.to_string());
                        return error(offset + 1, kind);
                    }
                }
                // Two `**` in a row are the same as one.
                if !(segment.is_rest() && segments.last().is_some_and(Segment::is_rest)) {
                    segments.push(segment);
                }
            }
            offset += part.len() + 1;
        }
        Ok(Self {
            segments: segments.into(),
        })
    }

    /// Reads a path in which nothing stands for something else.
    pub(super) fn literal(text: &str) -> Result<Self, PatternError> {
        if !text.starts_with('/') {
            return Err(PatternError::new(0, PatternErrorKind::NoSlash));
        }
        if let Some(at) = text.find('?') {
            return Err(PatternError::new(at, PatternErrorKind::Query));
        }
        let literal = |segment: &str| Segment::Literal(segment.into());
        Ok(Self {
            segments: segments(text).map(literal).collect(),
        })
    }

    /// Whether a path matches.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        self.is_plainly(path) || self.find(path, |_, _| {})
    }

    /// Whether the pattern is a path as it stands, which is found faster.
    #[inline]
    fn is_plainly(&self, path: &str) -> bool {
        let rest = self.segments.iter().try_fold(path, |rest, segment| {
            let rest = rest.strip_prefix('/')?;
            match segment {
                Segment::Literal(text) => rest.strip_prefix(&**text),
                _ => None,
            }
        });
        rest == Some("") && !path.is_empty()
    }

    /// Returns the segment of a path that `{name}` stands for, if the path matches.
    ///
    /// If several segments are possible, because `**` comes before it, this is the leftmost one.
    #[must_use]
    pub fn capture<'p>(&self, path: &'p str, name: &str) -> Option<&'p str> {
        let mut found = None;
        let matches = self.find(path, |segment, text| {
            if matches!(segment, Segment::Capture(known) if **known == *name) {
                found = Some(text);
            }
        });
        found.filter(|_| matches)
    }

    /// Returns the names of the captures, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> + '_ {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Capture(name) => Some(&**name),
            _ => None,
        })
    }

    /// Whether a path matches. Calls back each segment that is one segment of the path.
    fn find<'p>(&self, path: &'p str, mut found: impl FnMut(&Segment, &'p str)) -> bool {
        let mut take = |segment: &Segment, text: Option<&'p str>| match text {
            Some(text) if segment.matches(text) => {
                found(segment, text);
                true
            }
            _ => false,
        };
        let mut chunks = self.segments.split(Segment::is_rest);
        let mut rest = path;
        for segment in chunks.next().unwrap_or_default() {
            let Some((text, after)) = next_segment(rest) else {
                return false;
            };
            if !take(segment, Some(text)) {
                return false;
            }
            rest = after;
        }
        let Some(tail) = chunks.next_back() else {
            return next_segment(rest).is_none();
        };
        let mut rest = segments(rest);
        let mut backward = tail.iter().rev();
        if !backward.all(|segment| take(segment, rest.next_back())) {
            return false;
        }
        // The leftmost place for each chunk leaves the most for those that follow.
        for chunk in chunks {
            loop {
                let mut here = rest.clone();
                if chunk.iter().all(|segment| take(segment, here.next())) {
                    rest = here;
                    break;
                }
                if rest.next().is_none() {
                    return false;
                }
            }
        }
        true
    }

    /// Whether each path that matches `other` matches this one. `false` can also mean that it is
    /// not known.
    pub(super) fn covers(&self, other: &Self) -> bool {
        // `covered[j]`: the segments of `self` from the current one on cover those of `other` from
        // `j` on.
        let mut covered: Vec<bool> = other.segments.iter().map(|_| false).collect();
        covered.push(true);
        let others: Vec<_> = other.segments.iter().map(Some).chain([None]).collect();
        for segment in self.segments.iter().rev() {
            // What `covered[j + 1]` was for the segments after this one, and what it is from this
            // one on.
            let (mut after, mut from) = (false, false);
            for (covered, other) in covered.iter_mut().zip(&others).rev() {
                let now = match segment {
                    Segment::Rest => *covered || from,
                    single => other.is_some_and(|other| single.covers(other)) && after,
                };
                after = std::mem::replace(covered, now);
                from = now;
            }
        }
        covered.first().copied().unwrap_or(false)
    }

    /// Whether each path matches.
    pub(super) fn accepts_all(&self) -> bool {
        matches!(&*self.segments, [Segment::Rest])
    }

    /// Returns this pattern with `**` in place of the `*` at its end, if it has no other `**`.
    pub(super) fn deeper(&self) -> Option<Self> {
        let (last, before) = self.segments.split_last()?;
        let is_one = *last == Segment::One && !before.iter().any(Segment::is_rest);
        let segments = before.iter().cloned().chain([Segment::Rest]);
        is_one.then(|| Self {
            segments: segments.collect(),
        })
    }

    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }
}

/// The segments of a path, without empty ones and without the query.
pub(super) fn segments(path: &str) -> impl DoubleEndedIterator<Item = &str> + Clone {
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    path.split('/').filter(|segment| !segment.is_empty())
}

/// The first segment of a path and what follows it.
pub(super) fn next_segment(path: &str) -> Option<(&str, &str)> {
    let mut path = path;
    while let Some(rest) = path.strip_prefix('/') {
        path = rest;
    }
    let ends = |byte| matches!(byte, b'/' | b'?');
    let end = path.bytes().position(ends).unwrap_or(path.len());
    path.split_at_checked(end)
        .filter(|(segment, _)| !segment.is_empty())
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.segments.is_empty() {
            return f.write_str("/");
        }
        for segment in &self.segments {
            f.write_str("/")?;
            match segment {
                Segment::Literal(text) => escape(f, text, SPECIAL)?,
                Segment::One => f.write_str("*")?,
                Segment::Capture(name) => write!(f, "{{{name}}}")?,
                Segment::Glob(glob) => glob.write(f, SPECIAL)?,
                Segment::Rest => f.write_str("**")?,
            }
        }
        Ok(())
    }
}
