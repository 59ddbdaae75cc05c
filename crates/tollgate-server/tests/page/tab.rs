//! A tab, as a test uses it: it opens a page, acts as a user does, and says what went wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::browser::{Browser, Connection, DEADLINE};

/// What a user has before them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// A phone has touch, and no mouse.
    pub(crate) is_phone: bool,
    pub(crate) is_dark: bool,
    /// Whether the user prefers that nothing moves.
    pub(crate) is_still: bool,
}

impl Look {
    pub(crate) const PHONE: Self = Self {
        width: 390,
        height: 844,
        is_phone: true,
        ..Self::DESKTOP
    };
    pub(crate) const DESKTOP: Self = Self {
        width: 1440,
        height: 900,
        is_phone: false,
        is_dark: false,
        is_still: false,
    };

    pub(crate) fn dark(self) -> Self {
        let is_dark = true;
        Self { is_dark, ..self }
    }

    pub(crate) fn still(self) -> Self {
        let is_still = true;
        Self { is_still, ..self }
    }
}

/// A tab. Each method fails the test if the browser does not answer.
pub(crate) struct Tab {
    connection: Arc<Connection>,
    session: String,
    is_phone: bool,
}

impl Browser {
    pub(crate) async fn tab(&self, look: Look) -> Tab {
        let blank = json!({"url": "about:blank"});
        let target = self.connection.call("", "Target.createTarget", blank).await;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = self.connection.call("", "Target.attachToTarget", attach);
        let tab = Tab {
            session: attached.await["sessionId"].as_str().unwrap().to_owned(),
            connection: Arc::clone(&self.connection),
            is_phone: look.is_phone,
        };
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility", "DOM"] {
            tab.call(&format!("{domain}.enable"), json!({})).await;
        }
        let enabled = json!({"enabled": true});
        tab.call("Page.setLifecycleEventsEnabled", enabled.clone())
            .await;
        tab.call("Emulation.setFocusEmulationEnabled", enabled)
            .await;
        let touch = json!({"enabled": look.is_phone});
        tab.call("Emulation.setTouchEmulationEnabled", touch).await;
        let size = json!({
            "width": look.width,
            "height": look.height,
            "deviceScaleFactor": 1,
            "mobile": look.is_phone,
        });
        tab.call("Emulation.setDeviceMetricsOverride", size).await;
        let scheme = if look.is_dark { "dark" } else { "light" };
        let motion = if look.is_still {
            "reduce"
        } else {
            "no-preference"
        };
        let media = json!({"features": [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": motion},
        ]});
        tab.call("Emulation.setEmulatedMedia", media).await;
        tab
    }
}

