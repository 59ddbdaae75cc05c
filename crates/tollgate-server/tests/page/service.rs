//! The page of the service: under load, with an empty policy, and with a bad one; on a phone and on
//! a desk, light and dark; by keyboard alone.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde_json::{Value, json};
use tollgate_policy::Secret;
use tollgate_server::Settings;

use crate::browser::Browser;
use crate::support::Running;
use crate::tab::{Look, Tab};

const TOKEN: &str = "a-token-of-a-test";
const POLICY: &str = "
[[rule]]
name  = 'trial'
key   = 'client-ip'
limit = '50/min'
shadow = true

[[rule]]
name  = 'login'
when  = { method = 'POST', path = '/login' }
key   = ['client-ip', 'user']
limit = '5/min'
count = 'failures'

[[rule]]
name     = 'client'
key      = 'client-ip'
limit    = ['100/min', '1000/h']
capacity = 1000
";

fn with_token(settings: &mut Settings) {
    settings.admin_token = Some(Secret::new(TOKEN));
}

/// Decides again and again, until it is dropped.
struct Load(Arc<AtomicBool>);

impl Load {
    async fn on(service: &Running) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        // Before a test begins, there is something to see.
        for n in 0..40 {
            ask(&service.client, service.address, n).await;
        }
        let (client, address, end) = (service.client.clone(), service.address, Arc::clone(&ends));
        tokio::spawn(async move {
            let mut n = 0;
            while !end.load(Relaxed) {
                ask(&client, address, n).await;
                n += 1;
            }
        });
        Self(ends)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

async fn ask(client: &reqwest::Client, address: std::net::SocketAddr, n: usize) {
    let one = |n: usize| {
        let path = ["/login", "/items", "/items"][n % 3];
        let user = ["ann", "bob", "<img src=x onerror=alert(1)>"][n % 3 * (n % 2)];
        json!({"facts": {"client-ip": format!("192.0.2.{}", n * n % 17), "method": "POST", "path": path, "user": user}})
    };
    let list: Vec<Value> = (n..n + 10).map(one).collect();
    let url = format!("http://{address}/decide");
    // The service ends before the last question.
    let _ = client
        .post(url)
        .body(Value::from(list).to_string())
        .send()
        .await;
}

async fn open(browser: &Browser, look: Look, service: &Running) -> Tab {
    let tab = browser.tab(look).await;
    tab.open(&format!("http://{}/", service.admin)).await;
    tab.wait_until("document.getElementById('pause') !== null")
        .await;
    tab
}

/// Gives the token as a user does.
async fn give_token(tab: &Tab) {
    tab.click("#token").await;
    tab.write(TOKEN).await;
    tab.press("Enter").await;
    tab.wait_until("!document.getElementById('explain').hidden")
        .await;
}

/// Checks what holds for the page in each state: nothing is wrong, and everybody can use it.
async fn check(tab: &Tab, service: &Running, name: &str) {
    tab.screenshot(name).await;
    assert_eq!(tab.faults().await, [""; 0], "{name}");
    let origin = format!("http://{}", service.admin);
    assert_eq!(tab.requests_beyond(&origin).await, [""; 0], "{name}");
    assert_eq!(tab.pale_texts().await, [""; 0], "{name}");
    assert_eq!(tab.nameless().await, [""; 0], "{name}");
    // Tables can be scrolled, but the page itself is as wide as the window.
    let wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    assert_eq!(tab.eval(wide).await, 0, "{name} is too wide");
    let main = tab
        .parts()
        .await
        .into_iter()
        .filter(|part| part.role == "main");
    assert_eq!(main.count(), 1, "{name}");
}

#[tokio::test]
async fn it_is_readable_under_load_on_each_screen() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let service = Running::start_with(POLICY, with_token).await;
    let load = Load::on(&service).await;
    for (look, name) in [
        (Look::PHONE, "load-390-light"),
        (Look::PHONE.dark(), "load-390-dark"),
        (Look::DESKTOP, "load-1440-light"),
        (Look::DESKTOP.dark().still(), "load-1440-dark"),
    ] {
        let tab = open(&browser, look, &service).await;
        let denies = "[...document.querySelectorAll('.denies')].some(it => it.textContent.includes('denies'))";
        tab.wait_until(denies).await;
        assert_eq!(
            tab.eval("document.querySelectorAll('h1, main').length")
                .await,
            2
        );
        check(&tab, &service, name).await;
        give_token(&tab).await;
        tab.wait_until("document.querySelector('.denies strong ~ strong') !== null")
            .await;
        check(&tab, &service, &format!("{name}-token")).await;
        // It is the service's answer that changes, not what the page was at first.
        let sum = "[...document.querySelectorAll('[aria-label=\"Requests by rule\"] tbody tr')]
                   .map(row => row.children[5].textContent + row.children[6].textContent).join()";
        let before = tab.eval(sum).await;
        tab.wait_until(&format!("{sum} !== {before}")).await;
    }
    drop(load);
    drop(browser);
    service.end().await;
}

