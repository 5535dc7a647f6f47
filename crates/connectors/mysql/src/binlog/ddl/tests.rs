//! Statements and what they are recognised as.

use canalis_types::{ColumnDefault, ColumnPlace, TableId};
use proptest::prelude::*;

use super::*;

fn context() -> StatementContext {
    StatementContext { default_database: "shop".to_owned(), quoting: Quoting::default() }
}

/// Captured is everything in the database `shop` and the table `order`.`group`.
fn captured(table: &TableId) -> bool {
    table.schema.as_deref() == Some("shop")
        || (table.schema.as_deref() == Some("order") && table.table == "group")
}

fn run(statement: &str) -> Vec<Ddl> {
    parse(statement, &context(), &captured).unwrap_or_else(|reason| panic!("{statement}: {reason}"))
}

fn tags(statement: &str) -> Vec<&'static str> {
    run(statement).iter().map(Ddl::tag).collect()
}

fn added(statement: &str) -> Vec<AddedColumn> {
    match run(statement).pop() {
        Some(Ddl::AddColumns { columns, .. }) => columns,
        other => panic!("{statement}: {other:?}"),
    }
}

#[test]
fn dd_13_statements_about_other_things_are_ignored() {
    for statement in [
        "ALTER USER u IDENTIFIED BY 'x' RETAIN CURRENT PASSWORD",
        "FLUSH TABLES",
        "FLUSH TABLE t",
        "CREATE TRIGGER trg BEFORE INSERT ON t FOR EACH ROW BEGIN UPDATE t SET a = 1; DELETE FROM t; END",
        "CREATE DEFINER=`root`@`localhost` TRIGGER trg AFTER UPDATE ON shop.t FOR EACH ROW SET @a = 1",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM t",
        "CREATE OR REPLACE ALGORITHM=UNDEFINED DEFINER=`r`@`%` SQL SECURITY DEFINER VIEW v AS SELECT * FROM t",
        "OPTIMIZE TABLE t",
        "ANALYZE TABLE t",
        "DROP /*!40005 TEMPORARY */ TABLE IF EXISTS t",
        "CREATE TEMPORARY TABLE t (a INT)",
        "CREATE UNIQUE INDEX i ON t (a)",
        "DROP INDEX i ON t",
        "GRANT ALL ON shop.t TO u",
        "RENAME USER a TO b",
        "CREATE DATABASE shop2",
        "ALTER DATABASE shop CHARACTER SET utf8mb4",
        "DROP PROCEDURE p",
        "",
        "/* only a comment */",
        "ALTER TABLE other.t FROBNICATE",
        "CREATE TABLE other.t (this is nonsense)",
        "INSERT INTO other.t SELECT * FROM shop.t",
    ] {
        assert_eq!(tags(statement), Vec::<&str>::new(), "{statement}");
    }
}

#[test]
fn dd_13_what_touches_a_captured_table_and_is_not_understood_is_an_error() {
    for statement in [
        "ALTER TABLE t FROBNICATE",
        "ALTER TABLE t ADD COLUMN a INT FROBNICATED",
        "HANDLE shop.t",
        "INSERT INTO t VALUES (1)",
        "REPLACE LOW_PRIORITY t SET a = 1",
        "UPDATE other.x JOIN shop.t ON true SET x.a = 1",
        "DELETE FROM `t`",
        "LOAD DATA INFILE 'x' INTO TABLE t",
        "CREATE TABLE t (a INT WHATEVER)",
    ] {
        assert!(parse(statement, &context(), &captured).is_err(), "{statement}");
    }
}

#[test]
fn dd_11_only_the_named_database_is_captured() {
    assert_eq!(tags("ALTER TABLE shop_test.orders ADD a INT"), Vec::<&str>::new());
    assert_eq!(tags("ALTER TABLE orders_bak ADD a INT"), ["add.column"]);
}

