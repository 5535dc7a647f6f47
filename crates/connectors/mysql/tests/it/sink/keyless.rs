//! Tables without a key: exactly once, one row at a time.

use canalis_types::{LogicalType, RowKind};

use super::support::{Target, batch, point, row, servers, split, split_point};

const A_B: &[(&str, LogicalType)] = &[("a", LogicalType::Int32), ("b", LogicalType::Text)];

#[tokio::test(flavor = "multi_thread")]
async fn ky_01_one_of_two_twins_is_deleted() {
    use RowKind::*;
    for server in servers() {
        let target = Target::new(server, &[]).await;
        let schema = target.table("nk", A_B, &[]);
        let plan = target.sink.prepare_table(&schema, true).await.unwrap();
        assert!(plan.notes.iter().any(|note| note.contains("no key")), "{:?}", plan.notes);
        let mut writer = target.writer(0, 1).await;
        writer.begin_split(&split("s", &schema, false)).await.unwrap();
        let rows = [row(Insert, &["1", "x"]), row(Insert, &["1", "x"]), row(Insert, &["2", "NULL"])];
        writer.write(batch(&schema, &rows)).await.unwrap();
        writer.commit(&split_point("s")).await.unwrap();
        // The split is known to be complete, so that a restart does not read it again.
        let recovery = target.open("job", 1, false).await;
        assert!(recovery.done_splits.contains("s"));

        writer.write(batch(&schema, &[row(Delete, &["1", "x"])])).await.unwrap();
        writer.commit(&point(1)).await.unwrap();
        assert_eq!(target.query("SELECT * FROM `{db}`.nk ORDER BY a").await, ["1|x", "2|NULL"]);
        assert_eq!(target.letters.reasons(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_applied_in_order_to_rows_equal_to_the_last_character() {
    use RowKind::*;
    for server in servers() {
        let target = Target::new(server, &[]).await;
        let schema = target.table("nk", A_B, &[]);
        let changes = [
            row(Insert, &["1", "x"]),
            row(Insert, &["1", "X"]),
            row(Insert, &["1", "x "]),
            row(UpdateBefore, &["1", "X"]),
            row(UpdateAfter, &["5", "NULL"]),
            row(Delete, &["1", "x "]),
            row(Insert, &["2", "é"]),
            row(UpdateBefore, &["2", "é"]),
            row(UpdateAfter, &["2", "é"]),
            row(Delete, &["2", "e"]),
        ];
        target.apply(&schema, &changes).await;
        assert_eq!(target.query("SELECT * FROM `{db}`.nk ORDER BY a").await, ["1|x", "2|é", "5|NULL"]);
        // The last one is not there and is said so.
        assert_eq!(target.letters.reasons(), ["no row of the target is equal to the row that was changed"]);
    }
}
