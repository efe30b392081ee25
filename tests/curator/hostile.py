"""Texts that strangers might send: long, deep, odd, or small and growing. Tests read them; bench_hostile times them."""

BIG = 1 << 16
PRIVATELY = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"
CONDITION = " AND ".join(f"stay > {i}" for i in range(20_000))
NESTS = [
    "(", "abs(", "CAST(", "date(", "struct(", "row(", "json(", "map(", "coalesce(", "clamp(", "NOT (", "CASE WHEN (",
    "x -> (", "EXISTS (SELECT ", "[", "{'a': ", "a[", "x IN (", "ARRAY<", "INTERVAL (", "(SELECT ",
]  # fmt: skip
CHAINS = [
    "- ", "NOT ", "+ ", "~ ", "@ ", "a.", "a::", "a + ", "a AND ", "a -> ", "CASE ", "SELECT ", "UNION SELECT ",
    "FROM a JOIN ", "WITH a AS (", "DISTINCT ", "DATE ", "'a' ", '"a" ', "a,", "?", "$1 ", "/* a */ ", ";",
]  # fmt: skip


def filled(part: str, before: str = "SELECT ", after: str = "") -> str:
    """As many of `part` as 64 KiB hold."""
    return before + part * ((BIG - len(before) - len(after)) // len(part.encode())) + after


def rows(select: str) -> str:
    return f"SELECT COUNT(*) FROM ({select}) AS t"


def views(step: str, count: int, start: str = "SELECT stay AS x FROM visits", last: str = "AVG(CLAMP(x, 0, 1))") -> str:
    """Views, each of the one before."""
    made = "".join(f", a{i + 1} AS (SELECT {step} AS x FROM a{i})" for i in range(count))
    return f"WITH a0 AS ({start}){made} SELECT {last} FROM a{count}"


def deep(before: str, inside: str, after: str, times: int) -> str:
    return f"SELECT SUM({before * times}{inside}{after * times}) FROM visits"


LONG = {  # whatever fills 64 KiB
    "parentheses": filled("("),
    "parentheses, closed": "SELECT " + "(" * 30_000 + "1" + ")" * 30_000,
    "brackets": filled("["),
    "braces": filled("{"),
    "commas": filled(","),
    "quotes": filled("'"),
    "odd quotes": filled("'", "SELECT '"),
    "double quotes": filled('"'),
    "dollar quotes": filled("$$"),
    "dollar quotes with names": filled("$a$ "),
    "backslashes": filled("\\"),
    "dots": filled("."),
    "semicolons": filled(";"),
    "semicolons after a question": filled(";", "SELECT COUNT(*) FROM visits"),
    "minus": filled("-"),
    "spaced minus": filled("- "),
    "dashes and newlines": filled("--\n"),
    "open comments": filled("/*"),
    "nested comments": "/*" * 16_000 + "*/" * 16_000,
    "closed comments": filled("/**/"),
    "blanks": filled(" "),
    "newlines": filled("\n"),
    "stars": filled("*"),
    "questions": filled("?"),
    "at signs": filled("@"),
    "hashes": filled("#"),
    "nul bytes": filled("\0"),
    "emoji": filled("😀"),
    "combining marks": filled("\u0301"),
    "right to left": filled("\u202e"),
    "wide digits": filled("９", "SELECT COUNT(*) FROM visits WHERE stay > "),
    "no-break spaces": filled("\u00a0"),
    "one long word": filled("a"),
    "one long name in quotes": filled("a", 'SELECT "', '" FROM visits'),
    "one long text": filled("a", "SELECT COUNT(*) FROM visits WHERE ward = '", "'"),
    "one long number": filled("9", "SELECT COUNT(*) FROM visits WHERE stay > "),
    "one long fraction": filled("1", "SELECT COUNT(*) FROM visits WHERE stay > 0."),
    "one long exponent": filled("9", "SELECT COUNT(*) FROM visits WHERE stay > 1e"),
    "one long hexadecimal": filled("f", "SELECT COUNT(*) FROM visits WHERE stay > 0x"),
    "words": filled("a "),
    "keywords": filled("SELECT "),
    "froms": filled("FROM a "),
    "ones": filled("1,"),
    "columns": "SELECT " + ",".join(f"c{i}" for i in range(10_000)) + " FROM visits",
    "counts": "SELECT " + ",".join(["COUNT(*)"] * 7_000) + " FROM visits",
    "joins": "SELECT COUNT(*) FROM visits" + " JOIN wards USING (ward)" * 2_600,
    "cross joins": "SELECT COUNT(*) FROM visits" + ", wards" * 8_000,
    "an IN list": f"SELECT COUNT(*) FROM visits WHERE stay IN ({','.join('1' * 30_000)})",
    "an IN list of 200,000": f"SELECT COUNT(*) FROM visits WHERE stay IN ({', '.join(map(str, range(200_000)))})",
    "20,000 terms": f"SELECT COUNT(*) FROM visits WHERE {CONDITION}",
    "BETWEENs": filled(" AND stay BETWEEN 1 AND 2", "SELECT COUNT(*) FROM visits WHERE stay > 0"),
    "unions": filled(" UNION ALL SELECT 1", "SELECT 1"),
    "whens": filled(" WHEN stay > 1 THEN 1", "SELECT SUM(CASE", " END) FROM visits"),
    "casts": filled("::INT", "SELECT 1"),
    "arrows": filled("->1", "SELECT a"),
    "subscripts": filled("[1]", "SELECT a"),
    "types": filled("INT[]", "SELECT CAST(1 AS ", ")"),
    "EXPLAINs": filled("EXPLAIN PRIVACY "),
    "EXPLAIN and blanks": filled(" ", "EXPLAIN"),
    "options": filled("epsilon = 1,", f"{PRIVATELY} (", ") COUNT(*) FROM visits"),
    "options of blanks": filled(" ", PRIVATELY, "x"),
    "options of commas": filled(",", f"{PRIVATELY} (", ") COUNT(*) FROM visits"),
    "options of equal signs": filled("=", f"{PRIVATELY} (", ") COUNT(*) FROM visits"),
    "options that never end": filled("a = 1 ", f"{PRIVATELY} ("),
    "windows": filled("SUM(1) OVER (), ", "SELECT ", "1 FROM visits"),
}  # fmt: skip

GROWING = {  # small, and growing when written out
    "views that double": views("x + x", 40),
    "views that triple": views("x * x + x", 25),
    "views that double with CASE": views("CASE WHEN x > 0 THEN x ELSE x END", 25),
    "views that double with COALESCE": views("COALESCE(x, x)", 25),
    "views that double in a condition": "WITH a0 AS (SELECT stay AS x FROM visits WHERE stay > 0)"
    + "".join(f", a{i + 1} AS (SELECT x + x AS x FROM a{i} WHERE x > {i})" for i in range(30))
    + " SELECT COUNT(*) FROM a30",
    "views inside views": "WITH "
    + "a0 AS (SELECT * FROM visits), "
    + "".join(f"a{i} AS (WITH b AS (SELECT * FROM a{i - 1}) SELECT * FROM b), " for i in range(1, 90))
    + "z AS (SELECT * FROM a89) SELECT COUNT(*) FROM z",
    "views of many columns": "WITH a0 AS (SELECT "
    + ", ".join(f"stay AS c{i}" for i in range(100))
    + " FROM visits)"
    + "".join(f", a{i + 1} AS (SELECT * FROM a{i})" for i in range(100))
    + " SELECT COUNT(*) FROM a100",
    "many columns that grow": "WITH a0 AS (SELECT "
    + ", ".join(f"stay AS c{i}" for i in range(15))
    + " FROM visits)"
    + "".join(
        f", a{i + 1} AS (SELECT " + ", ".join(f"c{j} + c{(j + 1) % 15} AS c{j}" for j in range(15)) + f" FROM a{i})"
        for i in range(9)
    )
    + " SELECT SUM(CLAMP(c0, 0, 1)) FROM a9",
    "aliases that double": "SELECT COUNT(*) AS a0"
    + "".join(f", a{i} + a{i} AS a{i + 1}" for i in range(40))
    + " FROM visits",
    "aliases that double, backwards": "SELECT "
    + "".join(f"a{i} + a{i} AS a{i + 1}, " for i in reversed(range(40)))
    + "COUNT(*) AS a0 FROM visits",
    "aliases in a circle": "SELECT COUNT(*) + b AS a, a AS b FROM visits",
    "a deep HAVING of aliases": "SELECT COUNT(*) AS n FROM visits HAVING " + " OR ".join(["n + n > n"] * 150),
    "clamps that double": deep("CLAMP(", "stay", ", 0, 1)", 20),
    "clamps within clamps": deep("CLAMP(", "stay", ", CLAMP(stay, 0, 1), 1)", 11),
    "nested COALESCE": deep("COALESCE(stay, ", "stay", ")", 20),
    "nested NULLIF": deep("NULLIF(", "stay", ", 1)", 20),
    "nested CASE": deep("CASE WHEN stay > 0 THEN ", "stay", " ELSE 0 END", 55),
    "nested CASE in conditions": deep("CASE WHEN ", "stay > 0", " THEN stay > 1 ELSE stay > 2 END", 20),
    "nested CASE of a value": deep("CASE stay WHEN ", "1", " THEN 1 ELSE stay END", 18),
    "CASE of a long value": f"SELECT SUM(CASE {'+'.join(['stay'] * 40)}{' WHEN 1 THEN 1' * 150} END) FROM visits",
    "nested BETWEEN": deep("(", "stay", " BETWEEN 0 AND 1)", 20),
    "BETWEEN of sums": f"SELECT COUNT(*) FROM visits WHERE {'+'.join(['stay'] * 50)} BETWEEN 0 AND 1",
    "IN of sums": f"SELECT COUNT(*) FROM visits WHERE {'+'.join(['stay'] * 50)} IN ({','.join(['1'] * 900)})",
    "nested IN": deep("(", "stay", " IN (1, 2, 3))", 20),
    "GREATEST of GREATEST": deep("GREATEST(stay, ", "stay", ", stay)", 20),
    "products": f"SELECT SUM(CLAMP({' * '.join(['stay'] * 50)}, 0, 1)) FROM visits",
    "products of sums": f"SELECT SUM(CLAMP({'*'.join(['(stay + 1)'] * 55)}, 0, 1)) FROM visits",
    "quotients": f"SELECT SUM(CLAMP({' / '.join(['stay'] * 50)}, 0, 1)) FROM visits",
    "quotients within": deep("(1 / ", "stay", ")", 20),
    "MOD within": deep("MOD(", "stay", ", 7)", 20),
    "texts that grow": f"SELECT COUNT(*) FROM visits WHERE {'||'.join(['ward'] * 900)} = 'a'",
    "texts that double": views("x || x", 25, "SELECT ward AS x FROM visits", "COUNT(DISTINCT x)"),
    "REPLACE within": f"SELECT COUNT(*) FROM visits WHERE {'REPLACE(' * 20}ward{', a, b)' * 20} = 'a'",
    "LIKE of percents": f"SELECT COUNT(*) FROM visits WHERE ward LIKE '{'%a' * 2_000}'",
    "many LIKEs": "SELECT COUNT(*) FROM visits WHERE " + " OR ".join(["ward LIKE '%a%a%a%'"] * 300),
    "keys multiplied": "SELECT COUNT(*) FROM visits GROUP BY "
    + ", ".join(f"COALESCE({', '.join(['ward'] * k)})" for k in range(2, 20)),
    "buckets": "SELECT WIDTH_BUCKET(stay, 0, 60, 999999) AS b, COUNT(*) FROM visits GROUP BY b",
    "buckets times buckets": "SELECT COUNT(*) FROM visits GROUP BY WIDTH_BUCKET(stay, 0, 60, 900), "
    "WIDTH_BUCKET(cost, 0, 60, 900)",
    "buckets without end": f"SELECT COUNT(*) FROM visits GROUP BY WIDTH_BUCKET(stay, 0, 60, {'9' * 300})",
    "many keys": "SELECT COUNT(*) FROM visits GROUP BY " + ", ".join(f"stay + {i}" for i in range(500)),
    "many quantiles": "SELECT " + ", ".join(f"QUANTILE(stay, 0.{i:03})" for i in range(1, 300)) + " FROM visits",
    "many distinct counts": "SELECT " + ", ".join(f"COUNT(DISTINCT stay + {i})" for i in range(300)) + " FROM visits",
    "many sums": "SELECT " + ", ".join(f"SUM(CLAMP(stay + {i}, 0, 1))" for i in range(180)) + " FROM visits",
    "many variances": "SELECT " + ", ".join(f"VARIANCE(CLAMP(stay + {i}, 0, 1))" for i in range(180)) + " FROM visits",
    "sums of one": "SELECT " + " + ".join(["SUM(stay)"] * 55) + " FROM visits",
    "sums of many": "SELECT " + " + ".join(f"SUM(CLAMP(stay, 0, {i + 1}))" for i in range(55)) + " FROM visits",
    "ordered by much": "SELECT COUNT(*) AS n FROM visits ORDER BY " + ", ".join(f"n + {i}" for i in range(450)),
    "GROUP BY places": "SELECT ward, COUNT(*) FROM visits GROUP BY " + ", ".join(["1"] * 900),
    "10 joins": "SELECT COUNT(*) FROM visits" + "".join(f" JOIN wards w{i} USING (ward)" for i in range(10)),
    "10 private joins": "SELECT COUNT(*) FROM visits"
    + "".join(f" JOIN visits v{i} ON visits.patient_id = v{i}.patient_id" for i in range(10)),
    "subqueries": "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 22 + "visits" + ") AS t" * 22,
    "subqueries with names": "SELECT COUNT(*) FROM "
    + "(SELECT stay + 1 AS stay FROM " * 22
    + "visits"
    + ") AS t" * 22,
    "a recursive view": "WITH RECURSIVE v AS (SELECT 1 UNION ALL SELECT * FROM v) SELECT COUNT(*) FROM v",
    "a view of itself": "WITH v AS (SELECT * FROM v) SELECT COUNT(*) FROM v",
    "unions of tables": " UNION ALL ".join(["SELECT COUNT(*) FROM visits"] * 200),
    "a union of rows": rows(" UNION ALL ".join(["SELECT stay FROM visits"] * 200)),
    "unions that double": "WITH a0 AS (SELECT stay FROM visits)"
    + "".join(f", a{i + 1} AS (SELECT * FROM a{i} UNION ALL SELECT * FROM a{i})" for i in range(40))
    + " SELECT COUNT(*) FROM a40",
    "types within types": f"SELECT CAST(stay AS {'STRUCT(a ' * 20}INT{')' * 20}) FROM visits",
    "lambdas": f"SELECT COUNT(*) FROM visits WHERE {'x -> ' * 60}x",
    "intervals": "SELECT COUNT(*) FROM visits WHERE day > " + "INTERVAL 1 DAY + " * 55 + "day",
    "NOTs": f"SELECT COUNT(*) FROM visits WHERE {'NOT ' * 900}stay > 1",
    "minuses": f"SELECT SUM({'- ' * 900}stay) FROM visits",
    "ORs of ANDs": "SELECT COUNT(*) FROM visits WHERE " + " OR ".join(["(stay > 1 AND stay > 2)"] * 170),
    "ORs within ANDs": f"SELECT COUNT(*) FROM visits WHERE {'(stay > 1 AND (stay > 2 OR ' * 11}stay > 3{'))' * 11}",
    "equal to equal": f"SELECT COUNT(*) FROM visits WHERE {' = '.join(['stay'] * 60)}",
    "PIVOT": "PIVOT visits ON ward USING COUNT(*)",
    "QUALIFY": "SELECT COUNT(*) FROM visits QUALIFY ROW_NUMBER() OVER () = 1",
    "a sum of 900": f"SELECT SUM({'+'.join(['stay'] * 900)}) FROM visits",
    "1,900 words that mean little": "SELECT COUNT(*) FROM visits WHERE " + " ".join(["(stay)"] * 630),
}  # fmt: skip

