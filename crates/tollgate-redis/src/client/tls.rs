//! Cryptography for connections by TLS.

use redis::{ConnectionAddr, ConnectionInfo};
use rustls::crypto::{CryptoProvider, ring};

/// Chooses the cryptography of this process for an address that needs one, unless the program has
/// chosen. Without a choice, `rustls` would panic when it connects, if other crates have turned on
/// none or several of its kinds.
pub(super) fn provide_cryptography(address: &ConnectionInfo) {
    let needs_one = matches!(address.addr(), ConnectionAddr::TcpTls { .. });
    if needs_one && CryptoProvider::get_default().is_none() {
        // An error says that another thread has chosen in the meantime.
        let _ = ring::default_provider().install_default();
    }
}
