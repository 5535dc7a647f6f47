//! The invalid fragments of the specification, and what else is refused at the top level and in `source` and `sink`.

use crate::harness::{check, file};

#[test]
fn x1_unknown_top_level_keys() {
    check(
        &file("", "", "parallelism: 2\nroutes: []\nmodel: {}\nfoo: 1\n"),
        "3:1: CNL-1002 a pipeline definition has no top-level key `parallelism` (it belongs under `pipeline`)
         4:1: CNL-1002 a pipeline definition has no top-level key `routes` (did you mean `route`?)
         5:1: CNL-1002 a pipeline definition has no top-level key `model` (it belongs under `pipeline`)
         6:1: CNL-1002 a pipeline definition has no top-level key `foo` (there are `source`, `sink`, `transform`, `route` and `pipeline`)",
    );
}

#[test]
fn x2_no_sink() {
    check(
        "# nothing else\nsource: {type: mysql, hostname: h, username: u, password: p, tables: a.b}\n",
        "2:1: CNL-1002 the block `sink` is missing",
    );
}

#[test]
fn x3_a_mapping_where_a_list_is_wanted() {
    check(
        &file("", "", "route:\n  source-table: a.b\n  sink-table: c.d\ntransform:\n"),
        "3:1: CNL-1002 `route` must be a list, here it is a mapping (write `route:` and below it `- source-table: …`)
         6:1: CNL-1002 `transform` must be a list, here it is nothing (write `transform:` and below it `- source-table: …`)",
    );
}

#[test]
fn x4_unknown_key_in_a_transform() {
    check(
        &file("", "", "transform: [{source-table: a.b, projections: id}]\n"),
        "3:33: CNL-1002 a `transform` entry has no key `projections` (did you mean `projection`?)",
    );
}

#[test]
fn x5_an_empty_pipeline_block() {
    check(
        &file("", "", "pipeline:\n"),
        "3:1: CNL-1002 `pipeline` must be a mapping of keys and values, here it is nothing",
    );
}

#[test]
fn x6_an_unknown_option_and_a_missing_one() {
    check(
        "source:\n  type: mysql\n  host: h\n  username: u\n  password: p\n  tables: a.b\nsink: {type: print}\n",
        "1:1: CNL-1002 `mysql` needs the option `hostname`
         3:3: CNL-1002 the `mysql` source has no option `host` (did you mean `hostname`?)",
    );
}

#[test]
fn x7_a_list_or_mapping_as_a_value() {
    check(
        "source:\n  type: mysql\n  hostname: h\n  username: u\n  password: [p]\n  tables: [a.b, c.d]\n  \
         jdbc: {properties: {useSSL: false}}\nsink: {type: print}\n",
        "5:3: CNL-1002 `password` takes a single value, here it is a list (write one text, items separated by commas)
         6:3: CNL-1002 `tables` takes a single value, here it is a list (write one text: `a.b, c.d`)
         7:3: CNL-1002 `jdbc` takes a single value, here it is a mapping (keys are not nested: write `jdbc.properties.useSSL: …`)",
    );
}

#[test]
fn x8_a_star_that_is_no_regular_expression() {
    let text = "source:\n  type: mysql\n  hostname: h\n  username: u\n  password: p\n  tables: app_db.*\nsink: {type: print}\n";
    let problems = crate::harness::parse(text).unwrap_err();
    assert_eq!((problems.len(), problems[0].line, problems[0].column), (1, 6, 3));
    assert!(problems[0].message.contains(r"app_db.\.*"), "{}", problems[0]);
}

#[test]
fn x9_unknown_schema_change_tags() {
    check(
        &file("", ", exclude.schema.changes: [drop.colum, ADD, x], include.schema.changes: add.column", ""),
        "2:46: CNL-1002 there is no schema change `drop.colum` (did you mean `drop.column`?)
         2:58: CNL-1002 there is no schema change `ADD` (did you mean `add`?)
         2:63: CNL-1002 there is no schema change `x` (one of create.table, add.column, alter.column.type, drop.column, rename.column, drop.table, truncate.table, alter.table.comment, all, table, column, add, alter, create, drop, rename)
         2:67: CNL-1002 `include.schema.changes` must be a list, here it is a single value (write `include.schema.changes: [add.column]`)",
    );
}

#[test]
fn x10_options_that_exclude_each_other() {
    check(
        &file(", scan.newly-added-table.enabled: true, scan.binlog.newly-added-table.enabled: true", "", ""),
        "1:113: CNL-1002 the two newly-added options exclude each other",
    );
}

