//! Owns what the documents promise for each column of [`columns`](super::columns) in PostgreSQL and SQLite, and asks
//! the source for its values in the promised form.

use std::collections::BTreeMap;

use canalis_testkit::ServerKind;
use mysql_async::{Conn, Value, prelude::Queryable};

use self::Form::*;

/// How a column's values look at the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A whole number.
    Number,
    /// A decimal with all its places.
    Decimal,
    /// A single-precision number.
    Single,
    /// A double-precision number.
    Double,
    /// So many bits.
    Bits(u8),
    /// A calendar day.
    Day,
    /// Wall clock.
    Local,
    /// An instant.
    Instant,
    /// A signed duration without fraction.
    Seconds,
    /// A signed duration with microseconds.
    Micros,
    /// Text, by its UTF-8 bytes.
    Text,
    /// Bytes.
    Bytes,
    /// A geometry without reference system.
    Plane,
    /// A geometry of SRID 4326.
    Earth,
}

/// Column, form, type in PostgreSQL (`docs/types-postgres.md` over `docs/types-mysql.md`), type in SQLite
/// (`docs/types-sqlite.md`).
pub type Promise = (&'static str, Form, &'static str, &'static str);

const PROMISES: &[Promise] = &[
    ("id", Number, "integer", "INTEGER"),
    ("c_tiny", Number, "smallint", "INTEGER"),
    ("c_tiny_u", Number, "smallint", "INTEGER"),
    ("c_bool", Number, "smallint", "INTEGER"),
    ("c_small", Number, "smallint", "INTEGER"),
    ("c_small_u", Number, "integer", "INTEGER"),
    ("c_medium", Number, "integer", "INTEGER"),
    ("c_medium_u", Number, "bigint", "INTEGER"),
    ("c_int", Number, "integer", "INTEGER"),
    ("c_int_u", Number, "bigint", "INTEGER"),
    ("c_zerofill", Number, "bigint", "INTEGER"),
    ("c_big", Number, "bigint", "INTEGER"),
    ("c_big_u", Number, "numeric(20,0)", "ANY"),
    ("c_dec65", Decimal, "numeric(65,30)", "TEXT"),
    ("c_dec_u", Decimal, "numeric(10,2)", "TEXT"),
    ("c_dec0", Decimal, "numeric(38,0)", "TEXT"),
    ("c_float", Single, "real", "REAL"),
    ("c_float_md", Single, "real", "REAL"),
    ("c_double", Double, "double precision", "REAL"),
    ("c_double_md", Double, "double precision", "REAL"),
    ("c_real", Double, "double precision", "REAL"),
    ("c_bit1", Bits(1), "bit(1)", "INTEGER"),
    ("c_bit8", Bits(8), "bit(8)", "INTEGER"),
    ("c_bit64", Bits(64), "bit(64)", "ANY"),
    ("c_date", Day, "date", "TEXT"),
    ("c_datetime", Local, "timestamp(0) without time zone", "TEXT"),
    ("c_datetime6", Local, "timestamp(6) without time zone", "TEXT"),
    ("c_ts", Instant, "timestamp(0) with time zone", "TEXT"),
    ("c_ts3", Instant, "timestamp(3) with time zone", "TEXT"),
    ("c_ts6", Instant, "timestamp(6) with time zone", "TEXT"),
    ("c_time", Seconds, "interval(0)", "TEXT"),
    ("c_time6", Micros, "interval(6)", "TEXT"),
    ("c_year", Number, "smallint", "INTEGER"),
    ("c_char", Text, "character varying(10)", "TEXT"),
    ("c_varchar", Text, "character varying(200)", "TEXT"),
    ("c_latin", Text, "character varying(50)", "TEXT"),
    ("c_gbk", Text, "character varying(50)", "TEXT"),
    ("c_sjis", Text, "character varying(50)", "TEXT"),
    ("c_cp850", Text, "character varying(50)", "TEXT"),
    ("c_utf16", Text, "character varying(50)", "TEXT"),
    ("c_binary", Bytes, "bytea", "BLOB"),
    ("c_varbinary", Bytes, "bytea", "BLOB"),
    ("c_tinytext", Text, "text", "TEXT"),
    ("c_text", Text, "text", "TEXT"),
    ("c_mediumtext", Text, "text", "TEXT"),
    ("c_longtext", Text, "text", "TEXT"),
    ("c_tinyblob", Bytes, "bytea", "BLOB"),
    ("c_blob", Bytes, "bytea", "BLOB"),
    ("c_mediumblob", Bytes, "bytea", "BLOB"),
    ("c_longblob", Bytes, "bytea", "BLOB"),
    ("c_enum", Text, "text", "TEXT"),
    ("c_set", Text, "text", "TEXT"),
    ("c_geometry", Plane, "bytea", "BLOB"),
    ("c_point", Plane, "bytea", "BLOB"),
    ("c_line", Plane, "bytea", "BLOB"),
    ("c_polygon", Plane, "bytea", "BLOB"),
    ("c_points", Plane, "bytea", "BLOB"),
    ("c_lines", Plane, "bytea", "BLOB"),
    ("c_polygons", Plane, "bytea", "BLOB"),
    ("c_collection", Plane, "bytea", "BLOB"),
    ("c_invisible", Number, "integer", "INTEGER"),
    ("c_virtual", Number, "integer", "INTEGER"),
    ("c_stored", Number, "integer", "INTEGER"),
];

const OF_MARIADB: &[Promise] = &[
    // There JSON is another name for LONGTEXT.
    ("c_json", Text, "text", "TEXT"),
    ("c_inet6", Text, "character varying(39)", "TEXT"),
    ("c_inet4", Text, "character varying(15)", "TEXT"),
    ("c_uuid", Text, "uuid", "TEXT"),
    ("c_compressed", Text, "character varying(2000)", "TEXT"),
    ("c_text_compressed", Text, "text", "TEXT"),
    ("c_blob_compressed", Bytes, "bytea", "BLOB"),
];

const OF_MYSQL: &[Promise] = &[
    ("c_json", Text, "json", "TEXT"),
    ("c_vector", Bytes, "bytea", "BLOB"),
    ("c_srid", Earth, "bytea", "BLOB"),
];

/// Every column of the table on a source of this kind.
pub fn promises(kind: ServerKind) -> Vec<Promise> {
    let own = if kind == ServerKind::MariaDb { OF_MARIADB } else { OF_MYSQL };
    PROMISES.iter().chain(own).copied().collect()
}

/// Texts of the cells by column, each with the id of its row, in the order of ids.
pub type Cells = BTreeMap<&'static str, Vec<(i64, Option<String>)>>;

/// Asks the source for every column in the form `expression` makes of it.
///
/// The server itself brings the values into that form; floating-point numbers come as they are and are
/// brought into it by `single` and [`bits`].
pub async fn expected(
    conn: &mut Conn,
    kind: ServerKind,
    database: &str,
    expression: fn(&str, Form, ServerKind) -> String,
    single: fn(f32) -> String,
    double: fn(f64) -> String,
) -> Cells {
    let mut cells = Cells::new();
    for (column, form, ..) in promises(kind) {
        let list = match form {
            Single | Double => column.to_owned(),
            _ => expression(column, form, kind),
        };
        let query = format!("SELECT id, {list} FROM {database}.everything ORDER BY id");
        // A prepared statement sends numbers as they are stored.
        let rows: Vec<(i64, Value)> = conn.exec(&query, ()).await.unwrap_or_else(|e| panic!("{query}: {e}"));
        let text = |value| match value {
            Value::NULL => None,
            Value::Bytes(bytes) => Some(String::from_utf8(bytes).unwrap()),
            Value::Float(number) => Some(single(number)),
            Value::Double(number) => Some(double(number)),
            other => panic!("{column} came as {other:?}"),
        };
        cells.insert(column, rows.into_iter().map(|(id, value)| (id, text(value))).collect());
    }
    cells
}

/// A double by its bits, so that no digit and no sign is lost in the comparison.
pub fn bits(number: f64) -> String {
    format!("{number:e} {:016x}", number.to_bits())
}

/// Fails with every cell that differs.
pub fn compare(got: &Cells, expected: &Cells) {
    let mut differing = Vec::new();
    for (column, cells) in expected {
        let found = got.get(column).map_or(&[][..], Vec::as_slice);
        if found.len() != cells.len() {
            differing.push(format!("{column} has {} rows, not {}", found.len(), cells.len()));
            continue;
        }
        for ((id, is), (wanted_id, wanted)) in found.iter().zip(cells) {
            if (id, is) != (wanted_id, wanted) {
                let short =
                    |cell: &Option<String>| cell.as_ref().map(|c| c.chars().take(120).collect::<String>());
                differing.push(format!("{column} of {id}: {:?}, promised {:?}", short(is), short(wanted)));
            }
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