#[tokio::test]
async fn its_numbers_are_those_of_metrics() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let service = Running::start_with(POLICY, with_token).await;
    for n in 0..30 {
        ask(&service.client, service.address, n).await;
    }
    let metrics = service.metrics().await;
    let mut expected = Vec::new();
    for rule in ["trial", "login", "client"] {
        for did in ["allowed", "denied"] {
            let start = format!("tollgate_requests_total{{rule=\"{rule}\",decision=\"{did}\"}} ");
            let mut lines = metrics.lines().filter_map(|line| line.strip_prefix(&start));
            expected.push(json!([rule, did, lines.next().unwrap_or("0")]));
        }
    }
    let tab = open(&browser, Look::DESKTOP, &service).await;
    let shown = "['trial', 'login', 'client'].flatMap(rule => {
        const rows = [...document.querySelectorAll('[aria-label=\"Requests by rule\"] tbody tr')];
        const row = rows.find(row => row.children[0].textContent === rule);
        const number = place => row.children[place].textContent.replace(/\\u202f/g, '');
        return [[rule, 'allowed', number(5)], [rule, 'denied', number(6)]];
    })";
    assert_eq!(tab.eval(shown).await, Value::from(expected));
    drop(browser);
    service.end().await;
}

#[tokio::test]
async fn it_can_be_used_by_keyboard_alone() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let service = Running::start_with(POLICY, with_token).await;
    let load = Load::on(&service).await;
    for look in [Look::DESKTOP, Look::PHONE] {
        let tab = open(&browser, look, &service).await;
        let focused =
            "document.activeElement.id || document.activeElement.getAttribute('aria-label')";
        // Each place that Tab reaches shows that it is there.
        let mut reached = Vec::new();
        while reached.last().is_none_or(|last| last != "token") {
            tab.press("Tab").await;
            let place = tab.eval(focused).await;
            let place = place.as_str().unwrap_or_default().to_owned();
            let outline = tab
                .eval("getComputedStyle(document.activeElement).outlineStyle")
                .await;
            assert_ne!(outline, "none", "{place}");
            assert!(reached.len() < 40, "{reached:?}");
            reached.push(place);
        }
        assert_eq!(reached[0], "pause");
        assert!(
            reached.contains(&"Requests by rule".to_owned()),
            "{reached:?}"
        );
        tab.write(TOKEN).await;
        tab.press("Enter").await;
        tab.wait_until("!document.getElementById('explain').hidden")
            .await;

        // The focus stays in a table while the page follows the service.
        tab.eval("document.querySelector('[aria-label=\"Requests by rule\"]').focus()")
            .await;
        let node =
            "window.shown = document.querySelector('[aria-label=\"Requests by rule\"]'), true";
        tab.eval(node).await;
        tab.wait_until("!window.shown.isConnected").await;
        assert_eq!(tab.eval(focused).await, "Requests by rule");

        // A request is explained.
        tab.eval("document.getElementById('url').select(), document.getElementById('url').focus()")
            .await;
        tab.write("/login").await;
        tab.press("Tab").await;
        tab.write("192.0.2.1").await;
        tab.press("Enter").await;
        let explained = "document.querySelector('#explained table')?.textContent";
        tab.wait_until(explained).await;
        let said = tab.eval(explained).await;
        assert!(
            said.as_str().unwrap().contains("method is GET, not POST"),
            "{said}"
        );
        tab.write("x").await;
        tab.press("Enter").await;
        tab.wait_until(
            "document.querySelector('#explained').textContent.includes('without a port')",
        )
        .await;
        let status = tab.faults().await;
        // The answer 422 is on the console, and nothing else.
        assert!(
            status.iter().all(|fault| fault.contains("422")),
            "{status:?}"
        );

        // Pause stops it, and starts it again.
        tab.eval("document.getElementById('pause').focus()").await;
        tab.press("Space").await;
        assert_eq!(
            tab.eval("document.getElementById('pause').ariaPressed")
                .await,
            "true"
        );
        let said = "document.getElementById('lost').textContent";
        // If the page asks the service just now, it says so two seconds later.
        tab.wait_until(&format!("{said}.startsWith('Paused. The page shows ')"))
            .await;
        tab.press("Enter").await;
        tab.wait_until(&format!("{said} === ''")).await;
        tab.eval(node).await;
        tab.wait_until("!window.shown.isConnected").await;
    }
    drop(load);
    drop(browser);
    service.end().await;
}

