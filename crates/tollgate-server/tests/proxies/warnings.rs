//! What the service logs of proxies.

use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::support::{Service, exchange};

static LOG: Mutex<String> = Mutex::new(String::new());

struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
        log.push_str(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Logs all events of this process from now on.
fn watch() {
    static SET: OnceLock<()> = OnceLock::new();
    SET.get_or_init(|| {
        tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(|| Log)
            .init();
    });
}

/// Returns the lines that contain this text.
fn lines(text: &str) -> Vec<String> {
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    log.lines()
        .filter(|line| line.contains(text))
        .map(str::to_owned)
        .collect()
}

async fn ask(service: &Service, lines: &str) -> u16 {
    let request = format!(
        "GET /nginx HTTP/1.1\r\nHost: t\r\nX-Original-Method: GET\r\nX-Original-Uri: /\r\n\
         {lines}\r\n"
    );
    exchange(service.address, request).await.status
}

#[tokio::test]
async fn a_proxy_that_names_no_client_is_named_once() {
    watch();
    let policy =
        "[client]\nhops = 1\nheader = 'x-real-client'\n[[rule]]\nname = 'a'\nlimit = '9/h'";
    let service = Service::start(policy).await;
    let line = "without an address in x-real-client";
    // A client beside the proxy has the same address.
    assert_eq!(ask(&service, "X-Real-Client: 127.0.0.1\r\n").await, 200);
    assert_eq!(lines(line), [""; 0]);
    for _ in 0..3 {
        assert_eq!(ask(&service, "X-Forwarded-For: 192.0.2.1\r\n").await, 200);
    }
    let [warning] = &lines(line)[..] else {
        panic!("{:?}", lines(line));
    };
    assert!(
        warning.contains("WARN") && warning.contains("proxy=127.0.0.1"),
        "{warning}"
    );
}

#[tokio::test]
async fn a_proxy_that_is_not_trusted_is_named() {
    watch();
    let policy = "[client]\ntrust = ['10.0.0.0/8']\nheader = 'x-forwarded-for'\n\
                  [[rule]]\nname = 'a'\nlimit = '9/h'";
    let service = Service::start(policy).await;
    assert_eq!(ask(&service, "X-Forwarded-For: 127.0.0.1\r\n").await, 200);
    assert_eq!(lines("[client] of the policy does not trust").len(), 1);
}

#[tokio::test]
async fn a_rule_that_needs_the_end_of_requests_is_named() {
    watch();
    let policy = "[[rule]]\nname = 'ends-places'\nwhen = { path = '/1' }\nkey = 'client-ip'\n\
        plan = { by = 'user', one = 'concurrency 1', default = 'one' }\n\
        [[rule]]\nname = 'ends-counted'\nwhen = { path = '/2' }\nlimit = '2/h'\n\
        count = 'successes'\n\
        [[rule]]\nname = 'ends-settled'\nwhen = { path = '/3' }\nlimit = '10/h'\n\
        cost = { default = 5, settle = 'response-header:x-used' }\n\
        [[rule]]\nname = 'ends-banned'\nwhen = { path = '/4' }\nkey = 'client-ip'\n\
        ban = { after = 2, of = 'failures' }\n\
        [[rule]]\nname = 'ends-never'\nkey = 'client-ip'\nlimit = '2/h'\n\
        ban = { after = 2, for = '1h' }";
    let _service = Service::start(policy).await;
    for (rule, said) in [
        ("ends-places", "`concurrency` frees a place at once"),
        ("ends-counted", "`count` counts all requests"),
        ("ends-settled", "`settle` has no effect"),
        ("ends-banned", "`ban` bans no key"),
    ] {
        let [warning] = &lines(rule)[..] else {
            panic!("{rule}: {:?}", lines(rule));
        };
        assert!(
            warning.contains("WARN") && warning.contains(said),
            "{warning}"
        );
    }
    assert_eq!(lines("ends-never"), [""; 0]);
}
