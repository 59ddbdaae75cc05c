//! The scripts that tollgate's are compared with. Each is called as tollgate's are: by its hash,
//! over the same connection.

use redis::aio::ConnectionLike;
use redis::{Cmd, Value};
use tollgate_redis::client::Connection;

/// The least that a limit on the server's clock does: it reads the time, reads one key, and sets it
/// with an expiry.
pub(crate) const BASE: &str = "
local time = redis.call('TIME')
local value = redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return value
";

/// Decides as Spring Cloud Gateway's token bucket does, with the same commands: whole seconds of
/// the server's clock, and two keys, written also without a grant. Arguments: rate, capacity, an
/// unused one, and the requested tokens.
pub(crate) const SPRING: &str = "
local rate, capacity, requested = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
local now = tonumber(redis.call('TIME')[1])
local expiry = math.floor(capacity / rate * 2)
local tokens = tonumber(redis.call('GET', KEYS[1])) or capacity
local last = tonumber(redis.call('GET', KEYS[2])) or 0
tokens = math.min(capacity, tokens + math.max(0, now - last) * rate)
local allowed = 0
if tokens >= requested then
  tokens, allowed = tokens - requested, 1
end
if expiry > 0 then
  redis.call('SETEX', KEYS[1], expiry, tokens)
  redis.call('SETEX', KEYS[2], expiry, now)
end
return { allowed, tokens }
";

/// Decides as ShenYu's token bucket does, with the same commands: like Spring's, but the time comes
/// from the client, as the third argument.
pub(crate) const SHENYU: &str = "
local rate, capacity = tonumber(ARGV[1]), tonumber(ARGV[2])
local now, requested = tonumber(ARGV[3]), tonumber(ARGV[4])
local expiry = math.floor(capacity / rate * 2)
local tokens = tonumber(redis.call('GET', KEYS[1])) or capacity
local last = tonumber(redis.call('GET', KEYS[2])) or 0
tokens = math.min(capacity, tokens + math.max(0, now - last) * rate)
local allowed = 0
if tokens >= requested then
  tokens, allowed = tokens - requested, 1
end
redis.call('SETEX', KEYS[1], expiry, tokens)
redis.call('SETEX', KEYS[2], expiry, now)
return { allowed, tokens }
";

/// A script that the server knows.
#[derive(Clone)]
pub(crate) struct Loaded {
    connection: Connection,
    sha: String,
}

impl Loaded {
    pub(crate) async fn load(connection: &Connection, text: &str) -> Self {
        let mut connection = connection.clone();
        let mut load = redis::cmd("SCRIPT");
        load.arg("LOAD").arg(text);
        let loaded = load.query_async(&mut connection).await;
        Self {
            connection,
            sha: loaded.expect("the script has no error of syntax"),
        }
    }

    /// Runs the script with as little overhead as `redis` allows.
    pub(crate) async fn run(&self, keys: &[&str], args: &[&str]) -> Value {
        let mut packed = Cmd::new();
        packed.arg("EVALSHA").arg(&self.sha).arg(keys.len());
        for part in keys.iter().chain(args) {
            packed.arg(part);
        }
        let reply = self.connection.clone().req_packed_command(&packed).await;
        let reply = reply.and_then(Value::extract_error);
        reply.expect("the script has no error")
    }
}
