"""The content of a line of a CSV file changes the row of that line, and no other."""

import csv
import io
import json
import random
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import duckdb
import pytest
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.cli import main
from sfumato.engines import csv as csv_lines
from sfumato.engines.csv import check_csv, column_names, load_csv, split_line, split_lines, unused_character
from sfumato.engines.duckdb import DuckDB, schema
from sfumato.errors import PolicyError

POLICY = """
version = 1
[budget]
epsilon = 400.0
delta = 1e-6
[tables.visits]
unit = "patient"
groups = 1
rows = 1
[tables.visits.columns]
patient = {type = "text"}
ward = {type = "text", keys = ["w1", "w2"]}
name = {type = "text"}
"""
SIGNS = [b'"', b'""', b",", b"\r", b"\n", b"\r\n", b"\0", b"\xff", b"\xe2\x82", b"\xf0\x9f", b"\xef\xbb\xbf", b"\x1f",
         "ä€".encode(), b" ", b"a", b"'", b"\\", b"#", b"long " * 50]  # fmt: skip
pieces = st.lists(st.sampled_from(SIGNS) | st.binary(max_size=3), max_size=8).map(b"".join)


CONNECTION = duckdb.connect(":memory:")


def rows_of(content):
    """The rows of a file with this content, and how often each is there."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "t.csv").write_bytes(content)
        load_csv(CONNECTION, "t", Path(folder) / "t.csv")
    found = Counter(CONNECTION.execute("FROM t").fetchall())
    CONNECTION.execute("DROP TABLE t")
    return found


@settings(deadline=None, max_examples=20)
@given(others=st.lists(pieces, max_size=6), odd=pieces, place=st.integers(0, 6), block=st.integers(1, 40))
@example(others=[b'P,"a"', b"Q,b"], odd=b'X,"Al" Smith', place=1, block=40)
@example(others=[b'P,"a"', b'Q,"b"'], odd=b'X,"never closed', place=1, block=7)
@example(others=[b'"', *[b'P,"a"'] * 9], odd=b'X,"never closed', place=0, block=999)
@example(others=[b"P,a", b"Q,b"], odd=b'X,"a\nb"', place=1, block=7)
def test_the_rows_of_a_file_are_the_rows_of_each_line_read_alone(others, odd, place, block):
    """Wherever blocks begin, and on either side of the longest line: so nobody's line can change another row."""
    lines = [*others[:place], odd, *others[place:]]
    content = b"id,name\n" + b"\n".join(lines) + b"\n"
    with patch.multiple(csv_lines, BLOCK=block, LONGEST=max(block, 60)):
        found = rows_of(content)
    alone = Counter()
    with patch.multiple(csv_lines, LONGEST=max(block, 60)):
        for line in b"\n".join(lines).split(b"\n"):
            alone += rows_of(b"id,name\n" + line + b"\n")
    assert found == alone


@pytest.mark.parametrize("seed", range(4))
def test_bytes_put_into_one_line_leave_the_rows_of_all_others(seed):
    """Thousands of people, many blocks; some lines have quotes, some end in CRLF."""
    rng = random.Random(seed)
    forms = (b"%d,w%d,Al", b'%d,"w%d","Al ""x"", B"', b'"%d",w%d,', b"%d,w%d,Al\r", b"%d,w%d")
    lines = [rng.choice(forms) % (i, i % 2) for i in range(3000)]
    before = rows_of(b"patient,ward,name\n" + b"\n".join(lines))
    for _ in range(5):
        which = rng.randrange(len(lines))
        line = bytearray(b"X,w1,y")
        for _ in range(rng.randrange(1, 6)):
            place = rng.randrange(len(line) + 1)
            line[place:place] = rng.choice(SIGNS)
        with patch.multiple(csv_lines, BLOCK=1 << 12):
            found = rows_of(b"patient,ward,name\n" + b"\n".join([*lines[:which], bytes(line), *lines[which:]]))
        assert not before - found
        assert (found - before).total() <= 1 + line.count(b"\n")


@pytest.mark.parametrize(
    "odd", [b'X,w1,"Al" Smith', b'X,w1,"a\nb"', b'X,w1,"never closed', b"X,w1,a\rb", b'X,w1,"a\rb"', b"X,w1,crlf\r",
            b'"', b'"X', b"X,w1,\xff", b"X,w1,\0", b"X,w1,y,z", b"X", b"", b'X,w1,"' + b"long" * 600_000],
)  # fmt: skip
def test_one_odd_line_among_four_thousand_takes_nobody_away(tmp_path, odd):
    """Through the call that an owner makes. With ε = 100 the noise of a count is far below 1."""
    people = [b"%d,w2,Al" % i for i in range(4000)]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "visits.csv").write_bytes(
        b"patient,ward,name\n" + b"\n".join([*people[:2000], odd, *people[2000:]]) + b"\n"
    )
    (tmp_path / "policy.toml").write_text(POLICY)
    curator = sf.Curator.open(tmp_path / "data", policy=tmp_path / "policy.toml")
    answer = curator.ask("SELECT COUNT(*) AS n FROM visits WHERE ward = 'w2'", epsilon=100)
    assert round(answer.rows[0][0]) == 4000


