//! Facts for policies.

use tollgate_policy::{FactKind, FactName, Facts, Value, Values};

use super::RequestFacts;

impl Facts for RequestFacts<'_> {
    fn fact(&self, name: &FactName) -> Option<Value<'_>> {
        self.values(name).single()
    }

    fn values(&self, name: &FactName) -> Values<'_> {
        match name.kind() {
            FactKind::Method => Value::from(self.method().as_str()).into(),
            FactKind::Path => Value::from(self.path()).into(),
            FactKind::Host => self.hosts().into(),
            FactKind::ClientIp => self.client_address().map(Value::from).into(),
            FactKind::Header(name) => self.header_values(name).into(),
            FactKind::Query(name) => self.query_values(name).into(),
            FactKind::Cookie(name) => self.cookie_values(name).into(),
            _ => Values::NONE,
        }
    }
}
