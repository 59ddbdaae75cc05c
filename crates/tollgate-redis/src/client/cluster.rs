//! A cluster: one connection for each node. A command is sent to the node that has its slot.
//!
//! The cluster connection of the crate `redis` is not used here. It connects to all nodes before
//! anything else. By default it sends a command again after an error of the connection. While it
//! connects to one node, calls to other nodes wait.

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, Value};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::connection::{Connection, PING_AFTER, connect_lazily};
use super::redis_rs::{bad_url, packed, reply};
use super::slots::{Address, SLOTS, ranges, slot_of};
use super::{Client, ClientError, Command, Reply, Waiting};

/// How often a command goes on to another node, or waits, before its refusal is returned.
const MAX_REDIRECTS: u32 = 8;

/// How long a command waits while some of its keys are on one node and some on another.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(2);

/// How long a node may take to say which node has which slots.
const ASK_FOR: Duration = Duration::from_secs(1);

/// How long all nodes may take.
const ASK_ALL_FOR: Duration = Duration::from_secs(5);

/// The shortest time between two questions about the slots.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// A Redis or Valkey cluster, from [`connect_to_cluster_lazily`]. Clones share their connections.
///
/// A command whose answer is lost is never sent again. A node that refuses a command because
/// another one has its slot (`MOVED`, `ASK`) has not run it, so the command goes there. After
/// `MOVED` and after a failure, the client asks the nodes in the background which of them has which
/// slots.
///
/// ```
/// use tollgate_redis::client::connect_to_cluster_lazily;
///
/// # fn main() -> Result<(), tollgate_redis::client::ClientError> {
/// let client = connect_to_cluster_lazily(["redis://user:secret@127.0.0.1:7000"])?;
/// assert!(!format!("{client:?}").contains("secret"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Cluster {
    nodes: Arc<Nodes>,
}

struct Nodes {
    /// The nodes of the URLs. The first one has the settings of all nodes.
    first: ConnectionInfo,
    seeds: Vec<Address>,
    /// Never held across an await.
    state: Mutex<State>,
    /// Wakes those that wait for the slots.
    asked: Notify,
}

struct State {
    /// The number of the node that has each slot, or 0 if it is not known.
    slots: Vec<u64>,
    /// Nodes with slots, and nodes from redirects and URLs since the slots were last read.
    nodes: BTreeMap<u64, Node>,
    /// The number of the latest node.
    latest: u64,
    question: Question,
    /// The number of the latest question.
    asked: u64,
    /// The number of the latest question that is over.
    over: u64,
    /// Why that question has no answer.
    failure: Option<ClientError>,
    ping_after: Duration,
}

/// Whether the nodes are being asked which of them has which slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Idle,
    /// The nodes are asked until this time, even if the runtime of the question stands still.
    Asking(Instant),
    /// The nodes were asked a short time ago.
    Resting,
}

/// A node, and the connection to it, which is made when it is first used.
#[derive(Clone)]
struct Node {
    address: Address,
    connection: Connection,
}

/// Creates a client of a cluster. It connects to each node when it is first used, and again after
/// it has lost the connection.
///
/// The URLs name some nodes, and these nodes tell the others. All nodes have the user, the password
/// and the TLS settings of the first URL.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_redis::RedisServer;
/// use tollgate_redis::client::connect_to_cluster_lazily;
///
/// # fn main() -> Result<(), tollgate_redis::client::ClientError> {
/// let client = connect_to_cluster_lazily(["redis://10.0.0.1:7000", "redis://10.0.0.2:7000"])?;
/// let server = Arc::new(RedisServer::new(client));
/// # drop(server);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`ClientError::Url`] if there are no URLs, or if one is invalid, names a Unix socket, or
/// names a database other than 0. The message does not contain the URL, which may have a password.
pub fn connect_to_cluster_lazily<U: IntoConnectionInfo>(
    urls: impl IntoIterator<Item = U>,
) -> Result<Cluster, ClientError> {
    let wrong = |why: &str| ClientError::Url(why.to_owned());
    let mut first = None;
    let mut seeds = Vec::new();
    for (index, url) in urls.into_iter().enumerate() {
        let info = url
            .into_connection_info()
            .map_err(|error| bad_url(&format!("url {index}"), &error))?;
        let (host, port) = match info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                (host.clone(), *port)
            }
            _ => {
                let why = "is a Unix socket, but must be a host and a port";
                return Err(wrong(&format!("url {index} {why}")));
            }
        };
        let database = info.redis_settings().db();
        if database != 0 {
            let why = format!("url {index} has database {database}, but a cluster has only 0");
            return Err(wrong(&why));
        }
        seeds.push(Address { host, port });
        first.get_or_insert(info);
    }
    let first = first.ok_or_else(|| wrong("urls is empty, but must have at least 1"))?;
    let state = State {
        slots: vec![0; SLOTS.into()],
        nodes: BTreeMap::new(),
        latest: 0,
        question: Question::Idle,
        asked: 0,
        over: 0,
        failure: None,
        ping_after: PING_AFTER,
    };
    let nodes = Nodes {
        first,
        seeds,
        state: Mutex::new(state),
        asked: Notify::new(),
    };
    Ok(Cluster {
        nodes: Arc::new(nodes),
    })
}

