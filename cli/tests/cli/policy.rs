//! `tollgate check`, `tollgate explain` and `tollgate key`, against transcripts in the folder
//! `policy`, and those of the guides POLICY.md and OPERATING.md. A transcript is a list of
//! commands, each with what it prints and its exit code. To write the transcripts in the folder
//! anew, run the tests with `TOLLGATE_RECORD=1`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{deadline, folder};

/// The secret of the policies that read it from the environment.
const SECRET: &str = "swordfish-swordfish";

/// Returns the folder of the transcripts.
fn transcripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/policy")
}

/// Splits a command into words. Words in single quotes can have spaces.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![];
    for (index, part) in command.split('\'').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// Runs a command in a folder. Returns what it prints, and its exit code unless that is 0.
pub(crate) fn run(command: &str, folder: &Path) -> String {
    let words = words(command);
    let ["$", "tollgate", ..] = &*words.iter().map(String::as_str).collect::<Vec<_>>() else {
        panic!("{command} is no command");
    };
    let mut program = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    program.args(&words[2..]).current_dir(folder);
    program.env("KEY_SECRET", SECRET);
    let output = deadline::deadline("the program", move || program.output());
    let output = output.expect("the program runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let (out, error) = (text(output.stdout), text(output.stderr));
    assert!(
        out.is_empty() || error.is_empty(),
        "{command}: {out}{error}"
    );
    match output.status.code() {
        Some(0) => out,
        code => format!("{out}{error}(exit code {})\n", code.expect("no signal")),
    }
}

/// Runs the commands of a transcript. Returns the transcript as it is now, and their number.
fn rerun(transcript: &str, folder: &Path) -> (String, usize) {
    let commands: Vec<_> = transcript
        .lines()
        .filter(|line| line.starts_with("$ "))
        .collect();
    let runs = commands
        .iter()
        .map(|command| format!("{command}\n{}", run(command, folder)));
    (runs.collect::<Vec<_>>().join("\n"), commands.len())
}

#[test]
fn each_transcript_is_what_the_commands_print() {
    let folder = transcripts();
    let entries = fs::read_dir(&folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let mut commands = 0;
    let (mut different, mut printed) = (Vec::new(), Vec::new());
    for path in paths.filter(|path| path.extension().is_some_and(|end| end == "txt")) {
        let golden = fs::read_to_string(&path).expect("text");
        let (now, count) = rerun(&golden, &folder);
        commands += count;
        printed.push(now.clone());
        if std::env::var_os("TOLLGATE_RECORD").is_some() {
            fs::write(&path, now).expect("it can be written");
        } else if golden != now {
            different.push(format!("{}:\n{now}", path.display()));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    let shown = |text: &String| text.contains(SECRET) || text.contains("too short");
    assert_eq!(printed.iter().find(|text| shown(text)), None, "a secret");
    assert!(commands >= 30, "{commands} commands");
}

/// Returns what is between two lines of a text, and what follows.
fn block<'t>(text: &'t str, start: &str) -> (&'t str, &'t str) {
    let (_, text) = text.split_once(&format!("```{start}\n")).expect(start);
    text.split_once("```\n").expect("an end")
}

/// Returns a guide of another crate.
fn guide(page: &str) -> String {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    fs::read_to_string(crates.join(page)).expect("the guide")
}

#[test]
fn the_guide_shows_what_the_commands_print() {
    let guide = guide("tollgate-policy/docs/POLICY.md");
    let (_, section) = guide
        .split_once("\n## Check and explain before you ship\n")
        .expect("the section");
    let (section, _) = section.split_once("\n## ").expect("a section after it");
    let (policy, rest) = block(section, "toml");
    let (transcript, _) = block(rest, "console");
    let folder = folder("policy-guide");
    fs::create_dir_all(&folder).expect("the folder can be created");
    fs::write(folder.join("limits.toml"), policy).expect("it can be written");
    let (now, count) = rerun(transcript, &folder);
    assert_eq!(transcript, now);
    assert_eq!(count, 2);
}

#[test]
fn the_operators_page_shows_what_the_command_prints() {
    let page = guide("tollgate-redis/docs/OPERATING.md");
    let (transcript, rest) = block(&page, "console");
    let folder = folder("policy-operating");
    fs::create_dir_all(&folder).expect("the folder can be created");
    let policy = "[[rule]]\nname = 'login'\nkey = 'user'\nlimit = '5/min'\nstore = 'redis'\n\
                  fallback = 'closed'\n";
    fs::write(folder.join("limits.toml"), policy).expect("it can be written");
    let (now, count) = rerun(transcript, &folder);
    assert_eq!(transcript, now);
    assert_eq!(count, 1);
    let command = transcript.lines().next().expect("a command");
    let again = format!("key=$({})\n", &command["$ ".len()..]);
    assert!(rest.contains(&again), "{again}");
}

#[test]
fn a_file_that_is_not_text_is_refused() {
    let folder = folder("policy-not-text");
    fs::create_dir_all(&folder).expect("the folder can be created");
    fs::write(folder.join("limits.toml"), b"name = '\xff'").expect("it can be written");
    for command in ["check limits.toml", "explain limits.toml GET /"] {
        assert_eq!(
            run(&format!("$ tollgate {command}"), &folder),
            "error: limits.toml can't be read: it is not text: byte 8 is not UTF-8\n(exit code 2)\n"
        );
    }
}

#[test]
fn a_policy_is_checked_without_its_tables() {
    let folder = folder("policy-large");
    fs::create_dir_all(&folder).expect("the folder can be created");
    let rule = |n| {
        format!(
            "[[rule]]\nname = 'r{n}'\nwhen = {{ path = '/{n}' }}\nkey = 'user'\nlimit = '1/s'\n\
             capacity = '1000G'\n"
        )
    };
    let policy: String = (0..100).map(rule).collect();
    fs::write(folder.join("limits.toml"), policy).expect("it can be written");
    assert_eq!(
        run("$ tollgate check limits.toml", &folder),
        "limits.toml: 100 rules, no problems\n\
         limits.toml: the program has to supply the fact `user`\n"
    );
}

#[test]
fn the_standard_input_is_checked() {
    let toml = "[[rule]]\nname = 'a'\nlimit = '1/s'\n";
    let json = r#"{"rule": [{"name": "a", "limit": "0/s"}]}"#;
    let yaml = "rule:\n- { name: a, limit: 1/s }\n";
    for (text, arguments, expected) in [
        (toml, &["check", "-"][..], "-: 1 rule, no problems\n"),
        (json, &["check", "-"], "-: 1 error\n"),
        (
            yaml,
            &["check", "-", "--format", "yaml"],
            "-: 1 rule, no problems\n",
        ),
        (yaml, &["check", "-"], "-: 2 errors\n"),
    ] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        program.args(arguments).stdin(Stdio::piped());
        let mut program = program.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut input = program.stdin.take().expect("its input");
        input.write_all(text.as_bytes()).expect("it reads");
        drop(input);
        let output = deadline::deadline("the program", move || program.wait_with_output());
        let output = output.expect("it runs");
        let said = String::from_utf8(output.stdout).expect("text");
        assert!(said.ends_with(expected), "{said}");
    }
}

#[test]
fn a_file_that_cannot_be_read_hides_no_other() {
    let folder = folder("policy-unread");
    fs::create_dir_all(&folder).expect("the folder can be created");
    let text = "[[rule]]\nname = 'a'\nlimit = '0/s'\n";
    fs::write(folder.join("wrong.toml"), text).expect("it can be written");
    let mut program = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    program
        .args(["check", "no.toml", "wrong.toml"])
        .current_dir(&folder);
    let output = deadline::deadline("the program", move || program.output());
    let output = output.expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: no.toml can't be read"));
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("wrong.toml: 1 error\n"));
}

/// What `explain` says first about a request to a policy.
fn summary(name: &str, policy: &str, request: &str) -> String {
    let folder = folder(name);
    fs::create_dir_all(&folder).expect("the folder can be created");
    fs::write(folder.join("limits.toml"), policy).expect("it can be written");
    let printed = run(
        &format!("$ tollgate explain limits.toml {request}"),
        &folder,
    );
    printed.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_request_is_read_as_the_layer_reads_it() {
    let policy = "[[deny]]\nname = 'stolen'\nwhen = { header.x-key = 'k13' }\n\
                  [[rule]]\nname = 'login'\nwhen = { path = '/login' }\nlimit = '5/min'\n\
                  [[rule]]\nname = 'session'\nwhen = { cookie.session = 's1' }\nlimit = '5/min'\n\
                  [[rule]]\nname = 'list'\nwhen = { header.accept = 'a, b' }\nlimit = '5/min'\n\
                  [[rule]]\nname = 'host'\nwhen = { host = 'a.example' }\nlimit = '5/min'\n\
                  [[rule]]\nname = 'keyed'\nkey = 'header:x-key'\nlimit = '5/min'\n";
    for (request, expected) in [
        ("GET /%6cogin", "asks login"),
        ("GET '/login/?a=/'", "asks login"),
        ("GET '/log%2fin' -H 'x-key: k1'", "asks keyed"),
        ("GET / -H 'cookie: a=b; session=\"s%31\"'", "asks session"),
        (
            "GET / -H 'cookie: a=b' -H 'cookie: session=s1'",
            "asks session",
        ),
        ("GET / -H 'accept: a' -H 'accept: b'", "asks list"),
        (
            "GET http://user:pw@a.example:81/ -H 'host: b.example'",
            "asks host",
        ),
        ("GET / -H 'x-key: k1' -H 'x-key: k1'", "asks keyed"),
        (
            "GET / -H 'x-key: k1' -H 'x-key: k13'",
            "denied by stolen, an entry of the list `deny`",
        ),
        (
            "GET / -H 'x-key: k1' -H 'x-key: k2'",
            "denied by keyed: header:x-key is k1 and k2, so it is ambiguous",
        ),
        (
            "GET / --fact header:x-key=k3 -H 'x-key: k1' -H 'x-key: k2'",
            "asks keyed",
        ),
    ] {
        assert_eq!(
            summary("policy-request", policy, request),
            expected,
            "{request}"
        );
    }
}

#[test]
fn a_fact_that_the_file_does_not_know_is_an_error() {
    let policy = "[[rule]]\nname = 'a'\nwhen = { tier = 'gold' }\nkey = 'user'\nlimit = '5/min'\n\
                  cost = { default = 1, settle = 'response-header:x-used' }\n";
    let request = "GET / --fact nick=ann --fact tier=gold --fact header:x-key=1";
    assert_eq!(
        summary("policy-facts", policy, request),
        "error: limits.toml does not read the facts \"nick\" and \"header:x-key\", which --fact \
         gives; it reads: response-header:x-used, tier, user"
    );
    let request = "GET / --fact user=ann --fact tier=gold --fact response-header:x-used=1";
    assert_eq!(summary("policy-facts", policy, request), "asks a");
    let listed = format!("facts = ['user', 'tier', 'plan']\n{policy}");
    let request = "GET / --fact user=ann --fact tier=gold --fact plan=pro";
    assert_eq!(summary("policy-facts", &listed, request), "asks a");
}

#[test]
fn errors_of_json_have_lines() {
    let folder = folder("policy-json");
    fs::create_dir_all(&folder).expect("the folder can be created");
    let policy = "{ \"rule\": [\n  {\n    \"name\": \"a\\u00e9\",\n    \"limit\": \"ten\",\n    \
                  \"size\": 5\n  }\n] }\n";
    fs::write(folder.join("limits.json"), policy).expect("it can be written");
    let printed = run("$ tollgate check limits.json", &folder);
    let starts: Vec<_> = printed
        .lines()
        .map(|line| line.split(": ").next().unwrap())
        .collect();
    assert_eq!(
        starts,
        [
            "limits.json:4:14",
            "limits.json:5:5",
            "limits.json",
            "(exit code 1)"
        ]
    );
}

/// A program that rewrites a file empties it first: `LivePolicy::from_file` refuses an empty file.
#[test]
fn an_empty_file_is_refused() {
    let folder = folder("policy-empty");
    fs::create_dir_all(&folder).expect("the folder can be created");
    for name in ["limits.toml", "limits.json"] {
        fs::write(folder.join(name), " \n").expect("it can be written");
        for command in [format!("check {name}"), format!("explain {name} GET /")] {
            assert_eq!(
                run(&format!("$ tollgate {command}"), &folder),
                format!("error: {name} can't be read: the file is empty\n(exit code 2)\n")
            );
        }
    }
}

/// A file without an end is not read to its end.
#[cfg(unix)]
#[test]
fn a_file_that_is_too_large_is_refused() {
    let folder = folder("policy-too-large");
    fs::create_dir_all(&folder).expect("the folder can be created");
    let large = fs::File::create(folder.join("large.json")).expect("it can be written");
    large.set_len(1 << 40).expect("it can be written");
    for (path, size) in [
        ("/dev/zero", "more than 16777216"),
        ("large.json", "1099511627776"),
    ] {
        assert_eq!(
            run(&format!("$ tollgate check {path}"), &folder),
            format!(
                "error: {path} can't be read: the file has {size} bytes, but may have at most 16 \
                 MiB\n(exit code 2)\n"
            )
        );
    }
}
