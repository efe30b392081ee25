"""Writes the shape of PostgreSQL's catalogues, from a live server, for the PostgreSQL door.

    PYTHONPATH=. python tools/postgres_catalogue.py postgresql://…

Names and types of columns (with a ! where PostgreSQL has no NULL), and the rows of pg_type; nothing else of the server.
"""

import json
import sys
from pathlib import Path

import psycopg

SHAPE = Path(__file__).parents[1] / "sfumato/server/postgres/catalogue.json"
RELATIONS = """
    SELECT n.nspname, c.relname, a.attname, format_type(a.atttypid, NULL) || CASE WHEN a.attnotnull THEN '!' ELSE '' END
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
    WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v') AND NOT a.attisdropped
      AND a.attnum > 0 ORDER BY 1, 2, a.attnum
"""
TYPES = """
    SELECT oid::int, typname, typlen, typbyval, typtype, typcategory, typelem::int, typarray::int, typdelim,
           typinput::text, typoutput::text, typreceive::text, typsend::text
    FROM pg_catalog.pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype IN ('b', 'p', 'r') ORDER BY oid
"""


def main(address: str) -> None:
    with psycopg.connect(address) as connection:
        relations: dict[str, dict[str, str]] = {}
        for schema, relation, column, kind in connection.execute(RELATIONS):
            relations.setdefault(f"{schema}.{relation}", {})[column] = kind
        types = [list(row) for row in connection.execute(TYPES)]
    lines = [f"{json.dumps(name)}: {json.dumps(columns, separators=(',', ':'))}" for name, columns in relations.items()]
    rows = [json.dumps(row, separators=(",", ":")) for row in types]
    SHAPE.write_text('{"relations": {\n' + ",\n".join(lines) + '\n}, "types": [\n' + ",\n".join(rows) + "\n]}\n")


if __name__ == "__main__":
    main(sys.argv[1])
