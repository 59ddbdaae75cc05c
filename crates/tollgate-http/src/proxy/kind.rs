//! Commands, families and addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::ProxyError;

/// What a header has after its first 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The proxy opened the connection for itself. Whatever follows has no meaning.
    Local,
    /// The proxy does not say the addresses. Whatever follows has no meaning.
    Unspecified,
    V4,
    V6,
    Unix,
}

impl Kind {
    /// Reads the byte with version and command, and the one with family and transport.
    pub(super) fn read(version: u8, family: u8) -> Result<Self, ProxyError> {
        let (version, command) = (version >> 4, version & 0xF);
        let (family, transport) = (family >> 4, family & 0xF);
        if version != 2 {
            return Err(ProxyError::Version(version));
        }
        match command {
            0 => return Ok(Self::Local),
            1 => {}
            _ => return Err(ProxyError::Command(command)),
        }
        let kind = match family {
            0 => Self::Unspecified,
            1 => Self::V4,
            2 => Self::V6,
            3 => Self::Unix,
            _ => return Err(ProxyError::Family(family)),
        };
        match transport {
            0 => Ok(Self::Unspecified),
            1 | 2 => Ok(kind),
            _ => Err(ProxyError::Transport(transport)),
        }
    }

    /// The length of the addresses and ports.
    pub(super) const fn addresses_len(self) -> usize {
        match self {
            Self::Local | Self::Unspecified => 0,
            Self::V4 => 12,
            Self::V6 => 36,
            Self::Unix => 216,
        }
    }

    /// Whether additions follow the addresses.
    pub(super) const fn has_additions(self) -> bool {
        !matches!(self, Self::Local | Self::Unspecified)
    }

    /// The addresses of the client and of the server, unless they are not addresses of the
    /// Internet.
    pub(super) fn read_addresses(self, bytes: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
        match self {
            Self::Local | Self::Unspecified | Self::Unix => None,
            Self::V4 => two(bytes, |address: [u8; 4]| Ipv4Addr::from(address).into()),
            Self::V6 => two(bytes, |address: [u8; 16]| Ipv6Addr::from(address).into()),
        }
    }
}

/// Two addresses, and then their ports.
fn two<const N: usize>(
    bytes: &[u8],
    address: impl Fn([u8; N]) -> IpAddr,
) -> Option<(SocketAddr, SocketAddr)> {
    let (source, rest) = bytes.split_first_chunk::<N>()?;
    let (destination, rest) = rest.split_first_chunk::<N>()?;
    let (source_port, rest) = rest.split_first_chunk::<2>()?;
    let (destination_port, _) = rest.split_first_chunk::<2>()?;
    let socket =
        |it: &[u8; N], port: &[u8; 2]| SocketAddr::new(address(*it), u16::from_be_bytes(*port));
    Some((
        socket(source, source_port),
        socket(destination, destination_port),
    ))
}
