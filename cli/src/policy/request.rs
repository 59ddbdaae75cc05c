//! The request that the command line describes.

use std::net::IpAddr;

use clap::Args;
use http::{HeaderName, HeaderValue, Method, Uri};
use tollgate_http::{DescribedRequest, UnknownFacts};
use tollgate_policy::FactName;

/// A request.
#[derive(Debug, Args)]
pub(super) struct Request {
    /// The method, such as GET
    #[arg(value_name = "METHOD", value_parser = method)]
    method: Method,

    /// The path with the query, or the whole URL
    #[arg(value_name = "URL", value_parser = url)]
    url: Uri,

    /// A header; can be given several times, also with the same name
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(HeaderName, HeaderValue)>,

    /// The client's address, or the one of a proxy that the file trusts
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    from: Option<IpAddr>,

    /// Any fact that the file reads, also one that the program computes; can be given several
    /// times. It takes the place of a fact of the request with this name. NAME alone is a fact that
    /// the program computes, and that this request does not have
    #[arg(long = "fact", value_name = "NAME[=VALUE]", value_parser = fact)]
    facts: Vec<(FactName, Option<String>)>,
}

impl Request {
    /// Returns the names of the facts that are given one by one.
    pub(super) fn named(&self) -> impl Iterator<Item = &str> {
        self.facts.iter().map(|(name, _)| name.as_str())
    }

    /// Returns what is described.
    pub(super) fn described(&self) -> DescribedRequest {
        let mut described = DescribedRequest::new(self.method.clone(), self.url.clone());
        for (name, value) in &self.headers {
            described = described.header(name.clone(), value.clone());
        }
        if let Some(from) = self.from {
            described = described.from_address(from);
        }
        for (name, value) in &self.facts {
            described = described.fact(name.as_str(), value.as_deref());
        }
        described
    }
}

/// Says which facts, of those that are given one by one, the file does not read.
pub(super) fn unread(file: &str, UnknownFacts { unknown, known, .. }: &UnknownFacts) -> String {
    let plural = if unknown.len() == 1 { "" } else { "s" };
    let unknown: Vec<_> = unknown.iter().map(|name| format!("{name:?}")).collect();
    let unknown = unknown.join(" and ");
    let known = match known.is_empty() {
        true => "it reads none".to_owned(),
        false => format!("it reads: {}", known.join(", ")),
    };
    format!("{file} does not read the fact{plural} {unknown}, which --fact gives; {known}")
}

fn method(text: &str) -> Result<Method, String> {
    let read = text.parse::<Method>();
    read.map_err(|_| "must be a method, such as GET or POST".into())
}

fn url(text: &str) -> Result<Uri, String> {
    let message = "must be a path such as /a?b=1, or a URL such as https://example.com/a?b=1";
    let url: Uri = text
        .parse()
        .map_err(|error| format!("{message} ({error})"))?;
    match url.path().starts_with('/') {
        true => Ok(url),
        false => Err(message.into()),
    }
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let message = "must be NAME: VALUE, as in 'x-api-key: k1'";
    let (name, value) = text.split_once(':').ok_or(message)?;
    let name = name
        .trim()
        .parse()
        .map_err(|error| format!("{message} ({error})"))?;
    let value = HeaderValue::from_str(value.trim());
    let value = value.map_err(|error| format!("{message} ({error})"))?;
    Ok((name, value))
}

fn address(text: &str) -> Result<IpAddr, String> {
    let message = "must be an address without a port, such as 192.0.2.1 or 2001:db8::1";
    text.parse().map_err(|_| message.into())
}

fn fact(text: &str) -> Result<(FactName, Option<String>), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.into())),
        None => (text, None),
    };
    match name {
        "" => Err("must be NAME=VALUE, as in user=alice, or NAME".into()),
        name => Ok((FactName::new(name), value)),
    }
}
