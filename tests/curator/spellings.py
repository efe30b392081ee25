"""Pairs of questions: some that are one question in two spellings, and some that only look like it."""

import itertools

import duckdb

from tests.curator.clinic import ODD

OPERANDS = [
    ("stay", "5"), ("cost", "stay"), ("stay - cost", "18"), ("ward", "'north'"), ("day", "DATE '2024-02-01'"),
    ("cost / NULLIF(stay, 0)", "0.5"), ("0 - stay", "-0.0"), ("LENGTH(ward)", "4"),
]  # fmt: skip
CONDITIONS = [
    "stay > 5", "stay <= 7.3", "cost BETWEEN 0 AND 100", "ward = 'north'", "ward IN ('north', 'west')", "cost * 2 < 30",
    "diagnosis LIKE '%1'", "stay IS NULL", "ward <> 'south'", "cost / NULLIF(stay, 0) > 3", "stay - cost < 18",
    "day >= DATE '2024-02-01'", "LEAST(stay, cost) < 4", "stay = 0", "urgent",
]  # fmt: skip
NUMBERS = {"5": ["2 + 3", "10 / 2", "2.5 * 2", "7 - 2", "-(-5)", "5.0", "0.5e1"], "0.3": ["3 / 10", "0.30"],
           "0": ["5 - 5", "0 * 3", "0.0"], "-1": ["1 - 2", "-2 / 2"]}  # fmt: skip


def where(condition, what="COUNT(*)"):
    return f"SELECT {what} FROM visits WHERE {condition}"


def same():
    """Pairs that are one question."""
    yield from comparisons()
    yield from logic()
    yield from lists()
    yield from aggregates()
    yield from clauses()


def comparisons():
    for a, b in OPERANDS:
        for op, turned, other in (("<", ">", ">="), ("<=", ">=", ">"), (">", "<", "<="), (">=", "<=", "<")):
            for spelled in (f"{b} {turned} {a}", f"NOT ({a} {other} {b})", f"({a} {op} {b}) = TRUE"):
                yield where(f"{a} {op} {b}"), where(spelled)
        yield where(f"{a} <> {b}"), where(f"NOT {b} = {a}")
        yield where(f"{a} = {b}"), where(f"NOT ({a} != {b})")
        yield where(f"{a} BETWEEN {b} AND {b}"), where(f"{a} <= {b} AND NOT ({a} < {b})")
        yield where(f"{a} NOT BETWEEN {b} AND {b}"), where(f"{a} < {b} OR {b} < {a}")
    for number, spellings in NUMBERS.items():
        for one, op in itertools.product(spellings, ("<", "=", ">=")):
            yield where(f"stay {op} {number}"), where(f"stay {op} {one}")


def logic():
    for c in CONDITIONS:
        spelled = [f"NOT (NOT ({c}))", f"({c}) AND ({c})", f"1 = 1 AND ({c})", f"({c}) OR 1 > 2", f"({c}) IS TRUE",
                   f"({c}) OR NULL"]  # fmt: skip
        yield from ((where(c), where(one)) for one in spelled)
        yield where(f"NOT ({c})"), where(f"({c}) = FALSE")
        yield where(f"NOT ({c})"), where(f"({c}) IS FALSE")
    for c, d in itertools.combinations(CONDITIONS[::2], 2):
        yield where(f"({c}) AND ({d})"), where(f"({d}) AND ({c})")
        yield where(f"NOT (({c}) AND ({d}))"), where(f"NOT ({d}) OR NOT ({c})")
        yield where(f"NOT (({c}) OR ({d}))"), where(f"NOT ({c}) AND NOT ({d})")


def lists():
    for of, values in (("ward", ["'north'", "'west'", "'attic'"]), ("stay", ["3", "60", "-0.0"]),
                       ("day", ["DATE '2024-01-02'", "DATE '2024-03-05'"])):  # fmt: skip
        whole, back = ", ".join(values), ", ".join([*reversed(values), values[0]])
        yield where(f"{of} IN ({whole})"), where(f"{of} IN ({back})")
        yield where(f"{of} IN ({whole})"), where(" OR ".join(f"{v} = {of}" for v in values))
        yield where(f"{of} NOT IN ({whole})"), where(" AND ".join(f"{of} <> {v}" for v in values))
        yield where(f"{of} NOT IN ({whole})"), where(f"NOT ({of} IN ({back}))")
        yield where(f"{of} IN ({values[0]})"), where(f"{of} = {values[0]}")
    for text in ("north", "d1", "", "'' x", "Ä"):
        yield where(f"ward LIKE '{text}'"), where(f"ward = '{text}'")
        yield where(f"ward NOT LIKE '{text}'"), where(f"ward <> '{text}'")


