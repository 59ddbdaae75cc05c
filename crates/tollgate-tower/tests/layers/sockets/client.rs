//! A client that holds one connection.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

pub(crate) const VERSIONS: [Version; 2] = [Version::HTTP_11, Version::HTTP_2];

type Body = Empty<Bytes>;

enum Sender {
    One(http1::SendRequest<Body>),
    Two(http2::SendRequest<Body>),
}

/// A connection to a server. Dropping it closes the connection.
pub(crate) struct Client {
    address: SocketAddr,
    sender: Sender,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr, version: Version) -> Self {
        let io = TokioIo::new(TcpStream::connect(address).await.unwrap());
        let sender = if version == Version::HTTP_2 {
            let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
            tokio::spawn(connection);
            Sender::Two(sender)
        } else {
            let (sender, connection) = http1::handshake(io).await.unwrap();
            tokio::spawn(connection);
            Sender::One(sender)
        };
        Self { address, sender }
    }

    /// A request to a path.
    pub(crate) fn get(&self, path: &str) -> http::request::Builder {
        Request::get(format!("http://{}{path}", self.address)).header("host", "example.com")
    }

    /// Sends a request, and returns its answer once its headers are there.
    pub(crate) async fn send(
        &mut self,
        request: http::request::Builder,
    ) -> hyper::Result<Response<Incoming>> {
        let request = request.body(Body::new()).unwrap();
        match &mut self.sender {
            Sender::One(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
            Sender::Two(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
        }
    }
}