impl Tab {
    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        self.connection.call(&self.session, method, params).await
    }

    /// Opens an address, and waits until the page has loaded.
    pub(crate) async fn open(&self, url: &str) {
        let opened = self.call("Page.navigate", json!({"url": url})).await;
        assert_eq!(opened["errorText"], Value::Null, "{url}");
        let has_loaded = |event: &&Value| {
            let params = &event["params"];
            params["name"] == "load" && params["loaderId"] == opened["loaderId"]
        };
        // Another part of the same page is there at once.
        if opened["loaderId"] != Value::Null {
            let found = self
                .connection
                .until(url, |seen| seen.events.iter().find(has_loaded).map(|_| ()));
            found.await;
        }
    }

    /// Returns the value of an expression, or what its promise brings.
    pub(crate) async fn eval(&self, expression: &str) -> Value {
        let value = self.try_eval(expression).await;
        value.unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    async fn try_eval(&self, expression: &str) -> Result<Value, String> {
        let params = json!({
            "expression": expression,
            "awaitPromise": true,
            "returnByValue": true,
        });
        let call = self
            .connection
            .try_call(&self.session, "Runtime.evaluate", params);
        let mut answer = call.await?;
        match &answer["exceptionDetails"] {
            Value::Null => Ok(answer["result"]["value"].take()),
            details => Err(thrown(details)),
        }
    }

    /// Waits until an expression is true, and returns its value. The page may change meanwhile.
    pub(crate) async fn wait_until(&self, expression: &str) -> Value {
        let value = self.wait_for(DEADLINE, expression).await;
        value.unwrap_or_else(|last| panic!("{expression}: still {last:?}"))
    }

    /// Returns the last value, or the last error, if the time is over.
    pub(crate) async fn wait_for(
        &self,
        time: Duration,
        expression: &str,
    ) -> Result<Value, Result<Value, String>> {
        let end = Instant::now() + time;
        loop {
            match self.try_eval(expression).await {
                Ok(value) if is_true(&value) => return Ok(value),
                last if Instant::now() >= end => return Err(last),
                _ => sleep(Duration::from_millis(10)).await,
            }
        }
    }

    /// Clicks the middle of the only element of a selector, on a phone by touch. Fails if another
    /// element lies over it.
    pub(crate) async fn click(&self, selector: &str) {
        let middle = format!(
            "(() => {{
                const all = document.querySelectorAll({selector:?});
                if (all.length !== 1) throw new Error(`there are ${{all.length}}`);
                all[0].scrollIntoView({{block: 'center', behavior: 'instant'}});
                const box = all[0].getBoundingClientRect();
                const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
                const top = document.elementFromPoint(x, y);
                if (!all[0].contains(top)) throw new Error(`${{top?.outerHTML}} covers it`);
                return {{x, y}};
            }})()"
        );
        let point = self.try_eval(&middle).await;
        let mut point = point.unwrap_or_else(|error| panic!("{selector}: {error}"));
        if self.is_phone {
            let touch = json!({"type": "touchStart", "touchPoints": [point]});
            self.call("Input.dispatchTouchEvent", touch).await;
            let end = json!({"type": "touchEnd", "touchPoints": []});
            self.call("Input.dispatchTouchEvent", end).await;
            return;
        }
        point["button"] = "left".into();
        point["clickCount"] = 1.into();
        for kind in ["mousePressed", "mouseReleased"] {
            point["type"] = kind.into();
            self.call("Input.dispatchMouseEvent", point.clone()).await;
        }
    }

    /// Presses a key, such as `Tab`, `Shift+Tab`, `Enter`, `Space` or `a`.
    pub(crate) async fn press(&self, key: &str) {
        let (modifiers, name) = match key.strip_prefix("Shift+") {
            Some(name) => (8, name),
            None => (0, key),
        };
        let (key, code, text) = match name {
            "Tab" => (name, 9, ""),
            "Enter" => (name, 13, "\r"),
            "Escape" => (name, 27, ""),
            "Space" => (" ", 32, " "),
            "End" => (name, 35, ""),
            "Home" => (name, 36, ""),
            "ArrowLeft" => (name, 37, ""),
            "ArrowUp" => (name, 38, ""),
            "ArrowRight" => (name, 39, ""),
            "ArrowDown" => (name, 40, ""),
            _ => {
                assert_eq!(name.chars().count(), 1, "no such key: {name}");
                (name, 0, name)
            }
        };
        let mut event = json!({
            "type": "keyDown",
            "modifiers": modifiers,
            "key": key,
            "code": name,
            "windowsVirtualKeyCode": code,
            "text": text,
        });
        self.call("Input.dispatchKeyEvent", event.clone()).await;
        event["type"] = "keyUp".into();
        event["text"] = "".into();
        self.call("Input.dispatchKeyEvent", event).await;
    }

    /// Types a text into the element that has the focus.
    pub(crate) async fn write(&self, text: &str) {
        for letter in text.chars() {
            self.press(letter.encode_utf8(&mut [0; 4])).await;
        }
    }

    /// Returns what is found in each event of this tab so far.
    async fn events<T>(&self, found: impl Fn(&Value, &Value) -> Option<T>) -> Vec<T> {
        // What the page's scripts are about to say comes first.
        self.eval("new Promise(done => setTimeout(done))").await;
        self.connection.events(|event| {
            let is_own = event["sessionId"] == self.session;
            is_own.then(|| found(&event["method"], &event["params"]))?
        })
    }

    /// Returns all that went wrong since the tab is open: errors and warnings on the console,
    /// exceptions, and requests that failed. A request that the page canceled is no fault.
    pub(crate) async fn faults(&self) -> Vec<String> {
        self.events(fault).await
    }

    /// Returns the addresses of all requests, in order.
    pub(crate) async fn requests(&self) -> Vec<String> {
        let url = |method: &Value, params: &Value| match method.as_str()? {
            "Network.requestWillBeSent" => Some(text(&params["request"]["url"])),
            "Network.webSocketCreated" => Some(text(&params["url"])),
            _ => None,
        };
        self.events(url).await
    }

    /// Returns the addresses of those requests that went elsewhere than to an origin, such as
    /// `http://127.0.0.1:8080`.
    pub(crate) async fn requests_beyond(&self, origin: &str) -> Vec<String> {
        let mut urls = self.requests().await;
        let within = format!("{origin}/");
        urls.retain(|url| !url.starts_with(&within) && !url.starts_with("data:"));
        urls
    }

    /// Returns the visible texts that have too little contrast: below 4.5, or 3 if they are large.
    /// A text over an image is among them, since its contrast is not known.
    pub(crate) async fn pale_texts(&self) -> Vec<String> {
        let texts = self.eval(include_str!("contrast.js")).await;
        serde_json::from_value(texts).unwrap()
    }

    /// Writes a picture of the whole page into the folder `page` of cargo's folder for tests.
    pub(crate) async fn screenshot(&self, name: &str) -> PathBuf {
        let sizes = self.call("Page.getLayoutMetrics", json!({})).await;
        let mut clip = sizes["cssContentSize"].clone();
        clip["scale"] = 1.into();
        let params = json!({"captureBeyondViewport": true, "clip": clip});
        let picture = self.call("Page.captureScreenshot", params).await;
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{name}.png"));
        fs::write(&path, decoded(picture["data"].as_str().unwrap())).unwrap();
        path
    }
}

