//! A client whose clock is wrong.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{advance, pause, resume};
use tollgate::Quota;
use tollgate_redis::client::{Client, ClientError, Command, Reply};
use tollgate_redis::{Decider, Fallback, Keys, RedisLimiter, RedisServer};

use super::{AMPLE, BURST, connected, take, until_recovered};
use crate::server::on_each_server;

/// Refuses each command, and keeps it.
#[derive(Default)]
struct Recorder(Mutex<Vec<Vec<u8>>>);

impl Client for &Recorder {
    async fn send(&self, command: &Command<'_>) -> Result<Reply, ClientError> {
        let parts = command.parts().map(<[u8]>::to_vec);
        self.0.lock().unwrap().extend(parts);
        Err(ClientError::NotSent("it is only recorded".into()))
    }
}

/// Returns what each verb sends. A verb has a server of its own, since the first failure begins an
/// outage.
async fn commands() -> Vec<Vec<u8>> {
    let recorder = Recorder::default();
    for verb in 0..6 {
        let keys = Keys::new("test").expect("a namespace");
        let server = Arc::new(RedisServer::new(&recorder));
        let limiter = RedisLimiter::new(
            server,
            &keys,
            "limit",
            Quota::per_hour(100),
            Fallback::Closed,
        );
        let limiter = limiter.expect("a quota");
        let alice = limiter.key("alice");
        match verb {
            0 => assert!(alice.try_acquire().await.is_err()),
            1 => assert!(alice.check_n(3).await.is_err()),
            2 => assert!(alice.refund(2).await.is_err()),
            3 => assert!(alice.charge(5).await.is_err()),
            4 => assert!(alice.ban_for(Duration::from_secs(60)).await.is_err()),
            _ => assert!(alice.reset().await.is_err()),
        }
    }
    recorder.0.into_inner().expect("no panic")
}

#[tokio::test(start_paused = true)]
async fn no_command_has_a_time_of_the_client() {
    let before = commands().await;
    advance(Duration::from_secs(5 * 3600)).await;
    assert!(before.len() >= 6 * 4);
    assert_eq!(commands().await, before);
    // The clock above is tokio's. The other one, which an operator can set, is never read.
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![sources];
    let mut read = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let text = fs::read_to_string(&path).expect("text");
                    assert!(!text.contains("SystemTime"), "{}", path.display());
                    read += 1;
                }
            }
        }
    }
    assert!(read > 10);
}

#[test]
fn a_clients_clock_is_hours_ahead() {
    on_each_server(|mut server| {
        server.start(false);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (limiter, _) = connected(&server.url(), AMPLE, BURST, Fallback::Closed);
            let alice = limiter.key("alice");
            let mut granted = until_recovered(&alice).await;
            for number in 0..BURST + 10 {
                if number == 10 {
                    // By this clock, all permits would be back.
                    pause();
                    advance(Duration::from_secs(30 * 24 * 3600)).await;
                    resume();
                }
                let (is_granted, decider) = take(&alice).await;
                assert_eq!(decider, Decider::Server);
                granted += u64::from(is_granted);
            }
            assert_eq!(granted, BURST);
        });
    });
}
