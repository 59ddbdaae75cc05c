//! A proxy between a client and a server, which harms what passes as the test says.

use std::path::PathBuf;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;

use crate::server::Server;

/// What the proxy does with requests and replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Passes all on.
    Pass,
    /// Passes requests on, and keeps replies until the mode changes.
    HoldReplies,
    /// Reads requests and throws them away, without an answer.
    DropRequests,
    /// Passes requests on, and throws replies away.
    DropReplies,
    /// Reads nothing until the mode changes, so that buffers fill.
    Stall,
    /// Passes a request on, and closes instead of passing its reply on.
    Cut,
    /// Passes half of a reply on, and closes.
    HalfReply,
    /// Passes half of a request on, and closes.
    HalfRequest,
    /// Answers the first request of a connection with this, and closes it.
    Answer(&'static str),
}

#[derive(Debug, Clone)]
struct Plan {
    mode: Mode,
    /// Connections with smaller numbers drop requests in each mode.
    first_alive: usize,
    target: PathBuf,
}

impl Plan {
    fn mode(&self, number: usize) -> Mode {
        match number < self.first_alive {
            true => Mode::DropRequests,
            false => self.mode,
        }
    }
}

/// A proxy on a port of its own. It ends with its runtime.
#[derive(Debug)]
pub(super) struct Proxy {
    port: u16,
    plan: watch::Sender<Plan>,
    accepted: watch::Receiver<usize>,
}

impl Proxy {
    pub(super) async fn new(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let (plan, plans) = watch::channel(Plan {
            mode: Mode::Pass,
            first_alive: 0,
            target: server.socket(),
        });
        let (count, accepted) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let number = *count.borrow();
                tokio::spawn(connection(client, number, plans.clone()));
                count.send_replace(number + 1);
            }
        });
        Self {
            port,
            plan,
            accepted,
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(super) fn set(&self, mode: Mode) {
        self.plan.send_modify(|plan| plan.mode = mode);
    }

    /// Connects new connections to another server.
    pub(super) fn point_at(&self, server: &Server) {
        self.plan.send_modify(|plan| plan.target = server.socket());
    }

    /// Lets the connections that exist now be silent for ever, without closing them.
    pub(super) fn silence_old_connections(&self) {
        let first_alive = self.accepted();
        self.plan.send_modify(|plan| plan.first_alive = first_alive);
    }

    /// Returns how many connections were accepted.
    pub(super) fn accepted(&self) -> usize {
        *self.accepted.borrow()
    }
}

async fn connection(mut client: TcpStream, number: usize, plan: watch::Receiver<Plan>) {
    let target = plan.borrow().target.clone();
    let Ok(server) = UnixStream::connect(target).await else {
        return;
    };
    let Mode::Answer(text) = plan.borrow().mode(number) else {
        return pass(client, server, number, plan).await;
    };
    let _ = client.read(&mut [0; 1024]).await;
    let _ = client.write_all(text.as_bytes()).await;
}

async fn pass(
    mut client: TcpStream,
    mut server: UnixStream,
    number: usize,
    plan: watch::Receiver<Plan>,
) {
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let requests = Pump {
        is_request: true,
        number,
        plan: plan.clone(),
    };
    let replies = Pump {
        is_request: false,
        number,
        plan,
    };
    // When one direction ends, both do.
    tokio::select! {
        () = requests.run(from_client, to_server) => {}
        () = replies.run(from_server, to_client) => {}
    }
}

/// One direction of a connection.
struct Pump {
    is_request: bool,
    number: usize,
    plan: watch::Receiver<Plan>,
}

impl Pump {
    /// Passes bytes on until one end closes or the mode says so.
    async fn run(mut self, mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
        let mut buffer = [0; 16 * 1024];
        loop {
            self.while_in(|mode| mode == Mode::Stall).await;
            let Ok(length @ 1..) = from.read(&mut buffer).await else {
                return;
            };
            let is_request = self.is_request;
            self.while_in(|mode| match mode {
                Mode::Stall => true,
                Mode::HoldReplies => !is_request,
                _ => false,
            })
            .await;
            let (passed, closes) = match (self.mode(), is_request) {
                (Mode::DropRequests, true) | (Mode::DropReplies, false) => {
                    return self.discard(from).await;
                }
                (Mode::Cut, false) => (0, true),
                (Mode::HalfRequest, true) | (Mode::HalfReply, false) => (length / 2, true),
                _ => (length, false),
            };
            if to.write_all(&buffer[..passed]).await.is_err() || closes {
                return;
            }
        }
    }

    /// Throws away what comes, until the mode changes. Then the connection closes: without what was
    /// thrown away, the rest would make no sense.
    async fn discard(mut self, mut from: impl AsyncRead + Unpin) {
        let now = self.mode();
        let mut buffer = [0; 16 * 1024];
        let mut plan = self.plan.clone();
        let is_same = self.while_in(|mode| mode == now);
        tokio::pin!(is_same);
        loop {
            tokio::select! {
                () = &mut is_same => return,
                read = from.read(&mut buffer) => match read {
                    Ok(1..) => {}
                    // The other end has closed: nothing is left to be thrown away.
                    _ => {
                        let _ = plan.changed().await;
                        return;
                    }
                },
            }
        }
    }

    fn mode(&self) -> Mode {
        self.plan.borrow().mode(self.number)
    }

    async fn while_in(&mut self, is_waiting: impl Fn(Mode) -> bool) {
        let number = self.number;
        let changed = self.plan.wait_for(|plan| !is_waiting(plan.mode(number)));
        let _ = changed.await;
    }
}
