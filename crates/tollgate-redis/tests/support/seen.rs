//! What an operator of a server can see of its clients: stored keys, commands, and the snapshot.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use crate::server::Server;

/// Begins to record what a server shows. Call it before the calls that a test makes.
pub(crate) struct Seen(BufReader<UnixStream>);

/// The last command that is recorded.
const END: &str = "end-of-the-record";

impl Seen {
    /// Makes every command a line of `MONITOR` and an entry of `SLOWLOG`.
    pub(crate) fn start(server: &Server) -> Self {
        for setting in [
            "slowlog-log-slower-than 0",
            "slowlog-max-len 1000",
            "rdbcompression no",
        ] {
            let _: String = server.run(&format!("CONFIG SET {setting}"));
        }
        let mut stream = UnixStream::connect(server.socket()).expect("a connection");
        stream.write_all(b"MONITOR\r\n").expect("it is sent");
        let mut lines = BufReader::new(stream);
        assert_eq!(next(&mut lines), "+OK\r\n");
        Self(lines)
    }

    /// Returns everything that the server shows: the lines of `MONITOR`, the entries of `SLOWLOG`
    /// and `ACL LOG`, the names of all keys, and the snapshot.
    pub(crate) fn all(mut self, server: &Server) -> String {
        let _: String = server.run(&format!("ECHO {END}"));
        let mut all = String::new();
        while !all.contains(END) {
            all += &next(&mut self.0);
        }
        for command in ["SLOWLOG GET 1000", "ACL LOG", "KEYS *"] {
            let answer: redis::Value = server.run(command);
            push(&answer, &mut all);
        }
        let _: String = server.run("SAVE");
        let folder = server.socket().with_file_name("dump.rdb");
        let snapshot = fs::read(folder).expect("a snapshot");
        all + &String::from_utf8_lossy(&snapshot)
    }
}

fn next(lines: &mut BufReader<UnixStream>) -> String {
    let mut line = Vec::new();
    lines.read_until(b'\n', &mut line).expect("a line");
    assert!(!line.is_empty(), "the server has closed the connection");
    String::from_utf8_lossy(&line).into_owned()
}

/// Appends the texts of an answer.
fn push(answer: &redis::Value, all: &mut String) {
    match answer {
        redis::Value::BulkString(bytes) => {
            *all += &String::from_utf8_lossy(bytes);
            all.push('\n');
        }
        redis::Value::Array(answers) => answers.iter().for_each(|answer| push(answer, all)),
        _ => {}
    }
}