fn fault(method: &Value, params: &Value) -> Option<String> {
    let fault = match method.as_str()? {
        "Runtime.exceptionThrown" => thrown(&params["exceptionDetails"]),
        "Runtime.consoleAPICalled" => {
            let kind = params["type"].as_str()?;
            let args = params["args"].as_array()?.iter().map(described);
            let is_fault = ["error", "warning", "assert"].contains(&kind);
            is_fault.then(|| format!("{kind}: {}", args.collect::<Vec<_>>().join(" ")))?
        }
        "Log.entryAdded" => {
            let (entry, level) = (&params["entry"], &params["entry"]["level"]);
            let is_fault = level == "error" || level == "warning";
            is_fault.then(|| format!("{} {}", text(&entry["text"]), text(&entry["url"])))?
        }
        "Network.loadingFailed" if params["canceled"] != true => {
            format!("request: {}", text(&params["errorText"]))
        }
        "Inspector.targetCrashed" => "the tab has crashed".to_owned(),
        _ => return None,
    };
    Some(fault)
}

fn thrown(details: &Value) -> String {
    match &details["exception"] {
        Value::Null => text(&details["text"]),
        exception => format!("exception: {}", described(exception)),
    }
}

/// Returns how a value of a script reads.
fn described(value: &Value) -> String {
    match &value["description"] {
        Value::String(description) => description.clone(),
        _ => text(&value["value"]),
    }
}

/// Returns a string without its quotes, and another value as JSON.
pub(crate) fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn is_true(value: &Value) -> bool {
    !(value.is_null() || value == false || value == 0 || value == "")
}

/// Decodes base64.
fn decoded(text: &str) -> Vec<u8> {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let mut bits = 0_u32;
    for (place, digit) in text.trim_end_matches('=').bytes().enumerate() {
        let value = digits.iter().position(|known| *known == digit).unwrap();
        bits = bits << 6 | u32::try_from(value).unwrap();
        if place % 4 > 0 {
            let unread = 6 - 2 * (place % 4);
            bytes.push((bits >> unread).to_le_bytes()[0]);
        }
    }
    bytes
}
