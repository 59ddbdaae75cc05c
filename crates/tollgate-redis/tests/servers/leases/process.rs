//! A process that leases permits, and does what its test tells it.
//!
//! The process is this test program again, which runs one test alone. It has one thread: between
//! two commands all of it stands still, also the task that asks the server.

use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::task::Poll;
use std::time::{Duration, Instant};

use tollgate_redis::client::Connection;
use tollgate_redis::{Decider, Limit, RedisLimiter};

use super::{node_with, poll_once};
use crate::server::{DEADLINE, Server};

/// How long the leases of these processes last.
pub(crate) const LIFE: Duration = Duration::from_millis(300);

/// The variables by which a process is told the server and the limit.
const URL: &str = "TOLLGATE_TEST_URL";
const LIMIT: &str = "TOLLGATE_TEST_LIMIT";

/// A process, killed when it is dropped, also by a test that panics.
pub(crate) struct Process {
    child: Child,
    commands: ChildStdin,
    lines: BufReader<ChildStdout>,
}

/// What a process did.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Done {
    /// Permits that were granted.
    pub(crate) granted: u64,
    /// Those that came from a lease.
    pub(crate) leased: u64,
    /// Permits that the process holds now.
    pub(crate) held: u64,
}

impl Process {
    /// Starts a process, and waits until it listens.
    pub(crate) fn start(server: &Server, limit: Limit) -> Self {
        let mut command = Command::new(env::current_exe().expect("this program"));
        command.args(["--exact", "--ignored", "--nocapture"]);
        command.arg("leases::process::do_what_a_test_says");
        command.env(URL, server.url());
        command.env(LIMIT, limit.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let commands = child.stdin.take().expect("the input");
        let lines = BufReader::new(child.stdout.take().expect("the output"));
        let mut process = Self {
            child,
            commands,
            lines,
        };
        process.done();
        process
    }

    /// Lets the process take permits until it holds this many.
    pub(crate) fn hold(&mut self, permits: u64) -> Done {
        let mut all = Done::default();
        // A lease can end before the process says what it holds.
        while all.held < permits {
            self.tell(&format!("hold {permits}"));
            let done = self.done();
            all.granted += done.granted;
            all.leased += done.leased;
            all.held = done.held;
        }
        all
    }

    /// Lets the process spend what it holds, and nothing else.
    pub(crate) fn spend(&mut self) -> Done {
        self.tell("spend 0");
        self.done()
    }

    /// Lets the process take permits until it was granted this many. [`done`](Self::done) waits for
    /// it.
    pub(crate) fn take(&mut self, permits: u64) {
        self.tell(&format!("take {permits}"));
    }

    fn tell(&mut self, command: &str) {
        writeln!(self.commands, "{command}").expect("a process that listens");
    }

    /// Waits until the process has done what it was told.
    pub(crate) fn done(&mut self) -> Done {
        let (done, is_done) = self.read(|_| false);
        assert!(is_done, "the process has ended: {done:?}");
        done
    }

    /// Waits until a condition on what the process has done since it was told.
    pub(crate) fn until(&mut self, is_met: impl Fn(Done) -> bool) -> Done {
        self.read(is_met).0
    }

    /// Kills the process as `kill -9` does, and returns what it did that was not read yet.
    pub(crate) fn kill(&mut self) -> Done {
        self.child.kill().expect("the process is killed");
        self.child.wait().expect("the process has ended");
        self.read(|_| false).0
    }

    /// Sends a signal, such as `STOP` or `CONT`.
    pub(crate) fn signal(&self, signal: &str) {
        let mut command = Command::new("kill");
        command.arg(format!("-{signal}"));
        command.arg(self.child.id().to_string());
        assert!(command.status().expect("kill runs").success());
    }

    /// Reads until a condition is met or the process has done what it was told. Returns whether it
    /// has.
    fn read(&mut self, is_met: impl Fn(Done) -> bool) -> (Done, bool) {
        let mut done = Done::default();
        let mut line = String::new();
        while !is_met(done) {
            line.clear();
            if self.lines.read_line(&mut line).expect("a line") == 0 {
                return (done, false);
            }
            match line.trim_end().split_once(' ') {
                Some(("granted", by)) => {
                    done.granted += 1;
                    done.leased += u64::from(by == "Lease");
                }
                Some(("done", held)) => {
                    done.held = held.parse().expect("a number");
                    return (done, true);
                }
                _ => {}
            }
        }
        (done, false)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "tests of faults run it in processes of their own"]
fn do_what_a_test_says() {
    let (Ok(url), Ok(limit)) = (env::var(URL), env::var(LIMIT)) else {
        return;
    };
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let node = node_with(&url, limit.parse().expect("a limit"), LIFE);
        // The first line follows the name of this test.
        println!();
        println!("done 0");
        for command in io::stdin().lines() {
            let command = command.expect("a line");
            let (verb, permits) = command.split_once(' ').expect("a verb and a number");
            let permits = permits.parse().expect("a number");
            match verb {
                "hold" => take(&node, |_, held| held >= permits).await,
                "take" => take(&node, |granted, _| granted >= permits).await,
                _ => spend(&node),
            }
            println!("done {}", held(&node));
        }
    });
}

fn held(node: &RedisLimiter<Connection>) -> u64 {
    node.lease_stats().expect("leases").held
}

/// Takes permits until a condition on how many were granted, and are held.
async fn take(node: &RedisLimiter<Connection>, is_enough: impl Fn(u64, u64) -> bool) {
    let (start, mut granted) = (Instant::now(), 0);
    while !is_enough(granted, held(node)) {
        assert!(start.elapsed() < DEADLINE, "{granted} were granted");
        match node.key("alice").try_acquire().await {
            Ok(grant) => {
                granted += 1;
                println!("granted {:?}", grant.decider());
            }
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// Spends what is held. No other task runs meanwhile, so no answer comes in.
fn spend(node: &RedisLimiter<Connection>) {
    let alice = node.key("alice");
    let take = || poll_once(tokio::task::unconstrained(alice.try_acquire()));
    while let Poll::Ready(Ok(grant)) = take() {
        assert_eq!(grant.decider(), Decider::Lease);
        println!("granted {:?}", grant.decider());
    }
}
