//! The page: what it shows is true, names that clients choose stay texts, and what tells of clients
//! needs the token.

use std::time::{Duration, Instant};

use roxmltree::{Document, Node, ParsingOptions};
use serde_json::{Value, json};
use tollgate_policy::Secret;
use tollgate_server::Settings;

use crate::Running;
use crate::redis_server::on_each_server;

const TOKEN: &str = "a-token-of-a-test";
const POLICY: &str = "[[rule]]\nname = 'trial'\nkey = 'client-ip'\nlimit = '2/d'\nshadow = true\n\
                      [[rule]]\nname = 'user'\nwhen = { path = '/u' }\nkey = ['user', 'client-ip']\nlimit = '5/d'\n\
                      [[rule]]\nname = 'client'\nwhen = { path = '/c' }\nkey = 'client-ip'\nlimit = '9/d'";

fn with_token(settings: &mut Settings) {
    settings.admin_token = Some(Secret::new(TOKEN));
}

fn read(page: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(page, options).unwrap_or_else(|error| panic!("{error}: {page}"))
}

fn text(node: Node<'_, '_>) -> String {
    let texts = node.descendants().filter(Node::is_text);
    texts.filter_map(|text| text.text()).collect()
}

fn all<'a, 'i>(page: &'a Document<'i>, name: &'a str) -> impl Iterator<Item = Node<'a, 'i>> {
    page.descendants()
        .filter(move |node| node.tag_name().name() == name)
}

/// Returns the rows of a table by its caption.
fn rows(page: &Document<'_>, caption: &str) -> Vec<Vec<String>> {
    let is_it = |table: &Node<'_, '_>| {
        let mut children = table.children();
        children.any(|it| it.tag_name().name() == "caption" && text(it) == caption)
    };
    let Some(table) = all(page, "table").find(is_it) else {
        panic!("no table {caption}")
    };
    let rows = table
        .descendants()
        .filter(|it| it.tag_name().name() == "tr");
    let cells = |row: Node<'_, '_>| row.children().filter(Node::is_element).map(text).collect();
    rows.skip(1).map(cells).collect()
}

async fn live(service: &Running, token: Option<&str>) -> String {
    let (status, _, said) = service.admin("GET /page/live", token, "").await;
    assert_eq!(status, 200, "{said}");
    format!("<main>{said}</main>")
}