@pytest.mark.parametrize(
    ("line", "rows"),
    [(b'1,"Smith, Al","5"" pipe"', [("1", "Smith, Al", '5" pipe')]), (b'1,,""', [("1", None, None)]),
     (b'1,"Al" Smith,x', [("1", "Al Smith", "x")]), (b'1,"Al, open', [("1", "Al, open", None)]),
     (b'1,"a\nb",x', [("1", "a", None), ('b"', "x", None)]), (b"1,a\rb,c\r\r", [("1", "a\rb", "c")]),
     (b'1, "x",y"z', [("1", ' "x"', 'y"z')]), (b"1,\xff\xfe,\xc3", [("1", "\ufffd\ufffd", "\ufffd")]),
     (b"1", [("1", None, None)]), (b"1,2,3,4", []), (b"1,2,3,,", [("1", "2", "3")]), (b'1,2,3,"4"', []), (b"", []),
     (b",,", [(None, None, None)])],
)  # fmt: skip
def test_a_line_is_read_as_the_documentation_says(line, rows):
    assert rows_of(b"a,b,c\n" + line + b"\n") == Counter(rows)


texts = st.text(st.sampled_from("\",ab '\\;#\t\x1f") | st.characters(exclude_categories=["Cs"]), max_size=6)


@settings(deadline=None, max_examples=33)
@given(rows=st.lists(st.tuples(texts, texts, texts), max_size=12), quoting=st.sampled_from([0, 1]), end=st.booleans())
def test_a_well_formed_file_has_the_rows_that_pythons_reader_finds(rows, quoting, end):
    """An empty field is NULL, with quotes and without. A line feed in a field is another line: there is none here."""
    file = io.StringIO()
    rows = [tuple(text.replace("\n", "").replace("\r", "") for text in row) for row in rows]
    csv.writer(file, quoting=quoting, lineterminator="\r\n" if end else "\n").writerows([("a", "b", "c"), *rows])
    expected = Counter(tuple(text or None for text in row) for row in csv.reader(io.StringIO(file.getvalue())))
    assert rows_of(b"\xef\xbb\xbf" + file.getvalue().encode()) + Counter([("a", "b", "c")]) == expected


@settings(max_examples=75)
@given(st.text(st.sampled_from('"",ab \x1f\0ä'), max_size=12))
def test_a_line_has_the_fields_that_pythons_reader_finds_in_it(line):
    assert split_line(line).fields == (next(csv.reader([line])) or [""])


@given(st.lists(st.text(st.sampled_from('"",ab\r\0'), max_size=8), max_size=40))
@example(['a","b', "", *['x"'] * 9])  # the second line closes what the first opened
@example([*['x"'] * 9, 'a","b'])
def test_many_lines_have_the_fields_of_each_alone(lines):
    lines = [f'"{line}' for line in lines]  # lines with quotes come here
    assert split_lines(lines, csv_lines.LineCounts()) == [split_line(line).fields for line in lines]


def test_a_field_longer_than_pythons_reader_takes_is_read():
    long = "x" * (csv.field_size_limit() + 1)
    assert rows_of(b'a,b\n1,"%s"\n' % long.encode() + b'2,"y"\n' * 20)[("1", long)] == 1


