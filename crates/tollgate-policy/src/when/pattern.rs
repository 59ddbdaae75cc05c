//! What the value of a fact is compared with.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use tollgate::address::{canonical, canonical_network};

use crate::facts::{FactKind, FactName, FactValue};

use super::error::{PatternError, PatternErrorKind};
use super::glob::{Glob, escape};
use super::input::{Input, clean_path};
use super::path::PathPattern;

/// What one value can be compared with.
///
/// The constructors check that a text can match its fact. They turn hosts into lower case, because
/// hosts are compared in lower case.
///
/// ```
/// use tollgate_policy::FactName;
/// use tollgate_policy::when::Pattern;
///
/// let host = Pattern::parse(&FactName::new("host"), "*.Example.com").unwrap();
/// assert_eq!(host, Pattern::Suffix(".example.com".into()));
/// let office = Pattern::parse(&FactName::new("client-ip"), "10.0.0.0/8").unwrap();
/// assert!(matches!(office, Pattern::Network(_)));
/// let user = Pattern::equal(&FactName::new("user"), "a*").unwrap();
/// assert_eq!(user.to_string(), r"a\*");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Pattern {
    /// This text.
    Equal(String),
    /// Text that begins with this.
    Prefix(String),
    /// Text that ends with this.
    Suffix(String),
    /// Text that matches this.
    Glob(Glob),
    /// A path that matches this.
    Path(PathPattern),
    /// An address in this network.
    Network(IpNet),
}

impl Pattern {
    /// Reads the text of a test: a path pattern for `path`, an address or a network for
    /// `client-ip`, and a text in which `*` stands for any text for other facts.
    ///
    /// # Errors
    ///
    /// Returns an error that says where the mistake is and what is allowed.
    pub fn parse(fact: &FactName, text: &str) -> Result<Self, PatternError> {
        match fact.kind() {
            FactKind::Path => PathPattern::parse(text).map(Self::Path),
            FactKind::ClientIp => Self::network(text),
            _ => Self::glob(fact, text),
        }
    }

    /// Makes a pattern of exactly this text.
    ///
    /// # Errors
    ///
    /// Returns an error if the fact never has such a value.
    pub fn equal(fact: &FactName, text: &str) -> Result<Self, PatternError> {
        match fact.kind() {
            FactKind::Path => PathPattern::literal(text).map(Self::Path),
            FactKind::ClientIp => Self::network(text),
            _ => Ok(Self::Equal(checked_end(fact, text)?)),
        }
    }

    /// Makes a pattern of texts that begin with this one.
    ///
    /// # Errors
    ///
    /// Returns an error if the fact never has such a value.
    pub fn prefix(fact: &FactName, text: &str) -> Result<Self, PatternError> {
        Ok(Self::Prefix(checked(fact, text)?))
    }

    /// Makes a pattern of texts that end with this one.
    ///
    /// # Errors
    ///
    /// Returns an error if the fact never has such a value.
    pub fn suffix(fact: &FactName, text: &str) -> Result<Self, PatternError> {
        Ok(Self::Suffix(checked_end(fact, text)?))
    }

    /// Reads a text in which `*` stands for any text. In a path, it also stands for slashes.
    ///
    /// # Errors
    ///
    /// Returns an error if the text can't be read, or if the fact never has such a value.
    pub fn glob(fact: &FactName, text: &str) -> Result<Self, PatternError> {
        let glob = Glob::parse(text)?;
        checked_end(fact, text)?;
        let glob = match fact.kind() {
            FactKind::Host => glob.to_ascii_lowercase(),
            _ => glob,
        };
        if let Some(text) = glob.literal() {
            return Self::equal(fact, text);
        }
        Ok(match glob.ends() {
            (first, "") if glob.has_only_ends() => Self::Prefix(first.to_owned()),
            ("", last) if glob.has_only_ends() => Self::Suffix(last.to_owned()),
            _ => Self::Glob(glob),
        })
    }

