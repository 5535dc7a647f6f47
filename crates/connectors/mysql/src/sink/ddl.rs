//! Owns the statements that make tables, add indexes and add columns.

use canalis_types::{Code, Column, ColumnPlace, Error, Index, LogicalType, Result, TableId, TableSchema};

use super::{
    column_sql::{Demands, Fidelity, declare, is_variable, literal},
    existing::{ExistingColumn, ExistingTable, UniqueIndex, same_name},
    session::ServerFacts,
};
use crate::quote;

/// Longest identifier of MySQL and MariaDB, in characters.
const LONGEST_NAME: usize = 64;

/// Refuses names that the target cannot have: too long, or the same as another under its rules.
pub(super) fn check_names(schema: &TableSchema, place: &TableId) -> Result<()> {
    let refuse = |why: String| Err(Error::new(Code::TargetIncompatible, format!("table {place}: {why}")));
    let names = place.schema.iter().chain([&place.table]).chain(schema.columns.iter().map(|c| &c.name));
    for name in names {
        if name.is_empty() || name.chars().count() > LONGEST_NAME {
            return refuse(format!("the name `{name}` is longer than {LONGEST_NAME} characters"));
        }
        if name.ends_with(' ') {
            return refuse(format!("the name `{name}` ends with a blank"));
        }
    }
    for (index, column) in schema.columns.iter().enumerate() {
        if let Some(other) = schema.columns[..index].iter().find(|c| same_name(&c.name, &column.name)) {
            return refuse(format!(
                "columns `{}` and `{}` have the same name without regard to case",
                other.name, column.name
            ));
        }
    }
    Ok(())
}

/// A table to be made.
#[derive(Debug)]
pub(super) struct Creation {
    /// CREATE TABLE.
    pub statement: String,
    /// What is different from the source.
    pub notes: Vec<String>,
}

/// Composes CREATE TABLE, without the secondary indexes (see [`add_index`]), except one that AUTO_INCREMENT needs.
pub(super) fn create_table(
    schema: &TableSchema,
    place: &TableId,
    facts: &ServerFacts,
    fidelity: Fidelity,
) -> Result<Creation> {
    let mut notes = Vec::new();
    let numbering_index = numbering_index(schema);
    let mut lines: Vec<String> = schema
        .columns
        .iter()
        .map(|column| declare(column, demands(schema, column, fidelity), facts, &mut notes))
        .collect();
    if schema.has_key() {
        let key: Vec<String> = schema.primary_key.iter().map(|name| quote::ident(name)).collect();
        lines.push(format!("PRIMARY KEY ({})", key.join(",")));
    }
    lines.extend(numbering_index.map(|index| index.definition.clone()));
    let mut statement =
        format!("CREATE TABLE IF NOT EXISTS {} (\n  {}\n)", quote::table(place), lines.join(",\n  "));
    statement.push_str(&table_options(schema)?);
    if !schema.partition_keys.is_empty() {
        notes.push("partition keys are not declared".to_owned());
    }
    Ok(Creation { statement, notes })
}

fn table_options(schema: &TableSchema) -> Result<String> {
    let mut sql = String::new();
    if !schema.options.keys().any(|key| key.eq_ignore_ascii_case("engine")) {
        sql.push_str(" ENGINE=InnoDB");
    }
    for (key, value) in &schema.options {
        let is_word = |text: &str| {
            !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_ ".contains(&b))
        };
        if !is_word(key) || !is_word(value) {
            return Err(Error::new(
                Code::PipelineInvalid,
                format!("table option `{key}: {value}` of {} is not of the form NAME = WORD", schema.id),
            ));
        }
        sql.push_str(&format!(" {key}={value}"));
    }
    if let Some(comment) = &schema.comment {
        let kept: String = comment.chars().take(2048).collect();
        sql.push_str(&format!(" COMMENT={}", literal(&kept)));
    }
    Ok(sql)
}

