//! `ShouldRateLimit` beside a service of tonic that does nothing: how much of the processor's time
//! a request takes, over loopback. Both have one thread, and the same clients in another one.
//!
//!     cargo bench -p tollgate-server --bench envoy
//!
//! Each request is of one of 100 000 addresses, by a rule that has a key for each. The time is that
//! of the server's thread, as Linux counts it, so a slow client changes nothing.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use std::{fs, future};

use bytes::{BufMut, Bytes, BytesMut};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tollgate_server::{Server, Settings};
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic_prost::ProstCodec;
use tower_service::Service;

const KEYS: u32 = 100_000;
const CONNECTIONS: usize = 4;
/// Calls of a connection at once.
const CALLS: usize = 32;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(2);
const PATH: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

const POLICY: &str = "[[rule]]\nname = 'client'\nwhen = { domain = 'web', client-ip = true }\n\
                      key = 'client-ip'\nlimit = '1000000/s'\n";

fn main() {
    let policy = std::env::temp_dir().join(format!("tollgate-bench-{}.toml", std::process::id()));
    fs::write(&policy, POLICY).expect("a file");
    let contestants = [Contestant::tonic(), Contestant::tollgate(policy.clone())];
    let clients = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let clients = clients.expect("a runtime");
    let mut rounds = [Vec::new(), Vec::new()];
    for round in 0..=ROUNDS {
        for (contestant, taken) in contestants.iter().zip(&mut rounds) {
            let cpu = contestant.cpu();
            let start = Instant::now();
            let count = clients.block_on(load(contestant.address));
            let cpu = (contestant.cpu() - cpu).as_nanos() / u128::from(count.max(1));
            let rate = f64::from(count) / start.elapsed().as_secs_f64();
            // The first round warms up.
            if round > 0 {
                taken.push((cpu, rate));
            }
        }
    }
    let _ = fs::remove_file(policy);
    let [tonic, tollgate] = rounds.map(|mut rounds| {
        rounds.sort_by_key(|(cpu, _)| *cpu);
        rounds[rounds.len() / 2]
    });
    for (name, (cpu, rate)) in [("tonic, empty", tonic), ("ShouldRateLimit", tollgate)] {
        println!("{name:16} {cpu:6} ns of the server's thread, {rate:7.0} requests a second");
    }
    let ratio = tonic.0 as f64 / tollgate.0 as f64;
    println!("one thread would answer {ratio:.2} times as many requests as the empty service");
}

/// A server, with one thread.
struct Contestant {
    address: SocketAddr,
    /// The file with the time that the thread has run.
    thread: PathBuf,
    _runtime: Runtime,
}

impl Contestant {
    fn start<F: Future<Output = SocketAddr>>(begin: impl FnOnce() -> F) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        let runtime = runtime.expect("a runtime");
        let (thread, address) = runtime.block_on(async {
            // A task runs in the only thread that has tasks.
            let thread = tokio::spawn(async { fs::read_link("/proc/thread-self").expect("Linux") });
            (thread.await.expect("no panic"), begin().await)
        });
        Self {
            address,
            thread: Path::new("/proc").join(thread).join("schedstat"),
            _runtime: runtime,
        }
    }

    fn tollgate(policy: PathBuf) -> Self {
        Self::start(|| async {
            let mut settings = Settings::default();
            settings.policy = Some(policy);
            settings.watch = false;
            settings.listen = SocketAddr::from(([127, 0, 0, 1], 0));
            settings.admin = None;
            let server = Server::bind(settings).await.expect("a policy");
            let address = server.address();
            tokio::spawn(server.run(future::pending()));
            address
        })
    }

    fn tonic() -> Self {
        Self::start(|| async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
            let listener = listener.expect("a port");
            let address = listener.local_addr().expect("a port");
            let incoming = tonic::transport::server::TcpIncoming::from(listener);
            let incoming = incoming.with_nodelay(Some(true));
            let server = tonic::transport::Server::builder().add_service(EmptyService);
            tokio::spawn(server.serve_with_incoming(incoming));
            address
        })
    }

    /// The time that the thread has run.
    fn cpu(&self) -> Duration {
        let text = fs::read_to_string(&self.thread).expect("Linux");
        let nanos = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
        Duration::from_nanos(nanos.expect("Linux"))
    }
}

/// Asks for a time, and returns how many answers came.
async fn load(address: SocketAddr) -> u32 {
    let (count, next) = (Arc::<AtomicU32>::default(), Arc::<AtomicU32>::default());
    let end = Instant::now() + ROUND;
    let mut tasks = Vec::new();
    for _ in 0..CONNECTIONS {
        let stream = TcpStream::connect(address).await.expect("a server");
        stream.set_nodelay(true).expect("a socket");
        let connection = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (sender, connection) = connection.expect("a server");
        tokio::spawn(connection);
        for _ in 0..CALLS {
            let (mut sender, count, next) = (sender.clone(), Arc::clone(&count), Arc::clone(&next));
            tasks.push(tokio::spawn(async move {
                while Instant::now() < end {
                    let key = next.fetch_add(1, Relaxed) % KEYS;
                    call(&mut sender, address, key).await;
                    count.fetch_add(1, Relaxed);
                }
            }));
        }
    }
    for task in tasks {
        task.await.expect("no panic");
    }
    count.load(Relaxed)
}

async fn call(sender: &mut SendRequest<Full<Bytes>>, address: SocketAddr, key: u32) {
    let client = std::net::Ipv4Addr::from(0x0a00_0000 | key);
    let entry = Entry {
        key: "remote_address".into(),
        value: client.to_string(),
    };
    let message = Asked {
        domain: "web".into(),
        descriptors: vec![Descriptor {
            entries: vec![entry],
        }],
    };
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.encoded_len()).expect("it is small"));
    message.encode(&mut frame).expect("there is room");
    let request = Request::post(format!("http://{address}{PATH}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-timeout", "5S")
        .body(Full::new(frame.freeze()))
        .expect("a request");
    let answer = sender.send_request(request).await.expect("an answer");
    let answer = answer.into_body().collect().await.expect("an answer");
    let trailers = answer.trailers().expect("a status");
    assert_eq!(trailers["grpc-status"], "0");
}

#[derive(Clone, PartialEq, Message)]
struct Asked {
    #[prost(string, tag = "1")]
    domain: String,
    #[prost(message, repeated, tag = "2")]
    descriptors: Vec<Descriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct Descriptor {
    #[prost(message, repeated, tag = "1")]
    entries: Vec<Entry>,
}

#[derive(Clone, PartialEq, Message)]
struct Entry {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Nothing {}

/// A service of tonic that reads a request and answers nothing.
#[derive(Clone)]
struct EmptyService;

impl NamedService for EmptyService {
    const NAME: &'static str = "envoy.service.ratelimit.v3.RateLimitService";
}

impl UnaryService<Asked> for EmptyService {
    type Response = Nothing;
    type Future = Ready<Result<tonic::Response<Nothing>, tonic::Status>>;

    fn call(&mut self, _: tonic::Request<Asked>) -> Self::Future {
        ready(Ok(tonic::Response::new(Nothing {})))
    }
}

impl Service<Request<Body>> for EmptyService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future =
        std::pin::Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(async {
            let mut grpc = Grpc::new(ProstCodec::<Nothing, Asked>::default());
            Ok(grpc.unary(Self, request).await)
        })
    }
}