impl Client for Cluster {
    async fn send(&self, command: &Command<'_>) -> Result<Reply, ClientError> {
        let slot = slot_of(command.keys().first().map_or(&[], Vec::as_slice));
        let mut node = self.of_slot(slot, command.waiting).await?;
        let mut is_asking = false;
        let mut redirects = 0;
        loop {
            let unanswered = Unanswered(self, &node.address);
            let refusal = match node.send(command, is_asking).await {
                Ok(reply) => {
                    mem::forget(unanswered);
                    return Ok(reply);
                }
                Err(ClientError::Refused { code, message }) => {
                    mem::forget(unanswered);
                    (code, message)
                }
                // The command may have run. This drops `unanswered`.
                Err(error) => return Err(error.at(&node.address)),
            };
            let (code, message) = (refusal.0.as_str(), &refusal.1);
            let to = message.split(' ').nth(1);
            let to = to.and_then(|to| Address::of_redirect(to, &node.address));
            redirects += 1;
            // A node that refuses has run nothing, so the command may be sent again.
            match (code, to) {
                _ if redirects > MAX_REDIRECTS => {}
                ("MOVED", Some(to)) => {
                    node = self.nodes.moved(slot, &to)?;
                    is_asking = false;
                    self.ask_for_slots(Some(&to), None);
                    continue;
                }
                ("ASK", Some(to)) => {
                    node = self.nodes.at(&to)?;
                    is_asking = true;
                    continue;
                }
                ("TRYAGAIN", _) => {
                    command.waiting.set_unsent(true);
                    sleep(TRY_AGAIN_AFTER).await;
                    continue;
                }
                _ => {}
            }
            if code == "CLUSTERDOWN" {
                self.ask_for_slots(None, Some(&node.address));
            }
            let (code, message) = refusal;
            return Err(ClientError::Refused { code, message });
        }
    }

    fn node_of(&self, keys: &[Vec<u8>]) -> u64 {
        let slot = slot_of(keys.first().map_or(&[], Vec::as_slice));
        self.nodes.state().number_of(slot)
    }

    fn has_keys(&self, node: u64) -> bool {
        self.nodes.state().slots.contains(&node)
    }
}

impl ClientError {
    /// Says at which node a command failed.
    fn at(self, Address { host, port }: &Address) -> Self {
        let at = |why| format!("{host}:{port}: {why}");
        match self {
            Self::NotSent(why) => Self::NotSent(at(why)),
            Self::Unknown(why) => Self::Unknown(at(why)),
            other @ (Self::Url(_) | Self::Refused { .. }) => other,
        }
    }
}

/// Asks for the slots when it is dropped: a node has failed, or its budget was over before it
/// answered, and another one may have taken over its slots.
struct Unanswered<'a>(&'a Cluster, &'a Address);

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let Self(cluster, failed) = self;
        cluster.ask_for_slots(None, Some(failed));
    }
}