/// What is asked of a column by the table around it.
fn demands(schema: &TableSchema, column: &Column, fidelity: Fidelity) -> Demands {
    let key_columns: Vec<&Column> =
        schema.primary_key.iter().filter_map(|name| schema.column(name)).collect();
    let is_key = schema.primary_key.contains(&column.name);
    let in_unique = schema.indexes.iter().any(|i| i.unique && i.columns.contains(&column.name));
    let numbers_itself = schema.primary_key.first() == Some(&column.name)
        || numbering_index(schema).is_some_and(|index| index.columns.first() == Some(&column.name));
    Demands {
        distinct: is_key || in_unique,
        is_key,
        key_texts: u32::try_from(key_columns.iter().filter(|c| is_variable(&c.ty)).count()).unwrap_or(1),
        key_bytes: key_columns.iter().filter(|c| !is_variable(&c.ty)).map(|c| fixed_bytes(&c.ty)).sum(),
        auto_increment: numbers_itself,
        fidelity,
    }
}

/// Room that a key column of fixed length takes, rounded up.
fn fixed_bytes(ty: &LogicalType) -> u32 {
    match ty {
        LogicalType::Decimal { precision, .. } => u32::from(*precision) / 2 + 4,
        _ => 8,
    }
}

/// The secondary index that a self-numbering column needs, when it does not lead the primary key.
fn numbering_index(schema: &TableSchema) -> Option<&Index> {
    let column = schema
        .columns
        .iter()
        .find(|c| c.native.as_ref().is_some_and(|n| n.dialect == "mysql" && n.auto_increment))?;
    if schema.primary_key.first() == Some(&column.name) {
        return None;
    }
    carried_indexes(schema).find(|index| index.columns.first() == Some(&column.name))
}

/// Secondary indexes of a source of the same family whose columns are all still there.
pub(super) fn carried_indexes(schema: &TableSchema) -> impl Iterator<Item = &Index> {
    let same_family = schema.columns.iter().any(|c| c.native.as_ref().is_some_and(|n| n.dialect == "mysql"));
    schema
        .indexes
        .iter()
        .filter(move |index| same_family && index.columns.iter().all(|name| schema.column(name).is_some()))
}

/// What [`create_table`] would make, as far as writers ask for it.
pub(super) fn planned_table(schema: &TableSchema, facts: &ServerFacts) -> ExistingTable {
    let columns = schema.columns.iter().map(|column| planned_column(schema, column, facts)).collect();
    let key =
        UniqueIndex { name: "PRIMARY".to_owned(), columns: schema.primary_key.clone(), by_prefix: false };
    let secondary = carried_indexes(schema).filter(|index| index.unique).map(|index| UniqueIndex {
        name: index.name.clone(),
        columns: index.columns.clone(),
        by_prefix: false,
    });
    ExistingTable {
        columns,
        unique: schema.has_key().then_some(key).into_iter().chain(secondary).collect(),
        engine: "InnoDB".to_owned(),
        transactional: true,
        ..ExistingTable::default()
    }
}

fn planned_column(schema: &TableSchema, column: &Column, facts: &ServerFacts) -> ExistingColumn {
    let declared = declare(column, demands(schema, column, Fidelity::Full), facts, &mut Vec::new());
    let ty = declared.get(quote::ident(&column.name).len() + 1..).unwrap_or_default();
    let word = ty.split(['(', ' ']).next().unwrap_or_default().to_lowercase();
    // MariaDB has another name for it.
    let data_type = if facts.is_mariadb() && word == "json" { "longtext".to_owned() } else { word };
    let after = |word: &str| {
        let rest = ty.split_once(word)?.1;
        rest.split([' ', ',']).next().map(str::to_lowercase)
    };
    let is_text = data_type.ends_with("char") || data_type.ends_with("text");
    let native = column.native.as_ref().filter(|native| native.dialect == "mysql");
    ExistingColumn {
        name: column.name.clone(),
        nullable: column.nullable,
        generated: native.is_some_and(|native| native.generated.is_some()),
        auto_increment: native.is_some_and(|native| native.auto_increment),
        charset: after(" CHARACTER SET ").or(is_text.then(|| "utf8mb4".to_owned())),
        collation: after(" COLLATE "),
        data_type,
        ..ExistingColumn::default()
    }
}

