//! Names that SQL has other uses for.

use canalis_types::{Column, ColumnPlace, LogicalType, SchemaChange, SchemaChangeKind, TableSchema};

use super::{
    lab::{Start, databases},
    model::{Model, batch, begin, delete, ends, insert, point, position, schema, update},
};

const COLUMNS: [&str; 6] = ["group", "key", "a b", "列", "x\"y", "a`b"];

#[tokio::test(flavor = "multi_thread")]
async fn sk_03_reserved_words_and_odd_names() {
    for lab in databases().await {
        let text = || LogicalType::Varchar { length: 10 };
        let columns: Vec<(&str, LogicalType)> = COLUMNS.iter().map(|name| (*name, text())).collect();
        let keys: [&[&str]; 3] = [&["group"], &["x\"y", "a`b", "列"], &[]];
        for (table, key) in ["order", "a.b", "sel`ect\"'"].into_iter().zip(keys) {
            let name = format!("{} `{table}`", lab.name);
            let before = schema(&lab, table, &columns, key);
            let sink = lab.sink();
            lab.open(&*sink, 1, Start::Fresh).await;
            let mut model = Model::default();

            sink.prepare_table(&before, true).await.unwrap();
            let mut writer = lab.writer(&*sink, 0, 1).await;
            let rows =
                [insert(&["g", "k", "a", "列", "x", "`"]), insert(&["h", "NULL", "a", "l", "\"", "t"])]
                    .concat();
            writer.begin_split(&begin(table, &before)).await.unwrap();
            writer.write(batch(&before, &rows)).await.unwrap();
            writer.commit(&ends(&[table])).await.unwrap();
            model.apply(&rows);
            assert_eq!(lab.rows(table).await, model.lines(), "{name}");
            sink.snapshot_complete(std::slice::from_ref(&before)).await.unwrap();
            assert_eq!(sink.plan_table(&before).await.unwrap().statements, [""; 0], "{name}");

            let changes = [
                update(&["g", "k", "a", "列", "x", "`"], &["g", "K", "NULL", "列", "x", "`"]),
                insert(&["i", "k", "b", "m", "y", "u"]),
                delete(&["h", "NULL", "a", "l", "\"", "t"]),
                update(&["i", "k", "b", "m", "y", "u"], &["j", "k", "b", "m", "y", "v"]),
            ]
            .concat();
            writer.write(batch(&before, &changes)).await.unwrap();
            writer.commit(&point(1)).await.unwrap();
            model.apply(&changes);
            assert_eq!(lab.rows(table).await, model.lines(), "{name}");

            let added = Column::new("where is`\"'it", text(), true);
            let mut after = TableSchema::clone(&before);
            after.columns.push(added.clone());
            let change = SchemaChange {
                kind: SchemaChangeKind::AddColumns(vec![(added, ColumnPlace::Last)]),
                before: Some(before.clone()),
                after: after.into(),
                statement: "ALTER TABLE …".into(),
                position: position(2),
            };
            sink.apply_schema_change(&change).await.unwrap();
            writer.schema_changed(&change.after).await.unwrap();
            let more = insert(&["z", "k", "b", "m", "z", "w", "more"]);
            writer.write(batch(&change.after, &more)).await.unwrap();
            writer.commit(&point(3)).await.unwrap();
            let rows = lab.rows(table).await;
            assert!(rows.contains(&"z|k|b|m|z|w|more".to_owned()), "{name}: {rows:?}");
            assert_eq!(rows.len(), 3, "{name}: {rows:?}");
            assert!(lab.letters.take().is_empty(), "{name}");
        }
    }
}
