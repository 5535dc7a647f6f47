//! Events of the binlog: a whole event with its header, whose type chooses the parser of the body, as the reader does.
#![no_main]

use std::sync::LazyLock;

use canalis_mysql::{
    Flavor,
    binlog::{
        compressed::{self, Payload, PayloadReader},
        ddl,
        event::{self, EventHeader, HEADER_LEN, QueryEvent, event_type as t},
        gtid::{Executed, Gtid, GtidSet},
        rows::{RowsKind, RowsVersion, parse_head},
        table_map,
    },
};
use libfuzzer_sys::fuzz_target;

/// Expanded bytes that one input may lead to; the caps themselves are too high for a fuzzer's memory.
const ENOUGH: usize = 1 << 20;

static NO_GTIDS: LazyLock<[Executed; 2]> = LazyLock::new(|| {
    [Flavor::MySql, Flavor::MariaDb].map(|flavor| Executed::parse(flavor, "").expect("none is a set"))
});

fuzz_target!(|data: &[u8]| {
    let _ = event::verified(data);
    let Ok(header) = EventHeader::parse(data) else { return };
    if header.kind == t::FORMAT_DESCRIPTION {
        let _ = event::parse_format(data);
    }
    content(&header, &data[HEADER_LEN..]);
});

fn content(header: &EventHeader, body: &[u8]) {
    match header.kind {
        t::ROTATE => {
            if let Ok((file, _)) = event::parse_rotate(body) {
                let _ = canalis_mysql::binlog::file_number(file);
            }
        }
        t::GTID | t::ANONYMOUS_GTID => gtid(event::parse_gtid(body).ok().and_then(|e| e.gtid)),
        t::GTID_TAGGED => gtid(event::parse_tagged_gtid(body).ok().and_then(|e| e.gtid)),
        t::MARIADB_GTID => gtid(event::parse_mariadb_gtid(body, header.server_id).ok().and_then(|e| e.gtid)),
        t::MARIADB_GTID_LIST => {
            if let Ok(list) = event::parse_gtid_list(body) {
                same_text(Flavor::MariaDb, &Executed::MariaDb(list));
            }
        }
        t::PREVIOUS_GTIDS => {
            if let Ok(set) = GtidSet::decode(body) {
                assert_eq!(GtidSet::decode(&set.encode()).expect("encoded sets decode"), set);
                same_text(Flavor::MySql, &Executed::MySql(set));
            }
        }
        t::QUERY => {
            if let Ok(query) = event::parse_query(body) {
                statement(&query, query.statement);
            }
        }
        t::EXECUTE_LOAD_QUERY => {
            if let Ok(query) = event::parse_execute_load(body) {
                statement(&query, query.statement);
            }
        }
        t::MARIADB_QUERY_COMPRESSED => {
            if let Ok(query) = event::parse_query(body) {
                let mut expanded = Vec::new();
                if compressed::event_part(query.statement, &mut expanded).is_ok() {
                    statement(&query, &expanded);
                }
            }
        }
        t::XA_PREPARE => {
            let _ = event::parse_xa_prepare(body);
        }
        t::TABLE_MAP => {
            for id_len in [4, 6] {
                let _ = table_map::table_id(body, id_len);
                let name = table_map::parse_name(body, id_len);
                if table_map::parse(body, id_len).is_ok() {
                    assert!(name.is_ok(), "the name is part of the whole");
                }
            }
        }
        t::TRANSACTION_PAYLOAD => payload(body),
        kind => rows(kind, body),
    }
}

fn gtid(gtid: Option<Gtid>) {
    let Some(gtid) = gtid else { return };
    for (flavor, none) in [Flavor::MySql, Flavor::MariaDb].into_iter().zip(NO_GTIDS.iter()) {
        let mut executed = none.clone();
        // The number 0 stands for an anonymous transaction, which the reader does not add.
        if !matches!(gtid, Gtid::MySql(_, 0)) {
            executed.add(&gtid);
        }
        same_text(flavor, &executed);
    }
}

/// Positions keep GTIDs as text, so the text must stand for the same set.
fn same_text(flavor: Flavor, executed: &Executed) {
    let text = executed.to_string();
    match Executed::parse(flavor, &text) {
        Ok(again) => assert_eq!(again, *executed, "{text}"),
        Err(error) => panic!("{text}: {error}"),
    }
}

fn statement(query: &QueryEvent<'_>, statement: &[u8]) {
    let Ok(text) = event::statement_text(statement, query.collation) else { return };
    let context = query.context();
    let _ = ddl::classify(&text, &context);
    let _ = ddl::parse(&text, &context, &|_| true);
}

fn payload(body: &[u8]) {
    let Ok(mut payload) = Payload::parse(body) else { return };
    let mut reader = PayloadReader::new().expect("the decoder can be made");
    reader.begin().expect("a new decoder can begin");
    let mut expanded = 0;
    while expanded < ENOUGH
        && let Ok(Some(event)) = reader.next(&mut payload)
    {
        expanded += event.len();
        let header = EventHeader::parse(event).expect("an event in a payload has a header");
        assert_eq!(header.len(), event.len());
        if header.kind != t::TRANSACTION_PAYLOAD {
            content(&header, &event[HEADER_LEN..]);
        }
    }
}

fn rows(kind: u8, body: &[u8]) {
    use RowsKind::{Delete, Insert, Update};
    use RowsVersion::{V1, V2};
    let (kind, version, is_compressed) = match kind {
        t::WRITE_ROWS_V1 => (Insert, V1, false),
        t::UPDATE_ROWS_V1 => (Update, V1, false),
        t::DELETE_ROWS_V1 => (Delete, V1, false),
        t::WRITE_ROWS_V2 => (Insert, V2, false),
        t::UPDATE_ROWS_V2 => (Update, V2, false),
        t::DELETE_ROWS_V2 => (Delete, V2, false),
        t::MARIADB_WRITE_ROWS_COMPRESSED_V1 => (Insert, V1, true),
        t::MARIADB_UPDATE_ROWS_COMPRESSED_V1 => (Update, V1, true),
        t::MARIADB_DELETE_ROWS_COMPRESSED_V1 => (Delete, V1, true),
        _ => return,
    };
    for id_len in [4, 6] {
        if let Ok(head) = parse_head(kind, version, body, id_len)
            && is_compressed
        {
            let _ = compressed::event_part(head.rows, &mut Vec::new());
        }
    }
}
