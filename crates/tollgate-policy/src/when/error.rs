//! What is wrong with the text of a pattern.

use std::error::Error;
use std::fmt;

use ipnet::IpNet;

/// The text of a pattern can't be read.
///
/// ```
/// use tollgate_policy::FactName;
/// use tollgate_policy::when::{Pattern, PatternErrorKind};
///
/// let error = Pattern::parse(&FactName::new("path"), "/api/{id").unwrap_err();
/// assert_eq!(error.offset(), 5);
/// assert_eq!(error.kind(), &PatternErrorKind::Brace);
/// assert_eq!(
///     error.to_string(),
///     r"a capture is a whole segment, such as `{id}`; write other braces as `\{` and `\}`"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    offset: usize,
    kind: PatternErrorKind,
}

/// What is wrong with a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternErrorKind {
    /// A path pattern does not begin with `/`.
    NoSlash,
    /// A path pattern contains `?`. The query is not part of the path.
    Query,
    /// A `\` comes before a character that needs none, or at the end.
    Escape,
    /// A segment of a path pattern contains `**` and something else.
    DoubleStar,
    /// A `{` or `}` is not part of a capture.
    Brace,
    /// The name of a capture is empty or has characters that are not allowed.
    CaptureName,
    /// Two captures of one pattern have this name.
    DuplicateCapture(String),
    /// A method has lower-case letters.
    LowerCaseMethod,
    /// A method contains white space or a comma. Several methods are a list.
    SeveralMethods,
    /// A host has a port, brackets or a dot at its end. These are not compared.
    HostPort,
    /// Something that should be an address or a network is neither.
    Network,
    /// A network's address has bits beyond the network, which is given.
    HostBits(IpNet),
    /// An address can only be compared with addresses and networks.
    AddressAsText,
}

impl PatternError {
    pub(super) fn new(offset: usize, kind: PatternErrorKind) -> Self {
        Self { offset, kind }
    }

    /// Returns where the mistake begins: a number of bytes from the start of the pattern.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns what is wrong.
    #[must_use]
    pub fn kind(&self) -> &PatternErrorKind {
        &self.kind
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use PatternErrorKind as Kind;
        f.write_str(match &self.kind {
            Kind::NoSlash => "a path begins with `/`",
            Kind::Query => "the query is not part of the path; use `query.NAME`",
            Kind::Escape => r"`\` stands before a special character; write a plain one as `\\`",
            Kind::DoubleStar => "`**` is a whole segment, as in `/api/**`",
            Kind::Brace => {
                r"a capture is a whole segment, such as `{id}`; write other braces as `\{` and `\}`"
            }
            Kind::CaptureName => {
                "the name of a capture has ASCII letters, digits, `_` and `-`, at least one"
            }
            Kind::DuplicateCapture(name) => {
                return write!(
                    f,
                    "two captures are named `{name}`; each needs its own name"
                );
            }
            Kind::LowerCaseMethod => "methods are upper case, such as `GET`",
            Kind::SeveralMethods => "a method has no spaces and commas; write several as a list",
            Kind::HostPort => {
                "a host is written without `https://`, port, path, brackets and final dot"
            }
            Kind::Network => {
                "must be an address such as `10.0.0.7` or `2001:db8::1`, or a network such as \
                 `10.0.0.0/8` or `2001:db8::/32`"
            }
            Kind::HostBits(network) => {
                return write!(
                    f,
                    "the address has bits beyond the network; write `{network}`"
                );
            }
            Kind::AddressAsText => {
                "an address is compared with addresses and networks, such as `10.0.0.0/8`"
            }
        })
    }
}

impl Error for PatternError {}
