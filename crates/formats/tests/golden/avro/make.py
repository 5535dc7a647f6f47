"""Writes messages.json with fastavro: schemas, bytes, and what the rows are, in words chosen by hand.

    python3 -m venv venv && venv/bin/pip install fastavro==1.13.1 && venv/bin/python make.py
"""

import datetime
import decimal
import io
import json
import pathlib
import uuid

import fastavro

D = decimal.Decimal
UTC = datetime.timezone.utc


def record(fields):
    return {"type": "record", "name": "Row", "namespace": "golden", "fields": fields}


def field(name, ty, **more):
    return {"name": name, "type": ty, **more}


def logical(ty, name, **more):
    return {"type": ty, "logicalType": name, **more}


CASES = [
    (
        "primitives",
        record([field("b", "boolean"), field("i", "int"), field("l", "long"), field("f", "float"),
                field("d", "double"), field("s", "string"), field("y", "bytes")]),
        [
            ({"b": True, "i": -2147483648, "l": 9223372036854775807, "f": 0.5, "d": -0.1, "s": "héllo 😀", "y": b"\x00\xff"},
             "true|-2147483648|9223372036854775807|0.5|-0.1|héllo 😀|00FF"),
            ({"b": False, "i": 2147483647, "l": -9223372036854775808, "f": -1.0, "d": 1e300, "s": "", "y": b""},
             "false|2147483647|-9223372036854775808|-1.0|1e300||"),
        ],
    ),
    (
        "decimals",
        record([
            field("small", logical("bytes", "decimal", precision=10, scale=2)),
            field("long", logical("bytes", "decimal", precision=76, scale=38)),
            field("fixed", {"type": "fixed", "name": "F", "size": 8, "logicalType": "decimal", "precision": 18, "scale": 4}),
        ]),
        [
            ({"small": D("1.28"), "long": D("9" * 38 + "." + "9" * 38), "fixed": D("-12345678901234.5678")},
             "1.28|" + "9" * 38 + "." + "9" * 38 + "|-12345678901234.5678"),
            ({"small": D("-99999999.99"), "long": D("-0." + "0" * 37 + "1"), "fixed": D("0.0000")},
             "-99999999.99|-0." + "0" * 37 + "1|0.0000"),
        ],
    ),
    (
        "times",
        record([
            field("d", logical("int", "date")),
            field("tm", logical("int", "time-millis")),
            field("tu", logical("long", "time-micros")),
            field("im", logical("long", "timestamp-millis")),
            field("iu", logical("long", "timestamp-micros")),
            field("lm", logical("long", "local-timestamp-millis")),
            field("lu", logical("long", "local-timestamp-micros")),
        ]),
        [
            ({"d": datetime.date(1969, 12, 31), "tm": datetime.time(10, 20, 30, 123000),
              "tu": datetime.time(23, 59, 59, 999999),
              "im": datetime.datetime(2024, 3, 15, 2, 20, 30, 120000, UTC),
              "iu": datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
              "lm": datetime.datetime(2024, 3, 15, 10, 20, 30, 120000),
              "lu": datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)},
             "1969-12-31|10:20:30.123|23:59:59.999999|2024-03-15 02:20:30.120|1969-12-31 23:59:59.999999"
             "|2024-03-15 10:20:30.120|9999-12-31 23:59:59.999999"),
        ],
    ),
    (
        "named and nested",
        record([
            field("id", logical("string", "uuid")),
            field("e", {"type": "enum", "name": "E", "symbols": ["NEW", "PAID"]}),
            field("x", {"type": "fixed", "name": "X", "size": 3}),
            field("n", ["null", "long"], default=None),
            field("a", {"type": "array", "items": ["null", "int"]}),
            field("m", {"type": "map", "values": "string"}),
            field("r", record([field("k", "string"), field("v", logical("bytes", "decimal", precision=5, scale=2))])
                  | {"name": "Inner"}),
            field("u", ["string", "long", "null"]),
        ]),
        [
            ({"id": uuid.UUID("123e4567-e89b-12d3-a456-426614174000"), "e": "PAID", "x": b"\x01\x02\x03", "n": None,
              "a": [1, None, -3], "m": {"k": "a\"b"}, "r": {"k": "ä", "v": D("1.50")}, "u": 9007199254740993},
             "123e4567-e89b-12d3-a456-426614174000|PAID|010203|NULL|[1,null,-3]|{\"k\":\"a\\\"b\"}"
             "|{\"k\":\"ä\",\"v\":1.50}|9007199254740993"),
            ({"id": uuid.UUID(int=0), "e": "NEW", "x": b"\xff\xff\xff", "n": -5, "a": [], "m": {},
              "r": {"k": "", "v": D("-0.01")}, "u": None},
             "00000000-0000-0000-0000-000000000000|NEW|FFFFFF|-5|[]|{}|{\"k\":\"\",\"v\":-0.01}|NULL"),
        ],
    ),
]


def main():
    out = []
    for name, schema, rows in CASES:
        parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
        messages = []
        for value, expected in rows:
            buffer = io.BytesIO()
            fastavro.schemaless_writer(buffer, parsed, value)
            messages.append({"hex": buffer.getvalue().hex(), "row": expected})
        out.append({"name": name, "schema": schema, "messages": messages})
    target = pathlib.Path(__file__).with_name("messages.json")
    target.write_text(json.dumps(out, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


main()
