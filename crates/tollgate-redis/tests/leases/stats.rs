//! What is counted of leases, in virtual time.

use foldhash::fast::SeedableRandomState;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tollgate::Quota;

use crate::lease::holder::Answer;
use crate::lease::hot::{Hot, HotKeys};
use crate::lease::keeper::{Keeper, Send};
use crate::lease::stats::Counts;
use crate::server::call::Leased;
use crate::{LeaseStats, Leasing, Limit};

const SECOND: u64 = 1_000_000_000;

/// A node with one key.
struct Node {
    keys: HotKeys,
    keeper: Keeper,
    counts: Counts,
    hot: Arc<Hot>,
    now_ns: u64,
}

impl Node {
    fn new() -> Self {
        let limit = Limit::token_bucket(Quota::per_second(1000)).expect("a limit");
        let keys = HotKeys::new(1, SeedableRandomState::fixed());
        Self {
            hot: keys.add(b"alice", Vec::new()),
            keys,
            keeper: Keeper::new(Leasing::new().terms(&limit).expect("leases")),
            counts: Counts::default(),
            now_ns: SECOND,
        }
    }

    /// Asks for this many permits, of which there are none, and returns the message.
    fn asks(&mut self, permits: u64) -> Send {
        self.hot.missed.fetch_add(permits, Ordering::Relaxed);
        self.keys.tell(&self.hot);
        let mut sends = self.keeper.messages(&self.keys, &self.counts, self.now_ns);
        sends.pop().expect("a message")
    }

    fn is_answered(&mut self, send: &Send, keeps: u64, granted: u64) {
        let answer = Answer {
            number: send.ask.number,
            keeps,
            granted,
        };
        let leased = Ok(Leased {
            answer,
            wait: 0,
            turn: 0,
        });
        let (keys, counts) = (&self.keys, &self.counts);
        self.keeper
            .answered(keys, counts, &self.hot, leased, self.now_ns);
    }

    fn spends(&self, permits: u64) {
        let spent = self.hot.pool.spend(self.now_ns, permits);
        assert!(spent.is_some());
    }

    fn stats(&self) -> LeaseStats {
        self.counts
            .seen(self.keys.held(self.now_ns), self.keys.len())
    }
}

#[test]
fn permits_that_are_not_spent_in_time_have_lapsed() {
    let mut node = Node::new();
    let send = node.asks(50);
    node.is_answered(&send, 0, 10);
    node.spends(3);
    let stats = LeaseStats {
        messages: 1,
        trips: 1,
        draws: 1,
        drawn: 10,
        held: 7,
        keys: 1,
        ..LeaseStats::default()
    };
    assert_eq!(node.stats(), stats);

    // The lease ends. The next message says that nothing is held.
    node.now_ns += 2 * SECOND;
    let send = node.asks(50);
    assert_eq!(send.ask.keeps, 0);
    let stats = LeaseStats {
        messages: 2,
        trips: 2,
        lapsed: 7,
        held: 0,
        ..stats
    };
    assert_eq!(node.stats(), stats);
    node.is_answered(&send, 0, 5);

    // The server has forgotten what the process keeps. One permit is spent before the answer.
    node.now_ns += SECOND / 10;
    let send = node.asks(50);
    assert_eq!(send.ask.keeps, 5);
    node.spends(1);
    node.is_answered(&send, 0, 0);
    let stats = LeaseStats {
        messages: 3,
        trips: 3,
        draws: 2,
        drawn: 15,
        lapsed: 7 + 4,
        ..stats
    };
    assert_eq!(node.stats(), stats);

    // The lease has ended before the answer comes.
    node.now_ns += SECOND / 10;
    let send = node.asks(50);
    node.now_ns += 2 * SECOND;
    node.is_answered(&send, 0, 6);
    node.now_ns += SECOND / 10;
    let _ = node.asks(50);
    assert_eq!((node.stats().drawn, node.stats().lapsed), (21, 17));
}
