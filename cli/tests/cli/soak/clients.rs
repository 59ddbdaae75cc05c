//! Well-behaved clients. Each keeps its connection, and asks as fast as it is answered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::counts::Counts;
use super::http::{Answer, Connection};
use super::policy::{JOBS, PAGES, RULES, Rule, SEVERAL, SHARED, SMALL, YEARLY_RULE};

/// How many questions a list has.
const LIST: u64 = 64;

/// A question to one of the rules.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question {
    rule: usize,
    key: u32,
}

impl Question {
    /// Returns a rule's question of one of its clients.
    pub(super) fn new(rule: usize, turn: u64) -> Self {
        // So that all clients come, in an order that looks random.
        let mixed = turn.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        let key = (mixed % u64::from(RULES[rule].keys)) as u32;
        Self { rule, key }
    }

    /// Returns the question of a turn. Half of them have one of many keys.
    pub(super) fn of(turn: u64) -> Self {
        let rule = match turn % 8 {
            0..=3 => PAGES,
            4 => SMALL,
            5 => YEARLY_RULE,
            6 => SEVERAL,
            _ => SHARED,
        };
        Self::new(rule, turn)
    }

    fn address(self) -> String {
        let [_, a, b, c] = self.key.to_be_bytes();
        format!("10.{a}.{b}.{c}")
    }

    pub(super) fn json(self, more: &str) -> String {
        let (address, path) = (self.address(), RULES[self.rule].name);
        format!("{{\"facts\":{{\"client-ip\":\"{address}\",\"path\":\"/{path}\"}}{more}}}")
    }

    /// Returns the headers by which nginx asks.
    fn headers(self) -> String {
        let (address, path) = (self.address(), RULES[self.rule].name);
        format!(
            "X-Original-Method: GET\r\nX-Original-URI: /{path}\r\nX-Forwarded-For: {address}\r\n"
        )
    }

    /// Counts an answer to this question.
    pub(super) fn count(self, counts: &Counts, said: &Said) -> Result<(), String> {
        let rule = RULES[self.rule].name;
        let expected = if self.rule == JOBS {
            "overload"
        } else {
            "limit"
        };
        let is_right = match said.allowed {
            true => said.limits.first().is_some_and(|limit| limit.rule == rule),
            false => said.rule.as_deref() == Some(rule) && said.cause.as_deref() == Some(expected),
        };
        if !is_right {
            return Err(format!("{self:?}: {said:?}"));
        }
        counts.decided(self.rule, self.key, said.allowed);
        Ok(())
    }
}

/// A decision, as `/decide` says it.
#[derive(Debug, Deserialize)]
pub(super) struct Said {
    pub(super) allowed: bool,
    rule: Option<String>,
    cause: Option<String>,
    pub(super) fallback: Option<String>,
    token: Option<String>,
    pub(super) limits: Vec<Limit>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Limit {
    rule: String,
    pub(super) quota: u64,
}

pub(super) fn read<'b, T: Deserialize<'b>>(status: u16, body: &'b str) -> Result<T, String> {
    let said = serde_json::from_str(body).map_err(|error| format!("{error} in {body}"));
    match status {
        200 => said,
        status => Err(format!("status {status}: {body}")),
    }
}

/// A client with a connection, which counts its requests and their times.
pub(super) struct Client {
    connection: Connection,
    pub(super) counts: Arc<Counts>,
}

impl Client {
    pub(super) async fn new(address: &str, counts: Arc<Counts>) -> Result<Self, String> {
        let connection = Connection::open(address).await?;
        Ok(Self { connection, counts })
    }

    async fn post(&mut self, path: &str, body: &str) -> Result<Answer, String> {
        let start = Instant::now();
        let answer = self.connection.post(path, "", body).await?;
        self.counts.took(start.elapsed());
        Ok(answer)
    }

    /// Asks one question at `/decide`.
    pub(super) async fn decide(&mut self, question: Question, more: &str) -> Result<Said, String> {
        let answer = self.post("/decide", &question.json(more)).await?;
        let said: Said = read(answer.status, &answer.body)?;
        question.count(&self.counts, &said)?;
        Ok(said)
    }

