//! What a keeper does about a few keys, and what it counts, in virtual time.

use foldhash::fast::SeedableRandomState;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tollgate::Quota;

use crate::lease::holder::Answer;
use crate::lease::hot::{Hot, HotKeys, Said};
use crate::lease::keeper::{Keeper, Send};
use crate::lease::stats::Counts;
use crate::lease::terms::Terms;
use crate::server::call::Leased;
use crate::{LeaseStats, Leasing, Limit};

const SECOND: u64 = 1_000_000_000;

const MS: u64 = 1_000_000;

fn terms() -> Terms {
    let limit = Limit::token_bucket(Quota::per_second(1000)).expect("a limit");
    Leasing::new().terms(&limit).expect("leases")
}

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
        let keys = HotKeys::new(10, SeedableRandomState::fixed());
        Self {
            hot: keys.add(b"alice", Vec::new()),
            keys,
            keeper: Keeper::new(terms()),
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

    /// Lets the keeper look at its keys after a while, and returns the messages.
    fn after(&mut self, ms: u64) -> Vec<Send> {
        self.now_ns += ms * MS;
        self.keeper.messages(&self.keys, &self.counts, self.now_ns)
    }

    /// Says what a request gets that misses or not, as a caller does.
    fn request(&self, hot: &Arc<Hot>, n: u64) -> Said {
        let (said, tells) = hot.decide(self.now_ns, n, &terms(), false);
        if tells {
            self.keys.tell(hot);
        }
        said
    }

    fn fails(&mut self, hot: &Arc<Hot>, pause_ms: u64) {
        let (keys, counts) = (&self.keys, &self.counts);
        let pause = Err(pause_ms * MS);
        self.keeper.answered(keys, counts, hot, pause, self.now_ns);
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
            ban: 0,
        });
        let (keys, counts) = (&self.keys, &self.counts);
        self.keeper
            .answered(keys, counts, &send.hot, leased, self.now_ns);
    }

    fn spends(&self, permits: u64) {
        let spent = self.hot.permits.pool.spend(self.now_ns, permits);
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

#[test]
fn a_key_that_is_asked_for_while_it_is_given_up_gets_a_lease() {
    let mut node = Node::new();
    let send = node.asks(1);
    node.is_answered(&send, 0, 0);
    let mut goodbye = None;
    for _ in 0..20 {
        for send in node.after(250) {
            match send.ask.wants {
                0 => goodbye = Some(send),
                _ => node.is_answered(&send, 0, 0),
            }
        }
        if goodbye.is_some() {
            break;
        }
    }
    let goodbye = goodbye.expect("a message that wants nothing");
    let hot = Arc::clone(&node.hot);
    assert!(matches!(
        node.request(&hot, 1),
        Said::Ask | Said::Denied { .. }
    ));
    assert!(node.after(1).is_empty());
    node.is_answered(&goodbye, 0, 0);
    // The next request finds the key as it is now.
    let hot = node.keys.add(b"alice", Vec::new());
    let _ = node.request(&hot, 1);
    node.keys.tell(&hot);
    let mut sends = node.after(100);
    let send = sends.pop().expect("a message");
    assert!(
        node.keys.has(&send.hot),
        "the message is about a key that was removed"
    );
    node.is_answered(&send, 0, 1);
    assert!(matches!(node.request(&hot, 1), Said::Granted { .. }));
}

#[test]
fn a_key_about_which_messages_fail_is_asked_about_seldom_and_then_forgotten() {
    let mut node = Node::new();
    let send = node.asks(1);
    node.fails(&send.hot, 10);
    let (hot, mut messages) = (Arc::clone(&node.hot), 0);
    for _ in 0..1000 {
        let _ = node.request(&hot, 1);
        for send in node.after(10) {
            messages += 1;
            node.fails(&send.hot, 10);
        }
    }
    assert!((5..=60).contains(&messages), "{messages} in 10 s");
    // No request comes any more.
    for _ in 0..20 {
        for send in node.after(250) {
            node.fails(&send.hot, 10);
        }
    }
    assert_eq!(node.stats().keys, 0);
}

#[test]
fn one_lost_message_is_no_reason_to_fall_back_and_two_are_until_the_server_answers() {
    let mut node = Node::new();
    let hot = Arc::clone(&node.hot);
    let send = node.asks(50);
    node.is_answered(&send, 0, 1);
    assert!(matches!(node.request(&hot, 1), Said::Granted { .. }));
    for falls in [false, true] {
        let _ = node.request(&hot, 1);
        let send = node.after(100).pop().expect("a message");
        node.fails(&send.hot, 10);
        let said = node.request(&hot, 1);
        assert_eq!(said == Said::Fall, falls, "{said:?}");
    }
    let send = node.after(100).pop().expect("a message");
    node.is_answered(&send, 0, 1);
    assert!(matches!(node.request(&hot, 1), Said::Granted { .. }));
    assert_ne!(node.request(&hot, 1), Said::Fall);
}

#[test]
fn an_answer_after_failures_lets_all_keys_be_asked_about() {
    let mut node = Node::new();
    let other = node.keys.add(b"bob", Vec::new());
    for hot in [Arc::clone(&node.hot), Arc::clone(&other)] {
        let _ = node.request(&hot, 1);
        node.keys.tell(&hot);
    }
    let sends = node.after(1);
    assert_eq!(sends.len(), 2);
    node.fails(&node.hot.clone(), 20);
    node.fails(&other, 200);
    let sends = node.after(25);
    assert_eq!(sends.len(), 1);
    let again = sends.into_iter().next().expect("a message");
    node.is_answered(&again, 0, 1);
    let sends = node.after(10);
    assert!(sends.iter().any(|send| Arc::ptr_eq(&send.hot, &other)));
}

#[test]
fn a_request_for_more_than_an_answer_brought_is_asked_for_at_once() {
    let mut node = Node::new();
    let hot = Arc::clone(&node.hot);
    let send = node.asks(1);
    let wanted = send.ask.wants;
    let _ = node.request(&hot, 200);
    assert!(node.after(1).is_empty());
    node.is_answered(&send, 0, wanted);
    assert!(wanted < 200);
    let sends = node.after(10);
    assert!(sends.iter().any(|send| send.ask.wants > 0));
}

#[test]
fn keys_that_are_asked_for_in_turns_all_get_leases() {
    let keys = HotKeys::new(2000, SeedableRandomState::fixed());
    // Those that share both groups with others come after them.
    for _ in 0..30 {
        for user in 0..1000_u32 {
            let user = user.to_le_bytes();
            if keys.with(&user, |_| ()).is_none() && keys.is_getting_hot(&user, false) {
                keys.add(&user, Vec::new());
            }
        }
    }
    assert_eq!(keys.len(), 1000);
}
