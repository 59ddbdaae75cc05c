//! axum on two machines that share a limit for each API key, on a private server of Redis, which is
//! then killed: each machine goes on with its share.
//!
//! ```text
//! cargo run -p tollgate-tower --features axum,redis --example axum_redis
//! ```

#[path = "../../tollgate-redis/examples/private_server/mod.rs"]
mod private_server;

use std::error::Error;
use std::sync::Arc;

use axum::{Router, http::HeaderName, routing::get};
use private_server::PrivateServer;
use tokio::net::TcpListener;
use tollgate_tower::tollgate::Quota;
use tollgate_tower::tollgate_redis::client::connect_lazily;
use tollgate_tower::tollgate_redis::{Fallback, Keys, RedisLimiter, RedisServer};
use tollgate_tower::{ByHeader, Fields, RateLimitLayer};

type Failed = Box<dyn Error + Send + Sync>;

fn app(redis: &str) -> Result<Router, Failed> {
    let server =
        RedisServer::new(connect_lazily(redis)?).on_outage(|event| eprintln!("  log: {event}"));
    // While the server does not answer, each of two machines grants half.
    let fallback = Fallback::Local {
        processes: 2,
        keys: 10_000,
    };
    let (keys, quota) = (Keys::new("shop")?, Quota::per_hour(10));
    let limiter = RedisLimiter::new(Arc::new(server), &keys, "api", quota, fallback)?;
    let by_key = ByHeader(HeaderName::from_static("x-api-key"));
    let limit = RateLimitLayer::redis(limiter, by_key)
        .name("api")
        .fields(Fields::LIST);
    let router = Router::new().route("/", get(async || "hello\n"));
    Ok(router.layer(limit))
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let Some(mut redis) = PrivateServer::start().map_err(|error| error.to_string())? else {
        println!("skipped: redis-server can't be started; TOLLGATE_REDIS_SERVER can name another");
        return Ok(());
    };
    let machines = [
        Machine::start(app(&redis.url())?).await?,
        Machine::start(app(&redis.url())?).await?,
    ];
    for machine in &machines {
        machine.until_decided().await?;
    }

    let mut served = [0, 0];
    for turn in 0..12 {
        served[turn % 2] += u32::from(machines[turn % 2].serves("alice").await?);
    }
    println!("of 12 requests of alice's, the machines serve {served:?}");
    assert_eq!(served, [5, 5]);

    redis.kill().map_err(|error| error.to_string())?;
    for machine in &machines {
        let mut served = 0;
        while machine.serves("bob").await? {
            served += 1;
        }
        println!("without the server, a machine serves {served} of bob's");
        assert_eq!(served, 5);
    }
    Ok(())
}

struct Machine {
    url: String,
    client: reqwest::Client,
}

impl Machine {
    async fn start(app: Router) -> Result<Self, Failed> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/", listener.local_addr()?);
        tokio::spawn(async move { axum::serve(listener, app).await });
        let client = reqwest::Client::new();
        Ok(Self { url, client })
    }

    async fn ask(&self, key: &str) -> Result<reqwest::Response, Failed> {
        let request = self.client.get(&self.url).header("x-api-key", key);
        Ok(request.send().await?)
    }

    async fn serves(&self, key: &str) -> Result<bool, Failed> {
        Ok(self.ask(key).await?.status() == 200)
    }

    /// Waits until the server decides. It says of a limit of 10 that 9 are left, where a share of
    /// 5 has at most 4.
    async fn until_decided(&self) -> Result<(), Failed> {
        for user in 0.. {
            let answer = self.ask(&format!("nobody {user}")).await?;
            if answer.headers()["ratelimit"].to_str()?.contains("r=9") {
                return Ok(());
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        Ok(())
    }
}
