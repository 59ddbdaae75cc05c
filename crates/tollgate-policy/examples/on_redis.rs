//! Two processes share the limits of a policy on a server, and each has a limit of its own.
//!
//! ```sh
//! cargo run -p tollgate-policy --features redis --example on_redis
//! ```
//!
//! It connects to redis://127.0.0.1:6379, or to the URL in the variable TOLLGATE_REDIS, and writes
//! keys that begin with `tollgate-example`. They expire within a minute.

use std::env;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tollgate_policy::redis::RedisStore;
use tollgate_policy::{Outcome, Policy};
use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{Keys, RedisServer};

const DEFAULT: &str = "redis://127.0.0.1:6379";

const POLICY: &str = r#"
[[rule]]
name  = "login"
key   = "user"
limit = "5/min"           # of all processes together
count = "failures"
store = "redis"
fallback = "closed"
also  = ["process"]

[[limit]]
name  = "process"
limit = "1000/h"          # of each process, in memory: asked first
"#;

type Failed = Box<dyn Error + Send + Sync>;

/// One process: its policy, and its own connection to the server.
struct Process {
    policy: Policy,
    server: Arc<RedisServer<Connection>>,
}

impl Process {
    fn new(url: &str) -> Result<Self, Failed> {
        // The first call connects, which takes longer than others.
        let server = RedisServer::new(connect_lazily(url)?).with_budget(Duration::from_secs(2));
        let server = Arc::new(server);
        let store = RedisStore::new(Arc::clone(&server), Keys::new("tollgate-example")?);
        let builder = Policy::builder().store("redis", store);
        let policy = builder.build_toml(POLICY)?;
        Ok(Self { policy, server })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let url = env::var("TOLLGATE_REDIS").unwrap_or_else(|_| DEFAULT.into());
    let processes = [Process::new(&url)?, Process::new(&url)?];
    // A user of this run, so that a second run begins anew.
    let user = format!("ann-{}", std::process::id());
    for attempt in 0..8 {
        let index = attempt % 2;
        let Process { policy, server } = &processes[index];
        let decision = policy.decide_async(&[("user", user.as_str())]).await;
        if server.is_down() {
            println!("no server answers; TOLLGATE_REDIS can name another than {DEFAULT}");
            return Ok(());
        }
        let left: Vec<_> = decision.asked().map(|it| it.remaining()).collect();
        match decision.denied_by() {
            None => println!("process {index}: allowed, left in memory and on the server {left:?}"),
            Some(rule) => println!("process {index}: denied by {rule}"),
        }
        // The password was wrong. A success would give the permit back.
        decision.finish_async(Outcome::Failure, &()).await?;
    }
    Ok(())
}
