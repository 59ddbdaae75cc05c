//! A request that is described, and what a policy does with it.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;

use http::{HeaderName, HeaderValue, Method, Request, Uri};
use tollgate_policy::explain::Explanation;
use tollgate_policy::file::PolicyFile;
use tollgate_policy::{FactName, FactValue, FactValues, Facts, explain};

use crate::address::ClientAddress;
use crate::facts::{PathForm, RequestFacts};

/// A request that an operator describes, to learn what a policy does with it.
///
/// It is read as a server reads requests: with the client's address behind the proxies that the
/// policy's file trusts, and the file's form of paths.
///
/// ```
/// use http::Method;
/// use tollgate_http::DescribedRequest;
/// use tollgate_policy::Policy;
///
/// let text = "[client]\ntrust = ['10.0.0.0/8']\nheader = 'x-forwarded-for'\n\
///             [[rule]]\nname = 'api'\nkey = ['client-ip', 'user']\nlimit = '5/s'";
/// let policy = Policy::from_toml(text)?;
/// let request = DescribedRequest::new(Method::GET, "/items?page=2".parse()?)
///     .header("x-forwarded-for".parse()?, "192.0.2.7".parse()?)
///     .from_address([10, 0, 0, 1].into())
///     .fact("user", Some("ann"));
/// let explanation = request.explain(policy.file())?;
/// let asks = explanation.rules[0].asks.as_ref().unwrap();
/// assert_eq!(asks.key[0].value.as_deref(), Some("192.0.2.7"));
///
/// let error = request.fact("usr", Some("ann")).explain(policy.file()).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "the policy does not read the fact \"usr\"; it reads: client-ip, user"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct DescribedRequest {
    head: Request<()>,
    from: Option<IpAddr>,
    own: Vec<(FactName, Option<String>)>,
}

impl DescribedRequest {
    /// Begins with the method, and the path with the query, or the whole URL.
    #[must_use]
    pub fn new(method: Method, url: Uri) -> Self {
        let mut head = Request::new(());
        *head.method_mut() = method;
        *head.uri_mut() = url;
        Self {
            head,
            from: None,
            own: Vec::new(),
        }
    }

    /// Adds a header. The same one can be added several times.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.head.headers_mut().append(name, value);
        self
    }

    /// Says which address the request comes from: the client, or a proxy that the file trusts.
    #[must_use]
    pub fn from_address(self, address: IpAddr) -> Self {
        let from = Some(address);
        Self { from, ..self }
    }

    /// Adds a fact, also one that the program computes. It takes the place of the request's own
    /// fact of this name, and can be added several times. `None` says that the request does not
    /// have the fact.
    #[must_use]
    pub fn fact(mut self, name: &str, value: Option<&str>) -> Self {
        self.own
            .push((FactName::new(name), value.map(str::to_owned)));
        self
    }

    /// Explains what a policy does with the request: see [`explain`](fn@explain).
    ///
    /// # Errors
    ///
    /// [`UnknownFacts`] if the policy does not read a fact that was [added](Self::fact).
    pub fn explain(&self, file: &PolicyFile) -> Result<Explanation, UnknownFacts> {
        let known = file.fact_names();
        let unknown = self.own.iter().map(|(name, _)| name);
        let unknown: Vec<_> = unknown.filter(|name| !known.contains(name)).collect();
        if !unknown.is_empty() {
            return Err(UnknownFacts {
                unknown: unknown.iter().map(|name| name.as_str().into()).collect(),
                known: known.iter().map(|name| name.as_str().into()).collect(),
            });
        }
        let form = file.client.path.map(PathForm::from).unwrap_or_default();
        let request = RequestFacts::new(&self.head).path_form(form);
        let addresses = ClientAddress::of_policy(&file.client).unwrap_or_default();
        let request = match self.from {
            Some(from) => request.client_ip(addresses.of(from, self.head.headers())),
            None => request,
        };
        let own = &self.own;
        Ok(explain(file, &Described { request, own }))
    }
}

/// The facts of a described request.
#[derive(Debug)]
struct Described<'a> {
    request: RequestFacts<'a>,
    own: &'a [(FactName, Option<String>)],
}

impl Facts for Described<'_> {
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

/// A policy does not read some facts of a [`DescribedRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownFacts {
    /// The names of the facts.
    pub unknown: Vec<String>,
    /// The names of the facts that the policy reads.
    pub known: Vec<String>,
}

impl fmt::Display for UnknownFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unknown, known } = self;
        let plural = if unknown.len() == 1 { "" } else { "s" };
        write!(f, "the policy does not read the fact{plural} ")?;
        for (place, name) in unknown.iter().enumerate() {
            let and = if place == 0 { "" } else { " and " };
            write!(f, "{and}{name:?}")?;
        }
        match known.is_empty() {
            true => f.write_str("; it reads none"),
            false => write!(f, "; it reads: {}", known.join(", ")),
        }
    }
}

impl Error for UnknownFacts {}
