//! Multi-byte character sets, character by character, against the servers' own tables.

use canalis_mysql::charset::Charset;
use canalis_testkit::{Server, mariadb, mysql};
use mysql_async::{Row, Value, prelude::Queryable};

/// What the server makes of codes; `None` where the set has no such character.
async fn ask(server: &Server, set: &str, codes: &[Vec<u8>]) -> Vec<Option<String>> {
    let mut conn = server.mysql().await;
    let mut found = Vec::new();
    for chunk in codes.chunks(400) {
        let columns: Vec<String> = chunk
            .iter()
            .map(|code| {
                let hex: String = code.iter().map(|byte| format!("{byte:02X}")).collect();
                format!("CONVERT(CONVERT(X'{hex}' USING {set}) USING utf8mb4)")
            })
            .collect();
        let row: Row = conn.query_first(format!("SELECT {}", columns.join(", "))).await.unwrap().unwrap();
        for value in row.unwrap() {
            found.push(match value {
                Value::Bytes(bytes) => Some(String::from_utf8(bytes).unwrap())
                    .filter(|text| !text.is_empty() && !text.contains('?')),
                _ => None,
            });
        }
    }
    found
}

/// All codes of a set but the ASCII ones.
fn codes(set: &str) -> Vec<Vec<u8>> {
    let mut codes: Vec<Vec<u8>> = (0x80..=0xff).map(|byte| vec![byte]).collect();
    for lead in 0x81..=0xfe {
        for trail in 0x40..=0xfe {
            codes.push(vec![lead, trail]);
            if matches!(set, "ujis" | "eucjpms") && lead >= 0xa1 && trail >= 0xa1 {
                codes.push(vec![0x8f, lead, trail]);
            }
        }
    }
    codes
}

async fn compare(server: &Server, sets: &[&str]) {
    let mut differences = Vec::new();
    for set in sets {
        let charset = Charset::load(&mut server.mysql().await, set).await.unwrap();
        let codes = codes(set);
        let theirs = ask(server, set, &codes).await;
        assert!(theirs.iter().flatten().count() > 5000, "{set}");
        for (code, theirs) in codes.iter().zip(theirs) {
            let mut ours = String::new();
            let decoded = charset.append(code, &mut ours);
            // What the set does not have can stand in no column.
            if let Some(theirs) = theirs
                && (decoded.is_err() || ours != theirs)
            {
                differences
                    .push(format!("{set} {code:02x?}: {ours:?} instead of {}", theirs.escape_unicode()));
            }
        }
    }
    assert!(differences.is_empty(), "{}\n{}", differences.len(), differences.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn multi_byte_sets_equal_those_of_mariadb() {
    let Some(server) = mariadb() else { return };
    compare(server, &["gbk", "gb2312", "big5", "sjis", "cp932", "ujis", "eucjpms", "euckr"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn multi_byte_sets_equal_those_of_mysql() {
    let Some(server) = mysql() else { return };
    compare(server, &["gbk", "gb2312", "gb18030", "big5", "sjis", "cp932", "ujis", "eucjpms", "euckr"]).await;
}
