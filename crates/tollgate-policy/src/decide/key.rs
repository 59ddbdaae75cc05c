//! The key of a request, read from its bytes.

use std::fmt;

use super::asks::Ask;
use crate::file::Rule;
use crate::rule::{CompiledRule, key_values};

/// The key that a request has in a rule: see [`Asked::key`](crate::Asked::key).
///
/// ```
/// use tollgate_policy::Policy;
///
/// let text = "[[rule]]\nname = 'api'\nkey = ['client-ip', 'user']\nlimit = '5/h'\n\
///             network = { v4 = 24 }";
/// let policy = Policy::from_toml(text)?;
/// let decision = policy.decide(&[("client-ip", "10.0.0.7"), ("user", "ann")]);
/// let key = decision.tightest().and_then(|asked| asked.key()).expect("it has a key");
/// let values = key.values();
/// assert_eq!(values, ["10.0.0.0/24", "ann"]);
/// // They are what operators call the key by.
/// let key = policy.key("api", values.iter().map(String::as_str))?;
/// assert_eq!(key.available()?[0].permits, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct RequestKey<'d> {
    rule: &'d Rule,
    bytes: &'d [u8],
    hash: u64,
}

impl<'d> RequestKey<'d> {
    pub(crate) fn of<C>(rule: &'d CompiledRule<C>, ask: &Ask, keys: &'d [u8]) -> Option<Self> {
        let (start, end) = ask.key;
        let bytes = keys.get(start..end).filter(|bytes| !bytes.is_empty())?;
        Some(Self {
            rule: &rule.source,
            bytes,
            hash: ask.hash,
        })
    }

    /// Returns the hash by which the policy knows the key. It depends on a secret seed, which stays
    /// as it is when the policy is reloaded.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns a value for each part of the rule's key, as [`Policy::key`](crate::Policy::key)
    /// takes them: a network if the rule cuts addresses. A part that the request lacks is an empty
    /// text.
    #[must_use]
    pub fn values(&self) -> Vec<String> {
        key_values(self.rule, self.bytes)
    }
}

/// A client's values are not for logs.
impl fmt::Debug for RequestKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestKey").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use proptest::prelude::*;

    use crate::operate::bytes_of;
    use crate::{FactName, FactValue, FactValues, Facts, Policy};

    /// Facts with these values, in this order.
    #[derive(Debug)]
    struct Known(Vec<(&'static str, Vec<String>)>);

    impl Facts for Known {
        fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
            self.values(name).single()
        }

        fn values(&self, name: &FactName) -> FactValues<'_> {
            let known = self.0.iter().filter(|(known, _)| *known == name.as_str());
            FactValues::of(known.flat_map(|(_, values)| values.iter().map(FactValue::from)))
        }
    }

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            Just(String::new()),
            ".{0,12}",
            "[ -~]{240,300}",
            "[\u{1}\u{4}\u{6}\u{fe}\u{ff}]{0,9}",
            Just("x".repeat(300)),
        ]
    }

    fn host() -> impl Strategy<Value = String> {
        prop_oneof![
            text(),
            "[A-Za-z.]{0,9}(:[0-9]{0,5})?",
            r"\[[0-9a-fA-F:]{0,9}\](:[0-9]{0,5})?\.?",
            "[a-zA-Z]{0,3}[:.]{0,4}[0-9]{0,2}[:.]{0,4}[0-9]{0,2}",
        ]
    }

    fn path() -> impl Strategy<Value = String> {
        prop_oneof![text(), "[/a?%.]{0,12}"]
    }

    fn address() -> impl Strategy<Value = String> {
        let v4 = any::<[u8; 4]>().prop_map(IpAddr::from);
        let v6 = any::<[u8; 16]>().prop_map(IpAddr::from);
        let mapped = any::<[u8; 4]>().prop_map(|it| std::net::Ipv4Addr::from(it).to_ipv6_mapped());
        let low = any::<u32>().prop_map(|it| std::net::Ipv6Addr::from(u128::from(it)));
        prop_oneof![
            v4.prop_map(|it| it.to_string()),
            v6.prop_map(|it| it.to_string()),
            mapped.prop_map(|it| it.to_string()),
            low.prop_map(|it| it.to_string()),
            v4_with_port(),
        ]
    }

    fn v4_with_port() -> impl Strategy<Value = String> {
        any::<([u8; 4], u16)>().prop_map(|it| std::net::SocketAddr::from(it).to_string())
    }

    proptest! {
        #[test]
        fn values_are_those_of_the_same_key(
            names in proptest::sample::subsequence(
                vec!["client-ip", "user", "host", "path", "path:id", "header:x-a"], 1..6,
            ).prop_shuffle(),
            address in address(),
            texts in (text(), text(), host(), path()),
            repeated in proptest::sample::select(vec!["first", "last"]),
            v4 in 1..=32_u8,
            v6 in 1..=128_u8,
        ) {
            let (user, header, host, path) = texts;
            let path = if names.contains(&"path:id") { format!("/a/{path}") } else { path };
            let facts = Known(vec![
                ("client-ip", vec![address]),
                ("user", vec![user.clone(), user]),
                ("host", vec![host.clone(), host]),
                ("path", vec![path]),
                ("header:x-a", vec![header.clone(), format!("{header}1")]),
            ]);
            let mut policy = format!(
                "[[rule]]\nname = 'a'\nkey = {names:?}\nlimit = '5/h'\nrepeated = '{repeated}'\n"
            );
            if names.contains(&"client-ip") {
                policy += &format!("network = {{ v4 = {v4}, v6 = {v6} }}\n");
            }
            if names.contains(&"path:id") {
                policy += "when = { path = '/a/{id}' }\n";
            }
            let policy = Policy::from_toml(&policy).unwrap();
            let decision = policy.decide(&facts);
            let Some(asked) = decision.asked().next() else {
                prop_assume!(false, "the rule does not apply");
                return Ok(());
            };
            let key = asked.key().unwrap();
            let values = key.values();
            let texts: Vec<&str> = values.iter().map(String::as_str).collect();
            let again = bytes_of(key.rule, &texts).unwrap();
            prop_assert_eq!(again.as_slice(), key.bytes, "{:?}", values);
        }
    }
}