/// Asks for the page until it is as wanted. It follows the service within seconds.
async fn live_until(service: &Running, is_as_wanted: impl Fn(&Document<'_>) -> bool) -> String {
    let wait = async {
        loop {
            let said = live(service, Some(TOKEN)).await;
            if is_as_wanted(&read(&said)) {
                return said;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), wait).await;
    waited.expect("the page follows the service")
}

async fn decide(service: &Running, path: &str, user: &str, address: &str, times: usize) {
    let facts = json!({"facts": {"path": path, "user": user, "client-ip": address}});
    for _ in 0..times {
        service.decide(facts.clone()).await;
    }
}

#[tokio::test]
async fn the_page_is_whole_without_its_script() {
    let service = Running::start_with(POLICY, with_token).await;
    let (status, headers, page) = service.admin("GET /", None, "").await;
    assert_eq!(
        (status, &headers["content-type"]),
        (200, &"text/html; charset=utf-8".parse().unwrap())
    );
    let rules = headers["content-security-policy"].to_str().unwrap();
    assert!(
        rules.starts_with("default-src 'none'; style-src 'self'; script-src 'self';"),
        "{rules}"
    );
    assert_eq!(headers["cache-control"], "no-store");
    let page = read(&page);
    assert_eq!(all(&page, "h1").map(text).collect::<Vec<_>>(), ["tollgate"]);
    let names: Vec<_> = rows(&page, "Requests by rule")
        .into_iter()
        .map(|row| row[0].clone())
        .collect();
    assert_eq!(names, ["trial", "user", "client"]);
    let quiet = all(&page, "li").map(text).collect::<Vec<_>>();
    assert_eq!(quiet, ["No request was denied in the last minute."]);
    // Nothing comes from elsewhere, and there are no styles or scripts that the rules would refuse.
    let links = page
        .descendants()
        .filter_map(|it| it.attribute("href").or(it.attribute("src")));
    assert_eq!(
        links.collect::<Vec<_>>(),
        ["data:,", "/page/style.css", "/page/script.js"]
    );
    assert!(page.descendants().all(|it| it.attribute("style").is_none()));
    for path in ["/page/style.css", "/page/script.js"] {
        let (status, headers, said) = service.admin(&format!("GET {path}"), None, "").await;
        assert_eq!(
            (status, &headers["x-content-type-options"]),
            (200, &"nosniff".parse().unwrap())
        );
        assert!(said.len() > 1000, "{said}");
    }
    service.end().await;
}

#[tokio::test]
async fn it_says_who_is_denied_by_which_rule_and_since_when() {
    let service = Running::start_with(POLICY, with_token).await;
    decide(&service, "/u", "carol-17", "192.0.2.1", 30).await;
    decide(&service, "/u", "bob", "192.0.2.2", 7).await;
    decide(&service, "/c", "", "192.0.2.1", 9).await;
    let said = live_until(&service, |page| {
        all(page, "li").any(|it| it.attribute("class") == Some("denies"))
    })
    .await;
    let page = read(&said);
    let items: Vec<_> = all(&page, "li").map(text).collect();
    assert_eq!(items.len(), 1, "{items:?}");
    assert!(items[0].starts_with("Rule user denie"), "{items:?}");
    assert!(
        items[0].contains("Denied most: carol-17, 192.0.2.1, 25 of 30 requests since "),
        "{items:?}"
    );

    let keys = rows(&page, "Keys that are denied most");
    let keys: Vec<_> = keys
        .iter()
        .map(|row| row.iter().map(String::as_str).collect::<Vec<_>>())
        .collect();
    assert!(
        keys.contains(&vec!["carol-17, 192.0.2.1", "user", "25", "30"]),
        "{keys:?}"
    );
    assert!(
        keys.contains(&vec!["bob, 192.0.2.2", "user", "2", "7"]),
        "{keys:?}"
    );
    // Each list says of what it speaks.
    let others: Vec<_> = all(&page, "p").map(text).collect();
    for said in [
        "No other key was denied.",
        "No other key came.",
        "No other key would have been denied.",
    ] {
        assert!(others.iter().any(|it| it == said), "{said}: {others:?}");
    }
    let shadow = rows(&page, "Keys that shadow rules would deny");
    assert_eq!(shadow[0], ["192.0.2.1", "trial", "37", "39"]);
    let by_rule = rows(&page, "Requests by rule");
    let by_rule: Vec<_> = by_rule
        .iter()
        .map(|row| {
            (
                row[0].as_str(),
                row[5].as_str(),
                row[6].as_str(),
                row[7].as_str(),
            )
        })
        .collect();
    assert!(by_rule.contains(&("user", "10", "27", "-")), "{by_rule:?}");
    assert!(by_rule.contains(&("client", "9", "0", "-")), "{by_rule:?}");
    assert!(by_rule.contains(&("trial", "0", "0", "42")), "{by_rule:?}");

    // Without the token, it says nothing of clients.
    let (_, _, page) = service.admin("GET /", None, "").await;
    assert!(
        !page.contains("carol-17") && !page.contains("192.0.2.2"),
        "{page}"
    );
    let said = live(&service, None).await;
    assert!(
        !said.contains("carol-17") && !said.contains("192.0.2.2"),
        "{said}"
    );
    assert_eq!(
        service.admin("GET /page/live", Some("wrong"), "").await.0,
        401
    );

    let (_, _, keys) = service.admin("GET /keys", Some(TOKEN), "").await;
    let keys: Value = serde_json::from_str(&keys).unwrap();
    let ann = json!({"rule": "user", "values": ["carol-17", "192.0.2.1"], "asked": [30, 30], "denied": [25, 25], "would_be_denied": [0, 0]});
    assert!(
        keys["denied"]["keys"].as_array().unwrap().contains(&ann),
        "{keys}"
    );
    assert_eq!(keys["denied"]["others_at_most"], 0, "{keys}");
    service.end().await;
}

#[tokio::test]
async fn each_rule_that_denies_has_its_key_and_an_entry_of_deny_is_named() {
    let policy = format!("{POLICY}\n[[deny]]\nname = 'blocked'\nwhen = {{ path = '/b' }}");
    let service = Running::start_with(&policy, with_token).await;
    for n in 0..12 {
        decide(&service, "/u", &format!("user-{n}"), "192.0.2.1", 20).await;
    }
    decide(&service, "/c", "", "192.0.2.9", 10).await;
    decide(&service, "/b", "", "192.0.2.9", 1).await;
    let denies = |page: &Document<'_>| -> Vec<String> {
        let items = all(page, "li").filter(|it| it.attribute("class") == Some("denies"));
        items.map(text).collect()
    };
    let said = live_until(&service, |page| denies(page).len() == 3).await;
    let items = denies(&read(&said));
    let starts = |start: &str| items.iter().find(|item| item.starts_with(start));
    let client = starts("Rule client denie").expect("the rule denies");
    assert!(
        client.contains("Denied most: 192.0.2.9, 1 of 10 requests since "),
        "{items:?}"
    );
    assert!(
        starts("Entry of the list deny: blocked denie").is_some(),
        "{items:?}"
    );
    assert!(!said.contains("#token"), "{said}");
    assert!(live(&service, None).await.contains("#token"));
    let (_, _, said) = service.admin("GET /page/policy", Some(TOKEN), "").await;
    let said = format!("<main>{said}</main>");
    let lists = rows(&read(&said), "Lists, which go before the rules");
    assert_eq!(lists[0][..2], ["blocked", "deny"]);
    service.end().await;
}

#[tokio::test]
async fn names_that_clients_choose_stay_texts() {
    let service = Running::start_with(POLICY, with_token).await;
    let long = "x".repeat(5000);
    let names = [
        "<img src=x onerror=alert(1)>",
        "\"'&</td>\u{0}\u{202e}",
        &long,
    ];
    for name in names {
        decide(&service, "/u", name, "192.0.2.1", 9).await;
    }
    let said = live(&service, Some(TOKEN)).await;
    let page = read(&said);
    assert_eq!(all(&page, "img").count(), 0);
    let keys: Vec<_> = rows(&page, "Keys that are denied most")
        .into_iter()
        .map(|row| row[0].clone())
        .collect();
    let shown = [
        "<img src=x onerror=alert(1)>, 192.0.2.1",
        "\"'&</td>\u{fffd}\u{fffd}, 192.0.2.1",
    ];
    for name in shown {
        assert!(keys.iter().any(|key| key == name), "{keys:?}");
    }
    assert!(keys.iter().all(|key| key.len() < 200), "{keys:?}");
    service.end().await;
}

/// What leases do is on the page and among the metrics, for each rule that has them.
#[test]
fn leases_are_shown_by_limit() {
    on_each_server(|mut private| {
        private.start(false);
        let policy = format!(
            "[store]\nredis = '{}'\nbudget = '20s'\nfallback = 'closed'\n\
             [[rule]]\nname = 'api'\nkey = 'user'\nlimit = '1/h burst 10000'\nmode = 'leased'\n\
             [[rule]]\nname = 'direct'\nkey = 'user'\nlimit = '1/h burst 10000'",
            private.url()
        );
        let runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let service = Running::start_with(&policy, with_token).await;
            let drawn = async || {
                let metrics = service.metrics().await;
                assert!(!metrics.contains("lease_drawn_total{rule=\"direct\""));
                let start = "tollgate_lease_drawn_total{rule=\"api\",table=\"0\"} ";
                let mut found = metrics.lines().filter_map(|line| line.strip_prefix(start));
                let found = found.next().expect("the metric");
                found.parse::<u64>().expect("a number")
            };
            let facts = json!({"facts": {"user": "ann"}});
            let first = service.decide(facts.clone()).await;
            assert_eq!(first["limits"][0]["remaining"], 9999, "{first}");
            // What is left is not known where a lease decides, and not said.
            let start = Instant::now();
            let has_limits = async || service.decide(facts.clone()).await["limits"][0].is_object();
            while has_limits().await {
                assert!(start.elapsed() < Duration::from_secs(60), "a lease");
            }
            let before = drawn().await;
            let said = live(&service, Some(TOKEN)).await;
            let rows = rows(&read(&said), "Permits from the store");
            let [row] = &rows[..] else {
                panic!("{rows:?} has one limit");
            };
            assert_eq!((row[0].as_str(), row[1].as_str()), ("api", "0"));
            let numbers = row[2..].iter().map(|cell| cell.replace('\u{202f}', ""));
            let numbers: Vec<u64> = numbers.map(|it| it.parse().expect("a number")).collect();
            let [_, _, shown, draw, _, _, messages, trips, 0] = numbers[..] else {
                panic!("{numbers:?}");
            };
            assert!((before..=drawn().await).contains(&shown), "{shown}");
            assert!(
                (1..=messages).contains(&trips) && (1..=shown).contains(&draw),
                "{numbers:?}"
            );
            service.end().await;
        });
    });
}

