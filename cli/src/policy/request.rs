//! The request that the command line describes.

use std::net::IpAddr;

use clap::Args;
use http::{HeaderName, HeaderValue, Method, Uri};
use tollgate_http::{ClientAddress, PathForm, RequestFacts};
use tollgate_policy::file::PolicyFile;
use tollgate_policy::{FactName, FactValue, FactValues, Facts};

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

/// A request as a server has it, and the facts that are given one by one.
#[derive(Debug)]
pub(super) struct Described<'a> {
    head: http::Request<()>,
    from: Option<IpAddr>,
    path: PathForm,
    facts: &'a [(FactName, Option<String>)],
}

/// The facts of a request. A fact that is given by itself replaces the request's fact of that name.
#[derive(Debug)]
pub(super) struct Known<'a> {
    request: RequestFacts<'a>,
    own: &'a [(FactName, Option<String>)],
}

impl Facts for Known<'_> {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        self.values(name).single()
    }

    fn values(&self, name: &FactName) -> FactValues<'_> {
        let mut own = self.own.iter().filter(|(known, _)| known == name);
        match own.clone().next() {
            Some(_) => FactValues::of(
                own.by_ref()
                    .filter_map(|(_, value)| value.as_ref())
                    .map(FactValue::from),
            ),
            None => self.request.values(name),
        }
    }
}

impl Described<'_> {
    /// Returns the facts, as the layer of tollgate-tower reads them.
    pub(super) fn facts(&self) -> Known<'_> {
        let request = RequestFacts::new(&self.head).path_form(self.path);
        Known {
            request: match self.from {
                Some(address) => request.client_ip(address),
                None => request,
            },
            own: self.facts,
        }
    }
}

impl Request {
    /// Returns the names of the facts that are given one by one.
    pub(super) fn named(&self) -> impl Iterator<Item = &str> {
        self.facts.iter().map(|(name, _)| name.as_str())
    }

    /// If the policy does not read some of these facts, says which.
    pub(super) fn unknown(&self, name: &str, file: &PolicyFile) -> Option<String> {
        let known = file.fact_names();
        let unknown = self.facts.iter().filter(|(name, _)| !known.contains(name));
        let unknown: Vec<_> = unknown.map(|(name, _)| format!("{name:?}")).collect();
        let facts = match unknown.as_slice() {
            [] => return None,
            [_] => "fact",
            _ => "facts",
        };
        let known: Vec<_> = known.iter().map(FactName::as_str).collect();
        let known = match known.as_slice() {
            [] => "it reads none".to_owned(),
            names => format!("it reads: {}", names.join(", ")),
        };
        let unknown = unknown.join(" and ");
        Some(format!(
            "{name} does not read the {facts} {unknown}, which --fact gives; {known}"
        ))
    }

    /// Returns the request, read as the file says.
    pub(super) fn described(&self, file: &PolicyFile) -> Described<'_> {
        let mut head = http::Request::new(());
        *head.method_mut() = self.method.clone();
        *head.uri_mut() = self.url.clone();
        for (name, value) in &self.headers {
            head.headers_mut().append(name, value.clone());
        }
        let address = ClientAddress::of_policy(&file.client).unwrap_or_default();
        Described {
            from: self.from.map(|from| address.of(from, head.headers())),
            path: file.client.path.map(PathForm::from).unwrap_or_default(),
            head,
            facts: &self.facts,
        }
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