ODD = {
    "empty": "",
    "blank": " \n\t ",
    "a comment": "-- nothing",
    "no end of a comment": "SELECT COUNT(*) FROM visits /* " + "*" * 60_000,
    "a NUL": "SELECT COUNT(*) FROM visits\0; DROP TABLE visits",
    "a lone surrogate": "SELECT COUNT(*) FROM visits WHERE ward = '\ud800'",
    "stacked": "SELECT COUNT(*) FROM visits; DROP TABLE visits",
    "two questions": "SELECT COUNT(*) FROM visits; SELECT COUNT(*) FROM visits",
    "another statement": "DROP TABLE visits",
    "a copy": "COPY visits TO 'out.csv'",
    "a setting": "SET threads = 1",
    "a pragma": "PRAGMA database_list",
    "an attachment": "ATTACH 'other.db'",
    "a file": "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
    "a file as a table": "SELECT COUNT(*) FROM '/etc/passwd'",
    "the catalogue": "SELECT COUNT(*) FROM duckdb_tables()",
    "another schema": "SELECT COUNT(*) FROM other.visits",
    "the schema of schemas": "SELECT COUNT(*) FROM information_schema.tables",
    "too long": "SELECT COUNT(*) FROM visits WHERE ward = '" + "x" * 70_000 + "'",
    "a product": "SELECT COUNT(*) FROM visits, wards",
    "12 tables": "SELECT COUNT(*) FROM visits" + "".join(f" JOIN wards w{i} USING (ward)" for i in range(12)),
    "300 subqueries": "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 300 + "visits" + ")" * 300,
    "a long number": "SELECT COUNT(*) FROM visits LIMIT " + "9" * 5000,
    "an odd digit": "SELECT COUNT(*) FROM visits LIMIT ²",
    "an infinite place": "SELECT COUNT(*) FROM visits GROUP BY 1e999",
    "an infinite number": "SELECT COUNT(*) FROM visits WHERE stay < 1e999",
    "a quoted name": 'SELECT COUNT(*) FROM visits WHERE "stay""; DROP TABLE visits; --" > 1',
    "a name that looks like another": "SELECT COUNT(*) FROM visіts",  # a Cyrillic letter
    "nested EXPLAIN": "EXPLAIN EXPLAIN PRIVACY SELECT COUNT(*) FROM visits",
    "EXPLAIN ANALYZE": "EXPLAIN ANALYZE SELECT COUNT(*) FROM visits",
    "OPTIONS in OPTIONS": f"{PRIVATELY} (epsilon = OPTIONS (epsilon = 1)) COUNT(*) FROM visits",
    "OPTIONS of a huge epsilon": f"{PRIVATELY} (epsilon = {'9' * 400}) COUNT(*) FROM visits",
    "OPTIONS with a question": f"{PRIVATELY} (epsilon = (SELECT 1)) COUNT(*) FROM visits",
}  # fmt: skip

WITHIN = " WITH RELATIVE ERROR 5 %"
TEXTS = {
    **ODD,
    **LONG,
    **GROWING,
    **{f"{name}, within 5 %": text[: BIG - len(WITHIN)] + WITHIN for name, text in (ODD | LONG).items()},
    **{f"{n} × {nest}": f"SELECT COUNT({nest * n}" for nest in NESTS for n in (30, 300)},
    **{f"{n} × {nest} closed": f"SELECT SUM({nest * n}stay{')' * n}) FROM visits" for nest in NESTS for n in (12, 22)},
    **{f"{n} × {chain}": f"SELECT {chain * n}" for chain in CHAINS for n in (30, 400, 1900)},
    **{f"{n} × {chain} inside": f"SELECT SUM({chain * n}stay) FROM visits" for chain in CHAINS[2:] for n in (30, 400)},
}  # fmt: skip
