//! The browser does what a test tells it, and each check finds what it is for.

use std::fs;
use std::panic;
use std::time::Duration;

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use serde_json::json;
use tokio::net::{TcpListener, TcpSocket};

use crate::browser::Browser;
use crate::tab::{Look, Tab};

const CLEAN: &str = "<!doctype html><html lang=en><title>Clean</title>
    <meta name=viewport content='width=device-width'>
    <style>
        :root { color-scheme: light dark }
        @media (prefers-color-scheme: dark) { a { color: #9cf } }
        @media (prefers-reduced-motion: no-preference) { h1 { animation: fade 1s } }
    </style>
    <header><nav aria-label=Places><a href=#there>There</a></nav></header>
    <main><h1>Clean</h1><h2>Less</h2>
        <label>Name <input id=name></label>
        <button id=more onclick='count.value++'>More</button> <output id=count>0</output>
        <p id=there style='margin-top: 200vh'>Down here</p></main>";

/// Serves a page at `/` and returns its origin.
async fn serve(page: impl Into<String>) -> String {
    let page = page.into();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let app = Router::new()
        .route("/", get(async move || Html(page)))
        // Chromium asks for the icon of each page.
        .route("/favicon.ico", get(async || ()));
    tokio::spawn(async move { axum::serve(listener, app).await });
    origin
}

/// Opens a page in a tab of its own.
async fn open(browser: &Browser, look: Look, page: impl Into<String>) -> (Tab, String) {
    let origin = serve(page).await;
    let tab = browser.tab(look).await;
    tab.open(&format!("{origin}/")).await;
    (tab, origin)
}

#[tokio::test]
async fn a_clean_page_has_no_faults() {
    let Some(browser) = Browser::start() else {
        return;
    };
    for look in [Look::PHONE, Look::DESKTOP.dark()] {
        let (tab, origin) = open(&browser, look, CLEAN).await;
        tab.eval("console.log('no fault')").await;
        tab.eval("const it = new AbortController(); it.abort(); fetch('/', it).catch(() => 0)")
            .await;
        tab.press("Tab").await;
        tab.press("Enter").await;
        tab.wait_until("location.hash === '#there' && scrollY > 0")
            .await;
        assert_eq!(tab.faults().await, [""; 0]);
        assert_eq!(tab.requests_beyond(&origin).await, [""; 0]);
        assert_eq!(tab.pale_texts().await, [""; 0]);
        assert_eq!(tab.nameless().await, [""; 0]);
    }
}

#[tokio::test]
async fn each_fault_is_found() {
    let Some(browser) = Browser::start() else {
        return;
    };
    // This port is the test's own, and refuses connections since nothing listens.
    let silent = TcpSocket::new_v4().unwrap();
    silent.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = format!("http://{}/", silent.local_addr().unwrap());
    let refused = format!("fetch('{closed}').catch(() => 0)");
    // No name is looked up, and no other address is reached.
    let named = refused.replace("127.0.0.1", "localhost");
    let other = refused.replace("127.0.0.1", "127.0.0.2");
    let faults = [
        ("console.error('bad', 7)", "error: bad 7"),
        ("console.warn('odd')", "warning: odd"),
        ("console.assert(1 > 2, 'less')", "assert: less"),
        (
            "throw new TypeError('thrown')",
            "exception: TypeError: thrown",
        ),
        ("setTimeout(() => { throw 8 })", "exception: 8"),
        (
            "Promise.reject(new Error('later'))",
            "exception: Error: later",
        ),
        ("fetch('/missing')", "/missing"),
        (
            "document.body.append(Object.assign(new Image, {src: '/none'}))",
            "/none",
        ),
        (&refused, "request: net::ERR_CONNECTION_REFUSED"),
        (&named, "request: net::ERR_NAME_NOT_RESOLVED"),
        (&other, "request: net::ERR_NAME_NOT_RESOLVED"),
    ];
    for (script, expected) in faults {
        let page = format!("<!doctype html><body><script>{script}</script>");
        let (tab, _) = open(&browser, Look::DESKTOP, page).await;
        while !tab.faults().await.iter().any(|it| it.contains(expected)) {
            let is_late = tab
                .wait_for(Duration::ZERO, "performance.now() > 20e3")
                .await;
            assert!(is_late.is_err(), "{script}: {:?}", tab.faults().await);
        }
    }
}

#[tokio::test]
async fn requests_beyond_the_origin_are_found() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let other = serve("").await;
    let page = format!(
        "<!doctype html><img src='{other}/picture'><iframe src='{other}/'></iframe>
        <link rel=stylesheet href='https://fonts.example/'><body><script>
            fetch('{other}/call', {{mode: 'no-cors'}}); fetch('/own');
            navigator.sendBeacon('{other}/beacon'); new EventSource('{other}/events');
            new WebSocket('ws://fonts.example/socket');
        </script>"
    );
    let (tab, origin) = open(&browser, Look::DESKTOP, page).await;
    let mut beyond = tab.requests_beyond(&origin).await;
    beyond.sort();
    let mut expected =
        ["picture", "", "call", "beacon", "events"].map(|it| format!("{other}/{it}"));
    expected.sort();
    let named = ["https://fonts.example/", "ws://fonts.example/socket"].map(str::to_owned);
    assert_eq!(beyond, [&expected[..], &named].concat());
    let all = tab.requests().await;
    assert!(all.contains(&format!("{origin}/own")), "{all:?}");
}

#[tokio::test]
async fn keys_and_clicks_are_those_of_a_user() {
    let Some(browser) = Browser::start() else {
        return;
    };
    for look in [Look::DESKTOP, Look::PHONE] {
        let (tab, _) = open(&browser, look, CLEAN).await;
        let focus = "document.activeElement.id || document.activeElement.localName";
        let mut reached = Vec::new();
        for key in ["Tab", "Tab", "Tab", "Shift+Tab"] {
            tab.press(key).await;
            reached.push(tab.eval(focus).await);
        }
        assert_eq!(reached, ["a", "name", "more", "name"]);
        tab.write("Zoë 1").await;
        assert_eq!(
            tab.eval("document.querySelector('#name').value").await,
            "Zoë 1"
        );
        tab.press("Tab").await;
        tab.press("Space").await;
        tab.press("Enter").await;
        tab.click("#more").await;
        assert_eq!(
            tab.wait_until("count.value === '3' && count.value").await,
            "3"
        );
        // The event of a click is trusted, and says what made it.
        tab.eval("more.onclick = event => { last = [event.isTrusted, event.pointerType] }")
            .await;
        tab.click("#more").await;
        let pointer = if look.is_phone { "touch" } else { "mouse" };
        let last = tab.wait_until("globalThis.last").await;
        assert_eq!(last, json!([true, pointer]));
    }
}

#[tokio::test]
async fn a_click_fails_on_what_a_user_cant_click() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let page = "<!doctype html><button id=under>Under</button><button class=two>1</button>
        <div style='position: fixed; inset: 0'></div><button class=two>2</button>";
    for selector in ["#under", ".two", "#none"] {
        let (tab, _) = open(&browser, Look::DESKTOP, page).await;
        let click = tokio::spawn(async move { tab.click(selector).await });
        assert!(
            click.await.is_err_and(|error| error.is_panic()),
            "{selector}"
        );
    }
}

