//! The names of facts.

use std::fmt;

/// The name of a fact, such as `client-ip`, `header:x-api-key` or `user`.
///
/// ```
/// use tollgate_policy::{FactKind, FactName};
///
/// let name = FactName::new("header:X-Api-Key");
/// assert_eq!(name.kind(), FactKind::Header("x-api-key"));
/// assert_eq!(name.as_str(), "header:x-api-key");
/// assert_eq!(FactName::new("header.x-api-key"), name);
/// assert_eq!(FactName::new("user").kind(), FactKind::Other("user"));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FactName {
    text: Box<str>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Kind {
    Method,
    Path,
    Host,
    ClientIp,
    Header,
    Query,
    Cookie,
    PathPart,
    ResponseHeader,
    Other,
}

/// What a fact's name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FactKind<'n> {
    /// `method`: the request's method, such as `GET`.
    Method,
    /// `path`: the request's path, without the query.
    Path,
    /// `host`: the host that the client asked for.
    Host,
    /// `client-ip`: the client's address.
    ClientIp,
    /// `header:NAME`: a header of the request. The name is in lower case.
    Header(&'n str),
    /// `query:NAME`: a parameter of the query.
    Query(&'n str),
    /// `cookie:NAME`: a cookie.
    Cookie(&'n str),
    /// `path:NAME`: what `{NAME}` in the rule's path stands for. The policy finds it itself.
    PathPart(&'n str),
    /// `response-header:NAME`: a header of the answer, for costs that are settled. The name is in
    /// lower case.
    ResponseHeader(&'n str),
    /// Any other name: the program supplies it.
    Other(&'n str),
}

/// The first parts of names that have two.
const GROUPS: [(&str, Kind); 5] = [
    ("header", Kind::Header),
    ("query", Kind::Query),
    ("cookie", Kind::Cookie),
    ("path", Kind::PathPart),
    ("response-header", Kind::ResponseHeader),
];

impl FactName {
    /// Reads a name. A dot after `header`, `query`, `cookie`, `path` or `response-header` becomes a
    /// colon, and names of headers become lower case.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let kind = match name {
            "method" => Kind::Method,
            "path" => Kind::Path,
            "host" => Kind::Host,
            "client-ip" => Kind::ClientIp,
            _ => Kind::Other,
        };
        let parts = name.split_once([':', '.']).and_then(|(group, rest)| {
            let mut groups = GROUPS.iter();
            let (_, kind) = groups.find(|(known, _)| *known == group)?;
            Some((*kind, format!("{group}:{rest}")))
        });
        let (kind, text) = parts.unwrap_or_else(|| (kind, name.into()));
        let text = match kind {
            Kind::Header | Kind::ResponseHeader => text.to_ascii_lowercase().into(),
            _ => text.into(),
        };
        Self { text, kind }
    }

    /// Returns the name as it is written in a policy.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the names are equal. Compares the kinds first: they differ most often.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.kind == other.kind && self.text == other.text
    }

    /// Returns whether a text is this name. Names of headers are compared without case.
    pub(crate) fn is(&self, text: &str) -> bool {
        match self.kind {
            Kind::Header | Kind::ResponseHeader => self.text.eq_ignore_ascii_case(text),
            _ => *self.text == *text,
        }
    }

    /// Returns what the name stands for.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> FactKind<'_> {
        let after = |prefix: &str| self.text.get(prefix.len()..).unwrap_or_default();
        match self.kind {
            Kind::Method => FactKind::Method,
            Kind::Path => FactKind::Path,
            Kind::Host => FactKind::Host,
            Kind::ClientIp => FactKind::ClientIp,
            Kind::Header => FactKind::Header(after("header:")),
            Kind::Query => FactKind::Query(after("query:")),
            Kind::Cookie => FactKind::Cookie(after("cookie:")),
            Kind::PathPart => FactKind::PathPart(after("path:")),
            Kind::ResponseHeader => FactKind::ResponseHeader(after("response-header:")),
            Kind::Other => FactKind::Other(&self.text),
        }
    }
}

impl fmt::Display for FactName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for FactName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}