#[tokio::test]
async fn its_numbers_are_those_of_metrics() {
    let service = Running::start_with(POLICY, with_token).await;
    for n in 0..50 {
        decide(&service, "/c", "", &format!("192.0.2.{n}"), 1 + n % 12).await;
    }
    let said = live_until(&service, |page| {
        let tables = rows(page, "In memory");
        tables
            .iter()
            .any(|row| row[0] == "client" && row[3] == "50")
    })
    .await;
    let (page, metrics) = (read(&said), service.metrics().await);
    let metric = |line: String| {
        let mut lines = metrics
            .lines()
            .filter_map(|it| it.strip_prefix(line.as_str()));
        lines
            .next()
            .map(str::trim)
            .unwrap_or_else(|| panic!("no {line} in {metrics}"))
            .to_owned()
    };
    let plain = |cell: &str| cell.replace('\u{202f}', "");
    for row in rows(&page, "Requests by rule") {
        if row[0] == "user" {
            continue; // no request asked it
        }
        for (place, did) in [(5, "allowed"), (6, "denied")] {
            let line = format!(
                "tollgate_requests_total{{rule=\"{}\",decision=\"{did}\"}}",
                row[0]
            );
            assert_eq!(plain(&row[place]), metric(line));
        }
    }
    for row in rows(&page, "In memory") {
        for (place, name) in [
            (3, "tracked"),
            (4, "slots"),
            (5, "evicted_total"),
            (6, "no_room_total"),
        ] {
            let line = format!(
                "tollgate_{name}{{rule=\"{}\",table=\"{}\"}}",
                row[0], row[1]
            );
            assert_eq!(plain(&row[place]), metric(line), "{row:?}");
        }
    }
    let service_numbers = rows(&page, "Numbers of the service");
    let spans = page.descendants().filter_map(|it| it.attribute("title"));
    let names: Vec<_> = spans.filter(|name| name.starts_with("tollgate_")).collect();
    assert_eq!(names.len(), service_numbers.len());
    for (name, row) in names.iter().zip(&service_numbers) {
        assert_eq!(plain(&row[1]), metric(format!("{name} ")), "{name}");
    }
    service.end().await;
}