#[test]
fn more_values_that_are_refused() {
    check(
        &file(", connect.timeout: 1m 30s", "", ""),
        "1:75: CNL-1002 `connect.timeout`: `1m 30s` is not a duration: write a whole number and one unit, for example `30s`",
    );
    check(
        &file(", scan.startup.mode: specific-offset", "", ""),
        "1:75: CNL-1002 `specific-offset` needs a position",
    );
    check(
        &file("", "", "pipeline:\n  schema.change.behavior: strict\n  local-time-zone: UTC+8\n"),
        "4:3: CNL-1002 `schema.change.behavior` must be one of exception, evolve, try_evolve, lenient, ignore
         5:3: CNL-1002 `UTC+8` is not a time zone (a fixed offset is written `GMT+08:00`)",
    );
}

#[test]
fn an_expression_without_a_name_is_refused_at_its_key() {
    let text = file("", "", "transform:\n  - source-table: a.b\n    projection: id, UPPER(n)\n");
    let problems = crate::harness::parse(&text).unwrap_err();
    assert_eq!((problems.len(), problems[0].line, problems[0].column), (1, 5, 5), "{problems:?}");
    assert_eq!(problems[0].code, canalis_types::Code::ExpressionInvalid);
    assert_eq!(problems[0].path, "/transform/0/projection");
}

#[test]
fn types_are_known_unknown_or_to_come() {
    check(
        "source: {type: mysqll, hostname: h}\nsink: {type: oracle}\n",
        "1:10: CNL-1002 there is no source type `mysqll` (did you mean `mysql`? source types are `files`, `mysql`)
         2:8: CNL-1002 there is no sink type `oracle` (sink types are `files`, `mysql`, `postgres`, `print`, `sqlite`)",
    );
    check(
        "source: {type: print}\nsink: {name: x}\n",
        "1:10: CNL-1002 `print` cannot be used as a source (source types are `files`, `mysql`)
         2:1: CNL-1002 `sink` needs `type` (one of `files`, `mysql`, `postgres`, `print`, `sqlite`)",
    );
    check(
        "source: {type: values}\nsink: {type: [print]}\n",
        "1:10: CNL-1003 the source type `values` is not supported yet (use `datagen` for generated rows)
         2:8: CNL-1002 `type` takes a single value, here it is a list (write one text, items separated by commas)",
    );
}

#[test]
fn options_are_screened_by_their_declaration() {
    check(
        &file(
            ", scan.parse.online.schema.changes.enabled: true, debezium.snapshot.mode: never, database: d, table-name: t, include.schema.changes: [add]",
            ", tables: a.b, sink.buffer-flush.max-rows: 1",
            "",
        ),
        "1:75: CNL-1003 `scan.parse.online.schema.changes.enabled` is not supported yet: shadow tables are not followed
         1:123: CNL-1003 `debezium.snapshot.mode` is not supported yet: options under `debezium.`: there is no Debezium inside
         1:154: CNL-1002 the `mysql` source has no option `database` (it is an option of the `mysql` sink)
         1:167: CNL-1002 the `mysql` source has no option `table-name` (tables are chosen by `tables`, for example `tables: app_db.\\.*`)
         1:182: CNL-1002 `source` has no option `include.schema.changes` (it belongs under `sink`)
         2:21: CNL-1002 the `print` sink has no option `tables`
         2:34: CNL-1002 the `print` sink has no option `sink.buffer-flush.max-rows` (it belongs under `pipeline`)",
    );
}

#[test]
fn an_option_under_two_names_is_refused() {
    check(
        &file(
            ", split-key.even-distribution.factor.upper-bound: 2, chunk-key.even-distribution.factor.upper-bound: 3",
            "",
            "",
        ),
        "1:126: CNL-1002 `chunk-key.even-distribution.factor.upper-bound` and `split-key.even-distribution.factor.upper-bound` are two names of the same option",
    );
}

#[test]
fn blocks_of_the_wrong_kind_are_named() {
    check(
        "source:\nsink: print\npipeline: []\n",
        "1:1: CNL-1002 `source` must be a mapping of keys and values, here it is nothing
         2:1: CNL-1002 `sink` must be a mapping of keys and values, here it is a single value
         3:1: CNL-1002 `pipeline` must be a mapping of keys and values, here it is a list",
    );
    check(
        "just text",
        "1:1: CNL-1002 a pipeline definition must be a mapping of keys and values, here it is a single value",
    );
    check(
        "",
        "1:1: CNL-1002 the block `source` is missing
         1:1: CNL-1002 the block `sink` is missing",
    );
}

#[test]
fn paths_are_json_pointers() {
    let problems =
        crate::harness::parse("source: {type: mysql, a/b~c: 1}\nsink: {type: print}\n").unwrap_err();
    let paths: Vec<&str> = problems.iter().map(|p| p.path.as_str()).collect();
    assert_eq!(
        paths,
        ["/source/hostname", "/source/username", "/source/password", "/source/tables", "/source/a~1b~0c"]
    );
    let json = serde_json::to_value(&problems[0]).unwrap();
    assert_eq!(json["code"], "CNL-1002");
    assert!(json.get("hint").is_none());
}
