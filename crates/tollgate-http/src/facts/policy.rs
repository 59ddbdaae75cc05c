//! Facts for policies.

use tollgate_policy::{FactKind, FactName, Facts, Value};

use super::RequestFacts;

impl Facts for RequestFacts<'_> {
    fn fact(&self, name: &FactName) -> Option<Value<'_>> {
        match name.kind() {
            FactKind::Method => Some(self.method().as_str().into()),
            FactKind::Path => Some(self.path().into()),
            FactKind::Host => self.host().map(Value::from),
            FactKind::ClientIp => self.client_address().map(Value::from),
            FactKind::Header(name) => self.header(name).map(Value::from),
            FactKind::Query(name) => self.query(name).map(Value::from),
            FactKind::Cookie(name) => self.cookie(name).map(Value::from),
            _ => None,
        }
    }
}
