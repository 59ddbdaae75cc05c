//! `tollgate serve` decides, follows its file and its signals, and ends well.

mod clock_steps;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use super::deadline::deadline;
use super::server::on_each_server;
use super::{failure, folder};

/// A service on ports of its own. It is killed if the test fails.
pub(crate) struct Service {
    pub(crate) child: Child,
    pub(crate) address: String,
    pub(crate) admin: String,
    log: Option<BufReader<ChildStderr>>,
}

impl Service {
    fn start(arguments: &[&str]) -> Self {
        Self::start_with_log(arguments, Stdio::piped())
    }

    fn start_with_log(arguments: &[&str], log: Stdio) -> Self {
        let program = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        Self::start_by(program, arguments, log)
    }

    pub(crate) fn start_by(mut command: Command, arguments: &[&str], log: Stdio) -> Self {
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        command.args(arguments);
        command.stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().expect("the program runs");
        let out = BufReader::new(child.stdout.take().expect("an output"));
        let lines = deadline("the service", move || {
            let lines = out.lines().take(3).map(|line| line.expect("text"));
            lines.collect::<Vec<_>>()
        });
        let log = child.stderr.take().map(BufReader::new);
        let url = |line: &String| {
            let (_, url) = line
                .split_once("http://")
                .unwrap_or_else(|| panic!("{lines:?}"));
            url.split(['/', ':']).take(2).collect::<Vec<_>>().join(":")
        };
        Self {
            address: url(&lines[1]),
            admin: url(&lines[2]),
            child,
            log,
        }
    }

    /// Sends a request, and returns the whole answer.
    fn ask(address: &str, request: &str) -> String {
        let (address, request) = (address.to_owned(), request.to_owned());
        deadline("an answer", move || {
            let mut stream = TcpStream::connect(address).expect("a connection");
            stream.write_all(request.as_bytes()).expect("it is sent");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("an answer");
            answer
        })
    }

    fn decide(&self, facts: &str) -> String {
        self.post("/decide", &format!("{{\"facts\": {facts}}}"))
    }

    fn post(&self, path: &str, body: &str) -> String {
        let head = format!("POST {path} HTTP/1.1\r\nhost: tollgate\r\nconnection: close");
        let request = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        Self::ask(&self.address, &request)
    }

