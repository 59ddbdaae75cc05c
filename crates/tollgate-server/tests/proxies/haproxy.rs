//! HAProxy asks by a script.

use std::fs;

use crate::support::guide::{block, replace};
use crate::support::{App, Process, Service, checks};

/// Starts HAProxy with the configuration and the script of the guide.
fn haproxy_with(
    service: &Service,
    app: &App,
    change: impl Fn(String) -> String,
) -> Option<Process> {
    let script = replace(block("lua"), "127.0.0.1:4290", service.address);
    let script = change(script);
    let page = replace(block("haproxy"), "127.0.0.1:8080", app.address);
    Process::start("haproxy", |folder, address| {
        let page = replace(&page, "/etc/haproxy/", format!("{}/", folder.display()));
        let page = replace(&page, "bind :80", format!("bind {address}"));
        fs::write(folder.join("tollgate.lua"), &script).unwrap();
        fs::write(folder.join("haproxy.cfg"), page + "\n").unwrap();
        ["-db", "-f", "haproxy.cfg"].map(str::to_owned).to_vec()
    })
}

fn closed(service: &Service, app: &App) -> Option<Process> {
    haproxy_with(service, app, |script| script)
}

fn open(service: &Service, app: &App) -> Option<Process> {
    haproxy_with(service, app, |script| {
        replace(&script, "open = false", "open = true")
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_pass_than_the_limit_allows() {
    checks::no_more_pass_than_the_limit_allows(closed, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_pass_than_the_limit_allows_over_http2() {
    checks::no_more_pass_than_the_limit_allows(closed, true).await;
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
    checks::the_service_goes_and_comes_back(closed, 503).await;
}

#[tokio::test]
async fn without_the_service_all_requests_pass_if_the_operator_says_so() {
    checks::the_service_goes_and_comes_back(open, 200).await;
}

#[tokio::test]
async fn no_request_passes_as_if_the_service_were_down() {
    checks::no_request_passes_as_if_the_service_were_down(open).await;
}