#[tokio::test]
async fn a_file_with_errors_is_shown_and_the_older_policy_decides() {
    let policy = format!("{POLICY}\ncount = 'failures'\n");
    let service = Running::start_with(&policy, with_token).await;
    let policy = async || service.admin("GET /page/policy", Some(TOKEN), "").await.2;
    let said = policy().await;
    assert!(
        said.contains("a proxy does not say how a request ends"),
        "{said}"
    );
    std::fs::write(
        service.file.path(),
        "[[rule]]\nname = '<b>'\nlimit = '3/fortnight'",
    )
    .unwrap();
    assert!(service.handle.reload().is_err());
    let said = format!("<main>{}</main>", policy().await);
    let page = read(&said);
    let errors = text(all(&page, "pre").next().unwrap());
    assert!(
        errors.contains(":3:9: error: rule \"<b>\": limit is \"3/fortnight\""),
        "{errors}"
    );
    let names: Vec<_> = rows(&page, "Rules, in their order")
        .into_iter()
        .map(|row| row[0].clone())
        .collect();
    assert_eq!(names, ["trial", "user", "client"]);
    let said = live(&service, None).await;
    let items: Vec<_> = all(&read(&said), "li").map(text).collect();
    assert!(
        items[0].starts_with("The policy's file has errors: an older policy decides, since "),
        "{items:?}"
    );
    assert!(!said.contains("fortnight"), "errors need the token");

    // Other errors are shown too.
    let version = |said: &str| {
        let page = read(said);
        let mut versions = page
            .descendants()
            .filter_map(|it| it.attribute("data-policy"));
        versions.next().map(str::to_owned)
    };
    std::fs::write(service.file.path(), "[[rule]]\nname = 'a'\nlimit = '3/eon'").unwrap();
    assert!(service.handle.reload().is_err());
    assert_ne!(version(&live(&service, None).await), version(&said));
    assert!(policy().await.contains("3/eon"));

    std::fs::write(service.file.path(), "rule = []").unwrap();
    let _ = service.handle.reload().unwrap();
    assert!(policy().await.contains("The policy has no rules."));
    assert!(
        live(&service, None)
            .await
            .contains("every request is allowed")
    );
    service.end().await;
}

