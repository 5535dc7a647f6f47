-- What Flink makes of messages that we wrote (${OURS}), and what it writes of the same changes (${FLINK}).

-- Files are committed with checkpoints.
SET 'execution.checkpointing.interval' = '1 s';

SET 'table.local-time-zone' = 'UTC';

-- Ours, read by Flink. Formats of changes do not say the type of a value as SQL does, so some columns are converted.
CREATE TEMPORARY TABLE ours_canal (
    id BIGINT, n INT, amount DECIMAL(20, 4), name STRING, d DATE, ts TIMESTAMP(3), ratio DOUBLE, ok TINYINT
) WITH ('connector' = 'filesystem', 'path' = '${OURS}/canal.json', 'format' = 'canal-json');

MATERIALIZE '${OUT}/canal.tsv' AS
SELECT CAST(id AS STRING) id, CAST(n AS STRING) n, CAST(amount AS STRING) amount, name, CAST(d AS STRING) d, CAST(ts AS STRING) ts,
    CAST(ratio AS STRING) ratio, LOWER(CAST(CAST(ok AS BOOLEAN) AS STRING)) ok
FROM ours_canal;

CREATE TEMPORARY TABLE ours_debezium (
    id BIGINT, n INT, amount DECIMAL(20, 4), name STRING, d INT, ts BIGINT, ratio DOUBLE, ok BOOLEAN
) WITH ('connector' = 'filesystem', 'path' = '${OURS}/debezium.json', 'format' = 'debezium-json');

MATERIALIZE '${OUT}/debezium.tsv' AS
SELECT CAST(id AS STRING) id, CAST(n AS STRING) n, CAST(amount AS STRING) amount, name,
    CAST(TIMESTAMPADD(DAY, d, DATE '1970-01-01') AS STRING) d,
    CAST(CAST(TO_TIMESTAMP_LTZ(ts, 3) AS TIMESTAMP(3)) AS STRING) ts,
    CAST(ratio AS STRING) ratio, LOWER(CAST(ok AS STRING)) ok
FROM ours_debezium;

CREATE TEMPORARY TABLE ours_debezium_schema (
    id BIGINT, n INT, amount DECIMAL(20, 4), name STRING, d INT, ts BIGINT, ratio DOUBLE, ok BOOLEAN
) WITH (
    'connector' = 'filesystem', 'path' = '${OURS}/debezium-schema.json', 'format' = 'debezium-json',
    'debezium-json.schema-include' = 'true'
);

MATERIALIZE '${OUT}/debezium-schema.tsv' AS
SELECT CAST(id AS STRING) id, CAST(n AS STRING) n, CAST(amount AS STRING) amount, name,
    CAST(TIMESTAMPADD(DAY, d, DATE '1970-01-01') AS STRING) d,
    CAST(CAST(TO_TIMESTAMP_LTZ(ts, 3) AS TIMESTAMP(3)) AS STRING) ts,
    CAST(ratio AS STRING) ratio, LOWER(CAST(ok AS STRING)) ok
FROM ours_debezium_schema;

CREATE TEMPORARY TABLE ours_maxwell (
    id BIGINT, n INT, amount DECIMAL(20, 4), name STRING, d DATE, ts TIMESTAMP(3), ratio DOUBLE, ok TINYINT
) WITH ('connector' = 'filesystem', 'path' = '${OURS}/maxwell.json', 'format' = 'maxwell-json');

MATERIALIZE '${OUT}/maxwell.tsv' AS
SELECT CAST(id AS STRING) id, CAST(n AS STRING) n, CAST(amount AS STRING) amount, name, CAST(d AS STRING) d, CAST(ts AS STRING) ts,
    CAST(ratio AS STRING) ratio, LOWER(CAST(CAST(ok AS BOOLEAN) AS STRING)) ok
FROM ours_maxwell;

CREATE TEMPORARY TABLE ours_json (
    id BIGINT, n INT, amount DECIMAL(20, 4), name STRING, d DATE, ts TIMESTAMP(3), ratio DOUBLE, ok BOOLEAN
) WITH ('connector' = 'filesystem', 'path' = '${OURS}/rows.json', 'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601');

MATERIALIZE '${OUT}/json.tsv' AS
SELECT CAST(id AS STRING) id, CAST(n AS STRING) n, CAST(amount AS STRING) amount, name, CAST(d AS STRING) d, CAST(ts AS STRING) ts,
    CAST(ratio AS STRING) ratio, LOWER(CAST(ok AS STRING)) ok
FROM ours_json;

CREATE TEMPORARY TABLE ours_json_numbers (
    id BIGINT, n INT, amount DECIMAL(20, 4), name STRING, d DATE, ts TIMESTAMP(3), ratio DOUBLE, ok BOOLEAN
) WITH ('connector' = 'filesystem', 'path' = '${OURS}/rows-numbers.json', 'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601');

