//! Changes: a table ends as the changes say, however they are cut into batches and commits, with a key and without.

use std::collections::BTreeMap;

use canalis_types::LogicalType;

use super::{
    lab::{Start, databases},
    model::{
        Changes, Model, Numbers, batch, counts, delete, insert, keyed, keyless, point, position, schema,
        update,
    },
};

/// Windows of changes of `id`, `v`; every row that is changed or removed is there.
fn fixed_sequence() -> Vec<Changes> {
    vec![
        [insert(&["1", "a"]), insert(&["2", "b"]), insert(&["3", "NULL"]), insert(&["4", ""])].concat(),
        [update(&["1", "a"], &["1", "A"]), delete(&["2", "b"]), update(&["3", "NULL"], &["3", "c"])].concat(),
        // Other keys: to a free one, to one that has just become free, and two that change places.
        [
            update(&["1", "A"], &["5", "A"]),
            update(&["3", "c"], &["1", "c"]),
            update(&["4", ""], &["6", ""]),
            update(&["5", "A"], &["4", "A"]),
            update(&["6", ""], &["5", ""]),
        ]
        .concat(),
        // Back and forth inside one window.
        [
            insert(&["7", "x"]),
            delete(&["7", "x"]),
            insert(&["7", "y"]),
            update(&["7", "y"], &["8", "y"]),
            insert(&["7", "z"]),
            delete(&["8", "y"]),
            insert(&["9", "gone"]),
            update(&["9", "gone"], &["9", "going"]),
            delete(&["9", "going"]),
        ]
        .concat(),
        [update(&["7", "z"], &["7", "NULL"]), delete(&["1", "c"]), insert(&["1", "again"])].concat(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fixed_sequence_ends_with_the_right_rows() {
    for lab in databases().await {
        let name = lab.name;
        for schema in [keyed(&lab, "by_key"), keyless(&lab, "without_key")] {
            let table = &schema.id.table;
            let sink = lab.sink();
            lab.open(&*sink, 1, Start::Fresh).await;
            sink.prepare_table(&schema, false).await.unwrap();
            let mut writer = lab.writer(&*sink, 0, 1).await;
            let mut model = Model::default();
            for (number, window) in (1..).zip(fixed_sequence()) {
                let rows = batch(&schema, &window);
                let changes = rows.num_changes();
                writer.write(rows).await.unwrap();
                let report = writer.commit(&point(number)).await.unwrap();
                model.apply(&window);
                assert_eq!(lab.rows(table).await, model.lines(), "{name}: {table} after window {number}");
                assert_eq!(counts(&report), (changes, 0), "{name}: {table} after window {number}");
            }
        }
        // The same as one window in one batch, and as one window in batches of one change.
        let all = fixed_sequence().concat();
        for (table, most) in [("at_once", usize::MAX), ("one_by_one", 1)] {
            for (table, schema) in [
                (table.to_owned(), keyed(&lab, table)),
                (format!("{table}_k"), keyless(&lab, &format!("{table}_k"))),
            ] {
                let sink = lab.sink();
                lab.open(&*sink, 1, Start::Fresh).await;
                sink.prepare_table(&schema, false).await.unwrap();
                let mut writer = lab.writer(&*sink, 0, 1).await;
                let mut model = Model::default();
                for changes in chunks(&all, most) {
                    writer.write(batch(&schema, &changes)).await.unwrap();
                    model.apply(&changes);
                }
                writer.commit(&point(1)).await.unwrap();
                assert_eq!(lab.rows(&table).await, model.lines(), "{name}: {table}");
            }
        }
        assert!(lab.letters.take().is_empty(), "{name}");
    }
}

/// Changes cut so that no update is torn apart.
fn chunks(changes: &Changes, most: usize) -> Vec<Changes> {
    let mut chunks: Vec<Changes> = Vec::new();
    let mut counted = usize::MAX;
    for (kind, row) in changes {
        let follows_its_before = *kind == canalis_types::RowKind::UpdateAfter;
        if !follows_its_before && counted >= most {
            chunks.push(Vec::new());
            counted = 0;
        }
        if !follows_its_before {
            counted += 1;
        }
        if chunks.is_empty() {
            chunks.push(Vec::new());
        }
        chunks.last_mut().unwrap().push((*kind, row.clone()));
    }
    chunks
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_changes_in_windows_of_any_size_end_with_the_right_rows() {
    for lab in databases().await {
        let name = lab.name;
        let schema = keyed(&lab, "t");
        let sink = lab.sink();
        lab.open(&*sink, 1, Start::Fresh).await;
        sink.prepare_table(&schema, false).await.unwrap();
        let mut writer = lab.writer(&*sink, 0, 1).await;
        let mut numbers = Numbers::new(7);
        let mut held: BTreeMap<usize, usize> = BTreeMap::new();
        let mut model = Model::default();
        for window in 1..=60 {
            for _ in 0..=numbers.below(3) {
                let mut changes = Changes::new();
                for _ in 0..=numbers.below(120) {
                    changes.extend(any_change(&mut numbers, &mut held));
                }
                writer.write(batch(&schema, &changes)).await.unwrap();
                model.apply(&changes);
            }
            let report = writer.commit(&point(window)).await.unwrap();
            assert_eq!(counts(&report).1, 0, "{name}");
            if window % 10 == 0 {
                assert_eq!(lab.rows("t").await, model.lines(), "{name} after window {window}");
            }
        }
    }
}

/// A change that fits the rows held: an insert of a free key, or a change, a move or the end of one that is there.
fn any_change(numbers: &mut Numbers, held: &mut BTreeMap<usize, usize>) -> Changes {
    let key = numbers.below(80);
    let text = |value: usize| if value.is_multiple_of(11) { "NULL".to_owned() } else { format!("v{value}") };
    let value = numbers.below(1000);
    let Some(old) = held.get(&key).copied() else {
        held.insert(key, value);
        return insert(&[&key.to_string(), &text(value)]);
    };
    let (key_text, old_text) = (key.to_string(), text(old));
    let free = numbers.below(80);
    match numbers.below(4) {
        0 => {
            held.remove(&key);
            delete(&[&key_text, &old_text])
        }
        1 if !held.contains_key(&free) => {
            held.remove(&key);
            held.insert(free, value);
            update(&[&key_text, &old_text], &[&free.to_string(), &text(value)])
        }
        _ => {
            held.insert(key, value);
            update(&[&key_text, &old_text], &[&key_text, &text(value)])
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_row_changes_nothing_where_there_is_a_key() {
    for lab in databases().await {
        let name = lab.name;
        let schema = keyed(&lab, "t");
        let sink = lab.sink();
        lab.open(&*sink, 1, Start::Fresh).await;
        sink.prepare_table(&schema, false).await.unwrap();
        let mut writer = lab.writer(&*sink, 0, 1).await;
        // A stream that begins a little too early tells again what the rows already show.
        let told =
            [insert(&["1", "a"]), insert(&["2", "b"]), delete(&["3", "c"]), update(&["4", "d"], &["5", "e"])]
                .concat();
        for window in 1..=3 {
            writer.write(batch(&schema, &told)).await.unwrap();
            let report = writer.commit(&point(window)).await.unwrap();
            assert_eq!(counts(&report), (4, 0), "{name}");
            assert_eq!(lab.rows("t").await, ["1|a", "2|b", "5|e"], "{name} after window {window}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_every_change_concerns_one_row() {
    for lab in databases().await {
        let name = lab.name;
        let columns = [
            ("n", LogicalType::Int64),
            ("v", LogicalType::Varchar { length: 20 }),
            ("t", LogicalType::Text),
            ("d", LogicalType::Decimal { precision: 10, scale: 2 }),
        ];
        let schema = schema(&lab, "t", &columns, &[]);
        let sink = lab.sink();
        lab.open(&*sink, 1, Start::Fresh).await;
        sink.prepare_table(&schema, false).await.unwrap();
        let mut writer = lab.writer(&*sink, 0, 1).await;
        let mut model = Model::default();
        let one = ["1", "a", "long", "1.50"];
        let empty = ["NULL", "NULL", "NULL", "NULL"];
        for (window, changes) in (1..).zip([
            [one, one, one, empty, empty, ["1", "A", "long", "1.50"], ["1", "a ", "long", "1.50"]]
                .map(|cells| insert(&cells))
                .concat(),
            [delete(&one), delete(&empty), update(&one, &["2", "a", "NULL", "0.00"])].concat(),
            [delete(&["1", "A", "long", "1.50"]), update(&empty, &one), insert(&one), delete(&one)].concat(),
            [delete(&one), insert(&empty), insert(&empty), delete(&empty)].concat(),
        ]) {
            writer.write(batch(&schema, &changes)).await.unwrap();
            let report = writer.commit(&point(window)).await.unwrap();
            model.apply(&changes);
            assert_eq!(lab.rows("t").await, model.lines(), "{name} after window {window}");
            assert_eq!(counts(&report).1, 0, "{name} after window {window}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_differ_in_case_accents_and_blanks_are_different() {
    for lab in databases().await {
        let name = lab.name;
        let columns = [("k", LogicalType::Varchar { length: 20 }), ("v", LogicalType::Int32)];
        let schema = schema(&lab, "t", &columns, &["k"]);
        let sink = lab.sink();
        lab.open(&*sink, 1, Start::Fresh).await;
        sink.prepare_table(&schema, false).await.unwrap();
        let mut writer = lab.writer(&*sink, 0, 1).await;
        let keys = ["a", "A", "ä", "a ", " a", "", "ａ", "\u{61}\u{308}", "😀", "😁", "a\t", "a'b", "a\\b"];
        let mut model = Model::default();
        let changes: Changes = keys.iter().flat_map(|key| insert(&[key, "1"])).collect();
        writer.write(batch(&schema, &changes)).await.unwrap();
        writer.commit(&point(1)).await.unwrap();
        model.apply(&changes);
        assert_eq!(lab.rows("t").await, model.lines(), "{name}");
        for (window, key) in (2..).zip(keys) {
            let changes = update(&[key, "1"], &[key, "2"]);
            writer.write(batch(&schema, &changes)).await.unwrap();
            writer.commit(&point(window)).await.unwrap();
            model.apply(&changes);
        }
        assert_eq!(lab.rows("t").await, model.lines(), "{name}");
        let changes: Changes = keys.iter().step_by(2).flat_map(|key| delete(&[key, "2"])).collect();
        writer.write(batch(&schema, &changes)).await.unwrap();
        writer.commit(&point(100)).await.unwrap();
        model.apply(&changes);
        assert_eq!(lab.rows("t").await, model.lines(), "{name}");
        assert!(lab.letters.take().is_empty(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_writers_share_tables() {
    for lab in databases().await {
        let name = lab.name;
        if !lab.sink().capabilities().parallel {
            continue;
        }
        const WRITERS: usize = 4;
        let schemas = [keyed(&lab, "t"), keyed(&lab, "u")];
        let sink = lab.sink();
        lab.open(&*sink, WRITERS, Start::Fresh).await;
        for schema in &schemas {
            sink.prepare_table(schema, false).await.unwrap();
        }
        let mut tasks = Vec::new();
        for index in 0..WRITERS {
            let mut writer = lab.writer(&*sink, index, WRITERS).await;
            let mut schemas = schemas.to_vec();
            // Locks are asked for in either order.
            if index % 2 == 1 {
                schemas.reverse();
            }
            tasks.push(tokio::spawn(async move {
                let keys: Vec<String> = (0..50).map(|n| (n * WRITERS + index).to_string()).collect();
                for round in 0..8 {
                    let text = format!("r{round}");
                    let before = format!("r{}", round - 1);
                    for schema in &schemas {
                        let changes: Changes = keys
                            .iter()
                            .flat_map(|key| match round {
                                0 => insert(&[key, &text]),
                                _ => update(&[key, &before], &[key, &text]),
                            })
                            .collect();
                        writer.write(batch(schema, &changes)).await.unwrap();
                    }
                    let at = u64::try_from(round + 1).unwrap() * 10 + u64::try_from(index).unwrap();
                    writer.commit(&point(at)).await.unwrap();
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        let mut expect: Vec<String> = (0..50 * WRITERS).map(|key| format!("{key}|r7")).collect();
        expect.sort();
        for table in ["t", "u"] {
            assert_eq!(lab.rows(table).await, expect, "{name}: {table}");
        }
        let recovery = lab.open(&*lab.sink(), WRITERS, Start::Again).await;
        let expect: Vec<_> = (80..84).map(|n| Some(position(n))).collect();
        assert_eq!(recovery.positions, expect, "{name}");
    }
}
