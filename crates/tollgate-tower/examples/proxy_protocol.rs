//! A limit for each client address behind a proxy that sends the PROXY protocol, version 1 or 2.
//!
//! The accept loop reads the header with the crate `ppp`, and passes the address in it on as
//! `PeerAddr`. `ppp` does not check the CRC-32c that a header of version 2 may have.
//!
//! ```text
//! cargo run -p tollgate-tower --features axum --example proxy_protocol
//! ```

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::Request;
use axum::{Router, routing::get};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use ppp::{HeaderResult, PartialResult, v1, v2};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tollgate::{Keyed, Quota};
use tollgate_tower::{ClientAddress, PeerAddr, RateLimitLayer};
use tower::ServiceExt;

type Failed = Box<dyn Error + Send + Sync>;

/// Proxies send less than 300 bytes, or some thousands if they add a client's certificate.
const LONGEST_HEADER: usize = 4096;

/// Reads a header, and not a byte after it. `None` if the proxy names no client: the connection is
/// its own health check, or the client came over a Unix socket.
async fn read_header(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<SocketAddr>> {
    let mut bytes = Vec::new();
    while bytes.len() < LONGEST_HEADER {
        bytes.push(stream.read_u8().await?);
        // Version 1 is a line. `ppp` takes some beginnings of a line for malformed headers.
        if bytes.starts_with(b"P") && !bytes.ends_with(b"\n") {
            continue;
        }
        let header = HeaderResult::parse(&bytes);
        if header.is_incomplete() {
            continue;
        }
        return match header {
            HeaderResult::V1(header) => match header.map_err(io::Error::other)?.addresses {
                v1::Addresses::Tcp4(ip) => Ok(Some((ip.source_address, ip.source_port).into())),
                v1::Addresses::Tcp6(ip) => Ok(Some((ip.source_address, ip.source_port).into())),
                v1::Addresses::Unknown => Ok(None),
            },
            HeaderResult::V2(header) => match header.map_err(io::Error::other)? {
                header if header.command == v2::Command::Local => Ok(None),
                header => match header.addresses {
                    v2::Addresses::IPv4(ip) => Ok(Some((ip.source_address, ip.source_port).into())),
                    v2::Addresses::IPv6(ip) => Ok(Some((ip.source_address, ip.source_port).into())),
                    v2::Addresses::Unspecified | v2::Addresses::Unix(_) => Ok(None),
                },
            },
        };
    }
    Err(io::Error::other("the header is too long"))
}

async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    proxies: ClientAddress,
    app: Router,
) -> Result<(), Failed> {
    // With a buffer, reading single bytes is cheap. The server reads what is left in it.
    let mut stream = BufReader::new(stream);
    // Trusted proxies always send a header. Other peers send none: theirs would be no request.
    let client = if proxies.trusts(peer.ip()) {
        let header = read_header(&mut stream);
        let header = tokio::time::timeout(Duration::from_secs(5), header).await??;
        header.unwrap_or(peer)
    } else {
        peer
    };
    let app = app.map_request(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(PeerAddr(client));
        request
    });
    let server = http1::Builder::new();
    let service = TowerToHyperService::new(app);
    Ok(server
        .serve_connection(TokioIo::new(stream), service)
        .await?)
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let limits = Keyed::token_bucket(Quota::per_hour(1), 100_000)?;
    let router = Router::new().route("/", get(async || "hello\n"));
    let app = router.layer(RateLimitLayer::by_address(limits));
    // The proxy runs on this machine.
    let proxies = ClientAddress::peer().trust("127.0.0.1")?;

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, peer)) = listener.accept().await {
            tokio::spawn(serve(stream, peer, proxies.clone(), app.clone()));
        }
    });

    let mut statuses = Vec::new();
    for client in [[192, 0, 2, 7], [192, 0, 2, 8]] {
        let addresses = (SocketAddr::from((client, 40_000)), server);
        let text = v1::Addresses::from(addresses).to_string();
        let proxied = v2::Version::Two | v2::Command::Proxy;
        let binary = v2::Builder::with_addresses(proxied, v2::Protocol::Stream, addresses);
        // The second connection of a client is refused, whatever the version is.
        for header in [text.into_bytes(), binary.build()?] {
            statuses.push(request(server, &header).await?);
        }
    }
    println!("{statuses:?}");
    assert_eq!(statuses, ["200", "429", "200", "429"]);
    // Without a header, the connection is closed. The proxy's own requests have the proxy's limit.
    assert_eq!(request(server, b"").await?, "");
    assert_eq!(request(server, b"PROXY UNKNOWN\r\n").await?, "200");
    Ok(())
}

/// Does what the proxy does: sends the header, and then the client's request. Returns the status.
async fn request(server: SocketAddr, header: &[u8]) -> io::Result<String> {
    let mut stream = TcpStream::connect(server).await?;
    let request = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(&[header, request].concat()).await?;
    let mut answer = Vec::new();
    // A connection that is closed before the request is read may be reset.
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    Ok(answer.split(' ').nth(1).unwrap_or_default().to_owned())
}