impl Node {
    /// Asks which node has which slots.
    async fn slots(&self) -> Result<Value, ClientError> {
        let mut command = redis::cmd("CLUSTER");
        command.arg("SLOTS");
        let mut open = self.connection.open(&Waiting::new(ASK_FOR)).await?;
        let value = open.connection.send_packed_command(&command).await;
        open.ended(value.and_then(Value::extract_error))
    }

    async fn send(&self, command: &Command<'_>, asking: bool) -> Result<Reply, ClientError> {
        if !asking {
            return self.connection.send(command).await;
        }
        // `ASKING` holds for the next command on the connection, so both are sent as one.
        let mut both = redis::pipe();
        both.cmd("ASKING").add_command(packed(command));
        let mut open = self.connection.open(command.waiting).await?;
        let values = open.connection.send_packed_commands(&both, 0, 2).await;
        let value = values.map(|values| values.into_iter().nth(1).unwrap_or(Value::Nil));
        reply(open.ended(value.and_then(Value::extract_error))?)
    }
}

impl State {
    fn number_of(&self, slot: u16) -> u64 {
        let number = self.slots.get(usize::from(slot));
        number.copied().unwrap_or(0)
    }
}

impl Nodes {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the node that has a slot, if it is known.
    fn of_slot(&self, slot: u16) -> Option<Node> {
        let state = self.state();
        state.nodes.get(&state.number_of(slot)).cloned()
    }

    /// Returns the node at an address.
    fn at(&self, address: &Address) -> Result<Node, ClientError> {
        let mut state = self.state();
        let number = self.number_at(&mut state, address)?;
        let none = || ClientError::NotSent("there is no node".to_owned());
        state.nodes.get(&number).cloned().ok_or_else(none)
    }

    /// Notes that a node has a slot, and returns the node.
    fn moved(&self, slot: u16, address: &Address) -> Result<Node, ClientError> {
        {
            let mut state = self.state();
            let number = self.number_at(&mut state, address)?;
            if let Some(of_slot) = state.slots.get_mut(usize::from(slot)) {
                *of_slot = number;
            }
        }
        self.asked.notify_waiters();
        self.at(address)
    }

    /// Returns the number of the node at an address. A new node gets the next number.
    fn number_at(&self, state: &mut State, address: &Address) -> Result<u64, ClientError> {
        let known = state
            .nodes
            .iter()
            .find(|(_, node)| node.address == *address);
        if let Some((&number, _)) = known {
            return Ok(number);
        }
        let Address { host, port } = address.clone();
        let addr = match self.first.addr() {
            ConnectionAddr::TcpTls {
                insecure,
                tls_params,
                ..
            } => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            _ => ConnectionAddr::Tcp(host, port),
        };
        let node = Node {
            address: address.clone(),
            connection: connect_lazily(self.first.clone().set_addr(addr))?
                .with_ping_after(state.ping_after),
        };
        state.latest = state.latest.saturating_add(1);
        state.nodes.insert(state.latest, node);
        Ok(state.latest)
    }

    /// Returns the nodes that can be asked for the slots.
    fn to_ask(&self, first: Option<&Address>, last: Option<&Address>) -> Vec<Node> {
        for seed in &self.seeds {
            let _ = self.at(seed);
        }
        let mut nodes: Vec<_> = self.state().nodes.values().cloned().collect();
        nodes.sort_by_key(|node| {
            let address = Some(&node.address);
            (address == last, address != first)
        });
        nodes
    }

    /// Notes that a question is over, and what comes next, unless a later one has begun.
    fn end(&self, number: u64, next: Question) {
        let mut state = self.state();
        if state.asked == number {
            state.over = number;
            state.question = next;
        }
        drop(state);
        self.asked.notify_waiters();
    }

    /// Returns an error if no known node has the slot, and a question later than `before` is over,
    /// or none can be asked.
    fn failure(&self, slot: u16, before: u64) -> Option<ClientError> {
        let state = self.state();
        let is_over = state.over > before;
        let is_known = state.nodes.contains_key(&state.number_of(slot));
        let waits = is_known || !is_over && Handle::try_current().is_ok();
        let unknown = || {
            let why = match &state.failure {
                None => String::new(),
                Some(ClientError::NotSent(why)) => format!(": {why}"),
                Some(why) => format!(": {why}"),
            };
            ClientError::NotSent(format!("no node says which of them has the slot{why}"))
        };
        (!waits).then(unknown)
    }