#[tokio::test]
async fn a_test_waits_for_a_condition() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let page = "<!doctype html><body><script>setTimeout(() => { found = 'it' }, 100)</script>";
    let (tab, _) = open(&browser, Look::DESKTOP, page).await;
    assert_eq!(tab.wait_until("globalThis.found").await, "it");
    assert_eq!(
        tab.eval("Promise.resolve([1, {a: null}])").await,
        json!([1, {"a": null}])
    );
    // The last value, or why there is none.
    let last = tab.wait_for(Duration::ZERO, "0").await;
    assert_eq!(last, Err(Ok(json!(0))));
    let last = tab.wait_for(Duration::ZERO, "missing.value").await;
    let error = last.unwrap_err().unwrap_err();
    assert!(error.contains("missing is not defined"), "{error}");
    let eval = tokio::spawn(async move { tab.eval("missing.value").await });
    assert!(eval.await.is_err_and(|error| error.is_panic()));
}

#[tokio::test]
async fn a_tab_looks_as_its_user_wants() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let queries = "[innerWidth, innerHeight, ...['(pointer: coarse)', '(hover: hover)',
        '(prefers-color-scheme: dark)', '(prefers-reduced-motion: reduce)']
        .map(query => matchMedia(query).matches)]";
    let looks = [
        (Look::DESKTOP, json!([1440, 900, false, true, false, false])),
        (
            Look::DESKTOP.still(),
            json!([1440, 900, false, true, false, true]),
        ),
        (
            Look::PHONE.dark(),
            json!([390, 844, true, false, true, false]),
        ),
    ];
    for (place, (look, expected)) in looks.into_iter().enumerate() {
        let (tab, _) = open(&browser, look, CLEAN).await;
        assert_eq!(tab.eval(queries).await, expected, "{look:?}");
        let path = tab.screenshot(&format!("driver-{place}")).await;
        let picture = fs::read(path).unwrap();
        assert_eq!(&picture[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(&picture[picture.len() - 8..][..4], b"IEND");
        let size = |at| u32::from_be_bytes(picture[at..at + 4].try_into().unwrap());
        assert_eq!(size(16), look.width);
        // The page is longer than the screen.
        assert!(size(20) > 2 * look.height, "{}", size(20));
    }
}

#[tokio::test]
async fn pale_texts_are_found() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let texts = [
        // Gray on white: 4.54, and 4.48.
        ("<p style='color: #767676'>Enough</p>", None),
        ("<p style='color: #777'>Pale</p>", Some("4.48 of 4.5")),
        ("<p style='color: #777; font-size: 24px'>Large</p>", None),
        (
            "<p style='color: #777; font-size: 19px; font-weight: bold'>Bold</p>",
            None,
        ),
        (
            "<p style='color: #999; font-size: 24px'>Pale</p>",
            Some("2.85 of 3"),
        ),
        // What is behind belongs to an ancestor, or shines through.
        (
            "<div style='background: #000'><p><b style='color: #777'>Enough</b></div>",
            None,
        ),
        (
            "<div style='background: #000'><p><b style='color: #666'>Pale</b></div>",
            Some("3.66"),
        ),
        (
            "<p style='background: #000a; color: #000'>Pale</p>",
            Some("2.82"),
        ),
        ("<p style='color: oklch(0.6 0 0)'>Pale</p>", Some(" of 4.5")),
        ("<p style='color: #0008'>Pale</p>", Some(" of 4.5")),
        ("<p style='opacity: 0.5'>Pale</p>", Some(" of 4.5")),
        (
            "<p style='background: linear-gradient(#fff, #000)'>Over an image</p>",
            Some("NaN"),
        ),
        (
            "<style>::placeholder { color: #ddd }</style><input aria-label=a placeholder=Pale>",
            Some(" of 4.5"),
        ),
        (
            "<input aria-label=a value=Pale style='color: #777'>",
            Some("4.48 of 4.5"),
        ),
        (
            "<svg><text y=20 fill='#777'>Pale</text></svg>",
            Some("4.48 of 4.5"),
        ),
        // These are not seen, or can't be used.
        ("<p style='color: #fff; display: none'>Hidden</p>", None),
        (
            "<p style='color: #fff; visibility: hidden'>Hidden</p>",
            None,
        ),
        (
            "<details><summary>More</summary><p style='color: #fff'>Closed</p></details>",
            None,
        ),
        ("<button disabled>Gray</button>", None),
    ];
    let tab = browser.tab(Look::DESKTOP).await;
    for (text, expected) in texts {
        let page = format!("<!doctype html><title>Pale</title><body>{text}");
        tab.open(&serve(page).await).await;
        let found = tab.pale_texts().await;
        assert_eq!(
            found.len(),
            usize::from(expected.is_some()),
            "{text}: {found:?}"
        );
        let is_as_expected = expected.is_none_or(|it| found[0].contains(it));
        assert!(is_as_expected, "{text}: {found:?}");
    }
    // The same text on the dark canvas of the browser.
    let page = "<!doctype html><meta name=color-scheme content='light dark'><body>
        <p>Enough</p><p style='color: #111'>Pale</p>";
    let (tab, _) = open(&browser, Look::DESKTOP.dark(), page).await;
    let found = tab.pale_texts().await;
    assert!(
        matches!(&found[..], [one] if one.contains("1.01 of 4.5")),
        "{found:?}"
    );
}