def test_the_separator_that_is_chosen_is_not_in_the_text():
    for text in ("a", "a\x1f", "".join(map(chr, range(0x3000))), "".join(map(chr, [*range(10), *range(11, 0xD800)]))):
        found = unused_character(text)
        assert found not in text
        assert found != "\n"
    every = sum(len(chr(code).encode()) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    assert every > csv_lines.LONGEST + csv_lines.BLOCK


def test_a_line_of_a_million_signs_leaves_the_others():
    """Were the work quadratic in its length, this would not end."""
    for text in ('"' * 1_000_001, '",' * 500_000, '"a"b' * 250_000, "\r" * 1_000_000, "," * 1_000_000):
        assert rows_of(b"a,b\n1,2\n" + text.encode() + b"\n3,4\n")[("3", "4")] == 1


HEADERS = {
    b"a,b": ["a", "b"],
    b"a,b\r\n1,2\r\n": ["a", "b"],
    b'\xef\xbb\xbf"a",b\n': ["a", "b"],
    b'"a,""x",b c, d,select,\xc3\x84,"\'"\n': ['a,"x', "b c", " d", "select", "Ä", "'"],
    b"a.b,a;b,rowid\n": ["a.b", "a;b", "rowid"],
}


@pytest.mark.parametrize("content", HEADERS)
def test_the_schema_of_a_file_is_what_is_loaded(tmp_path, content):
    place = tmp_path / "Some Table'\".csv"
    place.write_bytes(content)
    assert column_names(place) == HEADERS[content]
    assert schema(place) == DuckDB(place).schema() == {"some table'\"": dict.fromkeys(HEADERS[content], "VARCHAR")}


@pytest.mark.parametrize(
    ("content", "word"),
    [(b"", "empty"), (b"\n1,2\n", "empty"), (b"a,,b\n", "column 2 has no name"), (b"a,A\n", "twice"),
     (b'a,"b\nc",d\n1,2,3\n', "not closed"), (b'a,"b"c\n', "not at the end"), (b"a,b\r1,2\r", "carriage return"),
     ("größe,b\n".encode("latin-1"), "not UTF-8"), ("a,b\n".encode("utf-16"), "not UTF-8"), (b"a\0,b\n", "not UTF-8"),
     (b"a;b\n1;2\n", "semicolons"), (b"a\tb\n", "tabs"), (b"a" * 3_000_000, "bytes")],
)  # fmt: skip
def test_a_header_that_cannot_be_read_is_refused_in_words(tmp_path, content, word):
    """It is the owner's line, and public; the same words whether data are described or loaded."""
    (tmp_path / "t.csv").write_bytes(content)
    for read in (schema, lambda place: DuckDB(place).schema()):
        with pytest.raises(PolicyError, match=word) as refused:
            read(tmp_path)
        assert "t.csv" in str(refused.value)


def made(folder, **contents):
    for name, content in contents.items():
        (folder / name.replace("__", ".")).write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("contents", "word"),
    [({"Visits__csv": b"a\n", "visits__parquet": b""}, "two files have the same table name"),
     ({"a__parquet": b"PAR1 is not enough"}, "cannot be read as Parquet"),
     ({"a__parquet": b"", "b__csv": b"a\n"}, "cannot be read as Parquet")],
)  # fmt: skip
def test_files_that_are_no_tables_are_refused_in_words(tmp_path, contents, word):
    for read in (schema, lambda place: DuckDB(place).schema()):
        with pytest.raises(PolicyError, match=word):
            read(made(tmp_path, **contents))


def test_a_parquet_file_with_damaged_pages_is_refused_in_words(tmp_path):
    """The footer says what is in it, so only loading notices."""
    place = tmp_path / "t.parquet"
    duckdb.sql("SELECT i AS a, 'a secret' || i AS b FROM range(5000) t(i)").write_parquet(str(place))
    content = bytearray(place.read_bytes())
    footer = int.from_bytes(content[-8:-4], "little") + 8
    content[4:-footer] = bytes(len(content) - footer - 4)
    place.write_bytes(content)
    with pytest.raises(PolicyError, match="cannot be read as Parquet") as refused:
        DuckDB(place).check("SELECT 1")
    assert "secret" not in str(refused.value)


def test_folders_links_and_other_files_among_tables(tmp_path):
    made(tmp_path, a__CSV=b"x\n1\n", b__csv=b"y\n2", notes__txt=b"z\n")
    (tmp_path / "._a.csv").write_bytes(b"\0\5\x16\7")  # what some systems leave beside a file
    (tmp_path / "c.csv").symlink_to(tmp_path / "b.csv")
    expected = {"a": {"x": "VARCHAR"}, "b": {"y": "VARCHAR"}, "c": {"y": "VARCHAR"}}
    assert schema(tmp_path) == DuckDB(tmp_path).schema() == expected
    (tmp_path / "d.csv").symlink_to(tmp_path / "nowhere.csv")
    with pytest.raises(PolicyError, match=r"d\.csv"):
        schema(tmp_path)
    (tmp_path / "d.csv").unlink()
    (tmp_path / "d.parquet").mkdir()
    with pytest.raises(PolicyError, match=r"d\.parquet"):
        schema(tmp_path)


@pytest.mark.parametrize("name", ["t.txt", "t.csv.zst", "t.csv.gz", "t.xlsx", "t.duckdb", "t"])
def test_a_file_of_another_kind_is_refused_in_words(tmp_path, name):
    (tmp_path / name).write_bytes(b"a\tb\n1\t2\n" * 1000)
    for read in (schema, lambda place: DuckDB(place).schema()):
        with pytest.raises(PolicyError, match=r"do: .*"):
            read(tmp_path / name)


