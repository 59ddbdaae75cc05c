//! Envoy, with the page's configuration, and the application behind it.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use hyper::service::service_fn;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tempfile::TempDir;
use tokio::sync::Semaphore;

use super::page;

/// How long something may take that always happens.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Returns Envoy's program, or says that a test is skipped.
pub(crate) fn program() -> Option<PathBuf> {
    let program = env::var_os("TOLLGATE_ENVOY").map(PathBuf::from);
    if program.is_none() {
        println!("skipped: TOLLGATE_ENVOY does not name Envoy; see scripts/proxy");
    }
    program
}

/// A running Envoy. It is killed when it is dropped.
pub(crate) struct Envoy {
    pub(crate) address: SocketAddr,
    child: Child,
    folder: TempDir,
}

impl Envoy {
    /// Starts Envoy with the page's configuration, in which `change` replaces texts.
    pub(crate) async fn start(
        program: PathBuf,
        tollgate: SocketAddr,
        application: SocketAddr,
        change: &[(&str, &str)],
    ) -> Self {
        let address = free_address();
        let port = |address: SocketAddr| format!("port_value: {}", address.port());
        let mut yaml = page::configuration().0.to_owned();
        let ports = [(10000, address), (8080, application), (4290, tollgate)];
        for (known, address) in ports {
            yaml = replace(&yaml, &format!("port_value: {known}"), &port(address));
        }
        for (from, to) in change {
            yaml = replace(&yaml, from, to);
        }
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("envoy.yaml");
        fs::write(&config, yaml).unwrap();
        let child = Command::new(program)
            .arg("--config-path")
            .arg(&config)
            .args(["--disable-hot-restart", "--concurrency", "2"])
            .args(["--log-level", "warning"])
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let mut envoy = Self {
            address,
            child,
            folder,
        };
        envoy.wait().await;
        envoy
    }

    /// Waits until it listens, which it does when the service has passed its health check.
    async fn wait(&mut self) {
        let start = Instant::now();
        while tokio::net::TcpStream::connect(self.address).await.is_err() {
            let has_ended = self.child.try_wait().unwrap().is_some();
            if has_ended || start.elapsed() > PATIENCE {
                let log = fs::read_to_string(self.folder.path().join("log"));
                panic!("{}", log.unwrap_or_default());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn replace(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "the page has no {from}");
    text.replace(from, to)
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// The application: it answers `/files/` with 60 000 bytes, and `/reports/` when it is let go on.
pub(crate) struct Application {
    pub(crate) address: SocketAddr,
    /// A permit for each report.
    pub(crate) reports: Arc<Semaphore>,
    task: tokio::task::JoinHandle<()>,
}

impl Application {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let reports = Arc::new(Semaphore::new(0));
        let of_service = Arc::clone(&reports);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let reports = Arc::clone(&of_service);
                let service = service_fn(move |request| answer(request, Arc::clone(&reports)));
                tokio::spawn(async move {
                    let builder = Builder::new(TokioExecutor::new());
                    let stream = TokioIo::new(stream);
                    let _ = builder.serve_connection(stream, service).await;
                });
            }
        });
        Self {
            address,
            reports,
            task,
        }
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    request: Request<hyper::body::Incoming>,
    reports: Arc<Semaphore>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path();
    let body = if path.starts_with("/files/") {
        vec![b'a'; 60_000]
    } else {
        if path.starts_with("/reports/") {
            reports.acquire().await.unwrap().forget();
        }
        b"done".to_vec()
    };
    Ok(Response::new(Full::new(body.into())))
}

/// A client of HTTP.
#[derive(Clone)]
pub(crate) struct Browser {
    client: legacy::Client<HttpConnector, Empty<Bytes>>,
    address: SocketAddr,
}

impl Browser {
    pub(crate) fn http1(address: SocketAddr) -> Self {
        let client = legacy::Client::builder(TokioExecutor::new()).build_http();
        Self { client, address }
    }

    pub(crate) fn http2(address: SocketAddr) -> Self {
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        let client = builder.http2_only(true).build_http();
        Self { client, address }
    }

    pub(crate) async fn send(&self, method: Method, path: &str) -> Response<Bytes> {
        let uri = format!("http://{}{path}", self.address);
        let request = Request::builder().method(method).uri(uri);
        let request = request.body(Empty::new()).unwrap();
        let (head, body) = self.client.request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Response::from_parts(head, body)
    }

    pub(crate) async fn get(&self, path: &str) -> Response<Bytes> {
        self.send(Method::GET, path).await
    }
}
