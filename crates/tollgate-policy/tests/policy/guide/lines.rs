//! The lines below each policy in docs/POLICY.md: requests, and what is decided. The table at the
//! page's beginning explains them.

use std::time::Duration;

/// Names of facts with their values.
pub(crate) type Pairs = Vec<(String, String)>;

/// A line.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    /// Requests, and what is decided about each of them.
    Requests {
        count: usize,
        request: Request,
        expected: Expected,
    },
    /// The end of a request in progress.
    Ends { name: String, end: End },
    /// Time passes.
    Advance(Duration),
    /// The store named `redis` stops answering.
    StoreDown,
}

/// A request.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Request {
    pub(crate) facts: Pairs,
    /// The name of a request that stays in progress.
    pub(crate) name: Option<String>,
    pub(crate) end: End,
}

/// The end of a request.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct End {
    pub(crate) fails: bool,
    /// The facts of the answer.
    pub(crate) answer: Pairs,
}

/// What is decided. What is absent is not compared.
#[derive(Debug, PartialEq)]
pub(crate) struct Expected {
    pub(crate) verdict: Verdict,
    pub(crate) left: Option<u64>,
    /// `Some(None)` if no wait helps.
    pub(crate) retry_after: Option<Option<Duration>>,
    /// The number by which the program answers. `Some(None)` if the policy does not say it.
    pub(crate) status: Option<Option<u16>>,
    /// Rules in the shadow, and whether they would allow the request.
    pub(crate) shadows: Vec<(String, bool)>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Allowed by these rules, or by this entry of the allow-list.
    AllowedBy(Vec<String>),
    /// Denied by this rule or this entry of the deny-list.
    DeniedBy(String),
    /// Allowed, because no rule applies.
    NoLimit,
}

impl Verdict {
    /// Returns the names of the rules and entries.
    pub(crate) fn names(&self) -> &[String] {
        match self {
            Self::AllowedBy(names) => names,
            Self::DeniedBy(name) => std::slice::from_ref(name),
            Self::NoLimit => &[],
        }
    }
}

/// Reads a line. Returns `None` for a comment or an empty line.
pub(crate) fn read(line: &str) -> Result<Option<Line>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    if line == "the store is down" {
        return Ok(Some(Line::StoreDown));
    }
    if let Some(time) = line.strip_prefix('+') {
        return duration(time).map(|time| Some(Line::Advance(time)));
    }
    let words: Vec<_> = line.split_whitespace().collect();
    if let [name, "ends", rest @ ..] = words.as_slice() {
        let request = request_words(rest)?;
        if !request.facts.is_empty() || request.name.is_some() {
            return Err(format!("`{line}`: only an answer can follow `ends`"));
        }
        let (name, end) = ((*name).to_owned(), request.end);
        return Ok(Some(Line::Ends { name, end }));
    }
    let decided = words
        .iter()
        .position(|word| ["allowed", "denied", "no"].contains(word));
    let decided = decided.ok_or_else(|| format!("`{line}` does not say what is decided"))?;
    let (count, request) = requests(&words[..decided])?;
    let expected = expectation(&words[decided..].join(" "))?;
    Ok(Some(Line::Requests {
        count,
        request,
        expected,
    }))
}

/// Reads `5x GET api.example.com/a?b=1` or `call`, and what follows it.
fn requests(words: &[&str]) -> Result<(usize, Request), String> {
    let count = words.first().and_then(|word| word.strip_suffix('x'));
    let count = count.and_then(|count| count.parse().ok());
    let words = if count.is_some() { &words[1..] } else { words };
    let mut facts = Pairs::new();
    let rest = match words {
        ["call", rest @ ..] => rest,
        [method, target, rest @ ..] => {
            facts.push(("method".into(), (*method).into()));
            read_target(target, &mut facts)?;
            rest
        }
        _ => return Err(format!("{words:?} is no request")),
    };
    let mut request = request_words(rest)?;
    facts.append(&mut request.facts);
    request.facts = facts;
    Ok((count.unwrap_or(1), request))
}

/// Reads a host, a path and a query.
fn read_target(target: &str, facts: &mut Pairs) -> Result<(), String> {
    let slash = target.find('/');
    let slash = slash.ok_or_else(|| format!("`{target}` has no path"))?;
    let (host, path) = target.split_at(slash);
    if !host.is_empty() {
        facts.push(("host".into(), host.into()));
    }
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    facts.push(("path".into(), path.into()));
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = pair(part)?;
        facts.push((format!("query:{name}"), value));
    }
    Ok(())
}

/// Reads facts, the end of a request, and its name.
fn request_words(mut words: &[&str]) -> Result<Request, String> {
    let mut request = Request::default();
    let mut answers = false;
    while let [word, rest @ ..] = words {
        words = rest;
        match (*word, rest) {
            ("from", [address, after @ ..]) => {
                request.facts.push(("client-ip".into(), (*address).into()));
                words = after;
            }
            ("as", [name, after @ ..]) => {
                request.name = Some((*name).into());
                words = after;
            }
            ("fails", _) => request.end.fails = true,
            ("answers", _) => answers = true,
            (fact, _) if answers => request.end.answer.push(pair(fact)?),
            (fact, _) => request.facts.push(pair(fact)?),
        }
    }
    Ok(request)
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or_else(|| format!("`{text}` is no NAME=VALUE"))?;
    Ok((name.into(), value.into()))
}

/// Reads what is decided.
fn expectation(text: &str) -> Result<Expected, String> {
    let mut parts = text.split(", ");
    let verdict = parts.next().unwrap_or_default();
    let verdict = if verdict == "no limit" {
        Verdict::NoLimit
    } else if let Some(names) = verdict.strip_prefix("allowed by ") {
        Verdict::AllowedBy(names.split(" and ").map(str::to_owned).collect())
    } else if let Some(name) = verdict.strip_prefix("denied by ") {
        Verdict::DeniedBy(name.into())
    } else {
        return Err(format!("`{verdict}` is no decision"));
    };
    let mut expected = Expected {
        verdict,
        left: None,
        retry_after: None,
        status: None,
        shadows: Vec::new(),
    };
    for part in parts {
        if let Some(left) = part.strip_suffix(" left") {
            let left = left.parse().map_err(|_| format!("`{part}`: how many?"))?;
            expected.left = Some(left);
        } else if let Some(time) = part.strip_prefix("retry after ") {
            expected.retry_after = Some(Some(duration(time)?));
        } else if part == "never retry" {
            expected.retry_after = Some(None);
        } else if let Some(status) = part.strip_prefix("status ") {
            let status = status
                .parse()
                .map_err(|_| format!("`{part}`: which status?"))?;
            expected.status = Some(Some(status));
        } else if part == "no status" {
            expected.status = Some(None);
        } else if let Some(name) = part.strip_suffix(" would allow") {
            expected.shadows.push((name.into(), true));
        } else if let Some(name) = part.strip_suffix(" would deny") {
            expected.shadows.push((name.into(), false));
        } else {
            return Err(format!("`{part}` is unknown"));
        }
    }
    Ok(expected)
}

/// Reads `12 s`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time, such as `12 s`");
    let (number, unit) = text.trim().split_once(' ').ok_or_else(wrong)?;
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    Ok(Duration::from_millis(number * millis))
}
