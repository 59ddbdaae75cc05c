//! Headless Chromium, which is told what to do by the Chrome DevTools Protocol.
//!
//! Messages of the protocol are JSON, and each ends with a zero byte. Chromium reads them from
//! descriptor 3 and writes them to descriptor 4. If the test's process is killed, Chromium ends
//! too. [`Tab`](crate::tab::Tab) has what tests call.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

use crate::program::find;

/// A test that has waited this long fails.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

const FLAGS: [&str; 23] = [
    "--headless",
    "--remote-debugging-pipe",
    // Tests may run as root, in a container with a small /dev/shm and no GPU.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    // A page is as wide as its tab.
    "--hide-scrollbars",
    // A desktop has a mouse.
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
    // It reaches this address alone, whatever it or a page asks for.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--no-proxy-server",
    // These spare it attempts to reach others.
    "--disable-background-networking",
    "--disable-features=AutofillServerCommunication,NetworkTimeServiceQuerying,OptimizationHints",
    "--disable-field-trial-config",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    // No process outside its group reports crashes.
    "--disable-breakpad",
    // A tab in the background runs like the one in front.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    // Instead of the start page.
    "about:blank",
];

/// A browser without a window, with an empty profile. It ends, with all its processes, when it is
/// dropped.
pub(crate) struct Browser {
    child: Child,
    pub(crate) connection: Arc<Connection>,
    pub(crate) folder: TempDir,
}

impl Browser {
    /// Starts Chromium. `None` if it is not installed.
    pub(crate) fn start() -> Option<Self> {
        let program = find("chromium")?;
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >&2", "sh"])
            .arg(program)
            .arg(format!("--user-data-dir={}", folder.path().display()))
            .args(FLAGS)
            .process_group(0)
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .env("XDG_CONFIG_HOME", folder.path())
            .env("XDG_CACHE_HOME", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let to = OwnedFd::from(child.stdin.take().unwrap());
        let from = OwnedFd::from(child.stdout.take().unwrap());
        let connection = Arc::new(Connection {
            pipe: Mutex::new((pipe::Sender::from_owned_fd(to).unwrap(), 0)),
            seen: watch::Sender::default(),
            log,
        });
        let from = pipe::Receiver::from_owned_fd(from).unwrap();
        tokio::spawn(read(from, connection.seen.clone()));
        Some(Self {
            child,
            connection,
            folder,
        })
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.child);
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
        // The folder can be removed once no process writes into it. The system may be slow.
        for _ in 0..200 {
            if test_kill_process_group(group).is_err() {
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// What the browser has said.
#[derive(Default)]
pub(crate) struct Seen {
    answers: HashMap<u64, Value>,
    pub(crate) events: Vec<Value>,
    has_ended: bool,
}

/// Calls the browser, and keeps its events.
pub(crate) struct Connection {
    /// The last call's number is beside it.
    pipe: Mutex<(pipe::Sender, u64)>,
    seen: watch::Sender<Seen>,
    log: PathBuf,
}

impl Connection {
    /// Calls a method in a session, or of the browser if the session is empty. Returns its result.
    pub(crate) async fn call(&self, session: &str, method: &str, params: Value) -> Value {
        let answer = self.try_call(session, method, params).await;
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    pub(crate) async fn try_call(
        &self,
        session: &str,
        method: &str,
        params: Value,
    ) -> Result<Value, String> {
        let mut guard = self.pipe.lock().await;
        let (pipe, id) = &mut *guard;
        *id += 1;
        let id = *id;
        let mut message = json!({"id": id, "method": method, "params": params});
        if !session.is_empty() {
            message["sessionId"] = session.into();
        }
        // If the browser has ended, no answer comes.
        let _ = pipe.write_all(format!("{message}\0").as_bytes()).await;
        drop(guard);
        let found = |seen: &Seen| seen.answers.get(&id).cloned();
        let mut answer = self.until(method, found).await;
        match answer["error"]["message"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer["result"].take()),
        }
    }

    /// Waits until something is among what the browser has said.
    pub(crate) async fn until<T>(&self, what: &str, found: impl Fn(&Seen) -> Option<T>) -> T {
        let mut seen = self.seen.subscribe();
        let mut result = None;
        let done = seen.wait_for(|seen| {
            result = found(seen);
            result.is_some() || seen.has_ended
        });
        let is_late = timeout(DEADLINE, done).await.is_err();
        result.unwrap_or_else(|| {
            let why = if is_late { "too late" } else { "it has ended" };
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            panic!("{what}: the browser does not answer ({why})\n{log}")
        })
    }

    /// Returns what is found in each event so far.
    pub(crate) fn events<T>(&self, found: impl FnMut(&Value) -> Option<T>) -> Vec<T> {
        self.seen.borrow().events.iter().filter_map(found).collect()
    }
}

async fn read(pipe: pipe::Receiver, seen: watch::Sender<Seen>) {
    let mut messages = BufReader::new(pipe).split(0);
    while let Ok(Some(message)) = messages.next_segment().await {
        let message: Value = serde_json::from_slice(&message).unwrap();
        seen.send_modify(|seen| match message["id"].as_u64() {
            Some(id) => drop(seen.answers.insert(id, message)),
            None => seen.events.push(message),
        });
    }
    seen.send_modify(|seen| seen.has_ended = true);
}
