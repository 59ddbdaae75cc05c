//! Reads YAML as a tree, with the position of each value.
//!
//! It reads what JSON can say too. Anchors, aliases and tags are refused: by aliases, a short text
//! can be a value that fills the memory.

use std::cell::Cell;
use std::collections::HashSet;
use std::str::Chars;

use saphyr_parser::{BufferedInput, Event, Marker, Parser, ScalarStyle};

use super::json::MAX_DEPTH;
use super::lines::Lines;
use super::tree::{Entries, Node, Tree, at};
use crate::file::At;
use crate::problem::{Excerpt, Position, Problem, Problems, quoted};

/// The characters that separate values.
const SEPARATORS: &str = "\n,:[{-?";

/// The most characters that are read for one event. Where a list or table in brackets may be the
/// name of a field, the parser keeps all its tokens until it ends. Each token costs 400 bytes.
const MAX_AHEAD: usize = 128 << 10;

/// Returns the fields of a file, or `None` if its text is not a table of YAML. A text without a
/// value has no fields.
pub(super) fn parse(text: &str, problems: &mut Problems) -> Option<Entries> {
    let left = Cell::new(MAX_AHEAD);
    let chars = text.chars();
    let source = Source { chars, left: &left };
    let mut reader = Reader {
        events: Parser::new(BufferedInput::new(source)),
        left: &left,
        last: Position::new(1, 1),
        end: Lines::new(text).position(text.len()),
    };
    let read = super::check_separators(text, SEPARATORS)
        .and_then(|()| check_characters(text))
        .and_then(|()| reader.document());
    read.map_err(|problem| problems.push(problem)).ok()
}

/// Refuses characters that YAML does not allow. The parser takes a NUL for the end of the text.
fn check_characters(text: &str) -> Result<(), Problem> {
    let is_wrong = |(at, char): (usize, char)| match char {
        '\r' => text.as_bytes().get(at + 1) != Some(&b'\n'),
        '\t' | '\n' | ' '..='~' | '\u{85}' => false,
        _ => char < '\u{a0}' || matches!(char, '\u{fffe}' | '\u{ffff}'),
    };
    match text.char_indices().find(|found| is_wrong(*found)) {
        Some((at, char)) => {
            let why = format!("the character {char:?} is not allowed here");
            Err(not_yaml(&why).at(Lines::new(text).position(at)))
        }
        // These directives name tags. The parser keeps them all.
        None => match text.lines().position(|line| line.starts_with("%TAG")) {
            Some(index) => Err(refused(NO_TAGS, Position::new(index + 1, 1))),
            None => Ok(()),
        },
    }
}

const NO_ANCHORS: &str = "anchors and aliases (`&a`, `*a`) are not read; write the value where it \
                          is used, or text in quotes";
const NO_TAGS: &str = "tags (`!a`) are not read; write the value without one, or text in quotes";

fn refused(message: impl AsRef<str>, position: Position) -> Problem {
    Problem::error("", "", message).at(position)
}

fn not_yaml(why: &str) -> Problem {
    Problem::error("", "", format!("the text is not YAML: {why}"))
}

/// The characters of a text, up to the number that is left.
struct Source<'t> {
    chars: Chars<'t>,
    left: &'t Cell<usize>,
}

impl Iterator for Source<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        self.left.set(self.left.get().checked_sub(1)?);
        self.chars.next()
    }
}

struct Reader<'t> {
    events: Parser<'t, BufferedInput<Source<'t>>>,
    left: &'t Cell<usize>,
    /// Where the last event is.
    last: Position,
    /// Where the text ends.
    end: Position,
}

impl<'t> Reader<'t> {
    /// Returns the position of a marker. The parser has an empty line after the text.
    fn position(&self, marker: &Marker) -> Position {
        Position::new(marker.line(), marker.col() + 1).min(self.end)
    }

