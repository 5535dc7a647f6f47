//! `canalis connectors [NAME]`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use canalis_connector_api::{ConnectorSpec, OptionType, Role};
use comfy_table::{Table, presets::NOTHING};
use serde_json::{Value, json};

use crate::{display::Output, registry::registry};

/// Lists connectors, or the options of one.
pub fn connectors(name: Option<&str>, output: &Output) -> Result<ExitCode> {
    let registry = registry();
    match name {
        None => {
            let specs: Vec<&ConnectorSpec> = registry.iter().map(|c| c.spec()).collect();
            let listed: Vec<Value> = specs.iter().map(|s| summary(s)).collect();
            output.value(&Value::Array(listed), || {
                let mut table = Table::new();
                table.load_preset(NOTHING).set_header(["NAME", "USE AS", "SUMMARY"]);
                for spec in &specs {
                    table.add_row([spec.name, role(spec.role), spec.summary]);
                }
                println!("{table}");
            })?;
        }
        Some(name) => {
            let Some(connector) = registry.get(name) else {
                let hint =
                    registry.nearest(name).map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
                bail!("there is no connector `{name}`{hint}");
            };
            let spec = connector.spec();
            let mut described = summary(spec);
            described["options"] = spec.options.iter().map(option).collect();
            output.value(&described, || {
                println!("{} ({}): {}", spec.name, role(spec.role), spec.summary);
                let mut table = Table::new();
                table.load_preset(NOTHING).set_header(["OPTION", "USE AS", "VALUES", "DEFAULT", "MEANING"]);
                for o in spec.options {
                    let default = if o.required { "(required)" } else { o.default.unwrap_or("–") };
                    let doc = match o.not_yet {
                        Some(why) => format!("Not supported yet: {why}"),
                        None => o.doc.to_owned(),
                    };
                    table.add_row([
                        o.key.to_owned(),
                        role(o.role).to_owned(),
                        values(o.ty),
                        default.into(),
                        doc,
                    ]);
                }
                println!("{table}");
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn summary(spec: &ConnectorSpec) -> Value {
    json!({
        "name": spec.name,
        "role": role(spec.role),
        "summary": spec.summary,
        "guarantee": format!("{:?}", spec.guarantee),
    })
}

fn option(o: &canalis_connector_api::OptionSpec) -> Value {
    json!({
        "key": o.key,
        "role": role(o.role),
        "values": values(o.ty),
        "required": o.required,
        "default": o.default,
        "secret": o.secret,
        "not-yet": o.not_yet,
        "doc": o.doc,
    })
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Source => "source",
        Role::Sink => "sink",
        Role::Both => "source, sink",
    }
}

fn values(ty: OptionType) -> String {
    match ty {
        OptionType::Text => "text".into(),
        OptionType::Integer { .. } => "whole number".into(),
        OptionType::Float { .. } => "number".into(),
        OptionType::Boolean => "true, false".into(),
        OptionType::Duration => "duration".into(),
        OptionType::Bytes => "size".into(),
        OptionType::TablePatterns => "table patterns".into(),
        OptionType::Enum(words) => words.join(", "),
    }
}
