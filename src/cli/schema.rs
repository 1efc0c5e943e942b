//! `redial schema`

use schemars::{
    generate::SchemaSettings,
    transform::{RecursiveTransform, Transform},
};
use serde_json::Value;

use super::{End, terminal::Terminal};
use crate::contract::model::Document;

pub(super) fn run(terminal: &Terminal) -> End {
    terminal.out(&text());
    End::Kept
}

/// The JSON Schema of the format: draft 7, which editors of TOML read.
pub(super) fn text() -> String {
    let mut schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<Document>();
    RecursiveTransform(without_null).transform(&mut schema);
    schema.insert("title".to_owned(), Value::from("A redial contract"));
    schema.insert("required".to_owned(), serde_json::json!(["format"]));
    format!("{:#}\n", schema.to_value())
}

/// TOML has no null: a key that is not needed is left out.
fn without_null(schema: &mut schemars::Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [one] = &types[..] {
            let one = one.clone();
            object.insert("type".to_owned(), one);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
    }
}
