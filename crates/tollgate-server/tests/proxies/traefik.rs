//! Traefik asks as its `forwardAuth` does.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::support::guide::{blocks, replace};
use crate::support::{App, Process, Service, Site, checks, exchange};

/// Starts Traefik with the middleware of the guide.
fn traefik(service: &Service, app: &App) -> Option<Process> {
    let page = blocks("yaml");
    let page = page.iter().find(|block| block.contains("forwardAuth"));
    let page = replace(page.unwrap(), "127.0.0.1:4290", service.address);
    let page = replace(&page, "127.0.0.1:8080", app.address);
    // Traefik listens before it has read the file. This page is there when it has.
    let known = "  routers:\n    known:\n      rule: Path(`/known`)\n      priority: 1000\n      service: noop@internal\n";
    let page = page.replace("  routers:\n", known);
    let process = Process::start("traefik", |folder, address| {
        fs::write(folder.join("dynamic.yml"), &page).unwrap();
        vec![
            format!("--entryPoints.web.address={address}"),
            "--providers.file.filename=dynamic.yml".to_owned(),
            "--global.checkNewVersion=false".to_owned(),
            "--global.sendAnonymousUsage=false".to_owned(),
        ]
    })?;
    while !knows_its_file(process.address) {
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(process)
}

fn knows_its_file(address: SocketAddr) -> bool {
    let mut stream = TcpStream::connect(address).unwrap();
    // Traefik does not answer a connection that it accepts too early.
    stream
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let request = b"GET /known HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let mut answer = String::new();
    let read = stream
        .write_all(request)
        .and_then(|()| stream.read_to_string(&mut answer));
    read.is_ok() && answer.starts_with("HTTP/1.1 418")
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_pass_than_the_limit_allows() {
    checks::no_more_pass_than_the_limit_allows(traefik, false).await;
}

#[tokio::test]
async fn each_address_has_its_own_limit() {
    checks::each_address_has_its_own_limit(traefik).await;
}

#[tokio::test]
async fn bodies_reach_the_program() {
    checks::bodies_reach_the_program(traefik).await;
}

#[tokio::test]
async fn statuses_reach_the_client() {
    checks::statuses_reach_the_client(traefik).await;
}

/// Traefik passes the fields of a refusal alone.
#[tokio::test]
async fn fields_of_a_refusal_reach_the_client() {
    let Some(site) = Site::start(checks::policy(), traefik).await else {
        return;
    };
    for _ in 0..5 {
        let reply = site.ask("POST", "/login", "").await;
        assert_eq!((reply.status, reply.rules()), (200, vec![]), "{reply:?}");
    }
    let reply = site.ask("POST", "/login", "").await;
    let wait: u64 = reply.field("retry-after").parse().unwrap();
    assert!((1..=720).contains(&wait), "{reply:?}");
    assert_eq!((reply.status, reply.rules()), (429, vec!["login"]));
    assert_eq!(reply.field("ratelimit"), format!("\"login\";r=0;t={wait}"));
    assert_eq!(site.app.served(), 5);
}

#[tokio::test]
async fn a_client_cant_forge_a_question() {
    let Some(site) = Site::start(checks::policy(), traefik).await else {
        return;
    };
    for (place, lines) in checks::FORGERIES.into_iter().enumerate() {
        let reply = site.ask("POST", "/login", lines).await;
        let expected = if place < 5 { 200 } else { 429 };
        assert_eq!(reply.status, expected, "{lines}: {reply:?}");
    }
}

#[tokio::test]
async fn no_request_passes_as_if_the_service_were_down() {
    checks::no_request_passes_as_if_the_service_were_down(traefik).await;
}

#[tokio::test]
async fn without_the_service_all_requests_are_refused() {
    let Some(mut site) = Site::start(checks::policy(), traefik).await else {
        return;
    };
    assert_eq!(site.get("/").await.status, 200);
    site.service.end().await;
    assert_eq!(site.get("/").await.status, 500);
    site.service = Service::start_at(checks::policy(), site.service.address).await;
    assert_eq!(site.get("/").await.status, 200);
}

/// The headers that forwardAuth sets, after those of the client.
fn question(client: &str) -> String {
    format!(
        "GET /forward HTTP/1.1\r\nHost: 127.0.0.1:4290\r\nUser-Agent: curl/8.0\r\n\
         X-Forwarded-For: {client}\r\nX-Forwarded-Host: site.example\r\n\
         X-Forwarded-Method: POST\r\nX-Forwarded-Port: 80\r\nX-Forwarded-Proto: http\r\n\
         X-Forwarded-Server: traefik\r\nX-Forwarded-Uri: /login?next=%2F\r\n\
         X-Real-Ip: {client}\r\nAccept-Encoding: gzip\r\n\r\n"
    )
}

#[tokio::test]
async fn it_is_answered_as_it_passes_on() {
    let service = Service::start(checks::policy()).await;
    for client in ["192.0.2.1", "192.0.2.2", "2001:db8::1"] {
        for place in 0..6 {
            let reply = exchange(service.address, question(client)).await;
            let status = if place < 5 { 200 } else { 429 };
            assert_eq!((reply.status, reply.rules()), (status, vec!["login"]));
            assert_eq!(
                reply.fields("retry-after").len(),
                usize::from(status == 429)
            );
        }
    }
}
