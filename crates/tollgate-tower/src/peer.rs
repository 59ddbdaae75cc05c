//! The address of a connection's other end.

use std::net::{IpAddr, SocketAddr};

use http::Extensions;

/// The address of a connection's other end, as an extension of its requests.
///
/// axum's `ConnectInfo<SocketAddr>` (feature `axum`) and tonic's `TcpConnectInfo` (feature `tonic`,
/// also with TLS) are found as well. A server that has neither inserts this. This one takes
/// precedence, for servers that know a better address, such as from the PROXY protocol.
///
/// ```
/// use http::Request;
/// use tollgate_tower::PeerAddr;
///
/// let mut request = Request::new(());
/// request.extensions_mut().insert(PeerAddr(([192, 0, 2, 7], 443).into()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PeerAddr(pub SocketAddr);

/// Finds the address of the other end among a request's extensions.
#[inline(always)]
pub(crate) fn address(extensions: &Extensions) -> Option<IpAddr> {
    if let Some(peer) = extensions.get::<PeerAddr>() {
        return Some(peer.0.ip());
    }
    #[cfg(feature = "axum")]
    if let Some(info) = extensions.get::<axum::extract::ConnectInfo<SocketAddr>>() {
        return Some(info.0.ip());
    }
    #[cfg(feature = "tonic")]
    if let Some(address) = of_tonic(extensions) {
        return Some(address);
    }
    None
}

#[cfg(feature = "tonic")]
fn of_tonic(extensions: &Extensions) -> Option<IpAddr> {
    use tonic::transport::server::TcpConnectInfo;

    let info = extensions.get::<TcpConnectInfo>()?;
    info.remote_addr().map(|address| address.ip())
}
