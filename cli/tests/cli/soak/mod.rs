//! A soak: for a time, the service gets all that it can get, at once. In the end it must be as it
//! was in the beginning, and no limit was exceeded.
//!
//! | module | what |
//! |---|---|
//! | `run` | starts all, and waits until all has ended |
//! | `policy` | the rules, and what they grant at most |
//! | `clients`, `http2` | well-behaved clients: each answer must be right |
//! | `leaving` | clients that leave |
//! | `changes` | reloads, good and bad, and outages of the store |
//! | `samples`, `page` | memory, file descriptors and times, as a table and in pictures |
//! | `checks` | what must be true in the end |
//!
//! The ordinary test takes 20 s. `scripts/soak` takes ten minutes.

mod changes;
mod checks;
mod clients;
mod counts;
mod http;
mod http2;
mod leaving;
mod metrics;
mod page;
mod policy;
mod run;
mod samples;

use std::cell::RefCell;
use std::env;
use std::fs::{self, File};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use self::changes::Reloads;
use self::counts::Counts;
use self::policy::{RULES, YEARLY, YEARLY_RULE};
use self::run::{Found, HOLD_S, soak};
use crate::folder;
use crate::serve::Service;
use crate::server::{Server, on_each_server};

#[test]
fn a_soak_leaves_nothing_behind() {
    let seconds = env::var("TOLLGATE_SOAK_S").map(|it| it.parse().expect("a number of seconds"));
    let time = Duration::from_secs(seconds.unwrap_or(20));
    let folder = folder(&format!("soak-{}", time.as_secs()));
    fs::create_dir_all(&folder).expect("the folder can be created");
    let server = a_server();
    let store = server.as_ref().map(Server::url);

    let path = |name: &str| folder.join(name).to_str().expect("text").to_owned();
    let [file, state, token, log] = ["limits.toml", "limits.state", "token", "log"].map(path);
    fs::write(&file, policy::version(0, store.as_deref())).expect("it can be written");
    fs::write(&token, changes::TOKEN).expect("it can be written");
    let hold = HOLD_S.to_string();
    let arguments = [
        &file,
        "--state",
        &state,
        "--state-every-s",
        "1",
        "--admin-token-file",
        &token,
        "--hold-s",
        &hold,
    ];
    let to = File::create(&log).expect("it can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    // By default, glibc has an arena for each of many threads, and each of them keeps what it once
    // needed. That looks like growth for some minutes.
    command.env("MALLOC_ARENA_MAX", "1");
    let service = Service::start_by(command, &arguments, to.into());

    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = { runtime }.worker_threads(2).enable_all().build();
    let counts = Arc::new(Counts::new());
    let soaking = soak(&service, &counts, &folder, server, time);
    let found = runtime.expect("a runtime").block_on(soaking);
    let errors = counts.errors();
    assert!(errors.is_empty(), "{errors:#?}");
    let found = found.expect("the soak ends well");
    let page = folder.join("index.html");
    page::write_page(&found.samples, &page).expect("it can be written");
    println!("the page: {}", page.display());

    service.signal("TERM");
    let code = service.code();
    let log = fs::read_to_string(&log).expect("text");
    let wrong = wrong(&found, &counts, &log);
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(code, Some(0));
}

/// Returns a private server that runs, if the machine has a program for one.
fn a_server() -> Option<Server> {
    let servers = RefCell::new(Vec::new());
    on_each_server(|server| servers.borrow_mut().push(server));
    let mut server = servers.into_inner().into_iter().next()?;
    server.start(false);
    Some(server)
}

/// Returns all that is wrong.
fn wrong(found: &Found, counts: &Counts, log: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut note = |checked: Result<(), String>| wrong.extend(checked.err());
    note(checks::memory(&found.samples).map(|grown| {
        let requests = counts.requests.load(SeqCst);
        println!("{requests} requests; the memory grew by {grown} KiB after the first third");
    }));
    note(checks::descriptors(
        found.descriptors[0],
        found.descriptors[1],
    ));
    for (rule, of_rule) in RULES.iter().zip(&counts.rules) {
        let (allowed, denied) = (of_rule.all_allowed(), of_rule.denied.load(SeqCst));
        println!("{}: {allowed} allowed, {denied} denied", rule.name);
        note(checks::counted(&found.metrics, rule.name, allowed, denied));
        note(checks::grants(rule, of_rule.most_of_a_key(), found.seconds));
    }
    // It has one key, which gets neither more than its permits nor less.
    let yearly = &counts.rules[YEARLY_RULE];
    let granted = yearly.all_allowed();
    let asked = granted + yearly.denied.load(SeqCst);
    if granted != asked.min(YEARLY.into()) {
        note(Err(format!("yearly: {granted} of {asked} granted")));
    }
    let reloads = Reloads::of(&found.metrics);
    if reloads != Ok(found.reloads) {
        note(Err(format!(
            "{reloads:?} are counted, and not {:?}",
            found.reloads
        )));
    }
    note(checks::log(log, found.reloads));
    wrong
}