#[tokio::test]
async fn a_request_is_explained() {
    let service = Running::start_with(POLICY, with_token).await;
    let ask = |field: &str, value: Value| {
        let mut ask = json!({"method": "GET", "url": "/u?a=1", "from": "192.0.2.1", "headers": ["x-a: b", ""],
                             "facts": ["user=<ann>", ""]});
        ask[field] = value;
        ask.to_string()
    };
    let explain = async |body: String| {
        service
            .admin("POST /page/explain", Some(TOKEN), &body)
            .await
    };
    let (status, _, said) = explain(ask("from", json!("192.0.2.1"))).await;
    assert_eq!(status, 200, "{said}");
    let said = format!("<main>{said}</main>");
    let table = rows(&read(&said), "What each rule does");
    assert_eq!(table[0][..2], ["trial", "shadow"]);
    assert_eq!(
        table[1][..4],
        ["user", "yes", "user = <ann>, client-ip = 192.0.2.1", "5/d"]
    );
    assert_eq!(table[2][1..2], ["no"]);
    for (field, value) in [
        ("method", json!("G T")),
        ("url", json!("nowhere")),
        ("from", json!("192.0.2.1:80")),
        ("headers", json!(["no colon"])),
        ("facts", json!(["usr=ann"])),
        ("facts", json!("user=ann")),
        ("nothing", json!("")),
    ] {
        let (status, _, said) = explain(ask(field, value)).await;
        let said: Value = serde_json::from_str(&said).unwrap();
        assert!([400, 422].contains(&status), "{status} {said}");
        assert_eq!(said["field"], field, "{said}");
    }
    service.end().await;
}

/// Returns by what the script knows whether it has to ask for the policy again.
async fn policy_mark(service: &Running) -> String {
    let said = live(service, None).await;
    let page = read(&said);
    let mut marks = page
        .descendants()
        .filter_map(|it| it.attribute("data-policy"));
    marks.next().expect("the page has a mark").to_owned()
}

#[tokio::test]
async fn each_policy_and_each_refusal_has_its_own_mark() {
    let service = Running::start_with(POLICY, with_token).await;
    let mut marks = vec![policy_mark(&service).await];
    for limit in ["3/fortnight", "4/fortnight", "4/h", "5/h"] {
        let text = format!("[[rule]]\nname = 'a'\nlimit = '{limit}'");
        std::fs::write(service.file.path(), text).unwrap();
        let _ = service.handle.reload();
        let mark = policy_mark(&service).await;
        assert!(!marks.contains(&mark), "{limit}: {mark} is among {marks:?}");
        marks.push(mark);
    }
    service.end().await;
}

#[tokio::test]
async fn a_key_among_many_is_not_said_to_be_most_of_them() {
    let service = Running::start_with(POLICY, with_token).await;
    for user in 0..20 {
        let times = if user == 7 { 7 } else { 6 };
        decide(&service, "/u", &format!("user-{user}"), "192.0.2.1", times).await;
    }
    let said = live_until(&service, |page| {
        all(page, "li").any(|it| it.attribute("class") == Some("denies"))
    })
    .await;
    let items: Vec<_> = all(&read(&said), "li").map(text).collect();
    let most = "Denied most: user-7, 192.0.2.1, 2 of 7 requests since ";
    assert!(items[0].contains(most), "{items:?}");
    service.end().await;
}

#[tokio::test]
async fn a_part_that_requests_lack_has_a_mark() {
    let policy =
        "[[rule]]\nname = 'a'\nkey = ['user', 'client-ip']\nlimit = '5/d'\nmissing = 'shared'";
    let service = Running::start_with(policy, with_token).await;
    service
        .decide(json!({"facts": {"client-ip": "192.0.2.1"}}))
        .await;
    let said = live(&service, Some(TOKEN)).await;
    let keys = rows(&read(&said), "Keys with most requests");
    assert_eq!(keys, [["-, 192.0.2.1", "a", "0", "1"]]);
    service.end().await;
}

#[tokio::test]
async fn what_a_proxy_asks_its_own_users_for_is_no_token() {
    let service = Running::start_with(POLICY, with_token).await;
    decide(&service, "/c", "", "192.0.2.1", 1).await;
    let ask = async |authorization: &str| {
        let url = format!("http://{}/page/live", service.admin);
        let request = service.client.get(url);
        let answer = request.header("authorization", authorization).send().await;
        let answer = answer.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let (status, said) = ask("Basic YW5uOmFubg==").await;
    assert_eq!(status, 200, "{said}");
    assert!(!said.contains("192.0.2.1"), "{said}");
    assert_eq!(service.metric("tollgate_admin_refused_total").await, 0);
    assert_eq!(ask("Bearer ").await.0, 401);
    let (status, said) = ask(&format!("bearer {TOKEN}")).await;
    assert!(status == 200 && said.contains("192.0.2.1"), "{said}");
    service.end().await;
}
