//! Owns the data: sysbench's `sbtest1`, and the change load on it.

use std::fmt::Write;

use anyhow::Result;
use mysql_async::{Conn, prelude::Queryable};
use rand::{Rng, SeedableRng, rngs::StdRng};

/// Whether the key numbers itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbering {
    /// AUTO_INCREMENT, as sysbench makes it.
    Auto,
    /// Plain.
    Plain,
}

/// Makes `sbtest1` in `database` and fills it with `rows` rows, keys 1 to `rows`.
pub async fn fill(conn: &mut Conn, database: &str, rows: u64, numbering: Numbering) -> Result<()> {
    // The sequence tables of MariaDB want a current database.
    conn.query_drop(format!("USE {database}")).await?;
    let auto = if numbering == Numbering::Auto { " AUTO_INCREMENT" } else { "" };
    conn.query_drop(format!(
        "CREATE TABLE {database}.sbtest1 (id INT NOT NULL{auto}, k INT NOT NULL DEFAULT 0, \
         c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id), KEY k_1 (k)) \
         DEFAULT CHARSET=latin1"
    ))
    .await?;
    let digits = |groups: usize| {
        let group = "LPAD(FLOOR(RAND()*100000000000), 11, '0')";
        format!("CONCAT_WS('-', {})", vec![group; groups].join(", "))
    };
    const STEP: u64 = 500_000;
    let mut from = 1;
    while from <= rows {
        let to = (from + STEP - 1).min(rows);
        conn.query_drop(format!(
            "INSERT INTO {database}.sbtest1 SELECT seq, FLOOR(1 + RAND() * {rows}), {}, {} FROM seq_{from}_to_{to}",
            digits(10),
            digits(5)
        ))
        .await?;
        from = to + 1;
    }
    Ok(())
}

/// Runs `changes` row changes on `sbtest1` with keys 1 to `rows`: 60 % updates of the indexed number, 25 % of the
/// text, 15 % delete and insert again; ranges of 20 rows, two statements a transaction. A delete and its insert count
/// as one change each of their rows, as in the published figures.
pub async fn change(conn: &mut Conn, database: &str, rows: u64, changes: u64) -> Result<()> {
    const RANGE: u64 = 20;
    let mut random = StdRng::seed_from_u64(7);
    let mut done = 0;
    conn.query_drop(format!("USE {database}")).await?;
    while done < changes {
        let mut text = String::from("BEGIN;");
        for _ in 0..2 {
            let from = random.random_range(1..=rows - RANGE);
            let to = from + RANGE - 1;
            let dice = random.random_range(0..100);
            if dice < 60 {
                write!(text, "UPDATE sbtest1 SET k = k + 1 WHERE id BETWEEN {from} AND {to};")?;
            } else if dice < 85 {
                let c: u64 = random.random();
                write!(
                    text,
                    "UPDATE sbtest1 SET c = CONCAT('{c:020}', RIGHT(c, 99)) WHERE id BETWEEN {from} AND {to};"
                )?;
            } else {
                write!(
                    text,
                    "CREATE TEMPORARY TABLE IF NOT EXISTS again LIKE sbtest1; DELETE FROM again; \
                     INSERT INTO again SELECT * FROM sbtest1 WHERE id BETWEEN {from} AND {to}; \
                     DELETE FROM sbtest1 WHERE id BETWEEN {from} AND {to}; INSERT INTO sbtest1 SELECT * FROM again;"
                )?;
                done += RANGE;
            }
            done += RANGE;
        }
        text.push_str("COMMIT");
        conn.query_drop(text).await?;
    }
    Ok(())
}
