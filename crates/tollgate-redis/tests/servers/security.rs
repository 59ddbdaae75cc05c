//! Users of a server's access control list, and TLS. A refused password or certificate is an outage
//! that names the reason and no secret.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use redis::IntoConnectionInfo;
use tollgate::Quota;
use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{Decider, Fallback, Keys, OutageEvent, RedisAll, RedisLimiter};

use crate::ask::run;
use crate::server::{DEADLINE, Server, on_each_server};

const SECRET: &str = "swordfish";

type Limiter = RedisLimiter<Connection>;

/// A limit, and all texts that it shows or tells about an outage.
struct Told {
    limiter: Limiter,
    texts: Arc<Mutex<Vec<String>>>,
}

impl Told {
    fn new(url: impl IntoConnectionInfo, namespace: &str) -> Self {
        let texts = Arc::<Mutex<Vec<String>>>::default();
        let told = Arc::clone(&texts);
        let client = connect_lazily(url).expect("an address");
        let server = tollgate_redis::RedisServer::new(client)
            .with_budget(DEADLINE)
            .with_probe_every(Duration::from_millis(20))
            .on_outage(move |event| {
                if let OutageEvent::Began { why, .. } = event {
                    told.lock().unwrap().push(format!("{why} {why:?}"));
                }
                told.lock().unwrap().push(format!("{event} {event:?}"));
            });
        let keys = Keys::new(namespace).expect("a namespace");
        let quota = Quota::per_day(1).burst(10);
        let limiter = RedisLimiter::new(Arc::new(server), &keys, "limit", quota, Fallback::Closed);
        Self {
            limiter: limiter.expect("a limit"),
            texts,
        }
    }