    /// Asks as nginx does.
    pub(super) async fn nginx(mut self, mut turn: u64) -> Result<(), String> {
        while !self.counts.stops() {
            turn += 1;
            let (question, start) = (Question::of(turn), Instant::now());
            let answer = self.connection.get("/nginx", &question.headers()).await?;
            self.counts.took(start.elapsed());
            let is_allowed = match (answer.status, answer.field("x-tollgate-status")) {
                (200, None) => true,
                (403, Some("429")) => false,
                _ => return Err(format!("{question:?}: {answer:?}")),
            };
            self.counts.decided(question.rule, question.key, is_allowed);
        }
        Ok(())
    }

    pub(super) async fn single(mut self, mut turn: u64) -> Result<(), String> {
        while !self.counts.stops() {
            turn += 1;
            self.decide(Question::of(turn), "").await?;
        }
        Ok(())
    }

    pub(super) async fn lists(mut self, mut turn: u64) -> Result<(), String> {
        while !self.counts.stops() {
            let questions: Vec<_> = (turn..turn + LIST).map(Question::of).collect();
            turn += LIST;
            self.list(&questions).await?;
        }
        Ok(())
    }

    /// Asks a list of questions.
    async fn list(&mut self, questions: &[Question]) -> Result<(), String> {
        let body: Vec<_> = questions.iter().map(|it| it.json("")).collect();
        let answer = self
            .post("/decide", &format!("[{}]", body.join(",")))
            .await?;
        let said: Vec<Said> = read(answer.status, &answer.body)?;
        if said.len() != questions.len() {
            return Err(format!(
                "{} answers to {} questions",
                said.len(),
                questions.len()
            ));
        }
        for (question, said) in questions.iter().zip(&said) {
            question.count(&self.counts, said)?;
        }
        Ok(())
    }

    /// Asks for each key once, so that all of them have their memory, and the service has opened
    /// what it opens once.
    pub(super) async fn all_keys(mut self) -> Result<(), String> {
        let keys = |(rule, of): (usize, &Rule)| (0..of.keys).map(move |key| Question { rule, key });
        let questions: Vec<_> = RULES.iter().enumerate().flat_map(keys).collect();
        for questions in questions.chunks(1000) {
            self.list(questions).await?;
        }
        Ok(())
    }

    /// Holds some decisions, and ends the first of them when there are four or no place is free.
    pub(super) async fn jobs(mut self, hold: Duration) -> Result<(), String> {
        let mut held = VecDeque::new();
        let mut turn = 0;
        while !self.counts.stops() {
            turn += 1;
            // The service holds it for this time, from a later moment on.
            let end = Instant::now() + hold;
            let said = self
                .decide(Question::new(JOBS, turn), ",\"hold\":true")
                .await?;
            if let Some(token) = said.token {
                self.counts.inside.enter(&token, end)?;
                held.push_back((token, end));
            } else if said.allowed {
                return Err(format!("no token: {:?}", said.limits));
            }
            if !said.allowed || held.len() == 4 {
                self.finish(held.pop_front()).await?;
            }
        }
        while !held.is_empty() {
            self.finish(held.pop_front()).await?;
        }
        Ok(())
    }

    async fn finish(&mut self, held: Option<(String, Instant)>) -> Result<(), String> {
        #[derive(Deserialize)]
        struct Settled {
            returned: u64,
            charged: u64,
        }

        let Some((token, end)) = held else {
            return Ok(());
        };
        self.counts.inside.leave(&token);
        let body = format!("{{\"token\":\"{token}\",\"outcome\":\"success\"}}");
        let answer = self.post("/finish", &body).await?;
        if answer.status == 404 && Instant::now() >= end {
            return Ok(());
        }
        let settled: Settled = read(answer.status, &answer.body)?;
        match settled.charged {
            0 => Ok(()),
            charged => Err(format!("{} came back, {charged} charged", settled.returned)),
        }
    }
}
