//! A service of gRPC without generated code. Its messages are bytes.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{Grpc, NamedService, ServerStreamingService, UnaryService};
use tonic::{Request, Response, Status};
use tower::Service;

/// Messages are bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// Answers each message with itself, or with a stream of the test. A message `fail` fails.
#[derive(Debug, Clone)]
pub(crate) struct Echo {
    /// Where each stream gets its sender.
    pub(crate) streams: mpsc::UnboundedSender<mpsc::Sender<Result<Bytes, Status>>>,
}

impl NamedService for Echo {
    const NAME: &'static str = "test.Echo";
}

pub(crate) const SAY: PathAndQuery = path("/test.Echo/Say");
pub(crate) const STREAM: PathAndQuery = path("/test.Echo/Stream");

const fn path(path: &'static str) -> PathAndQuery {
    PathAndQuery::from_static(path)
}

type Call = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Call;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Call {
        let this = self.clone();
        Box::pin(async move {
            let mut grpc = Grpc::new(Raw);
            Ok(match request.uri().path() == STREAM.path() {
                true => grpc.server_streaming(this, request).await,
                false => grpc.unary(this, request).await,
            })
        })
    }
}

impl UnaryService<Bytes> for Echo {
    type Response = Bytes;
    type Future = Ready<Result<Response<Bytes>, Status>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let message = request.into_inner();
        ready(match &*message {
            b"fail" => Err(Status::unauthenticated("no such user")),
            b"absent" => Err(Status::not_found("no such message")),
            _ => Ok(Response::new(message)),
        })
    }
}

impl ServerStreamingService<Bytes> for Echo {
    type Response = Bytes;
    type ResponseStream = ReceiverStream<Result<Bytes, Status>>;
    type Future = Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, _: Request<Bytes>) -> Self::Future {
        let (sender, receiver) = mpsc::channel(1);
        self.streams.send(sender).unwrap();
        ready(Ok(Response::new(ReceiverStream::new(receiver))))
    }
}
