//! A server whose handler does nothing, which `scripts/bench-service` compares with the service.
//!
//!     cargo run --release -p tollgate-server --example empty_handler
//!
//! It prints its address, and ends with its standard input.

use std::error::Error;
use std::io;
use std::net::Ipv4Addr;

use axum::Router;
use axum::routing::any;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("{}", listener.local_addr()?);
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
    let router = Router::new()
        .route("/nginx", any(async || ()))
        .route("/decide", any(async || ()));
    Ok(axum::serve(listener, router).await?)
}
