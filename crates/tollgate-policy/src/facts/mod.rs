//! Facts (attributes): what rules can read of a request.

mod collections;
mod name;
mod value;

pub use name::{FactKind, FactName};
pub(crate) use value::Kind;
pub use value::{FactValue, FactValues};

/// The facts of a request, which a policy reads. The required method [`fact`](Self::fact) returns a
/// fact by its name. If a request can have several values of a fact, implement
/// [`values`](Self::values) too.
///
/// Maps, slices of pairs and arrays of pairs are facts; names of headers are in lower case in maps,
/// and in any case in pairs. Pairs of one name are several values of a fact. In a pair of facts,
/// the first that knows a name answers, so a program can add facts of its own to those of a
/// request.
///
/// ```
/// use std::net::IpAddr;
/// use tollgate_policy::{FactKind, FactName, FactValue, Facts};
///
/// /// A line of an access log.
/// struct Line {
///     from: IpAddr,
///     path: String,
/// }
///
/// impl Facts for Line {
///     fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
///         match name.kind() {
///             FactKind::ClientIp => Some(self.from.into()),
///             FactKind::Path => Some(self.path.as_str().into()),
///             _ => None,
///         }
///     }
/// }
///
/// let line = Line { from: [10, 0, 0, 7].into(), path: "/login".into() };
/// let facts = (&line, [("user", "alice")]);
/// assert_eq!(facts.fact(&FactName::new("path")), Some("/login".into()));
/// assert_eq!(facts.fact(&FactName::new("user")), Some("alice".into()));
/// assert_eq!(facts.fact(&FactName::new("header:x-api-key")), None);
/// ```
pub trait Facts {
    /// Returns the value of a fact, or `None` if the request has no value or several that differ.
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>>;

    /// Returns all values of a fact. A policy reads facts by this method alone.
    ///
    /// ```
    /// use tollgate_policy::{FactKind, FactName, FactValue, FactValues, Facts};
    ///
    /// /// The lines of a request's headers, with names in lower case.
    /// struct Lines(Vec<(String, String)>);
    ///
    /// impl Facts for Lines {
    ///     fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
    ///         self.values(name).single()
    ///     }
    ///
    ///     fn values(&self, name: &FactName) -> FactValues<'_> {
    ///         let FactKind::Header(name) = name.kind() else {
    ///             return FactValues::NONE;
    ///         };
    ///         let lines = self.0.iter().filter(|(known, _)| known == name);
    ///         FactValues::of(lines.map(|(_, line)| line.into()))
    ///     }
    /// }
    ///
    /// let lines = [("x-api-key", "k1"), ("x-api-key", "k2")];
    /// let lines = lines.map(|(name, line)| (name.to_owned(), line.to_owned()));
    /// let facts = Lines(lines.into());
    /// assert!(facts.values(&FactName::new("header:x-api-key")).is_ambiguous());
    /// ```
    #[inline]
    fn values(&self, name: &FactName) -> FactValues<'_> {
        self.fact(name).into()
    }

    /// Returns how many permits the request takes of each rule that says no `cost`, if the
    /// request's protocol says it, as Envoy's does. The default is `None`: it takes 1.
    ///
    /// With `Some(0)` the request only looks: it takes nothing from any rule, whatever the rule's
    /// `cost`, and it is denied if a limit has no permit left.
    ///
    /// ```
    /// use tollgate_policy::{FactName, FactValue, Facts, Policy};
    ///
    /// /// A user that asks for a number of permits.
    /// struct Ask(&'static str, u64);
    ///
    /// impl Facts for Ask {
    ///     fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
    ///         (name.as_str() == "user").then(|| self.0.into())
    ///     }
    ///     fn permits(&self) -> Option<u64> {
    ///         Some(self.1)
    ///     }
    /// }
    ///
    /// let policy = Policy::from_toml("[[rule]]\nname = 'api'\nkey = 'user'\nlimit = '5/d'")?;
    /// assert_eq!(policy.decide(&Ask("ann", 4)).remaining(), Some(1));
    /// assert_eq!(policy.decide(&Ask("ann", 0)).remaining(), Some(1));
    /// assert!(!policy.decide(&Ask("ann", 2)).is_allowed());
    /// assert_eq!(policy.decide(&Ask("ann", 1)).remaining(), Some(0));
    /// assert!(!policy.decide(&Ask("ann", 0)).is_allowed());
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    #[inline]
    fn permits(&self) -> Option<u64> {
        None
    }
}
