//! Facts for policies.

use tollgate_policy::{FactKind, FactName, FactValue, FactValues, Facts};

use super::RequestFacts;

impl Facts for RequestFacts<'_> {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        self.values(name).single()
    }

    fn values(&self, name: &FactName) -> FactValues<'_> {
        match name.kind() {
            FactKind::Method => FactValue::from(self.method().as_str()).into(),
            FactKind::Path => FactValue::from(self.path()).into(),
            FactKind::Host => self.hosts().into(),
            FactKind::ClientIp => self.client_address().map(FactValue::from).into(),
            FactKind::Header(name) => self.header_values(name).into(),
            FactKind::Query(name) => self.query_values(name).into(),
            FactKind::Cookie(name) => self.cookie_values(name).into(),
            _ => FactValues::NONE,
        }
    }
}