    /// Reads an address or a network. An IPv4 address that is written as one of
    /// IPv6 is one of IPv4: see [`canonical`].
    ///
    /// # Errors
    ///
    /// Returns an error if the text is neither, or if the address has bits beyond the network.
    pub fn network(text: &str) -> Result<Self, PatternError> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Network(canonical(address).into()));
        }
        let Ok(network) = text.parse::<IpNet>() else {
            return Err(PatternError::new(0, PatternErrorKind::Network));
        };
        let (address, bits) = canonical_network(network.addr(), network.prefix_len());
        let network = IpNet::new(address, bits).unwrap_or(network);
        if network.trunc() != network {
            let kind = PatternErrorKind::HostBits(network.trunc());
            return Err(PatternError::new(0, kind));
        }
        Ok(Self::Network(network))
    }

    /// Whether a fact that has this value matches.
    ///
    /// ```
    /// use tollgate_policy::FactName;
    /// use tollgate_policy::when::Pattern;
    ///
    /// let (path, text) = (FactName::new("path"), "/users/{user}");
    /// assert!(Pattern::parse(&path, text).unwrap().matches(&path, "/users/alice".into()));
    /// ```
    #[must_use]
    pub fn matches(&self, fact: &FactName, value: FactValue<'_>) -> bool {
        self.accepts(fact, &Input::new(fact, value))
    }

    #[inline]
    pub(super) fn accepts(&self, fact: &FactName, input: &Input<'_>) -> bool {
        match self {
            Self::Path(pattern) => return pattern.matches(input.text()),
            Self::Network(network) => {
                return input.address().is_some_and(|it| network.contains(&it));
            }
            _ => {}
        }
        match fact.kind() {
            FactKind::Path => self.accepts_text(clean_path(input.text()).as_str()),
            _ => self.accepts_text(input.text()),
        }
    }

    fn accepts_text(&self, text: &str) -> bool {
        match self {
            Self::Equal(equal) => *equal == *text,
            Self::Prefix(prefix) => text.starts_with(&**prefix),
            Self::Suffix(suffix) => text.ends_with(&**suffix),
            Self::Glob(glob) => glob.matches(text),
            Self::Path(_) | Self::Network(_) => false,
        }
    }

    /// Whether any value matches.
    pub(super) fn accepts_all(&self) -> bool {
        match self {
            Self::Prefix(text) | Self::Suffix(text) => text.is_empty(),
            Self::Path(path) => path.accepts_all(),
            _ => false,
        }
    }

    /// Returns whether each value that matches the pattern `other` also matches this pattern. The
    /// answer may be no although they do.
    pub(super) fn covers(&self, other: &Self, fact: &FactName) -> bool {
        if self == other || self.accepts_all() {
            return true;
        }
        match (self, other) {
            (_, Self::Equal(text)) => self.accepts(fact, &Input::new(fact, text.into())),
            (Self::Path(path), Self::Path(other)) => path.covers(other),
            (Self::Network(network), Self::Network(other)) => network.contains(other),
            (Self::Prefix(prefix), Self::Prefix(other)) => other.starts_with(&**prefix),
            (Self::Suffix(suffix), Self::Suffix(other)) => other.ends_with(&**suffix),
            (Self::Prefix(prefix), Self::Glob(glob)) => glob.ends().0.starts_with(&**prefix),
            (Self::Suffix(suffix), Self::Glob(glob)) => glob.ends().1.ends_with(&**suffix),
            _ => false,
        }
    }

    /// Whether no value matches both. It may say no although it is so.
    pub(super) fn is_disjoint(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Equal(text), Self::Equal(other)) => text != other,
            (Self::Path(path), Self::Path(other)) => path.is_disjoint(other),
            (Self::Network(network), Self::Network(other)) => {
                !network.contains(other) && !other.contains(network)
            }
            _ => false,
        }
    }
}

/// A text that the fact's value can end with.
fn checked_end(fact: &FactName, text: &str) -> Result<String, PatternError> {
    match text.strip_suffix('.') {
        Some(before) if fact.kind() == FactKind::Host => {
            Err(PatternError::new(before.len(), PatternErrorKind::HostPort))
        }
        _ => checked(fact, text),
    }
}

/// Returns the text if it can be a part of the fact's value.
fn checked(fact: &FactName, text: &str) -> Result<String, PatternError> {
    let error = |at, kind| Err(PatternError::new(at, kind));
    match fact.kind() {
        FactKind::ClientIp => return error(0, PatternErrorKind::AddressAsText),
        FactKind::Method => {
            if let Some(at) = text.find(|char: char| char.is_ascii_lowercase()) {
                return error(at, PatternErrorKind::LowerCaseMethod);
            }
            if let Some(at) = text.find(|char: char| char.is_whitespace() || char == ',') {
                return error(at, PatternErrorKind::SeveralMethods);
            }
        }
        FactKind::Path => {
            if let Some(at) = text.find('?') {
                return error(at, PatternErrorKind::Query);
            }
        }
        FactKind::Host => {
            let colons = text.matches(':').count();
            let port = if colons == 1 { text.find(':') } else { None };
            if let Some(at) = port.or_else(|| text.find(['[', ']', '/'])) {
                return error(at, PatternErrorKind::HostPort);
            }
            return Ok(text.to_ascii_lowercase());
        }
        _ => {}
    }
    Ok(text.to_owned())
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal(text) => escape(f, text, ""),
            Self::Prefix(text) => escape(f, text, "").and_then(|()| f.write_str("*")),
            Self::Suffix(text) => f.write_str("*").and_then(|()| escape(f, text, "")),
            Self::Glob(glob) => glob.fmt(f),
            Self::Path(path) => path.fmt(f),
            Self::Network(network) if network.prefix_len() == network.max_prefix_len() => {
                network.addr().fmt(f)
            }
            Self::Network(network) => network.fmt(f),
        }
    }
}
