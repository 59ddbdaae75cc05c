//! A private cluster, stopped when it is dropped, also by a test that panics.

use std::env;
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{self, Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use redis::FromRedisValue;

use crate::server::DEADLINE;

const SLOTS: u16 = 16_384;

/// How many nodes have slots. Others are replicas.
const PRIMARIES: u16 = 3;

/// One node of a cluster.
#[derive(Debug)]
pub(super) struct Node {
    program: String,
    folder: PathBuf,
    /// For clients, and for other nodes.
    ports: [u16; 2],
    child: Option<Child>,
}

impl Node {
    fn new(program: &str, number: usize) -> Self {
        let mut node = Self {
            program: program.to_owned(),
            folder: PathBuf::new(),
            ports: [0, 0],
            child: None,
        };
        let start = Instant::now();
        // Another process may take a port before the node does.
        while node.child.is_none() {
            assert!(start.elapsed() < DEADLINE, "a node starts");
            let free = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
            node.ports = free.map(|port| port.local_addr().expect("an address").port());
            let name = format!("tollgate-node-{}-{number}-{}", process::id(), node.ports[0]);
            let _ = fs::remove_dir_all(&node.folder);
            node.folder = env::temp_dir().join(name);
            fs::create_dir_all(&node.folder).expect("a folder for the node");
            node.try_start();
        }
        node
    }

    /// Starts the node if its ports are free.
    fn try_start(&mut self) {
        let [port, bus] = self.ports.map(|port| port.to_string());
        let mut command = Command::new(&self.program);
        command.args(["--port", &port, "--cluster-port", &bus]);
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        command.args(["--cluster-enabled", "yes"]);
        // No node fails over by itself, however busy the machine is.
        command.args(["--cluster-node-timeout", "60000"]);
        command.args(["--cluster-require-full-coverage", "no"]);
        command.arg("--dir").arg(&self.folder);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the server starts");
        let start = Instant::now();
        while start.elapsed() < DEADLINE {
            if child.try_wait().expect("a state").is_some() {
                return;
            }
            if self.try_run::<String>("PING").is_ok() {
                self.child = Some(child);
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        let _ = child.kill();
        let _ = child.wait();
    }

    /// Starts the node again, without its data.
    pub(super) fn start(&mut self) {
        let start = Instant::now();
        while self.child.is_none() {
            assert!(start.elapsed() < DEADLINE, "the node starts again");
            self.try_start();
        }
    }

    /// Kills the node as `kill -9` does.
    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("the node is killed");
            child.wait().expect("the node has ended");
        }
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.ports[0])
    }

    fn try_run<T: FromRedisValue>(&self, command: &str) -> redis::RedisResult<T> {
        let mut words = command.split(' ');
        let mut packed = redis::cmd(words.next().unwrap_or_default());
        for word in words {
            packed.arg(word);
        }
        let client = redis::Client::open(self.url())?;
        packed.query(&mut client.get_connection()?)
    }

    /// Runs one command, whose words are separated by spaces.
    pub(super) fn run<T: FromRedisValue>(&self, command: &str) -> T {
        match self.try_run(command) {
            Ok(answer) => answer,
            Err(error) => panic!("{command}: {error}"),
        }
    }

    pub(super) fn id(&self) -> String {
        self.run("CLUSTER MYID")
    }

    /// Returns how many commands of this name have run to their end.
    pub(super) fn runs(&self, command: &str) -> u64 {
        let info: String = self.run("INFO commandstats");
        let start = format!("cmdstat_{command}:");
        let line = info.lines().find_map(|line| line.strip_prefix(&start));
        let field = |name: &str| -> u64 {
            let fields = line.into_iter().flat_map(|line| line.split(','));
            let mut pairs = fields.filter_map(|field| field.split_once('='));
            let value = pairs.find(|(field, _)| *field == name);
            value.map_or(0, |(_, value)| value.parse().expect("a number"))
        };
        field("calls") - field("failed_calls")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Three nodes that have all slots, and their replicas.
#[derive(Debug)]
pub(super) struct Nodes(pub(super) Vec<Node>);

impl Nodes {
    /// Starts a cluster. The first nodes have a replica each.
    pub(super) fn start(program: &str, replicas: usize) -> Self {
        let count = usize::from(PRIMARIES) + replicas;
        let nodes: Vec<_> = (0..count).map(|i| Node::new(program, i)).collect();
        for (i, node) in (0..PRIMARIES).zip(&nodes) {
            let first = i * (SLOTS / PRIMARIES);
            let last = match i + 1 {
                PRIMARIES => SLOTS - 1,
                next => next * (SLOTS / PRIMARIES) - 1,
            };
            let _: String = node.run(&format!("CLUSTER SET-CONFIG-EPOCH {}", i + 1));
            let _: String = node.run(&format!("CLUSTER ADDSLOTSRANGE {first} {last}"));
        }
        for node in &nodes[1..] {
            let [port, bus] = node.ports;
            let _: String = nodes[0].run(&format!("CLUSTER MEET 127.0.0.1 {port} {bus}"));
        }
        let nodes = Self(nodes);
        let known = format!("cluster_known_nodes:{count}\r");
        nodes.wait_for("all nodes know all slots", |node| {
            let info: String = node.run("CLUSTER INFO");
            info.contains("cluster_state:ok")
                && info.contains("cluster_slots_assigned:16384\r")
                && info.contains(&known)
        });
        for (primary, replica) in nodes.0.iter().zip(&nodes.0[usize::from(PRIMARIES)..]) {
            let _: String = replica.run(&format!("CLUSTER REPLICATE {}", primary.id()));
            wait_for("the replica follows", || {
                let info: String = replica.run("INFO replication");
                info.contains("master_link_status:up")
            });
        }
        nodes
    }

    fn wait_for(&self, what: &str, is_so: impl Fn(&Node) -> bool) {
        wait_for(what, || self.0.iter().all(&is_so));
    }

    pub(super) fn urls(&self) -> Vec<String> {
        self.0.iter().map(Node::url).collect()
    }

    /// Returns the slot of a key.
    pub(super) fn slot(&self, key: &[u8]) -> u16 {
        let key = String::from_utf8_lossy(key);
        self.0[1].run(&format!("CLUSTER KEYSLOT {key}"))
    }

    /// Returns which node has a slot in the beginning.
    pub(super) fn owner(&self, slot: u16) -> usize {
        usize::from((slot / (SLOTS / PRIMARIES)).min(PRIMARIES - 1))
    }

    /// Returns how many commands of this name have run on all nodes.
    pub(super) fn runs(&self, command: &str) -> u64 {
        self.0.iter().map(|node| node.runs(command)).sum()
    }

    /// Begins to move a slot: from now on new keys are created on the other node.
    pub(super) fn begin_move(&self, slot: u16, from: usize, to: usize) {
        let (from, to) = (&self.0[from], &self.0[to]);
        let _: String = to.run(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", from.id()));
        let _: String = from.run(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", to.id()));
    }

    /// Moves the keys of a slot, a few at a time, and then the slot.
    pub(super) fn end_move(&self, slot: u16, from: usize, to: usize) {
        let (source, target) = (&self.0[from], &self.0[to]);
        loop {
            let keys: Vec<String> = source.run(&format!("CLUSTER GETKEYSINSLOT {slot} 20"));
            if keys.is_empty() {
                break;
            }
            let (port, keys) = (target.ports[0], keys.join(" "));
            let _: String = source.run(&format!("MIGRATE 127.0.0.1 {port}  0 60000 KEYS {keys}"));
        }
        let others = (0..self.0.len()).filter(|&node| node != from && node != to);
        for node in [to, from].into_iter().chain(others) {
            let command = format!("CLUSTER SETSLOT {slot} NODE {}", target.id());
            let _: String = self.0[node].run(&command);
        }
    }
}

pub(super) fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < DEADLINE, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}
