//! The ten valid files of the specification: each is accepted, or refused for exactly the parts that are not built.
//! And the files of our own reference: each is accepted without a warning.

use crate::harness::{check, plan};

#[test]
fn v1_whole_database_without_a_pipeline_block() {
    check(
        "source: {type: mysql, hostname: db1, port: 3306, username: cdc, password: \"0123\", tables: 'shop.\\.*', server-id: 5401-5404, server-time-zone: UTC}\n\
         sink: {type: values, print.enabled: true}\n",
        "2:8: CNL-1003 the sink type `values` is not supported yet (use `print` to see rows or `blackhole` to drop them)",
    );
    let plan = plan(
        "source: {type: mysql, hostname: db1, port: 3306, username: cdc, password: \"0123\", tables: 'shop.\\.*', server-id: 5401-5404, server-time-zone: UTC}\n\
         sink: {type: print, name: screen}\n",
    );
    assert_eq!(plan.source.options.text("password"), Some("0123"));
    assert_eq!(plan.sink.name.as_deref(), Some("screen"));
}

#[test]
fn v2_sharded_merge_with_its_origin() {
    check(
        "source: {type: mysql, hostname: db1, username: cdc, password: \"x\", tables: 'sales_\\d+.orders_\\d+'}\n\
         sink: {type: doris, fenodes: \"fe:8030\", username: root, password: \"\", table.create.properties.replication_num: 1}\n\
         transform:\n  \
           - source-table: sales_\\d+.orders_\\d+\n    \
             projection: \\*, __schema_name__ AS src_db, __table_name__ AS src_table\n\
         route:\n  \
           - {source-table: 'sales_\\d+.orders_\\d+', sink-table: dw.orders, description: merge shards}\n\
         pipeline: {name: merge, parallelism: 2, schema.change.behavior: lenient}\n",
        "2:8: CNL-1003 the sink type `doris` is not supported yet (there are `files`, `mysql`, `postgres`, `print`, `sqlite`)
         8:41: CNL-1003 `schema.change.behavior: lenient` is not supported yet (there are `exception` and `evolve`)",
    );
}

#[test]
fn v3_functions_and_a_filter() {
    let text = "source: {type: mysql, hostname: h, username: u, password: p, tables: crm.customer}\n\
        sink: {type: print}\n\
        transform:\n  \
          - source-table: crm.customer\n    \
            projection: id, UPPER(COALESCE(city, 'n/a')) AS city_u, CAST(score AS DECIMAL(12, 2)) AS score, DATE_FORMAT(created, 'yyyy-MM-dd') AS day\n    \
            filter: city_u <> 'TEST' AND id > 10\n    \
            primary-keys: id\n    \
            table-options: comment=customers|x=a,b\n    \
            table-options.delimiter: \"|\"\n";
    let plan = plan(text);
    let rule = &plan.transforms[0];
    assert_eq!(rule.filter.as_deref(), Some("city_u <> 'TEST' AND id > 10"));
    assert_eq!(rule.primary_keys, ["id"]);
    assert_eq!(rule.table_options["x"], "a,b");
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
}

#[test]
fn v4_exclude_and_a_literal_dollar() {
    check(
        "source:\n  type: mysql\n  hostname: h\n  username: u\n  password: p\n  \
           tables: app.\\.*, log.event\\$\\d+\n  \
           tables.exclude: app.tmp_\\.*, app.(audit|session)\n  \
           scan.incremental.snapshot.chunk.key-column: 'log.event\\$\\d+:ts;app.heap_\\.*:id'\n\
         sink: {type: kafka, properties.bootstrap.servers: \"k:9092\", partition.strategy: hash-by-key, value.format: canal-json}\n",
        "9:8: CNL-1003 the sink type `kafka` is not supported yet (there are `files`, `mysql`, `postgres`, `print`, `sqlite`)",
    );
}

#[test]
fn v5_evolve_without_deletions_downstream() {
    let text = "source: {type: mysql, hostname: h, username: u, password: p, tables: a.b}\n\
        sink:\n  {type: SINK,\n  include.schema.changes: [column, table], exclude.schema.changes: [drop, truncate.table]}\n\
        pipeline: {schema.change.behavior: EVOLVE, schema-operator.rpc-timeout: 1 h}\n";
    check(
        &text.replace("SINK", "paimon"),
        "3:4: CNL-1003 the sink type `paimon` is not supported yet (there are `files`, `mysql`, `postgres`, `print`, `sqlite`)",
    );
    let plan = plan(&text.replace("SINK", "print"));
    let accepted: Vec<&str> = plan.schema_changes.accepted.iter().map(String::as_str).collect();
    assert_eq!(
        accepted,
        ["add.column", "alter.column.type", "alter.table.comment", "create.table", "rename.column"]
    );
    assert_eq!(plan.runtime.schema_change_timeout.as_secs(), 3600);
}