#[test]
fn alterations_get_the_tag_of_their_gravest_part() {
    for (statement, expected) in [
        ("ALTER TABLE t ADD INDEX i (a), ALGORITHM=INPLACE, LOCK=NONE", vec![]),
        ("ALTER TABLE t ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='x, y'", vec![]),
        (
            "ALTER TABLE t ALTER COLUMN a SET DEFAULT 5, DROP FOREIGN KEY fk, ADD CONSTRAINT CHECK (a > 0)",
            vec![],
        ),
        (
            "ALTER TABLE t PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (5), PARTITION q VALUES LESS THAN (9))",
            vec![],
        ),
        ("ALTER TABLE t ADD PARTITION (PARTITION p3 VALUES LESS THAN (10))", vec![]),
        ("ALTER TABLE t ORDER BY a, b", vec![]),
        ("ALTER TABLE t DROP PARTITION p0", vec!["drop.partition"]),
        ("ALTER TABLE t TRUNCATE PARTITION p0", vec!["truncate.partition"]),
        ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE x", vec!["exchange.partition"]),
        ("ALTER TABLE t DROP COLUMN a, ADD b INT", vec!["drop.column"]),
        ("ALTER TABLE t DROP a", vec!["drop.column"]),
        ("ALTER TABLE t MODIFY a BIGINT", vec!["alter.column.type"]),
        ("ALTER TABLE t CHANGE a A VARCHAR(5)", vec!["alter.column.type"]),
        ("ALTER TABLE t CHANGE COLUMN a b INT", vec!["rename.column"]),
        ("ALTER TABLE t RENAME COLUMN a TO b", vec!["rename.column"]),
        ("ALTER TABLE t RENAME INDEX a TO b", vec![]),
        ("ALTER TABLE t RENAME TO t2", vec!["rename.table"]),
        ("ALTER TABLE t ADD PRIMARY KEY (a)", vec!["primary.key"]),
        ("ALTER TABLE t ADD COLUMN a INT PRIMARY KEY", vec!["primary.key"]),
        ("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4", vec!["convert.charset"]),
        ("ALTER TABLE t DEFAULT CHARACTER SET latin1", vec!["alter.table.charset"]),
        ("ALTER TABLE t ADD SYSTEM VERSIONING", vec!["system.versioning"]),
        ("TRUNCATE t", vec!["truncate.table"]),
        ("TRUNCATE TABLE `shop`.`t`", vec!["truncate.table"]),
        ("DROP TABLE IF EXISTS t, other.x, u /* generated by server */", vec!["drop.table", "drop.table"]),
        ("DROP DATABASE IF EXISTS `shop`", vec!["drop.database"]),
        ("RENAME TABLE t TO _t_del, _t_gho TO t", vec!["rename.table", "rename.table"]),
        ("RENAME TABLE other.a TO shop.b, other.c TO other.d", vec!["rename.table"]),
        ("CREATE TABLE _t_gho LIKE t", vec!["create.table"]),
    ] {
        assert_eq!(tags(statement), expected, "{statement}");
    }
}

#[test]
fn dd_01_added_columns_keep_type_default_and_place() {
    let columns = added(
        "ALTER TABLE t ADD c INT NOT NULL DEFAULT 7 AFTER a, ADD COLUMN `D e` DECIMAL(10,2) UNSIGNED DEFAULT '1.50' \
         COMMENT 'it''s, 100%' FIRST, ADD INDEX (c), ADD COLUMN IF NOT EXISTS e ENUM('a(b)','c,d','it''s','') \
         CHARACTER SET latin1 COLLATE latin1_bin",
    );
    assert_eq!(columns.len(), 3);
    let [c, d, e] = columns.as_slice() else { unreachable!() };
    assert_eq!((c.column.name.as_str(), c.column.type_sql.as_str(), c.column.nullable), ("c", "int", false));
    assert_eq!(c.column.default, Some(ColumnDefault::Literal("7".into())));
    assert_eq!(c.place, ColumnPlace::After("a".into()));
    assert_eq!((d.column.name.as_str(), d.column.type_sql.as_str()), ("D e", "decimal(10,2) unsigned"));
    assert_eq!(d.column.default, Some(ColumnDefault::Literal("1.50".into())));
    assert_eq!(d.column.comment.as_deref(), Some("it's, 100%"));
    assert_eq!(d.place, ColumnPlace::First);
    assert_eq!(e.column.type_sql, "enum('a(b)','c,d','it''s','')");
    assert_eq!(
        (e.column.charset.as_deref(), e.column.collation.as_deref()),
        (Some("latin1"), Some("latin1_bin"))
    );
    assert!(e.if_not_exists && !c.if_not_exists);
}

#[test]
fn my_08_zerofill_without_unsigned() {
    assert_eq!(added("ALTER TABLE t ADD COLUMN z INT(6) ZEROFILL")[0].column.type_sql, "int(6) zerofill");
}