def aggregates():
    ones = ["COUNT(1)", "SUM(1)", "COUNT('x')", "COUNT(COALESCE(stay, 0))", "COUNT(stay IS NULL)", "COUNT(patient_id)",
            "COUNT(CASE WHEN stay > 3 THEN 1 ELSE 2 END)", "SUM(2 - 1)", "COUNT(*) FILTER (WHERE 1 = 1)"]  # fmt: skip
    for one, rest in itertools.product(ones, ("", " WHERE cost > 3", " WHERE ward = 'north' OR stay IS NULL")):
        yield f"SELECT COUNT(*) FROM visits{rest}", f"SELECT {one} FROM visits{rest}"
    for c in CONDITIONS:
        for one in (f"COUNT(*) FILTER (WHERE {c})", f"COUNT_IF({c})", f"COUNT(CASE WHEN {c} THEN 1 END)",
                    f"SUM(CASE WHEN {c} THEN 1 ELSE 0 END)", f"SUM(IF({c}, 1, 0))"):  # fmt: skip
            yield where(c), f"SELECT {one} FROM visits"
        yield where(c, "SUM(cost)"), f"SELECT SUM(cost) FILTER (WHERE {c}) FROM visits"
        yield where(c, "COUNT(DISTINCT patient_id)"), f"SELECT COUNT(DISTINCT patient_id) FILTER ({c}) FROM visits"
        yield (
            f"SELECT MONTH(day) AS m, COUNT(*) AS n FROM visits WHERE {c} GROUP BY m",
            f"SELECT MONTH(day) AS m, COUNT(*) FILTER (WHERE {c}) AS n FROM visits GROUP BY MONTH(day)",
        )
    yield where("stay > 3"), where("stay > 3", "COUNT(stay)")
    yield where("stay - cost > 3 AND ward <> 'x'"), where("ward <> 'x' AND 3 < stay - cost", "COUNT(cost)")
    yield where("stay IS NOT NULL"), where("stay IS NOT NULL", "COUNT(stay)")


def clauses():
    yield (
        "SELECT ward, SUM(cost), COUNT(*) AS n FROM visits GROUP BY ward",
        "select SUM(v.cost), v.ward as w, count(*) from main.visits as V group by 2 order by w",
    )
    yield (
        "SELECT ward, COUNT(*) FROM visits JOIN wards USING (ward) JOIN days USING (day) WHERE floor = 2 GROUP BY 1",
        "SELECT v.ward, COUNT(*) FROM visits v JOIN days d ON d.day = v.day JOIN wards w ON w.ward = v.ward"
        " WHERE NOT (floor <> 2) GROUP BY v.ward",
    )
    yield (
        "SELECT COUNT(*) FROM visits LEFT JOIN wards USING (ward) LEFT JOIN days USING (day)"
        " WHERE holiday OR floor = 1",
        "SELECT COUNT(*) FROM visits LEFT JOIN days USING (day) LEFT JOIN wards USING (ward)"
        " WHERE 1 = floor OR holiday",
    )
    yield (
        "SELECT floor, COUNT(*) FROM visits JOIN wards USING (ward) GROUP BY floor",
        "SELECT floor, COUNT(*) FROM wards JOIN visits USING (ward) GROUP BY floor",
    )
    yield (
        "SELECT COUNT(*) FROM visits v LEFT JOIN wards w ON v.ward = w.ward WHERE floor IS NULL",
        "SELECT COUNT(*) FROM wards w RIGHT JOIN visits v ON w.ward = v.ward WHERE floor IS NULL",
    )
    yield (
        "SELECT COUNT(*) FROM (SELECT stay * 2 AS twice FROM visits WHERE ward = 'north') WHERE twice > 4",
        "SELECT COUNT(*) FROM visits WHERE 4 < stay * 2 AND 'north' = ward",
    )
    yield "SELECT SUM(COALESCE(stay, NULL, cost)) FROM visits", "SELECT SUM(COALESCE(stay, COALESCE(cost))) FROM visits"
    yield "SELECT SUM(LEAST(stay, 3, cost)) FROM visits", "SELECT SUM(LEAST(cost, LEAST(3, stay), NULL)) FROM visits"


