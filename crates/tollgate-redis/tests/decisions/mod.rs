//! Decides on private servers, with a clock that the test sets, and compares each answer, and each
//! stored value and its expiry, with exact arithmetic.
//!
//! The scripts are those of the crate, except that the lines that read the clock (`time.lua`) are
//! replaced by one line that reads the last argument. Keys still expire on the server's own clock,
//! at least a second after they are written. So an episode is one transaction, and if it takes
//! almost a second because the machine is busy, it is repeated with other keys.

mod against_core;
mod changes;
#[allow(dead_code, unexpected_cfgs, reason = "those of other recordings")]
#[path = "../../../../tests/traces/sources/classes.rs"]
mod classes;
mod departures;
mod expiry;
pub(crate) mod leases;
mod logs;
mod mixed;
mod model;
mod quotas;
mod random;
mod recorded_ids;
mod replies;
mod server;
mod slots;
mod stored;
mod traces;
mod verbs;
mod window_model;
mod windows;
mod windows_against_core;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

use crate::client::Reply;
use crate::limit::Limit;
use crate::limit::kind::Kind;
use crate::script::Script;
use crate::server::call::Call;

/// A clock far from both ends: about 2027.
const SOME_DAY: i128 = 40_000_000_000_000;

/// Operations in each random test.
const OPERATIONS: usize = if cfg!(debug_assertions) {
    4_000
} else {
    100_000
};

/// Random numbers from a seed (xorshift64*).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Returns a number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// Returns a number from 0 to `max`: each length in bits is as likely as any other.
    fn any_size(&mut self, max: u64) -> u64 {
        let bits = u64::from(64 - max.leading_zeros());
        let size = self.below(bits + 1);
        let number = match size {
            0 => 0,
            size => (1 << (size - 1)) | (self.next() & ((1 << (size - 1)) - 1)),
        };
        number.min(max)
    }
}

/// Returns the bucket of a quota that is accepted.
fn bucket(quota: tollgate::Quota) -> Kind {
    Limit::token_bucket(quota).expect("accepted").kind
}

type Replies = std::vec::IntoIter<Reply>;

/// Returns the hash of a script whose clock the test sets. In debug builds, a hash takes longer
/// than the call.
fn controlled_sha(script: &'static Script) -> String {
    static HASHES: Mutex<BTreeMap<&str, String>> = Mutex::new(BTreeMap::new());
    let mut hashes = HASHES.lock().expect("no panic in here");
    let hash = || {
        sha1_smol::Sha1::from(script.controlled())
            .digest()
            .to_string()
    };
    hashes.entry(script.sha()).or_insert_with(hash).clone()
}

/// Calls that are sent in one transaction.
struct Episode {
    pipeline: redis::Pipeline,
}

impl Episode {
    fn new() -> Self {
        let mut pipeline = redis::pipe();
        pipeline.atomic();
        Self { pipeline }
    }

    /// Adds a call at this microsecond of the server's clock.
    fn call(&mut self, call: &Call, now: i128) {
        let command = self
            .pipeline
            .cmd("EVALSHA")
            .arg(controlled_sha(call.script));
        command.arg(call.keys.len());
        for bytes in call.keys.iter().chain(&call.args) {
            command.arg(bytes.as_slice());
        }
        command.arg(now.to_string());
    }

    /// Adds a command that returns a key's value, and one that returns its time to live.
    fn inspect(&mut self, key: &[u8]) {
        self.pipeline.cmd("GET").arg(key);
        self.pipeline.cmd("PTTL").arg(key);
    }

    /// Returns the replies, and how many milliseconds they took at most; or `None` if that was so
    /// long that a key may have expired.
    fn run(self, connection: &mut redis::Connection) -> Option<(Replies, u64)> {
        let start = Instant::now();
        let replies = self.replies(connection);
        let took = start.elapsed().as_millis() as u64 + 1;
        (took < 900).then_some((replies, took))
    }

    /// Returns the replies, where no key expires.
    fn replies(self, connection: &mut redis::Connection) -> Replies {
        let replies: Vec<redis::Value> = self.pipeline.query(connection).expect("replies");
        let replies: Vec<_> = replies.into_iter().map(reply).collect();
        replies.into_iter()
    }
}

fn reply(value: redis::Value) -> Reply {
    match value {
        redis::Value::Nil => Reply::Nil,
        redis::Value::Int(number) => Reply::Int(number),
        redis::Value::BulkString(bytes) => Reply::Bytes(bytes),
        redis::Value::Array(list) => Reply::List(list.into_iter().map(reply).collect()),
        other => panic!("{other:?}"),
    }
}
