//! Traefik is not run here. These are the questions that its forwardAuth sends.

use crate::support::guide::blocks;
use crate::support::{Service, checks, exchange};

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

#[test]
fn the_guide_names_the_address() {
    let page = blocks("yaml");
    let page = page
        .iter()
        .find(|block| block.contains("forwardAuth"))
        .unwrap();
    assert!(page.contains("address: http://127.0.0.1:4290/forward"));
    assert!(page.contains("trustForwardHeader: false"));
}