#[tokio::test]
async fn screen_readers_are_told_names() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let (tab, _) = open(&browser, Look::DESKTOP, CLEAN).await;
    assert_eq!(tab.names("RootWebArea").await, ["Clean"]);
    assert_eq!(tab.names("heading").await, ["Clean", "Less"]);
    assert_eq!(tab.names("navigation").await, ["Places"]);
    assert_eq!(tab.names("main").await.len(), 1);
    assert_eq!(tab.names("textbox").await, ["Name"]);
    let headings = tab
        .parts()
        .await
        .into_iter()
        .filter(|it| it.role == "heading");
    let levels: Vec<_> = headings.map(|it| it.properties["level"].clone()).collect();
    assert_eq!(levels, [1, 2]);

    let page = "<!doctype html><button id=x></button><input placeholder=''><a href=/y></a>
        <input type=checkbox><select></select><img src='data:image/gif,'><h2></h2>
        <button aria-hidden=true tabindex=-1></button><button>Named</button>
        <div role=dialog><p>Text</p></div><textarea title=Named></textarea>";
    let (tab, _) = open(&browser, Look::DESKTOP, page).await;
    let mut found = tab.nameless().await;
    found.sort();
    let roles = found.iter().map(|it| it.split_once(' ').unwrap().0);
    let expected = [
        "RootWebArea",
        "button",
        "checkbox",
        "combobox",
        "dialog",
        "heading",
        "image",
        "link",
        "textbox",
    ];
    assert_eq!(roles.collect::<Vec<_>>(), expected, "{found:?}");
    assert_eq!(found[1], "button BUTTON [\"id\",\"x\"]");
}

/// Returns the ids of the processes whose folder is that of a browser.
fn processes(browser: &str) -> Vec<String> {
    let all = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap());
    let own = all.filter(|entry| {
        let folder = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        folder
            .to_str()
            .is_some_and(|folder| folder.starts_with(browser))
    });
    own.map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

#[tokio::test]
async fn a_browser_ends_with_its_processes() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let (_tab, _) = open(&browser, Look::DESKTOP, CLEAN).await;
    let folder = browser.folder.path().to_owned();
    let name = folder.to_str().unwrap();
    assert!(processes(name).len() > 2);
    // A test that fails drops it too.
    let failed = panic::catch_unwind(panic::AssertUnwindSafe(|| {
        let _browser = browser;
        panic::resume_unwind(Box::new("failed"))
    }));
    assert!(failed.is_err());
    assert_eq!(processes(name), [""; 0]);
    assert!(!folder.exists());
}
