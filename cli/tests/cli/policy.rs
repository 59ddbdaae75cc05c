//! `tollgate check` and `tollgate explain`, against transcripts in the folder `policy`, and those
//! of docs/POLICY.md. A transcript is a list of commands, each with what it prints and its exit
//! code. To write the transcripts in the folder anew, run the tests with `TOLLGATE_RECORD=1`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{deadline, folder};

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
fn run(command: &str, folder: &Path) -> String {
    let words = words(command);
    let ["$", "tollgate", ..] = &*words.iter().map(String::as_str).collect::<Vec<_>>() else {
        panic!("{command} is no command");
    };
    let mut program = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    program.args(&words[2..]).current_dir(folder);
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
    let mut different = Vec::new();
    for path in paths.filter(|path| path.extension().is_some_and(|end| end == "txt")) {
        let golden = fs::read_to_string(&path).expect("text");
        let (now, count) = rerun(&golden, &folder);
        commands += count;
        if std::env::var_os("TOLLGATE_RECORD").is_some() {
            fs::write(&path, now).expect("it can be written");
        } else if golden != now {
            different.push(format!("{}:\n{now}", path.display()));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(commands >= 30, "{commands} commands");
}

/// Returns what is between two lines of a text, and what follows.
fn block<'t>(text: &'t str, start: &str) -> (&'t str, &'t str) {
    let (_, text) = text.split_once(&format!("```{start}\n")).expect(start);
    text.split_once("```\n").expect("an end")
}

#[test]
fn the_guide_shows_what_the_commands_print() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/POLICY.md");
    let guide = fs::read_to_string(guide).expect("the guide");
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
        "limits.toml: 100 rules, no problems\n"
    );
}
