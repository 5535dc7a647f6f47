-- How fast Flink decodes ${FORMAT}: a million orders in a file (${DATA}), into nothing. Run thrice: the first run finds the program cold.

CREATE TEMPORARY TABLE orders (
    id BIGINT, customer INT, status STRING, amount DECIMAL(12, 2), created ${CREATED}, shipped ${SHIPPED}, weight DOUBLE, note STRING
) WITH ('connector' = 'filesystem', 'path' = '${DATA}', 'format' = '${FORMAT}' ${OPTIONS});

CREATE TEMPORARY TABLE nothing (
    id BIGINT, customer INT, status STRING, amount DECIMAL(12, 2), created ${CREATED}, shipped ${SHIPPED}, weight DOUBLE, note STRING
) WITH ('connector' = 'blackhole');

INSERT INTO nothing SELECT * FROM orders;

INSERT INTO nothing SELECT * FROM orders;

INSERT INTO nothing SELECT * FROM orders;