    /// Asks until the server decides.
    async fn until_it_decides(&self) {
        let start = Instant::now();
        while self.limiter.key("alice").available().await.is_err() {
            assert!(start.elapsed() < DEADLINE, "{:?}", self.texts);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Fails to decide, and returns all texts.
    async fn failure(&self) -> String {
        let alice = self.limiter.key("alice");
        let denial = alice.try_acquire().await.expect_err("a denial");
        assert_eq!(denial.decider(), Decider::Closed);
        let error = alice.available().await.expect_err("no answer");
        let limiter = &self.limiter;
        format!(
            "{:?} {denial} {denial:?} {error} {error:?} {limiter:?} {:?} {alice:?}",
            self.texts.lock().unwrap(),
            limiter.server(),
        )
    }
}

/// Returns all texts about a failure that has this reason.
async fn failure(url: impl IntoConnectionInfo + Clone, namespace: &str, reason: &str) -> String {
    let start = Instant::now();
    loop {
        let texts = Told::new(url.clone(), namespace).failure().await;
        if texts.contains(reason) {
            return texts;
        }
        // On a busy machine the connection itself may take too long.
        assert!(start.elapsed() < DEADLINE, "no {reason}: {texts}");
    }
}

/// Returns the names of the commands that the scripts call.
fn commands_of_the_scripts() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lua");
    let mut commands = Vec::new();
    for file in std::fs::read_dir(folder).expect("the scripts") {
        let script = std::fs::read_to_string(file.expect("a file").path()).expect("a script");
        for call in script.split("call('").skip(1) {
            commands.extend(call.split('\'').next().map(str::to_lowercase));
        }
    }
    commands.sort();
    commands.dedup();
    commands
}

/// Adds a user with the documented rights: those to decide limits in the namespace `api`, and no
/// more.
fn add_user(server: &Server) {
    let documented: Vec<_> = include_str!("../../src/lib.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("//! ACL SETUSER"))
        .collect();
    for rights in &documented {
        let rights = rights.replace(">password", &format!(">{SECRET}"));
        let _: String = server.run(&format!("ACL SETUSER{rights}"));
    }
    let mut rights: Vec<_> = documented
        .iter()
        .flat_map(|line| line.split_whitespace())
        .filter_map(|word| word.strip_prefix('+'))
        .filter(|name| !["evalsha", "eval", "ping"].contains(name))
        .collect();
    rights.sort_unstable();
    assert_eq!(rights, commands_of_the_scripts(), "documented in lib.rs");
}

#[test]
fn a_user_of_the_access_control_list_needs_few_rights() {
    on_each_server(|mut server| {
        server.start(false);
        add_user(&server);
        let url = |password| format!("{}?user=limits&pass={password}", server.url());
        run(async {
            // Scripts that the server does not know yet are sent by EVAL.
            let told = Told::new(url(SECRET), "api");
            told.until_it_decides().await;
            let (alice, bob) = (told.limiter.key("alice"), told.limiter.key("bob"));
            let grant = alice.try_acquire_n(4).await.expect("a grant");
            assert_eq!(grant.decider(), Decider::Server);
            assert_eq!(alice.undo(grant).await, Ok(4));
            assert_eq!(alice.charge(3).await.map(|charged| charged.n()), Ok(3));
            assert_eq!(alice.available().await, Ok(7));
            assert!(bob.ban_for(Duration::from_secs(60)).await.is_ok());
            assert!(bob.reset().await.is_ok());
            let all = RedisAll::new(vec![bob]).expect("one slot");
            assert!(all.try_acquire().await.is_ok());

            for (url, namespace, reason) in [
                (url(SECRET), "other", "NOPERM"),
                (url("wrong-password"), "api", "refused AUTH"),
            ] {
                let texts = failure(url, namespace, reason).await;
                assert_no_secrets(&texts);
            }
        });
    });
}

fn assert_no_secrets(texts: &str) {
    for secret in [SECRET, "wrong-password", "pass=", "unix:", "rediss:"] {
        assert!(!texts.contains(secret), "{secret}: {texts}");
    }
}

#[cfg(feature = "tls")]
mod tls {
    use std::fs;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    use redis::{ConnectionInfo, TlsCertificates};

    use super::*;
    use crate::server::free_port;

    /// Makes an authority, and a certificate that it has signed for 127.0.0.1, with `openssl`.
    const MAKE: &str = "
        set -e
        key='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
        for name in authority other; do
            openssl req -x509 $key -keyout $name.key -out $name.crt -subj /CN=$name -days 2
        done
        openssl req $key -keyout server.key -out server.csr -subj /CN=server
        echo subjectAltName=IP:127.0.0.1 > names
        openssl x509 -req -in server.csr -CA authority.crt -CAkey authority.key -CAcreateserial \
            -out server.crt -extfile names -days 2
    ";

    /// Starts a server with TLS, and returns its port and the folder of the certificates. `None` if
    /// this machine can't.
    fn start(server: &mut Server) -> Option<(u16, PathBuf)> {
        server.start(false);
        let folder = server.socket().parent()?.to_owned();
        let mut make = Command::new("sh");
        make.args(["-c", MAKE]).current_dir(&folder);
        let made = make.stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !made.is_ok_and(|made| made.success()) {
            println!("skipped: openssl can't make certificates");
            return None;
        }
        let mut connection = server.connection();
        // The port may be in use by now.
        for _ in 0..10 {
            let port = free_port();
            let mut set = redis::cmd("CONFIG");
            set.arg("SET");
            let file = |name| folder.join(name).display().to_string();
            set.arg("tls-cert-file").arg(file("server.crt"));
            set.arg("tls-key-file").arg(file("server.key"));
            set.arg("tls-ca-cert-file").arg(file("authority.crt"));
            set.arg("tls-auth-clients").arg("no");
            set.arg("tls-port").arg(port);
            match set.exec(&mut connection) {
                Ok(()) => return Some((port, folder)),
                Err(error) if error.is_connection_dropped() => {
                    println!("skipped: a server that is built without TLS ends");
                    return None;
                }
                Err(_) => {}
            }
        }
        panic!("the server does not listen");
    }

    /// Returns an address with TLS, which trusts an authority.
    fn address(url: &str, authority: &Path) -> ConnectionInfo {
        let certificates = TlsCertificates {
            client_tls: None,
            root_cert: Some(fs::read(authority).expect("a certificate")),
        };
        let client = redis::Client::build_with_tls(url, certificates).expect("an address");
        client.get_connection_info().clone()
    }

    #[test]
    fn a_server_is_reached_by_tls_if_its_certificate_is_trusted() {
        on_each_server(|mut server| {
            let Some((port, folder)) = start(&mut server) else {
                return;
            };
            add_user(&server);
            let url = |password| format!("rediss://limits:{password}@127.0.0.1:{port}/");
            let trusted = folder.join("authority.crt");
            run(async {
                let told = Told::new(address(&url(SECRET), &trusted), "api");
                told.until_it_decides().await;
                let grant = told.limiter.key("alice").try_acquire().await;
                assert_eq!(grant.expect("a grant").decider(), Decider::Server);

                let wrong = address(&url("wrong-password"), &trusted);
                assert_no_secrets(&failure(wrong, "api", "refused AUTH").await);
                let other = address(&url(SECRET), &folder.join("other.crt"));
                assert_no_secrets(&failure(other, "api", "certificate").await);
                // The system's authorities have not signed it either.
                assert_no_secrets(&Told::new(url(SECRET), "api").failure().await);
            });
        });
    }
}
