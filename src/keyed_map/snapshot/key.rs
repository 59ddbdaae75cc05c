use std::boxed::Box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::string::String;
use std::sync::Arc;
use std::vec::Vec;

/// A key that a snapshot of a [`KeyedMap`](crate::KeyedMap) can hold: it can be written as bytes
/// and read back.
///
/// Text, bytes, integers and IP addresses implement it. For your own type:
///
/// ```
/// use tollgate::keyed_map::SnapshotKey;
/// use tollgate::{KeyedMap, Quota};
///
/// #[derive(Clone, PartialEq, Eq, Hash)]
/// struct Tenant {
///     id: u32,
///     name: String,
/// }
///
/// impl SnapshotKey for Tenant {
///     fn write_to(&self, bytes: &mut Vec<u8>) {
///         self.id.write_to(bytes);
///         self.name.write_to(bytes);
///     }
///     fn read_from(bytes: &[u8]) -> Option<Self> {
///         let (id, name) = bytes.split_first_chunk::<4>()?;
///         Some(Self { id: u32::read_from(id)?, name: String::read_from(name)? })
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let quota = Quota::per_day(5);
/// let tenant = Tenant { id: 7, name: "alice".to_owned() };
/// let map: KeyedMap<Tenant, _> = KeyedMap::token_bucket(quota, 1000)?;
/// map.try_acquire(&tenant)?;
/// let mut bytes = Vec::new();
/// map.snapshot(&mut bytes)?;
///
/// let mut map: KeyedMap<Tenant, _> = KeyedMap::token_bucket(quota, 1000)?;
/// map.restore(&mut bytes.as_slice())?;
/// assert_eq!(map.key(&tenant).available(), 4);
/// # Ok(())
/// # }
/// ```
pub trait SnapshotKey: Sized {
    /// Appends the key's bytes.
    fn write_to(&self, bytes: &mut Vec<u8>);

    /// Reads a key from exactly the bytes that [`write_to`](Self::write_to) appended. Returns
    /// `None` for any other bytes: the file may be damaged.
    fn read_from(bytes: &[u8]) -> Option<Self>;
}

macro_rules! as_text {
    ($($text:ty),*) => {$(
        impl SnapshotKey for $text {
            fn write_to(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(self.as_bytes());
            }

            fn read_from(bytes: &[u8]) -> Option<Self> {
                core::str::from_utf8(bytes).ok().map(Self::from)
            }
        }
    )*};
}
as_text!(String, Box<str>, Arc<str>);

macro_rules! as_bytes {
    ($($bytes:ty),*) => {$(
        impl SnapshotKey for $bytes {
            fn write_to(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(self);
            }

            fn read_from(bytes: &[u8]) -> Option<Self> {
                Some(Self::from(bytes))
            }
        }
    )*};
}
as_bytes!(Vec<u8>, Box<[u8]>, Arc<[u8]>);

impl<const N: usize> SnapshotKey for [u8; N] {
    fn write_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }

    fn read_from(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok()
    }
}

macro_rules! as_integer {
    ($($integer:ty),*) => {$(
        impl SnapshotKey for $integer {
            fn write_to(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn read_from(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self::from_le_bytes)
            }
        }
    )*};
}
as_integer!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128);

macro_rules! as_octets {
    ($($address:ty),*) => {$(
        impl SnapshotKey for $address {
            fn write_to(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.octets());
            }

            fn read_from(bytes: &[u8]) -> Option<Self> {
                let octets: [u8; size_of::<$address>()] = SnapshotKey::read_from(bytes)?;
                Some(octets.into())
            }
        }
    )*};
}
as_octets!(Ipv4Addr, Ipv6Addr);

impl SnapshotKey for IpAddr {
    fn write_to(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::V4(address) => address.write_to(bytes),
            Self::V6(address) => address.write_to(bytes),
        }
    }

    fn read_from(bytes: &[u8]) -> Option<Self> {
        let four = Ipv4Addr::read_from(bytes).map(Self::V4);
        four.or_else(|| Ipv6Addr::read_from(bytes).map(Self::V6))
    }
}
