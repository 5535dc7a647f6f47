//! Owns the options of the connector.

use canalis_connector_api::{ConnectorSpec, DeliveryGuarantee, OptionSpec, OptionType, Options, Role};
use canalis_types::{Result, TableId};

use crate::schedule::Mix;

const fn option(key: &'static str, ty: OptionType, doc: &'static str) -> OptionSpec {
    OptionSpec::new(key, ty, Role::Source, doc)
}

pub(crate) static SPEC: ConnectorSpec = ConnectorSpec {
    name: "datagen",
    role: Role::Source,
    summary: "A generated stream of orders with inserts, updates and deletes",
    options: &[
        option("table", OptionType::Text, "Id of the table").default("shop.orders"),
        option(
            "rows-per-second",
            OptionType::Integer { min: 0, max: 100_000_000 },
            "Changes a second; 0 is as fast as possible",
        )
        .default("1000"),
        option(
            "number-of-rows",
            OptionType::Integer { min: 1, max: i64::MAX },
            "Changes after which the source ends; it does not end when this is not given",
        ),
        option(
            "update-ratio",
            OptionType::Float { min: 0.0, max: 0.9 },
            "Share of updates among the changes",
        )
        .default("0.3"),
        option(
            "delete-ratio",
            OptionType::Float { min: 0.0, max: 0.45 },
            "Share of deletes among the changes, at most that of the inserts",
        )
        .default("0.1"),
        option("seed", OptionType::Integer { min: 0, max: i64::MAX }, "The same seed gives the same stream")
            .default("1"),
    ],
    prefixes: &[],
    guarantee: DeliveryGuarantee::None,
};

/// Options of a source.
#[derive(Debug, Clone)]
pub(crate) struct DatagenOptions {
    pub table: TableId,
    /// Changes a second; `None` for as many as possible.
    pub rate: Option<u64>,
    /// Changes in all.
    pub changes: Option<u64>,
    pub mix: Mix,
}

impl DatagenOptions {
    /// Reads validated options.
    pub(crate) fn read(options: &Options) -> Result<Self, (String, String)> {
        let wrong = |key: &str, why: String| (key.to_owned(), why);
        let number = |key: &str| -> Result<u64, (String, String)> {
            let value = options.integer(key).map_err(|e| wrong(key, e.message().to_owned()))?;
            u64::try_from(value).map_err(|_| wrong(key, format!("`{key}` is negative")))
        };
        let table = options.text("table").unwrap_or_default();
        let table = TableId::parse(table).ok_or_else(|| {
            wrong("table", format!("`{table}` is not a table id; write `table` or `schema.table`"))
        })?;
        let ratio = |key: &str| {
            let text = options.text(key).unwrap_or("0");
            per_mille(text).ok_or_else(|| wrong(key, format!("`{key}` must be a number between 0 and 1")))
        };
        let (updates, deletes) = (ratio("update-ratio")?, ratio("delete-ratio")?);
        let mix = Mix::new(number("seed")?, updates, deletes).ok_or_else(|| {
            let why = "`update-ratio` and `delete-ratio` must leave at least a tenth for inserts, and as many inserts as deletes";
            wrong("delete-ratio", why.to_owned())
        })?;
        let changes = options.text("number-of-rows").map(|_| number("number-of-rows")).transpose()?;
        let rate = Some(number("rows-per-second")?).filter(|rate| *rate > 0);
        Ok(Self { table, rate, changes, mix })
    }
}

/// Thousandths, rounded.
fn per_mille(ratio: &str) -> Option<u64> {
    let ratio: f64 = ratio.trim().parse().ok()?;
    if !(0.0..=1.0).contains(&ratio) {
        return None;
    }
    format!("{:.0}", ratio * 1000.0).parse().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn wrong_options_are_named() {
        for (pairs, expect) in [
            (&[][..], None),
            (&[("update-ratio", "0.55"), ("delete-ratio", "0.225")], None),
            (&[("update-ratio", "0.6"), ("delete-ratio", "0.25")], Some("delete-ratio")),
            (&[("update-ratio", "0.9"), ("delete-ratio", "0.1")], Some("delete-ratio")),
            (&[("table", "a..b")], Some("table")),
        ] {
            let raw: BTreeMap<String, String> =
                pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
            let options = Options::validate(&SPEC, Role::Source, &raw).unwrap();
            let wrong = DatagenOptions::read(&options).err().map(|(key, _)| key);
            assert_eq!(wrong.as_deref(), expect, "{pairs:?}");
        }
    }

    #[test]
    fn ratios_are_thousandths() {
        for (text, expect) in
            [("0", Some(0)), ("0.3", Some(300)), ("0.1234", Some(123)), ("1.1", None), ("x", None)]
        {
            assert_eq!(per_mille(text), expect);
        }
    }
}
