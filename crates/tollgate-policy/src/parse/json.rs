//! Reads JSON as a tree, with the position of each value.

use std::collections::HashSet;

use super::lines::Lines;
use super::tree::{Entries, Node, Tree, at};
use crate::problem::{Problem, Problems, quoted};

/// How deep values may be nested. TOML allows the same.
pub(super) const MAX_DEPTH: usize = 80;

/// Returns the fields of a file, or `None` if its text is not a table of JSON.
pub(super) fn parse(text: &str, problems: &mut Problems) -> Option<Entries> {
    let lines = Lines::new(text);
    let mut reader = Reader {
        text,
        at: 0,
        lines: &lines,
    };
    let read = reader.value(0).and_then(|node| reader.end().map(|()| node));
    match read {
        Ok(node) => match node.value {
            Tree::Table(entries) => Some(entries),
            _ => {
                let message = "the policy must be a table, which begins with `{`";
                problems.push(Problem::error("", "", message).at(node.position));
                None
            }
        },
        Err(Wrong { at, why }) => {
            let message = format!("the text is not JSON: {why}");
            problems.push(Problem::error("", "", message).at(lines.position(at)));
            None
        }
    }
}

/// What is wrong at a byte.
struct Wrong {
    at: usize,
    why: String,
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    lines: &'t Lines<'t>,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn wrong<T>(&self, why: impl Into<String>) -> Result<T, Wrong> {
        let why = why.into();
        Err(Wrong { at: self.at, why })
    }

    /// Returns what is wrong if something else is expected here.
    fn expected<T>(&self, what: &str) -> Result<T, Wrong> {
        match self.rest().chars().next() {
            Some(found) => self.wrong(format!("{what} is expected, but found {found:?}")),
            None => self.wrong(format!("{what} is expected, but the text ends")),
        }
    }

    fn skip_space(&mut self) {
        let rest = self.rest().trim_start_matches([' ', '\t', '\n', '\r']);
        self.at = self.text.len().saturating_sub(rest.len());
    }

    /// Takes this text, if it is next.
    fn take(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        if is_next {
            self.at = self.at.saturating_add(text.len());
        }
        is_next
    }

    fn end(&mut self) -> Result<(), Wrong> {
        self.skip_space();
        match self.rest().is_empty() {
            true => Ok(()),
            false => self.expected("the end of the text"),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Wrong> {
        self.skip_space();
        if depth > MAX_DEPTH {
            return self.wrong(format!("values are nested more than {MAX_DEPTH} deep"));
        }
        let position = Some(self.lines.position(self.at));
        let tree = match self.peek() {
            Some(b'{') => Tree::Table(self.table(depth)?),
            Some(b'[') => Tree::List(self.list(depth)?),
            Some(b'"') => Tree::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ if self.take("true") => Tree::Bool(true),
            _ if self.take("false") => Tree::Bool(false),
            _ if self.take("null") => Tree::Other("null".into()),
            _ => return self.expected("a value"),
        };
        Ok(at(tree, position))
    }

    /// Reads what is between commas, up to the closing bracket.
    fn elements(
        &mut self,
        open: &str,
        close: &str,
        mut element: impl FnMut(&mut Self) -> Result<(), Wrong>,
    ) -> Result<(), Wrong> {
        self.take(open);
        self.skip_space();
        if self.take(close) {
            return Ok(());
        }
        loop {
            element(self)?;
            self.skip_space();
            if self.take(close) {
                return Ok(());
            }
            if !self.take(",") {
                return self.expected(&format!("`,` or `{close}`"));
            }
            self.skip_space();
        }
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Wrong> {
        let mut list = Vec::new();
        self.elements("[", "]", |reader| {
            list.push(reader.value(depth.saturating_add(1))?);
            Ok(())
        })?;
        Ok(list)
    }

    fn table(&mut self, depth: usize) -> Result<Entries, Wrong> {
        let (mut entries, mut names) = (Entries::new(), HashSet::new());
        self.elements("{", "}", |reader| {
            let start = reader.at;
            if reader.peek() != Some(b'"') {
                return reader.expected("the name of a field, in quotes,");
            }
            let name = reader.string()?;
            if !names.insert(name.clone()) {
                let why = format!("the field {} is given twice", quoted(&name));
                return Err(Wrong { at: start, why });
            }
            reader.skip_space();
            if !reader.take(":") {
                return reader.expected("`:`");
            }
            let position = Some(reader.lines.position(start));
            let value = reader.value(depth.saturating_add(1))?;
            entries.push((at(name, position), value));
            Ok(())
        })?;
        Ok(entries)
    }

    fn number(&mut self) -> Result<Tree, Wrong> {
        let start = self.at;
        self.take("-");
        if !self.take("0") {
            self.digits()?;
        }
        let mut is_whole = true;
        if self.take(".") {
            is_whole = false;
            self.digits()?;
        }
        if self.take("e") || self.take("E") {
            is_whole = false;
            let _ = self.take("+") || self.take("-");
            self.digits()?;
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        Ok(match text.parse() {
            Ok(number) if is_whole => Tree::Integer(number),
            _ => Tree::Other(text.into()),
        })
    }

    fn digits(&mut self) -> Result<(), Wrong> {
        let rest = self.rest();
        let other = rest.find(|char: char| !char.is_ascii_digit());
        match other.unwrap_or(rest.len()) {
            0 => self.expected("a digit"),
            count => {
                self.at = self.at.saturating_add(count);
                Ok(())
            }
        }
    }

    fn string(&mut self) -> Result<String, Wrong> {
        let mut string = String::new();
        self.take("\"");
        loop {
            let rest = self.rest();
            let special = |char: char| matches!(char, '"' | '\\') || char < ' ';
            let plain = rest.find(special).unwrap_or(rest.len());
            string.push_str(rest.get(..plain).unwrap_or_default());
            self.at = self.at.saturating_add(plain);
            if self.take("\"") {
                return Ok(string);
            }
            if !self.take("\\") {
                return self.expected("`\"`");
            }
            string.push(self.escaped()?);
        }
    }

    /// Reads what follows a backslash.
    fn escaped(&mut self) -> Result<char, Wrong> {
        const PLAIN: [(&str, char); 8] = [
            ("\"", '"'),
            ("\\", '\\'),
            ("/", '/'),
            ("b", '\u{8}'),
            ("f", '\u{c}'),
            ("n", '\n'),
            ("r", '\r'),
            ("t", '\t'),
        ];
        let found = PLAIN.iter().find(|(text, _)| self.take(text));
        if let Some((_, char)) = found {
            return Ok(*char);
        }
        let start = self.at;
        if !self.take("u") {
            return self.expected("one of `\" \\ / b f n r t u` after `\\`");
        }
        let first = self.unit()?;
        let mut units = vec![first];
        if (0xd800..0xdc00).contains(&first) && self.take("\\u") {
            units.push(self.unit()?);
        }
        match char::decode_utf16(units).next() {
            Some(Ok(char)) => Ok(char),
            _ => {
                let why = "half of a surrogate pair is no character".into();
                Err(Wrong { at: start, why })
            }
        }
    }

    fn unit(&mut self) -> Result<u16, Wrong> {
        let digits = self.rest().get(..4).unwrap_or_default();
        let is_hex = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u16::from_str_radix(digits, 16) {
            Ok(unit) if is_hex => {
                self.at = self.at.saturating_add(4);
                Ok(unit)
            }
            _ => self.expected("four hexadecimal digits"),
        }
    }
}