def different():
    """Pairs that are not: each differs on some data."""
    for a, b in OPERANDS:
        spelled = [f"{a} {op} {b}" for op in ("<", "<=", ">", ">=", "=", "<>")] + [f"NOT ({a} IS NULL)"]
        yield from ((where(one), where(other)) for one, other in itertools.combinations(spelled, 2))
    for c, d in itertools.combinations(CONDITIONS[::2], 2):
        yield where(f"({c}) AND ({d})"), where(f"({c}) OR ({d})")
        yield where(f"NOT (({c}) AND ({d}))"), where(f"NOT ({c}) AND NOT ({d})")
        yield where(f"({c}) AND NOT ({d})"), where(f"({d}) AND NOT ({c})")
    for c in CONDITIONS:
        yield where(c), where(f"({c}) IS NOT FALSE")
        yield where(f"NOT ({c})"), where(f"({c}) IS NOT TRUE")
        yield where(c), f"SELECT COUNT({c}) FROM visits"
        yield where(c, "SUM(cost)"), f"SELECT SUM(CASE WHEN {c} THEN cost ELSE 1 END) FROM visits"
        yield where(c, "COUNT(*)"), where(c, "COUNT(diagnosis)")
        yield where(c, "COUNT(*)"), where(c, "COUNT(DISTINCT patient_id)")
        yield (
            f"SELECT diagnosis, COUNT(*) FROM visits WHERE {c} GROUP BY diagnosis",
            f"SELECT diagnosis, COUNT(*) FILTER (WHERE {c}) FROM visits GROUP BY diagnosis",
        )
    yield from misses()


def misses():
    yield where("stay = 0.3"), where("stay = 0.1 + 0.2")
    yield where("stay > 5"), where("stay > 5.000000000000001")
    yield where("cost > 1e15"), where("cost > 1e15 + 0.25 - 0.1")
    yield where("stay < 1e308"), where("stay < 1e308 * 10")
    yield where("ward LIKE 'nort_'"), where("ward = 'nort_'")
    yield where("ward LIKE 'north%'"), where("ward = 'north%'")
    yield where("ward = 'north'"), where("ward = 'North'")
    yield where("ward = 'north'"), where("ward = 'north '")
    yield where("ward IN ('north', 'west')"), where("ward IN ('north', 'attic')")
    yield where("ward NOT IN ('north')"), where("ward NOT IN ('north', NULL)")
    yield "SELECT COUNT(stay) FROM visits", "SELECT COUNT(*) FROM visits"
    yield "SELECT COUNT(cost / NULLIF(stay, 0)) FROM visits", "SELECT COUNT(cost) FROM visits"
    yield "SELECT SUM(1) FROM visits", "SELECT SUM(2) FROM visits"
    yield "SELECT SUM(LEAST(stay, 3)) FROM visits", "SELECT SUM(GREATEST(stay, 3)) FROM visits"
    yield "SELECT SUM(COALESCE(stay, cost)) FROM visits", "SELECT SUM(COALESCE(cost, stay)) FROM visits"
    yield (
        "SELECT ward, COUNT(*) FROM visits WHERE ward = 'north' GROUP BY ward",
        "SELECT ward, COUNT(*) FILTER (WHERE ward = 'north') FROM visits GROUP BY ward",
    )
    yield (
        "SELECT COUNT(*) FROM visits JOIN wards USING (ward)",
        "SELECT COUNT(*) FROM visits LEFT JOIN wards USING (ward)",
    )


def odd_visits():
    """Rows of odd values. NaN counts as NULL in questions, so plain SQL is shown NULL."""
    db = duckdb.connect(config={"threads": 1})
    db.execute("CREATE TABLE visits (patient_id BIGINT, ward TEXT, diagnosis TEXT, stay DOUBLE, cost DOUBLE, day DATE,"
               " urgent BOOLEAN)")  # fmt: skip
    wards = ["north", "south", "west", "attic", "", "North", "north ", "nort_", "north%", "Ä", None]
    days = ["2024-01-01", "2024-01-02", "2024-02-01", "2024-03-05", "infinity", None]
    stays = [*ODD[1:], "0", "3", "5", "0.3", "0.30000000000000004", "5.000000000000001", "5.0000000000000005"]
    costs = ["0", "-0.0", "NULL", "40", "3", "'inf'", "'-inf'", "1e15", "1e15 + 0.25", "12", "18"]
    rows = []
    for i, (stay, cost) in enumerate(itertools.product(stays, costs)):
        texts = [wards[i % len(wards)], [None, "d1", "d2", "d11"][i % 4], days[i % len(days)]]
        ward, diagnosis, day = ("NULL" if text is None else f"'{text}'" for text in texts)
        urgent = ["TRUE", "FALSE", "NULL"][i // 5 % 3]
        rows.append(f"({i % 97}, {ward}, {diagnosis}, {stay}, {cost}, {day}, {urgent})")
    db.execute(f"INSERT INTO visits VALUES {', '.join(rows)}")
    db.execute("CREATE TABLE wards AS SELECT * FROM (VALUES ('north', 1), ('south', 2), ('west', 2)) t(ward, floor)")
    db.execute(
        "CREATE TABLE days AS SELECT DATE '2024-01-01' + i::INTEGER AS day, i % 2 = 0 AS holiday FROM range(60) r(i)"
    )
    return db