#[test]
fn dd_17_keywords_as_names() {
    let statement = "ALTER TABLE `order`.`group` ADD COLUMN `key` INT";
    let Some(Ddl::AddColumns { table, columns }) = run(statement).pop() else { panic!() };
    assert_eq!(table, TableId::new("order", "group"));
    assert_eq!(columns[0].column.name, "key");
}

#[test]
fn columns_in_all_their_spellings() {
    for (definition, type_sql, default) in [
        ("a DOUBLE PRECISION UNSIGNED DEFAULT -1.5e-3", "double precision unsigned", Some("-1.5e-3")),
        ("a NATIONAL VARCHAR(10)", "national varchar(10)", None),
        ("a CHARACTER VARYING(10) BINARY", "character varying(10)", None),
        ("a VARCHAR(36) DEFAULT (UUID())", "varchar(36)", Some("(UUID())")),
        (
            "a TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)",
            "timestamp(3)",
            Some("CURRENT_TIMESTAMP(3)"),
        ),
        ("a BIT(3) DEFAULT b'101'", "bit(3)", Some("b'101'")),
        ("a BOOL DEFAULT TRUE", "bool", Some("1")),
        ("a SET('x','y(z)','w') DEFAULT NULL", "set('x','y(z)','w')", None),
        ("a POINT NOT NULL SRID 4326", "point", None),
        ("a VECTOR(3)", "vector(3)", None),
        ("a INT AS (b + (c * 2)) STORED", "int", None),
        ("a INT GENERATED ALWAYS AS (JSON_EXTRACT(j, '$.a')) VIRTUAL INVISIBLE", "int", None),
        ("a INT REFERENCES x (y) ON DELETE SET NULL", "int", None),
        ("a TEXT COMPRESSED", "text", None),
        ("a INT CONSTRAINT c CHECK (a > 0) NOT ENFORCED", "int", None),
        ("a SERIAL", "bigint unsigned", None),
    ] {
        let columns = added(&format!("ALTER TABLE t ADD ({definition}, b2 INT)"));
        assert_eq!(columns.len(), 2, "{definition}");
        let column = &columns[0].column;
        assert_eq!(column.type_sql, type_sql, "{definition}");
        let text = column.default.as_ref().map(|d| match d {
            ColumnDefault::Literal(text) | ColumnDefault::Expression(text) => text.as_str(),
        });
        assert_eq!(text, default, "{definition}");
    }
}

#[test]
fn created_tables_have_columns_and_key() {
    let statement = "CREATE TABLE IF NOT EXISTS `t` (\n  `ID` bigint unsigned NOT NULL AUTO_INCREMENT,\n  \
        s varchar(10) COLLATE utf8mb4_bin DEFAULT 'a', PRIMARY KEY (`id`, s(5) DESC), KEY k (s), \
        CONSTRAINT fk FOREIGN KEY (s) REFERENCES u (x)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COMMENT='c' START TRANSACTION";
    let Some(Ddl::CreateTable(table)) = run(statement).pop() else { panic!() };
    assert!(table.if_not_exists);
    let TableShape::Columns { columns, primary_key, charset, comment, .. } = table.shape else { panic!() };
    assert_eq!(columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["ID", "s"]);
    assert_eq!(primary_key, ["ID", "s"]);
    assert!(columns[0].auto_increment && !columns[1].nullable);
    assert_eq!((charset.as_deref(), comment.as_deref()), (Some("utf8mb4"), Some("c")));
    for (statement, like) in [
        ("CREATE TABLE t LIKE u", true),
        ("CREATE TABLE t (LIKE shop.u)", true),
        ("CREATE TABLE t SELECT 1", false),
        ("CREATE TABLE t (a INT) AS SELECT 1 AS a", false),
    ] {
        let Some(Ddl::CreateTable(table)) = run(statement).pop() else { panic!("{statement}") };
        assert_eq!(table.shape == TableShape::Like(TableId::new("shop", "u")), like, "{statement}");
        assert_eq!(table.shape == TableShape::Select, !like, "{statement}");
    }
}

proptest! {
    #[test]
    fn no_statement_panics(
        head in proptest::sample::select(vec![
            "ALTER TABLE t ", "CREATE TABLE t ", "ALTER TABLE t ADD ", "DROP TABLE ", "RENAME TABLE ", "UPDATE ", "",
        ]),
        tail in "[a-z(),.`'\"0-9 ]{0,80}",
    ) {
        let _ = parse(&format!("{head}{tail}"), &context(), &captured);
    }
}
