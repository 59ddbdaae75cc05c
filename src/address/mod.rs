//! One form for each IP address, so that it is one key.
//!
//! An IPv4 address can also be written as one of IPv6: a socket for both versions writes
//! `::ffff:192.0.2.7` (RFC 4291), and a translator in front of a server that has IPv6 only writes
//! `64:ff9b::192.0.2.7` (RFC 6052). If such addresses are keys, the same client has two keys; and
//! if they are cut to 64 bits, all clients behind a translator are one key.

mod canonical;

pub use canonical::{canonical, canonical_network};
