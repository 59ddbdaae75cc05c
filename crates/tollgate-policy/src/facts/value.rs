//! The value of a fact, and its values: none, one, or several.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::num::IntErrorKind;

use tollgate::address::canonical;

/// The value of a fact.
///
/// ```
/// use tollgate_policy::FactValue;
///
/// assert_eq!(FactValue::from("acme").as_text(), "acme");
/// assert_eq!(FactValue::from(800).as_number(), Some(800));
/// assert_eq!(FactValue::from("800").as_number(), Some(800));
/// assert_eq!(FactValue::from("::ffff:10.0.0.7").as_address(), Some([10, 0, 0, 7].into()));
/// assert_eq!(FactValue::from("[::1]:443").as_address(), "::1".parse().ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FactValue<'a> {
    /// Any text.
    Text(Cow<'a, str>),
    /// An address.
    Address(IpAddr),
    /// A number, such as a cost.
    Number(u64),
}

impl FactValue<'_> {
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
    /// `u64::MAX`.
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

impl<'a> From<&'a str> for FactValue<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl<'a> From<&'a String> for FactValue<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for FactValue<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl<'a> From<Cow<'a, str>> for FactValue<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self::Text(text)
    }
}

impl From<IpAddr> for FactValue<'_> {
    fn from(address: IpAddr) -> Self {
        Self::Address(address)
    }
}

impl From<u64> for FactValue<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

/// The values of one fact of a request.
///
/// A client can send a header, a parameter of a query or a cookie several times. Then it is not
/// known which value the program reads, so all of them are here. Equal values count as one.
///
/// - A key of several values is ambiguous. The request is denied, unless the rule says in
///   `repeated` which value the program reads.
/// - A condition of a rule, or of the list `deny`, holds if any value fulfills it. A condition of
///   the list `allow` holds if each value fulfills it. Within `not` it is the other way around.
/// - A plan needs one value. A cost is the largest value that is a number.
///
/// ```
/// use tollgate_policy::{FactName, FactValue, FactValues, Facts};
///
/// let keys = FactValues::of(["k1".into(), "k1".into()]);
/// assert_eq!(keys.single(), Some("k1".into()));
/// let keys = FactValues::of(["k1".into(), "k2".into()]);
/// assert!(keys.iter().eq(&[FactValue::from("k1"), "k2".into()]));
/// assert_eq!(keys.single(), None);
///
/// // A list of pairs can have a fact several times.
/// let request = [("header:x-api-key", "k1"), ("header:x-api-key", "k2")];
/// let name = FactName::new("header:x-api-key");
/// assert!(request.values(&name).is_ambiguous());
/// assert_eq!(request.fact(&name), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactValues<'a>(pub(crate) Kind<'a>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    None,
    One(FactValue<'a>),
    Several(Several<'a>),
}

/// Values that are not all equal, or not all known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Several<'a> {
    /// The values that are known, in their order.
    pub(crate) known: Vec<FactValue<'a>>,
    /// Whether there can be more values after these.
    pub(crate) more: bool,
}

impl<'a> FactValues<'a> {
    /// No value.
    pub const NONE: Self = Self(Kind::None);

    /// Collects values, in the order in which the client sent them. Equal ones are one.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = FactValue<'a>>) -> Self {
        let mut values = values.into_iter();
        let Some(first) = values.next() else {
            return Self::NONE;
        };
        let Some(other) = values.find(|value| *value != first) else {
            return first.into();
        };
        let mut known = vec![first, other];
        known.extend(values);
        let more = false;
        Self(Kind::Several(Several { known, more }))
    }

    /// Says that there can be more values, for example because there are too many to read. A key of
    /// such values is ambiguous, even if only one or none is known.
    ///
    /// ```
    /// use tollgate_policy::FactValues;
    ///
    /// assert!(!FactValues::NONE.is_ambiguous());
    /// assert!(FactValues::NONE.and_more().is_ambiguous());
    /// ```
    #[must_use]
    pub fn and_more(self) -> Self {
        let known = match self.0 {
            Kind::None => Vec::new(),
            Kind::One(value) => vec![value],
            Kind::Several(several) => several.known,
        };
        Self(Kind::Several(Several { known, more: true }))
    }

    /// Returns the values that are known.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &FactValue<'a>> + DoubleEndedIterator {
        self.known().iter()
    }

    pub(crate) fn known(&self) -> &[FactValue<'a>] {
        match &self.0 {
            Kind::None => &[],
            Kind::One(value) => std::slice::from_ref(value),
            Kind::Several(several) => &several.known,
        }
    }

    /// Returns the value, or `None` if there is none or if it is ambiguous.
    #[inline]
    #[must_use]
    pub fn single(self) -> Option<FactValue<'a>> {
        match self.0 {
            Kind::One(value) => Some(value),
            Kind::None | Kind::Several(_) => None,
        }
    }

    /// Returns whether there are several values, or can be.
    #[inline]
    #[must_use]
    pub const fn is_ambiguous(&self) -> bool {
        matches!(self.0, Kind::Several(_))
    }

    /// Returns whether there is no value.
    #[inline]
    #[must_use]
    pub const fn is_none(&self) -> bool {
        matches!(self.0, Kind::None)
    }

    /// Returns the largest number, and whether all values are known.
    pub(crate) fn largest(&self) -> (Option<u64>, bool) {
        let numbers = self.iter().filter_map(FactValue::as_number);
        let is_known = match &self.0 {
            Kind::None | Kind::One(_) => true,
            Kind::Several(several) => !several.more,
        };
        (numbers.max(), is_known)
    }
}

impl<'a> From<FactValue<'a>> for FactValues<'a> {
    #[inline]
    fn from(value: FactValue<'a>) -> Self {
        Self(Kind::One(value))
    }
}

impl<'a> From<Option<FactValue<'a>>> for FactValues<'a> {
    #[inline]
    fn from(value: Option<FactValue<'a>>) -> Self {
        value.map_or(Self::NONE, Self::from)
    }
}
