//! Networks of addresses, as keys.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tollgate::address::canonical;

use super::error::{AddressError, Kind};

/// How many bits of an address count, so that all addresses of a client's network are one key.
///
/// The default is all 32 bits of version 4 and the first 64 bits of version 6. A client with IPv6
/// usually has a whole /64, and often a /56 or /48. A limit for each single address is no limit to
/// such a client.
///
/// ```
/// use std::net::IpAddr;
/// use tollgate_http::AddressPrefix;
///
/// let address = |text: &str| text.parse::<IpAddr>().unwrap();
/// let prefix = AddressPrefix::default();
/// assert_eq!(prefix.network(address("192.0.2.7")), address("192.0.2.7"));
/// assert_eq!(prefix.network(address("::ffff:192.0.2.7")), address("192.0.2.7"));
/// assert_eq!(prefix.network(address("2001:db8::1:2:3:4")), address("2001:db8::"));
///
/// let prefix = AddressPrefix::new(24, 48)?;
/// assert_eq!(prefix.network(address("192.0.2.7")), address("192.0.2.0"));
/// # Ok::<(), tollgate_http::AddressError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub struct AddressPrefix {
    v4: u8,
    v6: u8,
}

impl Default for AddressPrefix {
    fn default() -> Self {
        Self { v4: 32, v6: 64 }
    }
}

impl AddressPrefix {
    /// Creates a prefix of this many bits for addresses of version 4 and of version 6.
    ///
    /// # Errors
    ///
    /// Returns an error if `v4` is above 32 or `v6` above 128.
    pub const fn new(v4: u8, v6: u8) -> Result<Self, AddressError> {
        if v4 > 32 {
            return Err(AddressError::new(Kind::V4Bits(v4)));
        }
        if v6 > 128 {
            return Err(AddressError::new(Kind::V6Bits(v6)));
        }
        Ok(Self { v4, v6 })
    }

    /// Returns how many bits of an address of version 4 count.
    #[must_use]
    pub const fn v4(self) -> u8 {
        self.v4
    }

    /// Returns how many bits of an address of version 6 count.
    #[must_use]
    pub const fn v6(self) -> u8 {
        self.v6
    }

    /// Returns the first address of the network that an address is in.
    ///
    /// An address of version 4 that is written as one of version 6 is one of version 4: see
    /// [`canonical`].
    #[must_use]
    #[inline]
    pub fn network(self, address: IpAddr) -> IpAddr {
        match canonical(address) {
            IpAddr::V4(address) => {
                let host = u32::MAX.checked_shr(self.v4.into()).unwrap_or(0);
                Ipv4Addr::from_bits(address.to_bits() & !host).into()
            }
            IpAddr::V6(address) => {
                let host = u128::MAX.checked_shr(self.v6.into()).unwrap_or(0);
                Ipv6Addr::from_bits(address.to_bits() & !host).into()
            }
        }
    }
}