MATERIALIZE '${OUT}/json-numbers.tsv' AS
SELECT CAST(id AS STRING) id, CAST(n AS STRING) n, CAST(amount AS STRING) amount, name, CAST(d AS STRING) d, CAST(ts AS STRING) ts,
    CAST(ratio AS STRING) ratio, LOWER(CAST(ok AS STRING)) ok
FROM ours_json_numbers;

CREATE TEMPORARY TABLE ours_csv (
    id BIGINT, n INT, amount DECIMAL(20, 4), name STRING, d DATE, ts TIMESTAMP(3), ratio DOUBLE, ok BOOLEAN
) WITH (
    'connector' = 'filesystem', 'path' = '${OURS}/rows.csv', 'format' = 'csv', 'csv.null-literal' = '\N'
);

MATERIALIZE '${OUT}/csv.tsv' AS
SELECT CAST(id AS STRING) id, CAST(n AS STRING) n, CAST(amount AS STRING) amount, name, CAST(d AS STRING) d, CAST(ts AS STRING) ts,
    CAST(ratio AS STRING) ratio, LOWER(CAST(ok AS STRING)) ok
FROM ours_csv;

-- The same changes, written by Flink.
CHANGES texts FROM '${INPUT}/changes.tsv';

CREATE TEMPORARY VIEW typed AS
SELECT CAST(id AS BIGINT) id, CAST(n AS INT) n, CAST(amount AS DECIMAL(20, 4)) amount, name, CAST(d AS DATE) d,
    CAST(ts AS TIMESTAMP(3)) ts, CAST(ratio AS DOUBLE) ratio, CAST(ok AS BOOLEAN) ok
FROM texts;

CREATE TEMPORARY TABLE flink_canal (
    id BIGINT, n INT, amount DECIMAL(20, 4), name STRING, d DATE, ts TIMESTAMP(3), ratio DOUBLE, ok BOOLEAN
) WITH ('connector' = 'filesystem', 'path' = '${FLINK}/canal', 'format' = 'canal-json');

INSERT INTO flink_canal SELECT * FROM typed;

CREATE TEMPORARY TABLE flink_debezium (
    id BIGINT, n INT, amount DECIMAL(20, 4), name STRING, d DATE, ts TIMESTAMP(3), ratio DOUBLE, ok BOOLEAN
) WITH ('connector' = 'filesystem', 'path' = '${FLINK}/debezium', 'format' = 'debezium-json');

INSERT INTO flink_debezium SELECT * FROM typed;

CREATE TEMPORARY TABLE flink_debezium_iso (
    id BIGINT, n INT, amount DECIMAL(20, 4), name STRING, d DATE, ts TIMESTAMP(3), ratio DOUBLE, ok BOOLEAN
) WITH (
    'connector' = 'filesystem', 'path' = '${FLINK}/debezium-iso', 'format' = 'debezium-json',
    'debezium-json.timestamp-format.standard' = 'ISO-8601'
);

INSERT INTO flink_debezium_iso SELECT * FROM typed;

CREATE TEMPORARY TABLE flink_maxwell (
    id BIGINT, n INT, amount DECIMAL(20, 4), name STRING, d DATE, ts TIMESTAMP(3), ratio DOUBLE, ok BOOLEAN
) WITH ('connector' = 'filesystem', 'path' = '${FLINK}/maxwell', 'format' = 'maxwell-json');

INSERT INTO flink_maxwell SELECT * FROM typed;

CHANGES row_texts FROM '${OUT}/inserts.tsv';

CREATE TEMPORARY VIEW typed_rows AS
SELECT CAST(id AS BIGINT) id, CAST(n AS INT) n, CAST(amount AS DECIMAL(20, 4)) amount, name, CAST(d AS DATE) d,
    CAST(ts AS TIMESTAMP(3)) ts, CAST(ratio AS DOUBLE) ratio, CAST(ok AS BOOLEAN) ok
FROM row_texts;

CREATE TEMPORARY TABLE flink_json (
    id BIGINT, n INT, amount DECIMAL(20, 4), name STRING, d DATE, ts TIMESTAMP(3), ratio DOUBLE, ok BOOLEAN
) WITH ('connector' = 'filesystem', 'path' = '${FLINK}/json', 'format' = 'json');

INSERT INTO flink_json SELECT * FROM typed_rows;

CREATE TEMPORARY TABLE flink_csv (
    id BIGINT, n INT, amount DECIMAL(20, 4), name STRING, d DATE, ts TIMESTAMP(3), ratio DOUBLE, ok BOOLEAN
) WITH ('connector' = 'filesystem', 'path' = '${FLINK}/csv', 'format' = 'csv', 'csv.null-literal' = '\N');

INSERT INTO flink_csv SELECT * FROM typed_rows;