    fn get(&self, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nhost: tollgate\r\nconnection: close\r\n\r\n");
        Self::ask(&self.admin, &request)
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &id])
            .status();
        assert!(sent.expect("kill runs").success());
    }

    /// Reads the log until a line has this text, and returns the line.
    fn logged(&mut self, text: &'static str) -> String {
        let mut log = self.log.take().expect("the log");
        let (log, found) = deadline(text, move || {
            let mut line = String::new();
            while log.read_line(&mut line).expect("text") > 0 && !line.contains(text) {
                line.clear();
            }
            (log, line)
        });
        self.log = Some(log);
        assert!(found.contains(text), "the log ends without {text:?}");
        found
    }

    /// Waits for the end, and returns the exit code.
    pub(crate) fn code(mut self) -> Option<i32> {
        deadline("the end", move || {
            self.child.wait().expect("it ends").code()
        })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn without_a_file_it_limits_each_client() {
    let service = Service::start(&[]);
    let said = service.decide("{\"client-ip\": \"192.0.2.1\"}");
    assert!(said.contains("\"allowed\":true"), "{said}");
    assert!(said.contains("\"rule\":\"client\",\"quota\":100"), "{said}");
    assert!(service.get("/healthz").starts_with("HTTP/1.1 200"));
    assert!(service.get("/readyz").starts_with("HTTP/1.1 200"));
    let metrics = service.get("/metrics");
    assert!(
        metrics.contains("{rule=\"client\",decision=\"allowed\"} 1"),
        "{metrics}"
    );
    service.signal("TERM");
    assert_eq!(service.code(), Some(0));
}

#[test]
fn it_reads_its_file_again_at_a_signal() {
    let folder = folder("serve-reload");
    fs::create_dir_all(&folder).expect("the folder can be created");
    let file = folder.join("limits.toml");
    let rule = |limit: &str| format!("[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '{limit}'\n");
    fs::write(&file, rule("5/d")).expect("it can be written");
    let mut service = Service::start(&[file.to_str().expect("text"), "--no-watch"]);
    assert!(
        service
            .decide("{\"user\": \"ann\"}")
            .contains("\"remaining\":4")
    );

    fs::write(&file, rule("50/d")).expect("it can be written");
    service.signal("HUP");
    service.logged("the policy was reloaded");
    assert!(
        service
            .decide("{\"user\": \"ann\"}")
            .contains("\"remaining\":48")
    );

    // A file with errors changes nothing.
    fs::write(&file, rule("5/fortnight")).expect("it can be written");
    service.signal("HUP");
    let line = service.logged("the policy stays as it is");
    assert!(line.contains("fortnight"), "{line}");
    assert!(
        service
            .decide("{\"user\": \"ann\"}")
            .contains("\"remaining\":47")
    );
    service.signal("INT");
    assert_eq!(service.code(), Some(0));
}

#[test]
fn it_says_why_it_can_not_start() {
    let folder = folder("serve-errors");
    fs::create_dir_all(&folder).expect("the folder can be created");
    let file = folder.join("limits.toml");
    fs::write(&file, "[[rule]]\nname = 'a'\nlimit = '5/fortnight'\n").expect("it can be written");
    let (code, said) = failure(&["serve", file.to_str().expect("text")]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("limits.toml:3:9: error: rule \"a\": limit"),
        "{said}"
    );

    let (code, said) = failure(&["serve", "no/such.toml"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("can't read no/such.toml"), "{said}");

    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken
        .local_addr()
        .map(|it| (taken, it))
        .expect("an address");
    let (code, said) = failure(&["serve", "--listen", &taken.1.to_string()]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains(&format!("can't listen at {}", taken.1)),
        "{said}"
    );
}

#[test]
fn a_file_that_changes_is_followed() {
    let folder = folder("serve-watch");
    fs::create_dir_all(&folder).expect("the folder can be created");
    let file = folder.join("limits.toml");
    fs::write(&file, "[[rule]]\nname = 'a'\nlimit = '5/d'\n").expect("it can be written");
    let mut service = Service::start(&[file.to_str().expect("text"), "--log-json"]);
    let new = folder.join("new");
    fs::write(&new, "[[rule]]\nname = 'a'\nlimit = '7/d'\n").expect("it can be written");
    fs::rename(&new, &file).expect("it can be renamed");
    let line = service.logged("the policy was reloaded");
    assert!(
        line.starts_with('{') && line.contains("\"rules\":1"),
        "{line}"
    );
    assert!(service.decide("{}").contains("\"quota\":7"));
}

/// Requests that have begun are answered, also after the signal.
#[test]
fn a_request_that_has_begun_is_answered() {
    let service = Service::start(&[]);
    let mut stream = TcpStream::connect(&service.address).expect("a connection");
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a limit");
    let body = "{\"facts\": {\"client-ip\": \"192.0.2.1\"}}";
    let head = format!(
        "POST /decide HTTP/1.1\r\nhost: tollgate\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("it is sent");
    // The service has read the head when it asks for the body.
    let mut continued = [0; 25];
    stream.read_exact(&mut continued).expect("an answer");
    assert_eq!(&continued, b"HTTP/1.1 100 Continue\r\n\r\n");
    service.signal("TERM");
    stream.write_all(body.as_bytes()).expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.contains("\"allowed\":true"), "{answer}");
    assert_eq!(service.code(), Some(0));
}

/// Returns how many permits the only limit has left after this question.
fn remaining(service: &Service) -> u64 {
    let said = service.decide("{\"user\": \"ann\"}");
    let (_, rest) = said
        .split_once("\"remaining\":")
        .unwrap_or_else(|| panic!("{said}"));
    let digits = rest.split(|char: char| !char.is_ascii_digit()).next();
    digits
        .and_then(|digits| digits.parse().ok())
        .expect("a number")
}

/// Returns how often the state was saved.
fn saves(service: &Service) -> u64 {
    let metrics = service.get("/metrics");
    let (_, rest) = metrics
        .split_once("\ntollgate_state_saves_total ")
        .expect("the metric");
    rest.lines()
        .next()
        .and_then(|line| line.parse().ok())
        .expect("a number")
}

#[test]
fn a_process_that_is_killed_forgets_the_last_seconds_alone() {
    let folder = folder("serve-killed");
    fs::create_dir_all(&folder).expect("the folder can be created");
    let (file, state) = (folder.join("limits.toml"), folder.join("limits.state"));
    fs::write(
        &file,
        "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '100/365d'\n",
    )
    .expect("written");
    let paths = [&file, &state].map(|path| path.to_str().expect("text").to_owned());
    let start = || Service::start(&[&paths[0], "--state", &paths[1], "--state-every-s", "1"]);
    let mut service = start();
    let mut granted = 0;
    for _ in 0..60 {
        granted += 1;
        assert_eq!(remaining(&service), 100 - granted);
    }
    // The second save from here begins after these decisions.
    let saved = saves(&service);
    while saves(&service) < saved + 2 {
        std::thread::yield_now();
    }
    let before = granted;
    for _ in 0..30 {
        granted += 1;
        assert_eq!(remaining(&service), 100 - granted);
    }
    service.child.kill().expect("it is killed");
    drop(service);

    let service = start();
    // At most what was granted after the save comes back. A save may have had some of it.
    let left = remaining(&service) + 1;
    assert!((100 - granted..=100 - before).contains(&left), "{left}");
    let left = remaining(&service);
    service.signal("TERM");
    assert_eq!(service.code(), Some(0));
    assert_eq!(remaining(&start()), left - 1);
}

#[test]
fn a_state_that_can_not_be_read_is_said() {
    let folder = folder("serve-bad-state");
    fs::create_dir_all(&folder).expect("the folder can be created");
    let state = folder.join("limits.state");
    fs::write(&state, "no state").expect("it can be written");
    let path = state.to_str().expect("text");
    let (code, said) = failure(&["serve", "--state", path, "--state-strict"]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains(&format!("can't use the state in {path}: ")),
        "{said}"
    );
    let mut service = Service::start(&["--state", path]);
    let line = service.logged("limits begin anew");
    assert!(line.contains("limits.state.bad-"), "{line}");
}

#[test]
fn the_token_comes_from_a_file() {
    let folder = folder("serve-token");
    fs::create_dir_all(&folder).expect("the folder can be created");
    let token = folder.join("token");
    let path = token.to_str().expect("text");
    let (code, said) = failure(&["serve", "--admin-token-file", path]);
    assert_eq!(
        (code, said.contains(&format!("can't read {path}"))),
        (Some(2), true),
        "{said}"
    );
    fs::write(&token, "too short\n").expect("it can be written");
    let (code, said) = failure(&["serve", "--admin-token-file", path]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains(&format!("the token in {path} must have at least 16 bytes")),
        "{said}"
    );
    fs::write(&token, "a-token-of-a-test\n").expect("it can be written");
    let service = Service::start(&["--admin-token-file", path]);
    let ask = |token: &str| {
        let head = "GET /rules HTTP/1.1\r\nhost: tollgate\r\nconnection: close";
        let request = format!("{head}\r\nauthorization: Bearer {token}\r\n\r\n");
        Service::ask(&service.admin, &request)
    };
    assert!(ask("a-token-of-a-test").starts_with("HTTP/1.1 200 "));
    assert!(ask("another-token").starts_with("HTTP/1.1 401 "));
}

/// Begins a question whose body is still to come.
fn begin(service: &Service) -> TcpStream {
    let mut stream = TcpStream::connect(&service.address).expect("a connection");
    let head =
        "POST /decide HTTP/1.1\r\nhost: tollgate\r\ncontent-length: 9\r\nexpect: 100-continue";
    stream
        .write_all(format!("{head}\r\n\r\n").as_bytes())
        .expect("it is sent");
    stream.read_exact(&mut [0; 25]).expect("an answer");
    stream
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut service = Service::start(&["--drain-s", "3600"]);
    let _begun = begin(&service);
    service.signal("TERM");
    service.logged("the service ends");
    service.signal("TERM");
    service.logged("the service ends at once");
    assert_eq!(service.code(), Some(1));
}

#[test]
fn two_processes_need_two_files() {
    let folder = folder("serve-two");
    fs::create_dir_all(&folder).expect("the folder can be created");
    let state = folder.join("limits.state");
    let path = state.to_str().expect("text");
    let mut service = Service::start(&["--state", path]);
    let (code, said) = failure(&["serve", "--listen", "127.0.0.1:0", "--state", path]);
    assert_eq!(code, Some(2));
    let why = format!("another process has the state in {path}");
    assert!(said.contains(&why), "{said}");
    // It is free again when the process is gone, however it went.
    service.child.kill().expect("it is killed");
    drop(service);
    let service = Service::start(&["--state", path]);
    service.signal("TERM");
    assert_eq!(service.code(), Some(0));
}

/// The place of a decision that is held is free when the service has ended, and not only when its
/// lease of an hour is over.
#[test]
fn places_on_a_server_are_free_at_the_end() {
    on_each_server(|mut private| {
        private.start(false);
        let folder = folder("serve-held");
        fs::create_dir_all(&folder).expect("the folder can be created");
        let file = folder.join("limits.toml");
        let policy = format!(
            "store = {{ redis = '{}', fallback = 'closed', budget = '20s' }}\n\
             [[rule]]\nname = 'a'\nkey = 'user'\nlimit = 'concurrency 1 lease 1h'\n",
            private.url()
        );
        fs::write(&file, policy).expect("it can be written");
        let path = file.to_str().expect("text");
        let hold = "{\"facts\": {\"user\": \"ann\"}, \"hold\": true}";
        for _ in 0..2 {
            let service = Service::start(&[path]);
            let said = service.post("/decide", hold);
            assert!(said.contains("\"allowed\":true"), "{said}");
            let said = service.post("/decide", hold);
            assert!(said.contains("\"allowed\":false"), "{said}");
            service.signal("TERM");
            assert_eq!(service.code(), Some(0));
        }
    });
}

/// With too few file descriptors, connections wait until some are free.
#[test]
fn it_outlives_a_lack_of_file_descriptors() {
    let mut command = Command::new("sh");
    // Seven descriptors are taken by others, so the reserve is not enough.
    let others: String = (3..10).map(|n| format!("exec {n}</dev/null; ")).collect();
    command.args(["-c", &format!("ulimit -n 32; {others} exec \"$0\" \"$@\"")]);
    command.arg(env!("CARGO_BIN_EXE_tollgate"));
    let mut service = Service::start_by(command, &[], Stdio::piped());
    service.logged("the limit of open files allows fewer connections");
    let connect = |_| TcpStream::connect(&service.address).expect("a connection");
    let taken: Vec<_> = (0..30).map(connect).collect();
    service.logged("no connection can be accepted");
    drop(taken);
    let said = service.decide("{\"client-ip\": \"192.0.2.1\"}");
    assert!(said.contains("\"allowed\":true"), "{said}");
    service.logged("connections are accepted again");
    service.signal("TERM");
    assert_eq!(service.code(), Some(0));
}

/// The guide's unit starts the service with options that there are.
#[test]
fn the_guide_names_options_that_there_are() {
    let guide = include_str!("../../../crates/tollgate-server/docs/RUNNING.md");
    let help = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(["serve", "--help"])
        .output()
        .expect("it runs");
    let help = String::from_utf8(help.stdout).expect("text");
    let words = guide.split(|char: char| !char.is_ascii_alphanumeric() && char != '-');
    let options: std::collections::BTreeSet<_> = words
        .filter(|word| word.starts_with("--") && word.len() > 4)
        .collect();
    // These are options of cargo and of containers.
    let others = [
        "--from",
        "--locked",
        "--root",
        "--path",
        "--no-default-features",
        "--features",
    ];
    for option in options.iter().filter(|option| !others.contains(option)) {
        assert!(
            help.split_whitespace().any(|word| word == *option),
            "{option}"
        );
    }
    assert!(options.len() > 10);
    let (_, run) = guide.split_once("\nExecStart=").expect("a unit");
    let run = run.lines().next().expect("a line");
    assert!(run.starts_with("/usr/local/bin/tollgate serve /"), "{run}");
}

/// A disk that is full must not end what the service does.
#[cfg(target_os = "linux")]
#[test]
fn a_log_that_can_not_be_written_does_no_harm() {
    let folder = folder("serve-full-log");
    fs::create_dir_all(&folder).expect("the folder can be created");
    let (file, state) = (folder.join("limits.toml"), folder.join("limits.state"));
    let rule = |n: u32| format!("[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '{n}/365d'\n");
    fs::write(&file, rule(100)).expect("it can be written");
    let paths = [&file, &state].map(|path| path.to_str().expect("text").to_owned());
    let full = fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("it is there");
    let service = Service::start_with_log(&[&paths[0], "--state", &paths[1]], full.into());
    for n in [200, 300] {
        let new = folder.join("new");
        fs::write(&new, rule(n)).expect("it can be written");
        fs::rename(&new, &file).expect("it can be renamed");
        // The second change is followed too.
        while !service
            .decide("{\"user\": \"ann\"}")
            .contains(&format!("\"quota\":{n}"))
        {
            std::thread::yield_now();
        }
    }
    let left = remaining(&service);
    service.signal("TERM");
    assert_eq!(service.code(), Some(0));
    let service = Service::start(&[&paths[0], "--state", &paths[1]]);
    assert_eq!(remaining(&service), left - 1);
}
