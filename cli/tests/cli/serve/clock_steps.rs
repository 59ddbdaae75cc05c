//! The system's clock may step while the service runs, and between two runs.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{Service, saves};
use crate::folder;

/// Returns the library that changes the system's clock for a process.
fn library() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.flatten();
    let mut files = folders.map(|folder| folder.path().join("faketime/libfaketime.so.1"));
    let found = files.find(|file| file.exists());
    if found.is_none() {
        println!("skipped: libfaketime is not installed");
    }
    found
}

/// Asserts that a user has no permit, and gets one within the 2.4 hours that one takes.
fn assert_denied(service: &Service, user: &str, when: &str) {
    let said = service.decide(&format!("{{\"user\": \"{user}\"}}"));
    assert!(said.contains("\"allowed\":false"), "{when}: {said}");
    let (_, wait) = said.split_once("\"retry_after_ms\":").expect("a wait");
    let digits = wait.split(|char: char| !char.is_ascii_digit()).next();
    let wait: u64 = digits.and_then(|it| it.parse().ok()).expect("a number");
    assert!(wait <= 24 * 3_600_000 / 10, "{when}: {said}");
}

fn spend(service: &Service, user: &str) {
    for _ in 0..10 {
        let said = service.decide(&format!("{{\"user\": \"{user}\"}}"));
        assert!(said.contains("\"allowed\":true"), "{said}");
    }
}

#[test]
fn a_clock_that_steps_gives_no_permits_and_takes_none() {
    let Some(library) = library() else { return };
    let folder = folder("serve-clock-steps");
    fs::create_dir_all(&folder).expect("the folder can be created");
    let path = |name: &str| folder.join(name).to_str().expect("text").to_owned();
    let [file, state, clock] = ["limits.toml", "limits.state", "clock"].map(path);
    let policy = "[[rule]]\nname = 'user'\nkey = 'user'\nlimit = '10/d'\n";
    fs::write(&file, policy).expect("it can be written");
    let step = |to: &str| fs::write(&clock, to).expect("it can be written");
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command
            .env("LD_PRELOAD", &library)
            .env("FAKETIME_TIMESTAMP_FILE", &clock)
            .env("FAKETIME_NO_CACHE", "1")
            // A system's monotonic clock does not step.
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        let arguments = [&file, "--state", &state, "--state-every-s", "1"];
        Service::start_by(command, &arguments, Stdio::null())
    };

    step("+0d");
    let service = start();
    let mut users = vec!["first"];
    spend(&service, "first");
    for to in ["+10d", "-10d", "+3650d", "+1d"] {
        step(to);
        spend(&service, to);
        users.push(to);
        for user in &users {
            assert_denied(&service, user, to);
        }
        // It is still saved every second.
        let saved = saves(&service);
        while saves(&service) < saved + 2 {
            std::thread::yield_now();
        }
    }
    service.signal("TERM");
    assert_eq!(service.code(), Some(0));

    // The state comes from a day later.
    step("+0d");
    let service = start();
    for user in &users {
        assert_denied(&service, user, "after the restart");
    }
    service.signal("TERM");
    assert_eq!(service.code(), Some(0));

    // A day has gone by: all permits are back, and no more.
    step("+1d");
    let service = start();
    for user in users {
        spend(&service, user);
        assert_denied(&service, user, "a day later");
    }
}
