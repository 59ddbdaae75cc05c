//! nginx asks by its module `auth_request`.

use std::fs;
use std::net::SocketAddr;

use crate::support::guide::{blocks, replace};
use crate::support::{App, Process, Service, Site, checks};

/// Starts nginx with the server of the guide.
pub(crate) fn nginx_with(
    service: &Service,
    app: &App,
    change: impl Fn(&str, SocketAddr) -> String,
) -> Option<Process> {
    let [page] = blocks("nginx")[..] else {
        panic!("the guide has several blocks for nginx");
    };
    let page = replace(page, "127.0.0.1:4290", service.address);
    let page = replace(&page, "127.0.0.1:8080", app.address);
    Process::start("nginx", |folder, address| {
        let kept: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {kind};\n"))
            .concat();
        let page = change(&page, address);
        let text = format!(
            "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log stderr;\nevents {{ }}\n\
             http {{\naccess_log off;\n{kept}{page}\n}}\n"
        );
        fs::write(folder.join("nginx.conf"), text).unwrap();
        let folder = format!("{}/", folder.display());
        ["-p", &folder, "-c", "nginx.conf", "-e", "stderr"]
            .map(str::to_owned)
            .to_vec()
    })
}

pub(crate) fn listen(page: &str, address: SocketAddr) -> String {
    replace(page, "listen 80;", format!("listen {address};"))
}

fn closed(service: &Service, app: &App) -> Option<Process> {
    nginx_with(service, app, listen)
}

fn http2(service: &Service, app: &App) -> Option<Process> {
    nginx_with(service, app, |page, address| {
        replace(page, "listen 80;", format!("listen {address} http2;"))
    })
}

fn open(service: &Service, app: &App) -> Option<Process> {
    nginx_with(service, app, |page, address| {
        replace(&listen(page, address), "# error_page 502", "error_page 502")
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_pass_than_the_limit_allows() {
    checks::no_more_pass_than_the_limit_allows(closed, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_pass_than_the_limit_allows_over_http2() {
    checks::no_more_pass_than_the_limit_allows(http2, true).await;
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
    checks::the_service_goes_and_comes_back(closed, 500).await;
}

#[tokio::test]
async fn without_the_service_all_requests_pass_if_the_operator_says_so() {
    checks::the_service_goes_and_comes_back(open, 200).await;
}

#[tokio::test]
async fn no_request_passes_as_if_the_service_were_down() {
    checks::no_request_passes_as_if_the_service_were_down(open).await;
}

/// This is why `/nginx` answers 403. If nginx learns to pass on a 429, this test says so.
#[tokio::test]
async fn nginx_makes_500_of_a_raw_429() {
    let raw = |service: &Service, app: &App| {
        nginx_with(service, app, |page, address| {
            let page = replace(
                &listen(page, address),
                "tollgate/nginx;",
                "tollgate/forward;",
            );
            let page = replace(&page, "X-Original-", "X-Forwarded-");
            replace(
                &page,
                "# These replace",
                "proxy_set_header X-Forwarded-Host $host; # These replace",
            )
        })
    };
    let policy = "[[rule]]\nname = 'once'\nlimit = '1/d'";
    let Some(site) = Site::start(policy, raw).await else {
        return;
    };
    assert_eq!(site.get("/").await.status, 200);
    assert_eq!(site.get("/").await.status, 500);
    assert!(
        site.proxy
            .log()
            .contains("auth request unexpected status: 429")
    );
}

/// The guide says so.
#[tokio::test]
async fn a_location_that_returns_does_not_ask_and_a_redirect_inside_asks_again() {
    let with_more = |service: &Service, app: &App| {
        nginx_with(service, app, |page, address| {
            let more = "location /returns { auth_request /tollgate; return 204; }\n\
                        location /first { auth_request /tollgate; try_files /none /second; }\n\
                        location @denied {";
            let page = replace(&listen(page, address), "location @denied {", more);
            replace(&page, "location / {", "location / { root .;")
        })
    };
    let policy = "[[rule]]\nname = 'client'\nlimit = '9/d'";
    let Some(site) = Site::start(policy, with_more).await else {
        return;
    };
    assert_eq!(site.get("/returns").await.status, 204);
    let reply = site.get("/first").await;
    assert!(
        reply.field("ratelimit").starts_with("\"client\";r=7;"),
        "{reply:?}"
    );
}
