//! What is wrong with a setting of addresses.

use std::error::Error;
use std::fmt;

use ipnet::IpNet;

/// A setting of [`ClientAddress`](crate::ClientAddress) or
/// [`AddressPrefix`](crate::AddressPrefix) is not allowed.
///
/// It names the setting, the value and what is allowed.
///
/// ```
/// use tollgate_http::{AddressPrefix, ClientAddress};
///
/// let error = ClientAddress::peer().trust("10.0.0.1/8").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "trust `10.0.0.1/8`: the address has bits beyond the network; write `10.0.0.0/8`"
/// );
/// let error = AddressPrefix::new(33, 64).unwrap_err();
/// assert_eq!(error.to_string(), "v4 prefix of 33 bits: must be 0 to 32");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressError(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// Neither an address nor a network.
    Network(Box<str>),
    /// A network's address has bits beyond the network, which is given.
    HostBits(Box<str>, IpNet),
    /// Too many bits for addresses of version 4.
    V4Bits(u8),
    /// Too many bits for addresses of version 6.
    V6Bits(u8),
}

impl AddressError {
    pub(super) const fn new(kind: Kind) -> Self {
        Self(kind)
    }
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Network(text) => write!(
                f,
                "trust `{text}`: must be an address such as `10.0.0.7` or `2001:db8::1`, or a \
                 network such as `10.0.0.0/8` or `2001:db8::/32`"
            ),
            Kind::HostBits(text, network) => write!(
                f,
                "trust `{text}`: the address has bits beyond the network; write `{network}`"
            ),
            Kind::V4Bits(bits) => write!(f, "v4 prefix of {bits} bits: must be 0 to 32"),
            Kind::V6Bits(bits) => write!(f, "v6 prefix of {bits} bits: must be 0 to 128"),
        }
    }
}

impl Error for AddressError {}