/// Secondary indexes that a table has not got yet.
pub(super) fn missing_indexes<'a>(schema: &'a TableSchema, existing: &ExistingTable) -> Vec<&'a Index> {
    carried_indexes(schema)
        .filter(|index| !existing.indexes.iter().any(|name| same_name(name, &index.name)))
        .collect()
}

/// ALTER TABLE that adds indexes in one pass.
pub(super) fn add_indexes(place: &TableId, indexes: &[&Index]) -> String {
    let list: Vec<String> = indexes.iter().map(|index| format!("ADD {}", index.definition)).collect();
    format!("ALTER TABLE {} {}", quote::table(place), list.join(", "))
}

/// ALTER TABLE that adds one column.
pub(super) fn add_column(
    schema: &TableSchema,
    place: &TableId,
    column: &Column,
    column_place: &ColumnPlace,
    existing: &ExistingTable,
    facts: &ServerFacts,
    fidelity: Fidelity,
) -> (String, Vec<String>) {
    let mut notes = Vec::new();
    let mut sql = format!(
        "ALTER TABLE {} ADD COLUMN {}",
        quote::table(place),
        declare(column, demands(schema, column, fidelity), facts, &mut notes)
    );
    let native = column.native.as_ref().is_some_and(|native| native.dialect == "mysql");
    match column_place {
        ColumnPlace::First if native => sql.push_str(" FIRST"),
        ColumnPlace::After(name) if native => {
            if let Some(stored) = existing.column(name) {
                sql.push_str(&format!(" AFTER {}", quote::ident(&stored.name)));
            }
        }
        _ => {}
    }
    (sql, notes)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use canalis_types::{ColumnDefault, NativeType};

    use super::*;
    use crate::{Flavor, ServerInfo};

    fn facts(flavor: Flavor) -> ServerFacts {
        let version = if flavor == Flavor::MySql { (9, 7, 0) } else { (10, 11, 0) };
        let collations: HashSet<String> =
            ["utf8mb4_general_ci", "latin1_swedish_ci"].map(str::to_owned).into_iter().collect();
        ServerFacts::sample(ServerInfo { flavor, version, version_text: String::new() }, collations)
    }

    fn native(name: &str, ty: LogicalType, sql: &str, charset: Option<&str>) -> Column {
        let mut column = Column::new(name, ty, true);
        column.native = Some(NativeType {
            dialect: "mysql".into(),
            sql: sql.into(),
            charset: charset.map(str::to_owned),
            collation: charset
                .map(|c| if c == "latin1" { "latin1_swedish_ci" } else { "utf8mb4_general_ci" }.to_owned()),
            auto_increment: false,
            generated: None,
        });
        column
    }

    fn create(schema: &TableSchema, flavor: Flavor) -> String {
        create_table(schema, &schema.id, &facts(flavor), Fidelity::Full).unwrap().statement
    }

    #[test]
    fn sk_03_odd_names_are_quoted() {
        let schema = TableSchema::new(
            TableId::new("d", "order"),
            vec![
                Column::new("group", LogicalType::Int32, false),
                Column::new("a`b", LogicalType::Int32, true),
                Column::new("列", LogicalType::Date, true),
            ],
            vec!["group".into()],
        );
        assert_eq!(
            create(&schema, Flavor::MySql),
            "CREATE TABLE IF NOT EXISTS `d`.`order` (\n  `group` INT NOT NULL,\n  `a``b` INT NULL,\n  `列` DATE NULL,\
             \n  PRIMARY KEY (`group`)\n) ENGINE=InnoDB"
        );
    }

    #[test]
    fn ky_07_text_keys_are_compared_exactly_and_fit_the_index() {
        let schema = TableSchema::new(
            TableId::new("d", "t"),
            vec![
                Column::new("a", LogicalType::Text, false),
                Column::new("b", LogicalType::Varchar { length: 20 }, false),
                Column::new("n", LogicalType::Int64, false),
            ],
            vec!["a".into(), "b".into(), "n".into()],
        );
        let sql = create(&schema, Flavor::MySql);
        assert!(
            sql.contains("`a` VARCHAR(383) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin NOT NULL"),
            "{sql}"
        );
        assert!(
            sql.contains("`b` VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin NOT NULL"),
            "{sql}"
        );
        let sql = create(&schema, Flavor::MariaDb);
        assert!(sql.contains("COLLATE utf8mb4_nopad_bin"), "{sql}");
    }

    #[test]
    fn native_types_are_kept_or_translated() {
        for (column, flavor, expect) in [
            (
                native("c", LogicalType::UInt32, "int(6) unsigned zerofill", None),
                Flavor::MySql,
                "`c` int(6) unsigned zerofill NULL",
            ),
            (
                native("c", LogicalType::Varchar { length: 9 }, "varchar(9)", Some("latin1")),
                Flavor::MariaDb,
                "`c` varchar(9) CHARACTER SET latin1 COLLATE latin1_swedish_ci NULL",
            ),
            (
                native("c", LogicalType::Uuid, "uuid", None),
                Flavor::MySql,
                "`c` CHAR(36) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin NULL",
            ),
            (native("c", LogicalType::Uuid, "uuid", None), Flavor::MariaDb, "`c` uuid NULL"),
            (native("c", LogicalType::Bytes, "vector(3)", None), Flavor::MariaDb, "`c` LONGBLOB NULL"),
            (native("c", LogicalType::Bytes, "vector(3)", None), Flavor::MySql, "`c` vector(3) NULL"),
            (native("c", LogicalType::Json, "json", None), Flavor::MariaDb, "`c` JSON NULL"),
        ] {
            let schema = TableSchema::new(TableId::new("d", "t"), vec![column], Vec::new());
            let sql = create(&schema, flavor);
            assert!(sql.contains(&format!("(\n  {expect}\n)")), "{sql}");
        }
    }

    #[test]
    fn my_23_defaults_are_kept_or_left_out_with_a_note() {
        let mut column = native("d", LogicalType::Date, "date", None);
        column.default = Some(ColumnDefault::Expression("(curdate())".into()));
        let schema = TableSchema::new(TableId::new("d", "t"), vec![column], Vec::new());
        assert!(create(&schema, Flavor::MySql).contains("`d` date NULL DEFAULT (curdate())"));
        let plain = create_table(&schema, &schema.id, &facts(Flavor::MySql), Fidelity::Constants).unwrap();
        assert!(!plain.statement.contains("DEFAULT"));
        assert_eq!(plain.notes.len(), 1);
    }

    #[test]
    fn sk_09_names_that_would_collide_are_refused() {
        let long = "x".repeat(65);
        let schema = TableSchema::new(TableId::new("d", long), Vec::new(), Vec::new());
        assert_eq!(check_names(&schema, &schema.id).unwrap_err().code(), Code::TargetIncompatible);
        // 64 characters of three bytes are a legal name.
        let wide = "列".repeat(64);
        let schema = TableSchema::new(TableId::new("d", wide), Vec::new(), Vec::new());
        assert!(check_names(&schema, &schema.id).is_ok());
        let columns =
            vec![Column::new("a", LogicalType::Int32, true), Column::new("A", LogicalType::Int32, true)];
        let schema = TableSchema::new(TableId::new("d", "t"), columns, Vec::new());
        assert!(check_names(&schema, &schema.id).is_err());
    }
}
