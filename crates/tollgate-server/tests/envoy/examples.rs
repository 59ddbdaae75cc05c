//! The page's examples: each line is decided as the page says.

use crate::support::client::entry;
use crate::support::messages::{Descriptor, DescriptorStatus};
use crate::support::{Code, RateLimitRequest, Service, page};

#[tokio::test]
async fn the_page_says_what_is_decided() {
    let mut lines = 0;
    let mut policy = None;
    for block in page::blocks() {
        match block.language {
            "toml" => policy = Some(block.text),
            "text" => lines += decide(policy.unwrap(), block.text).await,
            _ => {}
        }
    }
    assert!(lines > 20);
}

async fn decide(policy: &str, text: &str) -> usize {
    let service = Service::start(policy);
    let mut client = service.client();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    for line in lines {
        let (asked, expected) = line.split_once("  ").expect(line);
        let (times, asked) = asked.split_once("x ").unwrap_or(("1", asked));
        let (domain, descriptors) = asked.split_once(": ").expect(line);
        let request = RateLimitRequest {
            domain: domain.into(),
            descriptors: descriptors.split(" | ").map(descriptor).collect(),
            hits_addend: 0,
        };
        for _ in 0..times.parse().expect(line) {
            let answer = client.ask(request.clone()).await;
            let statuses: Vec<_> = answer.statuses.iter().map(said).collect();
            assert_eq!(statuses.join(" | "), expected.trim(), "{line}");
            let is_denied = expected.contains("OVER_LIMIT");
            assert_eq!(answer.is_ok(), !is_denied, "{line}");
        }
        count += 1;
    }
    count
}

fn descriptor(text: &str) -> Descriptor {
    let entries = text.split(' ').map(|it| entry(it.split_once('=').unwrap()));
    Descriptor {
        entries: entries.collect(),
        ..Descriptor::default()
    }
}

fn said(status: &DescriptorStatus) -> String {
    match (status.code(), &status.current_limit) {
        (Code::Ok, None) => "OK".into(),
        (Code::Ok, Some(_)) => format!("OK, {} left", status.limit_remaining),
        _ => "OVER_LIMIT".into(),
    }
}
