//! What a page is to those who can't see it.

use serde_json::{Value, json};

use crate::tab::{Tab, text};

/// A part of a page, as a screen reader meets it.
#[derive(Debug)]
pub(crate) struct Part {
    /// Such as `button`, `link`, `heading`, `main` or `navigation`.
    pub(crate) role: String,
    pub(crate) name: String,
    /// Its properties by name, such as `level`, `focused`, `expanded` or `live`.
    pub(crate) properties: Value,
    element: Value,
}

/// Roles that mean nothing without a name.
const NAMED: [&str; 22] = [
    "RootWebArea",
    "button",
    "checkbox",
    "combobox",
    "dialog",
    "gridcell",
    "heading",
    "image",
    "link",
    "listbox",
    "menuitem",
    "meter",
    "option",
    "progressbar",
    "radio",
    "searchbox",
    "slider",
    "spinbutton",
    "switch",
    "tab",
    "textbox",
    "treeitem",
];

impl Tab {
    /// Returns all parts of the page that are not hidden from screen readers, in order.
    pub(crate) async fn parts(&self) -> Vec<Part> {
        let tree = self.call("Accessibility.getFullAXTree", json!({})).await;
        let nodes = tree["nodes"].as_array().unwrap().iter();
        let nodes = nodes.filter(|node| node["ignored"] != true);
        nodes.map(part).collect()
    }

    /// Returns the names of all parts with a role, in order.
    pub(crate) async fn names(&self, role: &str) -> Vec<String> {
        let parts = self.parts().await.into_iter();
        let parts = parts.filter(|part| part.role == role);
        // Before its layout is done, a name can end with the space between a label and its control.
        parts.map(|part| part.name.trim().to_owned()).collect()
    }

    /// Returns the controls, headings and pictures without a name, each as its role and its tag.
    pub(crate) async fn nameless(&self) -> Vec<String> {
        let mut found = Vec::new();
        for part in self.parts().await {
            if NAMED.contains(&&*part.role) && part.name.trim().is_empty() {
                let element = json!({"backendNodeId": part.element});
                let described = self.call("DOM.describeNode", element).await;
                let node = &described["node"];
                let (tag, attributes) = (text(&node["nodeName"]), &node["attributes"]);
                found.push(format!("{} {tag} {attributes}", part.role));
            }
        }
        found
    }
}

fn part(node: &Value) -> Part {
    let properties = node["properties"].as_array().into_iter().flatten();
    let properties = properties.map(|it| (text(&it["name"]), it["value"]["value"].clone()));
    Part {
        role: node["role"]["value"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        name: node["name"]["value"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        properties: Value::Object(properties.collect()),
        element: node["backendDOMNodeId"].clone(),
    }
}
