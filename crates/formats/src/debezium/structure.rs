//! Owns comparing the structure of a table that messages show with the one known until now.

use std::sync::Arc;

use canalis_types::{Column, ColumnPlace, SchemaChangeKind, TableId, TableSchema};

use crate::message::StructureChange;

/// Whether rows of both have the same columns and key.
pub(super) fn is_same(known: &TableSchema, columns: &[&Column], key: &[String]) -> bool {
    let same = |(a, b): (&Column, &&Column)| a.name == b.name && a.ty == b.ty && a.nullable == b.nullable;
    known.columns.len() == columns.len()
        && known.columns.iter().zip(columns).all(same)
        && known.primary_key == key
}

/// The change from the structure that is known to one of these columns and this key.
pub(super) fn change(
    id: &TableId,
    known: Option<&Arc<TableSchema>>,
    columns: Vec<Column>,
    key: Vec<String>,
) -> StructureChange {
    let Some(known) = known else {
        return StructureChange {
            kind: SchemaChangeKind::CreateTable,
            before: None,
            after: Arc::new(TableSchema::new(id.clone(), columns, key)),
            statement: format!("the schema in a message of {id} shows a table that is new"),
            alone: false,
        };
    };
    let kind = kind(known, &columns, &key);
    let statement = format!("the schema in a message of {id} shows {}", words(&kind));
    let mut after = TableSchema::clone(known);
    after.columns = columns;
    after.primary_key = key;
    after.version += 1;
    StructureChange { kind, before: Some(known.clone()), after: Arc::new(after), statement, alone: false }
}

fn words(kind: &SchemaChangeKind) -> String {
    match kind {
        SchemaChangeKind::CreateTable => "a new table".into(),
        SchemaChangeKind::AddColumns(added) => {
            let names: Vec<String> = added.iter().map(|(c, _)| format!("`{}`", c.name)).collect();
            format!("new columns: {}", names.join(", "))
        }
        SchemaChangeKind::Other(tag) => format!("another structure ({tag})"),
    }
}

fn kind(known: &TableSchema, columns: &[Column], key: &[String]) -> SchemaChangeKind {
    let other = |tag: &str| SchemaChangeKind::Other(tag.into());
    if known.columns.iter().any(|old| columns.iter().all(|c| c.name != old.name)) {
        return other("drop.column");
    }
    let is_old = |column: &Column| known.column(&column.name).is_some();
    let kept: Vec<&Column> = columns.iter().filter(|c| is_old(c)).collect();
    if !is_same(known, &kept, key) {
        return other("alter.column.type");
    }
    let place = |at: usize| match at.checked_sub(1).map(|before| &columns[before]) {
        _ if !columns[at..].iter().any(is_old) => ColumnPlace::Last,
        None => ColumnPlace::First,
        Some(before) => ColumnPlace::After(before.name.clone()),
    };
    let added = columns.iter().enumerate().filter(|(_, c)| !is_old(c));
    SchemaChangeKind::AddColumns(added.map(|(at, c)| (c.clone(), place(at))).collect())
}

#[cfg(test)]
mod tests {
    use canalis_types::LogicalType;

    use super::*;

    fn column(name: &str) -> Column {
        Column::new(name, LogicalType::Int32, true)
    }

    #[test]
    fn added_columns_have_their_places() {
        let id = TableId::new("d", "t");
        let known = Arc::new(TableSchema::new(id.clone(), vec![column("a"), column("b")], vec!["a".into()]));
        let names = ["x", "a", "y", "b", "z", "w"];
        let change = change(&id, Some(&known), names.iter().map(|n| column(n)).collect(), vec!["a".into()]);
        let SchemaChangeKind::AddColumns(added) = &change.kind else { panic!("{:?}", change.kind) };
        let places: Vec<(&str, &ColumnPlace)> = added.iter().map(|(c, p)| (c.name.as_str(), p)).collect();
        let after_a = ColumnPlace::After("a".into());
        assert_eq!(
            places,
            [
                ("x", &ColumnPlace::First),
                ("y", &after_a),
                ("z", &ColumnPlace::Last),
                ("w", &ColumnPlace::Last)
            ]
        );
        assert_eq!(change.after.version, 1);
    }

    #[test]
    fn other_changes_are_named() {
        let id = TableId::new("d", "t");
        let known = Arc::new(TableSchema::new(id.clone(), vec![column("a"), column("b")], vec!["a".into()]));
        let wide = Column::new("b", LogicalType::Int64, true);
        for (columns, key, tag) in [
            (vec![column("a")], "a", "drop.column"),
            (vec![column("a"), wide], "a", "alter.column.type"),
            (vec![column("b"), column("a")], "a", "alter.column.type"),
            (vec![column("a"), column("b")], "b", "alter.column.type"),
        ] {
            let kind = change(&id, Some(&known), columns, vec![key.into()]).kind;
            assert_eq!(kind, SchemaChangeKind::Other(tag.into()));
        }
    }
}