#[tokio::test]
async fn an_empty_policy_and_a_bad_one_are_said() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let service = Running::start_with("rule = []", with_token).await;
    let tab = open(&browser, Look::PHONE, &service).await;
    give_token(&tab).await;
    let says =
        |text: &str| format!("document.querySelector('main').textContent.includes({text:?})");
    tab.wait_until(&says("every request is allowed")).await;
    check(&tab, &service, "empty-390").await;

    fs::write(
        service.file.path(),
        "[[rule]]\nname = '<b>'\nlimit = '3/fortnight'",
    )
    .unwrap();
    assert!(service.handle.reload().is_err());
    tab.wait_until(&says("limit is \"3/fortnight\"")).await;
    tab.wait_until(&says("an older policy decides")).await;
    check(&tab, &service, "bad-390").await;
    let desk = open(&browser, Look::DESKTOP.dark(), &service).await;
    give_token(&desk).await;
    desk.wait_until(&says("limit is \"3/fortnight\"")).await;
    check(&desk, &service, "bad-1440-dark").await;

    // What was wrong goes away by itself.
    fs::write(service.file.path(), POLICY).unwrap();
    let _ = service.handle.reload().unwrap();
    tab.wait_until("document.querySelector('.wrong') === null")
        .await;
    tab.wait_until(&says("Rules, in their order")).await;
    drop(browser);
    service.end().await;
}

#[tokio::test]
async fn a_wrong_token_and_a_service_that_ends_are_said() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let service = Running::start_with(POLICY, with_token).await;
    let tab = open(&browser, Look::PHONE, &service).await;
    tab.click("#token").await;
    tab.write("not-this").await;
    tab.press("Enter").await;
    tab.wait_until("document.getElementById('token-error').textContent.includes('must be')")
        .await;
    // No header has such a letter.
    tab.click("#token").await;
    tab.write("not-this-\u{20ac}-either").await;
    tab.press("Enter").await;
    tab.wait_until("document.getElementById('token-error').textContent.includes('letter')")
        .await;
    let lost = "document.getElementById('lost').textContent";
    assert_eq!(tab.eval(lost).await, "");
    give_token(&tab).await;
    service.end().await;
    tab.wait_until("document.getElementById('lost').textContent.includes('may be old')")
        .await;
    // What was shown stays.
    assert_eq!(
        tab.eval("document.querySelectorAll('[aria-label=\"Requests by rule\"]').length")
            .await,
        1
    );
}