@pytest.mark.parametrize("inside", ["plain", "[x]"])
@pytest.mark.parametrize("name", ["v[1]", "v*", "v?", "a b'\"", "ä€"])
def test_the_name_of_a_parquet_file_is_no_pattern(tmp_path, name, inside):
    """Else other files, of other people, would be read in its place or with it; nor are folders columns."""
    folder = tmp_path / "year=2024" / inside
    folder.mkdir(parents=True)
    for number, each in enumerate([name, "v1", "v2"]):
        duckdb.sql(f"SELECT {number} AS a").write_parquet(str(folder / f"{each}.parquet"))
    engine = DuckDB(folder / f"{name}.parquet")
    assert engine.run(f'FROM "{name.replace(chr(34), chr(34) * 2)}"') == [(0,)]
    assert schema(folder)[name] == engine.schema()[name] == {"a": "INTEGER"}


ODD = b'1,x\n2,"a\n3,"b" c\n4\n5,a\rb\n6,\xff\n7,y,z\n8,y,\n\n""\n9,"a""b"\r\n' + b"x" * 100 + b"\n10,z"


@pytest.mark.parametrize(("block", "separator"), [(1, ","), (7, ","), (90, ","), (7, ";")])
def test_the_owner_learns_how_many_lines_are_odd(tmp_path, block, separator):
    (tmp_path / "t.csv").write_bytes((b"id,name\n" + ODD).replace(b",", separator.encode()))
    with patch.multiple(csv_lines, BLOCK=block, LONGEST=90):
        found = check_csv(tmp_path / "t.csv", separator)
        rows = DuckDB(tmp_path / "t.csv", delimiters=(("t", separator),)).run("SELECT COUNT(*) FROM t")
    assert found == csv_lines.LineCounts(
        lines=13, unclosed=1, text_after_quote=1, carriage_return=1, not_utf8=1, short=1, empty=2, wide=1, long=1
    )
    assert rows == [(found.lines - found.left_out,)]


def test_the_command_counts_and_shows_no_value(tmp_path):
    def run(*words):
        return CliRunner().invoke(main, ["data", "check", str(tmp_path), *words])

    made(tmp_path, fine__csv=b"id\n1\n", t__csv=b'id,name\n1,"secret\n2,b\n')
    found = run()
    assert found.exit_code == 7
    assert "fine.csv: 1 lines, all well-formed" in found.output
    assert "1  end inside quotes" in found.output
    assert "secret" not in found.output
    assert json.loads(run("--json").output)["t.csv"]["unclosed"] == 1
    (tmp_path / "t.csv").unlink()
    assert run().exit_code == 0


def test_the_operators_log_tells_of_odd_lines_and_no_value(tmp_path, caplog):
    made(tmp_path, t__csv=b'id,name\n1,"secret\n\n2,b\n', u__csv=b"id\n\n1\n")
    DuckDB(tmp_path).check("SELECT 1")
    assert [record.getMessage().split(";")[0] for record in caplog.records] == ["t.csv: 1 of 3 lines left out"]
    assert "secret" not in caplog.text


def test_the_columns_of_what_is_open_are_not_those_of_a_file_that_lies_there_by_now(tmp_path):
    place = tmp_path / "t.csv"
    place.write_text("person,stay\n1,2\n")
    engine = DuckDB(place)
    assert engine.run("SELECT COUNT(*) FROM t") == [(1,)]
    place.write_text("person,stay,more\n1,2,3\n")
    assert set(engine.schema()["t"]) == {"person", "stay"}


@pytest.mark.parametrize("odd", [b"3", b"3,c,extra", b"3,\xff\xfe", b"", b"3,'"])
def test_an_odd_line_of_a_csv_file_neither_raises_nor_changes_the_others(tmp_path, odd):
    (tmp_path / "t.csv").write_bytes(b"id,code\n1,a\n" + odd + b"\n2,b\n")
    rows = DuckDB(tmp_path / "t.csv").run("SELECT id, code FROM t WHERE id IN ('1', '2') ORDER BY id")
    assert rows == [("1", "a"), ("2", "b")]


def test_one_value_of_a_csv_file_does_not_change_the_others(tmp_path):
    """Were types sniffed, one patient's word would turn everybody's 007 into 7, or back."""
    found = []
    for last in ("8", "eight"):
        (tmp_path / "t.csv").write_text(f"id,code\n1,007\n2,007\n3,{last}\n")
        engine = DuckDB(tmp_path / "t.csv")
        found.append(engine.run("SELECT code FROM t WHERE id <> '3'"))
    assert found == [[("007",), ("007",)]] * 2
