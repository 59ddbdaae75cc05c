//! A private cluster, stopped when it is dropped, also by a test that panics.

use std::thread;
use std::time::{Duration, Instant};

use crate::server::{DEADLINE, Server};

const SLOTS: u16 = 16_384;

/// How many nodes have slots. Others are replicas.
const PRIMARIES: u16 = 3;

/// One node of a cluster.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) server: Server,
}

impl Node {
    fn new(program: &str) -> Self {
        let mut node = Self {
            server: Server::with_bus(program),
        };
        node.start();
        node
    }

    /// Starts the node, also after it was killed. It has no data then.
    pub(crate) fn start(&mut self) {
        self.server.start_with(&[
            "--cluster-enabled",
            "yes",
            // No node fails over by itself, however busy the machine is.
            "--cluster-node-timeout",
            "60000",
            "--cluster-require-full-coverage",
            "no",
        ]);
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.server.port())
    }

    fn id(&self) -> String {
        self.server.run("CLUSTER MYID")
    }
}

/// Three nodes that have all slots, and their replicas.
#[derive(Debug)]
pub(crate) struct Nodes(pub(crate) Vec<Node>);

impl Nodes {
    /// Starts a cluster. The first nodes have a replica each.
    pub(crate) fn start(program: &str, replicas: usize) -> Self {
        let count = usize::from(PRIMARIES) + replicas;
        let nodes: Vec<_> = (0..count).map(|_| Node::new(program)).collect();
        for (i, node) in (0..PRIMARIES).zip(&nodes) {
            let first = i * (SLOTS / PRIMARIES);
            let last = match i + 1 {
                PRIMARIES => SLOTS - 1,
                next => next * (SLOTS / PRIMARIES) - 1,
            };
            let _: String = node
                .server
                .run(&format!("CLUSTER SET-CONFIG-EPOCH {}", i + 1));
            let _: String = node
                .server
                .run(&format!("CLUSTER ADDSLOTSRANGE {first} {last}"));
        }
        for node in &nodes[1..] {
            let (port, bus) = (node.server.port(), node.server.bus());
            let _: String = nodes[0]
                .server
                .run(&format!("CLUSTER MEET 127.0.0.1 {port} {bus}"));
        }
        let nodes = Self(nodes);
        let known = format!("cluster_known_nodes:{count}\r");
        nodes.wait_for("all nodes know all slots", |node| {
            let info: String = node.server.run("CLUSTER INFO");
            info.contains("cluster_state:ok")
                && info.contains("cluster_slots_assigned:16384\r")
                && info.contains(&known)
        });
        for (primary, replica) in nodes.0.iter().zip(&nodes.0[usize::from(PRIMARIES)..]) {
            let _: String = replica
                .server
                .run(&format!("CLUSTER REPLICATE {}", primary.id()));
            wait_for("the replica follows", || {
                let info: String = replica.server.run("INFO replication");
                info.contains("master_link_status:up")
            });
        }
        nodes
    }

    fn wait_for(&self, what: &str, is_so: impl Fn(&Node) -> bool) {
        wait_for(what, || self.0.iter().all(&is_so));
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.0.iter().map(Node::url).collect()
    }

    /// Returns the slot of a key.
    pub(crate) fn slot(&self, key: &[u8]) -> u16 {
        let key = String::from_utf8_lossy(key);
        self.0[1].server.run(&format!("CLUSTER KEYSLOT {key}"))
    }

    /// Returns which node has a slot in the beginning.
    pub(crate) fn owner(&self, slot: u16) -> usize {
        usize::from((slot / (SLOTS / PRIMARIES)).min(PRIMARIES - 1))
    }

    /// Returns how many scripts have run to their end on all nodes.
    pub(crate) fn scripts(&self) -> u64 {
        self.0.iter().map(|node| node.server.scripts()).sum()
    }

    /// Returns how many values the scripts of buckets have written on all nodes.
    pub(crate) fn writes(&self) -> u64 {
        self.0.iter().map(|node| node.server.writes()).sum()
    }

    /// Begins to move a slot: from now on new keys are created on the other node.
    pub(crate) fn begin_move(&self, slot: u16, from: usize, to: usize) {
        let (from, to) = (&self.0[from], &self.0[to]);
        let _: String = to
            .server
            .run(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", from.id()));
        let _: String = from
            .server
            .run(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", to.id()));
    }

    /// Moves the keys of a slot, a few at a time, and then the slot.
    pub(crate) fn end_move(&self, slot: u16, from: usize, to: usize) {
        let (source, target) = (&self.0[from], &self.0[to]);
        loop {
            let keys: Vec<String> = source
                .server
                .run(&format!("CLUSTER GETKEYSINSLOT {slot} 20"));
            if keys.is_empty() {
                break;
            }
            let (port, keys) = (target.server.port(), keys.join(" "));
            let _: String = source
                .server
                .run(&format!("MIGRATE 127.0.0.1 {port}  0 60000 KEYS {keys}"));
        }
        let others = (0..self.0.len()).filter(|&node| node != from && node != to);
        for node in [to, from].into_iter().chain(others) {
            let command = format!("CLUSTER SETSLOT {slot} NODE {}", target.id());
            let _: String = self.0[node].server.run(&command);
        }
    }
}

pub(crate) fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < DEADLINE, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}
