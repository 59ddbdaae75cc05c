//! The facts of a request that the command line describes.

use std::net::IpAddr;

use clap::Args;
use http::{HeaderName, HeaderValue, Method, Uri};
use tollgate_policy::{FactName, Facts, Value};

/// A request.
#[derive(Debug, Args)]
pub(super) struct Request {
    /// The method, such as GET
    #[arg(value_name = "METHOD", value_parser = method)]
    method: Method,

    /// The path with the query, or the whole URL
    #[arg(value_name = "URL", value_parser = url)]
    url: Uri,

    /// A header; can be given several times. Cookies are read from 'cookie: a=b; c=d'
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(HeaderName, String)>,

    /// The client's address
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    from: Option<IpAddr>,

    /// Any fact, also one that the program computes; can be given several times. It takes the place
    /// of a fact of the request with this name. NAME alone is a fact that the program computes, and
    /// that this request does not have
    #[arg(long = "fact", value_name = "NAME[=VALUE]", value_parser = fact)]
    facts: Vec<(FactName, Option<String>)>,
}

/// The facts of a request. If a name is there several times, the first counts.
#[derive(Debug)]
pub(super) struct Known(Vec<(FactName, Option<String>)>);

impl Facts for Known {
    fn fact(&self, name: &FactName) -> Option<Value<'_>> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found?.1.as_ref().map(Value::from)
    }
}

impl Request {
    /// Returns the names of the facts that are given one by one.
    pub(super) fn named(&self) -> impl Iterator<Item = &str> {
        self.facts.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the facts of the request.
    pub(super) fn facts(&self) -> Known {
        let mut known = Known(self.facts.clone());
        let mut add = |name: &str, value: &str| {
            known.0.push((FactName::new(name), Some(value.to_owned())));
        };
        add("method", self.method.as_str());
        add("path", self.url.path());
        for (name, value) in form_urlencoded::parse(self.url.query().unwrap_or_default().as_bytes())
        {
            add(&format!("query:{name}"), &value);
        }
        for (name, value) in &self.headers {
            match name.as_str() {
                "host" => add("host", value),
                "cookie" => cookies(value, &mut add),
                _ => {}
            }
            add(&format!("header:{name}"), value);
        }
        if let Some(authority) = self.url.authority() {
            // Without the name and password that a URL can have.
            let port = authority.port().map(|port| format!(":{port}"));
            let host = format!("{}{}", authority.host(), port.unwrap_or_default());
            add("host", &host);
            add("header:host", &host);
        }
        if let Some(address) = self.from {
            add("client-ip", &address.to_string());
        }
        known
    }
}

fn cookies(header: &str, add: &mut impl FnMut(&str, &str)) {
    for (name, value) in header
        .split(';')
        .filter_map(|cookie| cookie.split_once('='))
    {
        add(&format!("cookie:{}", name.trim()), value.trim());
    }
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

fn header(text: &str) -> Result<(HeaderName, String), String> {
    let message = "must be NAME: VALUE, as in 'x-api-key: k1'";
    let (name, value) = text.split_once(':').ok_or(message)?;
    let name = name
        .trim()
        .parse()
        .map_err(|error| format!("{message} ({error})"))?;
    let value = value.trim();
    HeaderValue::from_str(value).map_err(|error| format!("{message} ({error})"))?;
    Ok((name, value.into()))
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
