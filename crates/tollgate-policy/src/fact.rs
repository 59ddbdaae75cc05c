//! Facts: what rules can read of a request.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::IntErrorKind;

use tollgate::address::canonical;

use crate::values::Values;

/// The facts of a request, which a policy reads. The required method [`fact`](Self::fact) returns a
/// fact by its name. If a request can have several values of a fact, implement
/// [`values`](Self::values) too.
///
/// Maps, slices of pairs and arrays of pairs are facts; names of headers are in lower case in maps,
/// and in any case in pairs. Pairs of one name are several values of a fact. In a pair of facts,
/// the first that knows a name answers, so a program can add facts of its own to those of a
/// request.
///
/// ```
/// use std::net::IpAddr;
/// use tollgate_policy::{FactKind, FactName, Facts, Value};
///
/// /// A line of an access log.
/// struct Line {
///     from: IpAddr,
///     path: String,
/// }
///
/// impl Facts for Line {
///     fn fact(&self, name: &FactName) -> Option<Value<'_>> {
///         match name.kind() {
///             FactKind::ClientIp => Some(self.from.into()),
///             FactKind::Path => Some(self.path.as_str().into()),
///             _ => None,
///         }
///     }
/// }
///
/// let line = Line { from: [10, 0, 0, 7].into(), path: "/login".into() };
/// let facts = (&line, [("user", "alice")]);
/// assert_eq!(facts.fact(&FactName::new("path")), Some("/login".into()));
/// assert_eq!(facts.fact(&FactName::new("user")), Some("alice".into()));
/// assert_eq!(facts.fact(&FactName::new("header:x-api-key")), None);
/// ```
pub trait Facts {
    /// Returns the value of a fact, or `None` if the request has no value or several that differ.
    fn fact(&self, name: &FactName) -> Option<Value<'_>>;

    /// Returns all values of a fact. A policy reads facts by this method alone.
    ///
    /// ```
    /// use tollgate_policy::{FactKind, FactName, Facts, Value, Values};
    ///
    /// /// The lines of a request's headers, with names in lower case.
    /// struct Lines(Vec<(String, String)>);
    ///
    /// impl Facts for Lines {
    ///     fn fact(&self, name: &FactName) -> Option<Value<'_>> {
    ///         self.values(name).single()
    ///     }
    ///
    ///     fn values(&self, name: &FactName) -> Values<'_> {
    ///         let FactKind::Header(name) = name.kind() else {
    ///             return Values::NONE;
    ///         };
    ///         let lines = self.0.iter().filter(|(known, _)| known == name);
    ///         Values::of(lines.map(|(_, line)| line.into()))
    ///     }
    /// }
    ///
    /// let lines = [("x-api-key", "k1"), ("x-api-key", "k2")];
    /// let lines = lines.map(|(name, line)| (name.to_owned(), line.to_owned()));
    /// let facts = Lines(lines.into());
    /// assert!(facts.values(&FactName::new("header:x-api-key")).is_ambiguous());
    /// ```
    #[inline]
    fn values(&self, name: &FactName) -> Values<'_> {
        self.fact(name).into()
    }
}

/// The value of a fact.
///
/// ```
/// use tollgate_policy::Value;
///
/// assert_eq!(Value::from("acme").as_text(), "acme");
/// assert_eq!(Value::from(800).as_number(), Some(800));
/// assert_eq!(Value::from("800").as_number(), Some(800));
/// assert_eq!(Value::from("::ffff:10.0.0.7").as_address(), Some([10, 0, 0, 7].into()));
/// assert_eq!(Value::from("[::1]:443").as_address(), "::1".parse().ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Value<'a> {
    /// Any text.
    Text(Cow<'a, str>),
    /// An address.
    Address(IpAddr),
    /// A number, such as a cost.
    Number(u64),
}

impl Value<'_> {
    /// Returns the value as text.
    #[must_use]
    pub fn as_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Address(address) => Cow::Owned(canonical(*address).to_string()),
            Self::Number(number) => Cow::Owned(number.to_string()),
        }
    }

    /// Returns the value as a [`canonical`] address, if it is an address. A port is left out.
    #[must_use]
    pub fn as_address(&self) -> Option<IpAddr> {
        match self {
            Self::Text(text) => {
                let text = text.trim();
                let address = text.parse::<IpAddr>();
                let address = address.or_else(|_| text.parse().map(|it: SocketAddr| it.ip()));
                address.ok().map(canonical)
            }
            Self::Address(address) => Some(canonical(*address)),
            Self::Number(_) => None,
        }
    }

    /// Returns the value as a number, if it is one. A larger number than [`u64::MAX`] counts as
    /// that.
    #[must_use]
    pub fn as_number(&self) -> Option<u64> {
        match self {
            Self::Text(text) => match text.trim().parse::<u64>() {
                Err(error) if *error.kind() == IntErrorKind::PosOverflow => Some(u64::MAX),
                number => number.ok(),
            },
            Self::Address(_) => None,
            Self::Number(number) => Some(*number),
        }
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl<'a> From<Cow<'a, str>> for Value<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self::Text(text)
    }
}

impl From<IpAddr> for Value<'_> {
    fn from(address: IpAddr) -> Self {
        Self::Address(address)
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

/// The name of a fact, such as `client-ip`, `header:x-api-key` or `user`.
///
/// ```
/// use tollgate_policy::{FactKind, FactName};
///
/// let name = FactName::new("header:X-Api-Key");
/// assert_eq!(name.kind(), FactKind::Header("x-api-key"));
/// assert_eq!(name.as_str(), "header:x-api-key");
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

/// The prefixes of names that have two parts.
const PREFIXES: [(&str, Kind); 5] = [
    ("header:", Kind::Header),
    ("query:", Kind::Query),
    ("cookie:", Kind::Cookie),
    ("path:", Kind::PathPart),
    ("response-header:", Kind::ResponseHeader),
];

impl FactName {
    /// Reads a name. Names of headers become lower case.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let kind = match name {
            "method" => Kind::Method,
            "path" => Kind::Path,
            "host" => Kind::Host,
            "client-ip" => Kind::ClientIp,
            _ => {
                let known = PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix));
                known.map_or(Kind::Other, |(_, kind)| *kind)
            }
        };
        let text = match kind {
            Kind::Header | Kind::ResponseHeader => name.to_ascii_lowercase().into(),
            _ => name.into(),
        };
        Self { text, kind }
    }

    /// Returns the name as it is written in a policy.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
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
