//! An HTTP server with an empty handler, for `scripts/bench-http`.
//!
//!     cargo run --release -p tollgate-versus --example http_server -- [--in-router] LAYER
//!
//! The layer is `none`, `tollgate`, `policy`, `governor`, or `identity`, which does nothing. It is
//! around the router. With `--in-router` the router adds it to its routes, and puts it into boxes.
//! The server prints its address, and ends with its standard input. One thread serves all
//! connections.

#[path = "../../benches/http/service/layers.rs"]
#[allow(dead_code, reason = "shared with the bench")]
mod layers;

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::Response;
use axum::routing::get;
use axum::{BoxError, Router, ServiceExt};
use tokio::net::TcpListener;
use tower::util::MapResponseLayer;
use tower_layer::{Identity, Layer, Stack};
use tower_service::Service;

use layers::{Limit, by_address, by_policy, governor};

type IntoBoxes<B> = fn(axum::http::Response<B>) -> Response;
type Outcome = Result<(), Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let is_inside = arguments.iter().any(|argument| argument == "--in-router");
    let layer = arguments.iter().find(|argument| !argument.starts_with('-'));
    let layer = layer.map_or("", |layer| layer);
    let router = Router::new().route("/", get(async || ()));
    match (layer, is_inside) {
        ("none", _) => serve(router).await,
        ("identity", true) => serve(router.layer(Identity::new())).await,
        ("tollgate", true) => serve(router.layer(by_address(Limit::WIDE)?)).await,
        ("policy", true) => serve(router.layer(by_policy(Limit::WIDE)?)).await,
        ("governor", true) => serve(router.layer(governor(Limit::WIDE))).await,
        ("identity", false) => serve(Identity::new().layer(router)).await,
        ("tollgate", false) => serve(boxed(by_address(Limit::WIDE)?).layer(router)).await,
        ("policy", false) => serve(boxed(by_policy(Limit::WIDE)?).layer(router)).await,
        ("governor", false) => serve(governor(Limit::WIDE).layer(router)).await,
        _ => Err(format!("no layer is named '{layer}'").into()),
    }
}

/// Puts the bodies of a layer's answers into boxes, as axum's server wants them.
fn boxed<L, B>(layer: L) -> Stack<L, MapResponseLayer<IntoBoxes<B>>>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    Stack::new(layer, MapResponseLayer::new(|answer| answer.map(Body::new)))
}

async fn serve<S>(service: S) -> Outcome
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("{}", listener.local_addr()?);
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
    let service = service.into_make_service_with_connect_info::<SocketAddr>();
    Ok(axum::serve(listener, service).await?)
}