    /// Asks one node after the other, until one says which node has which slots.
    async fn ask(&self, nodes: Vec<Node>) -> Result<(), ClientError> {
        let mut failure = None;
        for node in nodes {
            let answer = match timeout(ASK_FOR, node.slots()).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(error)) => {
                    failure.get_or_insert_with(|| error.at(&node.address));
                    continue;
                }
                Err(_) => continue,
            };
            let mut slots = vec![0; SLOTS.into()];
            let mut state = self.state();
            for range in ranges(answer, &node.address) {
                let Ok(number) = self.number_at(&mut state, &range.address) else {
                    continue;
                };
                let range = usize::from(range.first)..=usize::from(range.last);
                if let Some(slots) = slots.get_mut(range) {
                    slots.fill(number);
                }
            }
            if slots.iter().any(|&number| number > 0) {
                state.nodes.retain(|number, _| slots.contains(number));
                state.slots = slots;
                return Ok(());
            }
        }
        Err(failure.unwrap_or_else(|| ClientError::NotSent("no node has slots".to_owned())))
    }
}

impl Cluster {
    /// Sets how long a connection to a node may be idle before the next call first asks it by
    /// `PING`, also for clones: see [`Connection::with_ping_after`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_redis::client::connect_to_cluster_lazily;
    ///
    /// # fn main() -> Result<(), tollgate_redis::client::ClientError> {
    /// let client = connect_to_cluster_lazily(["redis://10.0.0.1:7000"])?;
    /// let client = client.with_ping_after(Duration::from_secs(60));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_ping_after(self, ping_after: Duration) -> Self {
        let mut state = self.nodes.state();
        state.ping_after = ping_after;
        for node in state.nodes.values_mut() {
            node.connection = node.connection.clone().with_ping_after(ping_after);
        }
        drop(state);
        self
    }

    /// Returns the node that has a slot. Waits for the slots if they are not known yet.
    async fn of_slot(&self, slot: u16, waiting: &Waiting) -> Result<Node, ClientError> {
        // The cause of an earlier failure may be over, so only a question that begins later counts.
        let before = self.nodes.state().asked;
        // The command stays unsent if the caller drops the future.
        waiting.set_unsent(true);
        loop {
            let changed = self.nodes.asked.notified();
            if let Some(node) = self.nodes.of_slot(slot) {
                return Ok(node);
            }
            self.ask_for_slots(None, None);
            if let Some(error) = self.nodes.failure(slot, before) {
                return Err(error);
            }
            changed.await;
        }
    }

    /// Asks the nodes in the background which of them has which slots, unless they are being asked
    /// or were asked a short time ago.
    fn ask_for_slots(&self, first: Option<&Address>, last: Option<&Address>) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let now = Instant::now();
        let number = {
            let mut state = self.nodes.state();
            match state.question {
                Question::Idle => {}
                Question::Asking(until) if until <= now => {}
                Question::Asking(_) | Question::Resting => return,
            }
            state.question = Question::Asking(now + ASK_ALL_FOR);
            state.asked = state.asked.saturating_add(1);
            state.asked
        };
        let asking = Asking(Arc::clone(&self.nodes), number);
        let to_ask = self.nodes.to_ask(first, last);
        runtime.spawn(async move {
            let Asking(nodes, number) = &asking;
            let asked = timeout(ASK_ALL_FOR, nodes.ask(to_ask)).await;
            nodes.state().failure = match asked {
                Ok(answered) => answered.err(),
                Err(_) => Some(ClientError::NotSent("no node answers".to_owned())),
            };
            nodes.end(*number, Question::Resting);
            sleep(ASK_EVERY).await;
        });
    }
}

/// Ends the question with this number when it is dropped, also by the end of the runtime.
struct Asking(Arc<Nodes>, u64);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.end(self.1, Question::Idle);
    }
}

impl fmt::Debug for Cluster {
    /// Does not show the settings, which may have a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.nodes.state();
        let nodes = state.nodes.values().map(|node| &node.address);
        f.debug_struct("Cluster")
            .field("urls", &self.nodes.seeds)
            .field("nodes", &nodes.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