#[test]
fn v6_metadata_columns_and_soft_delete() {
    let plan = plan(
        "source: {type: mysql, hostname: h, username: u, password: p, tables: 'a.\\.*', metadata.list: op_ts}\n\
         sink: {type: print}\n\
         transform:\n  \
           - source-table: \\.*.\\.*\n    \
             projection: \"*, __data_event_type__ AS op, op_ts AS changed_at\"\n    \
             converter-after-transform: SOFT_DELETE\n",
    );
    assert!(plan.transforms[0].soft_delete);
    assert_eq!(plan.transform_options.metadata, ["op_ts"]);
}

#[test]
fn v7_specific_offset_by_gtid() {
    let plan = plan(
        "source: {type: mysql, hostname: h, username: u, password: p, tables: a.b, scan.startup.mode: specific-offset, scan.startup.specific-offset.gtid-set: \"24da1670-c0de:1-77\", use.legacy.json.format: false, treat-tinyint1-as-boolean.enabled: false}\n\
         sink: {type: print}\n",
    );
    assert_eq!(plan.source.options.text("scan.startup.specific-offset.gtid-set"), Some("24da1670-c0de:1-77"));
}

#[test]
fn v8_bounded_snapshot_in_batch_mode() {
    let plan = plan(
        "source: {type: mysql, hostname: h, username: u, password: p, tables: a.b, scan.startup.mode: snapshot}\n\
         sink: {type: print}\n\
         pipeline: {execution.runtime-mode: BATCH, local-time-zone: Europe/Paris}\n",
    );
    assert_eq!(plan.transform_options.time_zone.as_deref(), Some("Europe/Paris"));
}

#[test]
fn v9_ordered_routes_with_groups_and_a_symbol() {
    let plan = plan(
        "source: {type: mysql, hostname: h, username: u, password: p, tables: 'db_\\d+.\\.*'}\n\
         sink: {type: print}\n\
         route:\n  \
           - {source-table: 'db_(\\d+).(\\.*)_tbl', sink-table: ods_$1.t_$2}\n  \
           - {source-table: 'db_\\d+.\\.*', sink-table: ods.<>, replace-symbol: <>}\n\
         pipeline: {route-mode: FIRST_MATCH}\n",
    );
    assert_eq!(plan.routes[0].sink_table, "ods_$1.t_$2");
    assert_eq!(plan.routes[1].replace_symbol.as_deref(), Some("<>"));
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
}

#[test]
fn v10_postgres_with_functions_and_a_model() {
    check(
        "source: {type: postgres, hostname: h, username: u, password: p, tables: 'crm.public.\\.*', slot.name: cdc_1, decoding.plugin.name: pgoutput, scan.startup.mode: committed-offset, debezium.decimal.handling.mode: string}\n\
         sink: {type: elasticsearch, hosts: \"http://es:9200\", version: 8}\n\
         transform:\n  \
           - {source-table: public.note, projection: 'id, mask(body) AS body, chat(body) AS gist'}\n\
         pipeline:\n  \
           user-defined-function: [{name: mask, classpath: com.example.Mask, options: {keep: 4}}]\n  \
           model: {model-name: chat, class-name: OpenAIChatModel, openai.model: m, openai.host: \"http://ai\", openai.apikey: k}\n",
        "1:10: CNL-1003 the source type `postgres` is not supported yet (there are `files`, `mysql`)
         2:8: CNL-1003 the sink type `elasticsearch` is not supported yet (there are `files`, `mysql`, `postgres`, `print`, `sqlite`)
         6:3: CNL-1003 user-defined functions are not supported yet (the built-in functions are listed in the reference of transforms)
         7:3: CNL-1003 models are not supported yet",
    );
}

#[test]
fn files_of_the_reference_are_accepted() {
    let reference = include_str!("../../../../docs/pipeline.md");
    let mut count = 0;
    for block in reference.split("```").skip(1).step_by(2) {
        if let Some(text) = block.strip_prefix("yaml\n").or_else(|| block.strip_prefix("json\n")) {
            assert!(plan(text).warnings.is_empty(), "{text}");
            count += 1;
        }
    }
    assert_eq!(count, 4);
}
