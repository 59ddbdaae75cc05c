//! The program behind the proxy.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// A program that says what it was asked, and counts the requests. It reads longer heads than the
/// service. `/forbidden` has a 403 of its own.
pub(crate) struct App {
    pub(crate) address: SocketAddr,
    served: Arc<AtomicUsize>,
}

impl App {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = Arc::<AtomicUsize>::default();
        let counts = Arc::clone(&served);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let counts = Arc::clone(&counts);
                let service = service_fn(move |request| {
                    counts.fetch_add(1, Relaxed);
                    say(request)
                });
                let mut builder = http1::Builder::new();
                builder.max_headers(10_000).max_buf_size(1024 * 1024);
                tokio::spawn(builder.serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { address, served }
    }

    /// Returns how many requests came through.
    pub(crate) fn served(&self) -> usize {
        self.served.load(Relaxed)
    }
}

async fn say(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes());
    let size = body.map_or(0, |body| body.len());
    let text = format!("{} {} with {size} bytes", head.method, head.uri);
    let mut answer = Response::new(Full::from(text));
    if head.uri.path() == "/forbidden" {
        *answer.status_mut() = StatusCode::FORBIDDEN;
        *answer.body_mut() = "its own 403".into();
        let own = HeaderValue::from_static("own");
        answer.headers_mut().insert("x-app", own);
    }
    Ok(answer)
}
