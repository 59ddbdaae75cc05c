//! What programs ask.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use tollgate_http::PathForm;
use tollgate_policy::{FactName, FactValue, FactValues, Facts, Outcome};

use crate::service::Decided;

/// One question, or several.
#[derive(Debug)]
pub(super) enum Asks<'a> {
    One(Ask<'a>),
    Many(Vec<Ask<'a>>),
}

impl Asks<'_> {
    /// Returns how many sets of facts there are. A question without one counts too.
    pub(super) fn sets(&self) -> usize {
        match self {
            Self::One(ask) => ask.sets.as_slice().len(),
            Self::Many(asks) => asks
                .iter()
                .map(|ask| ask.sets.as_slice().len().max(1))
                .sum(),
        }
    }
}

/// May this request go on?
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask<'a> {
    #[serde(borrow, rename = "facts", deserialize_with = "sets")]
    pub(super) sets: Sets<'a>,
    /// Whether the caller ends the request later.
    #[serde(default)]
    pub(super) hold: bool,
}

impl Ask<'_> {
    /// Returns whether a decision is held for the caller. One that asked no limit has nothing to
    /// end.
    pub(super) fn holds(&self, decided: &Decided) -> bool {
        self.hold && decided.is_allowed() && decided.asked().next().is_some()
    }
}

/// One set of facts, or several that are decided together.
#[derive(Debug)]
pub(super) enum Sets<'a> {
    One(FactList<'a>),
    Many(Vec<FactList<'a>>),
}

impl<'a> Sets<'a> {
    pub(super) fn as_slice(&self) -> &[FactList<'a>] {
        match self {
            Self::One(set) => std::slice::from_ref(set),
            Self::Many(sets) => sets,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [FactList<'a>] {
        match self {
            Self::One(set) => std::slice::from_mut(set),
            Self::Many(sets) => sets,
        }
    }
}

/// A request is over.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Finish<'a> {
    #[serde(borrow)]
    pub(super) token: Cow<'a, str>,
    pub(super) outcome: Option<Ended>,
    /// The status of an HTTP answer says the outcome too.
    pub(super) status: Option<u16>,
    /// What the answer says.
    #[serde(borrow, default)]
    pub(super) facts: FactList<'a>,
}

/// A request was not served.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Undo<'a> {
    #[serde(borrow)]
    pub(super) token: Cow<'a, str>,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Ended {
    Success,
    Failure,
    Neither,
    Unanswered,
}

impl Finish<'_> {
    /// Returns how the request ended, if the caller says it.
    pub(super) fn ended(&self) -> Option<Outcome> {
        let by_status = self.status.map(Outcome::of_status);
        self.outcome.map(Outcome::from).or(by_status)
    }
}

impl From<Ended> for Outcome {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Success => Self::Success,
            Ended::Failure => Self::Failure,
            Ended::Neither => Self::Neither,
            Ended::Unanswered => Self::Unanswered,
        }
    }
}

/// Facts by name. A name with several values is there several times.
#[derive(Debug, Default)]
pub(super) struct FactList<'a>(Vec<(Name<'a>, Cow<'a, str>)>);

/// A name, which all values of its fact share: a body can have a long one, and many values of it.
#[derive(Debug, Clone)]
enum Name<'a> {
    Sent(&'a str),
    Shared(Arc<str>),
}

impl AsRef<str> for Name<'_> {
    fn as_ref(&self) -> &str {
        match self {
            Self::Sent(name) => name,
            Self::Shared(name) => name,
        }
    }
}

impl FactList<'_> {
    /// Brings paths into the form in which rules see them, without a query.
    fn normalize(&mut self, form: PathForm) {
        for (_, path) in self
            .0
            .iter_mut()
            .filter(|(name, _)| name.as_ref() == "path")
        {
            let end = path.find(['?', '#']).unwrap_or(path.len());
            let seen = form.of(path.get(..end).unwrap_or(path));
            if *seen != **path {
                *path = Cow::Owned(seen.into_owned());
            }
        }
    }
}

impl Asks<'_> {
    /// Brings paths into the form in which rules see them.
    pub(super) fn normalize(&mut self, form: PathForm) {
        let asks = match self {
            Self::One(ask) => std::slice::from_mut(ask),
            Self::Many(asks) => asks.as_mut_slice(),
        };
        let sets = asks.iter_mut().flat_map(|ask| ask.sets.as_mut_slice());
        sets.for_each(|set| set.normalize(form));
    }
}

