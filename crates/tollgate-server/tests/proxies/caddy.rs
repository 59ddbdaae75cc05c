//! Caddy asks as its `forward_auth` does.

use std::fs;

use crate::support::guide::{blocks, replace};
use crate::support::{App, Process, Service, checks};

/// Starts Caddy with the site of the guide.
fn caddy_with(service: &Service, app: &App, is_open: bool) -> Option<Process> {
    let [page, open] = blocks("caddyfile")[..] else {
        panic!("the guide has other blocks for Caddy");
    };
    let page = match is_open {
        true => format!("{}{open}\n}}\n", page.strip_suffix('}').unwrap()),
        false => page.to_owned(),
    };
    let page = replace(&page, "127.0.0.1:4290", service.address);
    let page = replace(&page, "127.0.0.1:8080", app.address);
    Process::start("caddy", |folder, address| {
        let page = replace(&page, "http://:80", format!("http://:{}", address.port()));
        let text = format!("{{\n    admin off\n}}\n{page}");
        fs::write(folder.join("Caddyfile"), text).unwrap();
        ["run", "--config", "Caddyfile", "--adapter", "caddyfile"]
            .map(str::to_owned)
            .to_vec()
    })
}

fn closed(service: &Service, app: &App) -> Option<Process> {
    caddy_with(service, app, false)
}

fn open(service: &Service, app: &App) -> Option<Process> {
    caddy_with(service, app, true)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_pass_than_the_limit_allows() {
    checks::no_more_pass_than_the_limit_allows(closed, false).await;
}

#[tokio::test]
async fn fields_reach_the_client() {
    checks::fields_reach_the_client(closed).await;
}

#[tokio::test]
async fn each_address_has_its_own_limit() {
    checks::each_address_has_its_own_limit(closed).await;
}

#[tokio::test]
async fn a_client_cant_forge_a_question() {
    checks::a_client_cant_forge_a_question(closed).await;
}

#[tokio::test]
async fn rules_read_the_request() {
    checks::rules_read_the_request(closed).await;
}

#[tokio::test]
async fn bodies_reach_the_program() {
    checks::bodies_reach_the_program(closed).await;
}

#[tokio::test]
async fn statuses_reach_the_client() {
    checks::statuses_reach_the_client(closed).await;
}

#[tokio::test]
async fn without_the_service_all_requests_are_refused() {
    checks::the_service_goes_and_comes_back(closed, 502).await;
}

#[tokio::test]
async fn without_the_service_all_requests_pass_if_the_operator_says_so() {
    checks::the_service_goes_and_comes_back(open, 200).await;
}

#[tokio::test]
async fn no_request_passes_as_if_the_service_were_down() {
    checks::no_request_passes_as_if_the_service_were_down(open).await;
}