    fn next(&mut self) -> Result<Event<'t>, Problem> {
        let next = self.events.next_event();
        if self.left.replace(MAX_AHEAD) == 0 {
            let message = format!(
                "the value, list or comment after this has more than {MAX_AHEAD} characters; write a \
                 long list as lines that begin with `-`"
            );
            return Err(refused(message, self.last));
        }
        match next {
            Some(Ok((event, span))) => {
                self.last = self.position(&span.start);
                Ok(event)
            }
            Some(Err(error)) => Err(not_yaml(error.info()).at(self.position(error.marker()))),
            None => Ok(Event::StreamEnd),
        }
    }

    fn document(&mut self) -> Result<Entries, Problem> {
        let mut entries = None;
        loop {
            match self.next()? {
                Event::StreamEnd => return Ok(entries.unwrap_or_default()),
                Event::DocumentStart(_) if entries.is_some() => {
                    let message = "a policy is one document, and another one begins here";
                    return Err(refused(message, self.last));
                }
                Event::DocumentStart(_) => {
                    let event = self.next()?;
                    let root = self.node(event, 0)?;
                    let Tree::Table(fields) = root.value else {
                        let message = "the policy must be a table, with fields such as `rule:`";
                        return Err(Problem::error("", "", message).at(root.position));
                    };
                    entries = Some(fields);
                }
                _ => {}
            }
        }
    }

    fn node(&mut self, event: Event<'t>, depth: usize) -> Result<Node, Problem> {
        let start = self.last;
        if depth > MAX_DEPTH {
            let message = format!("values are nested more than {MAX_DEPTH} deep");
            return Err(refused(message, start));
        }
        if let Event::Scalar(_, _, anchor, tag)
        | Event::SequenceStart(anchor, tag)
        | Event::MappingStart(anchor, tag) = &event
        {
            if *anchor > 0 {
                return Err(refused(NO_ANCHORS, start));
            }
            if tag.is_some() {
                return Err(refused(NO_TAGS, start));
            }
        }
        let tree = match event {
            Event::Scalar(text, ScalarStyle::Plain, ..) => plain(&text),
            Event::Scalar(text, ..) => Tree::Text(text.into_owned()),
            Event::SequenceStart(..) => Tree::List(self.list(depth)?),
            Event::MappingStart(..) => Tree::Table(self.table(depth)?),
            _ => return Err(refused(NO_ANCHORS, start)),
        };
        Ok(at(tree, Some(start)))
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Problem> {
        let mut list = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(list),
                event => list.push(self.node(event, depth + 1)?),
            }
        }
    }

    fn table(&mut self, depth: usize) -> Result<Entries, Problem> {
        let (mut entries, mut names) = (Entries::new(), HashSet::new());
        loop {
            let name = match self.next()? {
                Event::MappingEnd => return Ok(entries),
                event => self.node(event, depth + 1)?,
            };
            let At { value, position } = name;
            let Tree::Text(name) = value else {
                let value = Excerpt::of_value(&value);
                let message = "must be text, so write it in quotes";
                return Err(Problem::error("the name of a field", value, message).at(position));
            };
            if !names.insert(name.clone()) {
                let message = format!("the field {} is given twice", quoted(&name));
                return Err(Problem::error("", "", message).at(position));
            }
            let event = self.next()?;
            entries.push((at(name, position), self.node(event, depth + 1)?));
        }
    }
}

/// Reads a text without quotes, by the core schema of YAML 1.2: `no` and `1_000` are text.
fn plain(text: &str) -> Tree {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (number, digits, radix) = match text.split_at_checked(2) {
        Some(("0x", digits)) => (digits, digits, 16),
        Some(("0o", digits)) => (digits, digits, 8),
        _ => (text, unsigned, 10),
    };
    let other = || Tree::Other(text.into());
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Tree::Other("null".into()),
        "true" | "True" | "TRUE" => Tree::Bool(true),
        "false" | "False" | "FALSE" => Tree::Bool(false),
        ".nan" | ".NaN" | ".NAN" => other(),
        _ if !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix)) => {
            i128::from_str_radix(number, radix).map_or_else(|_| other(), Tree::Integer)
        }
        _ if matches!(unsigned, ".inf" | ".Inf" | ".INF") => other(),
        _ if unsigned.starts_with(|char: char| char == '.' || char.is_ascii_digit())
            && text.parse::<f64>().is_ok() =>
        {
            other()
        }
        _ => Tree::Text(text.into()),
    }
}