/// Returns a name as policies have it: `header.x-api-key` is `header:x-api-key`.
fn canonical(name: Cow<'_, str>) -> Name<'_> {
    // Most names have no dot. This takes less time than to split them.
    let has_dot = name.as_bytes().contains(&b'.');
    let parts = has_dot.then(|| name.split_once('.')).flatten();
    let parts = parts.filter(|(kind, _)| ["header", "query", "cookie"].contains(kind));
    match parts {
        Some((kind, rest)) => Name::Shared(format!("{kind}:{rest}").into()),
        None => match name {
            Cow::Borrowed(name) => Name::Sent(name),
            Cow::Owned(name) => Name::Shared(name.into()),
        },
    }
}

impl Facts for FactList<'_> {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        self.0.fact(name)
    }

    fn values(&self, name: &FactName) -> FactValues<'_> {
        self.0.values(name)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Asks<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;

        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Asks<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "an object such as {\"facts\": {\"client-ip\": \"192.0.2.1\"}}, or a list of them",
                )
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Self::Value, M::Error> {
                Ask::deserialize(MapAccessDeserializer::new(map)).map(Asks::One)
            }

            fn visit_seq<S: SeqAccess<'de>>(self, seq: S) -> Result<Self::Value, S::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Asks::Many)
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}

/// Reads one object of facts, or a list of them.
fn sets<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Sets<'de>, D::Error> {
    struct OneOrMany;

    impl<'de> Visitor<'de> for OneOrMany {
        type Value = Sets<'de>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of facts, or a list of such objects that are decided together")
        }

        fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Self::Value, M::Error> {
            FactsVisitor.visit_map(map).map(Sets::One)
        }

        fn visit_seq<S: SeqAccess<'de>>(self, seq: S) -> Result<Self::Value, S::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Sets::Many)
        }
    }
    deserializer.deserialize_any(OneOrMany)
}

impl<'de: 'a, 'a> Deserialize<'de> for FactList<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FactsVisitor)
    }
}

struct FactsVisitor;

impl<'de> Visitor<'de> for FactsVisitor {
    type Value = FactList<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of facts")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut facts = Vec::new();
        while let Some(Text(name)) = map.next_key()? {
            let name = canonical(name);
            let values = map.next_value();
            let values = values.map_err(|error| {
                de::Error::custom(format_args!("fact `{}`: {error}", name.as_ref()))
            })?;
            match values {
                Values::One(value) => facts.push((name, value)),
                Values::Many(values) => {
                    facts.extend(values.into_iter().map(|Text(value)| (name.clone(), value)));
                }
                Values::None => {}
            }
        }
        Ok(FactList(facts))
    }
}

/// The values of a fact.
enum Values<'a> {
    None,
    One(Cow<'a, str>),
    Many(Vec<Text<'a>>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Values<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValuesVisitor;

        impl<'de> Visitor<'de> for ValuesVisitor {
            type Value = Values<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a whole number, or a list of them")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                TextVisitor
                    .visit_borrowed_str(text)
                    .map(|Text(text)| Values::One(text))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                TextVisitor
                    .visit_str(text)
                    .map(|Text(text)| Values::One(text))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
                TextVisitor
                    .visit_u64(number)
                    .map(|Text(text)| Values::One(text))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
                Ok(Values::None)
            }

            fn visit_seq<S: SeqAccess<'de>>(self, seq: S) -> Result<Self::Value, S::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Values::Many)
            }
        }
        deserializer.deserialize_any(ValuesVisitor)
    }
}

/// A text, or a number as text.
#[derive(Debug)]
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a whole number")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(number.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise a body of 1 MiB could take 100 GiB.
    #[test]
    fn the_values_of_a_fact_share_its_name() {
        let name = format!("\\u0061{}", "b".repeat(1000));
        let values = ["1"; 1000].join(",");
        let body = format!("{{\"facts\": {{\"{name}\": [{values}]}}}}");
        let Asks::One(ask) = serde_json::from_str(&body).unwrap() else {
            panic!("it is one question");
        };
        let facts = &ask.sets.as_slice()[0].0;
        let Name::Shared(first) = &facts[0].0 else {
            panic!("the name has an escape");
        };
        assert_eq!((facts.len(), Arc::strong_count(first)), (1000, 1000));
    }
}
