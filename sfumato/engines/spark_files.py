"""The files of a table on Spark: which there are, how long each is, and when it was changed.

Spark lists the files of a table once and reads them later, so a file that is replaced meanwhile is read without a word.
What was listed is therefore compared with what is there after the last statement: the same path, length and time of
change. All of it is asked of Spark, which sees files that this process may not reach.
"""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from sfumato.engines.duckdb import fold_case
from sfumato.errors import EngineUnavailable, PolicyError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

PARQUET = ".parquet"
STAMP = ("path", "length", "unix_micros(modificationTime)")
MISSING = "PATH_NOT_FOUND"
STATE = "sfumatoState"  # an option without effect: Spark takes two plans for one, and serves what either has cached, if
# their folders and options are the same, whatever files these held


class DataChanged(EngineUnavailable):
    """Files of a table were changed while a question read them: it has no answer, rather than one of two states."""


@dataclass(frozen=True)
class Files:
    """path → (length, microseconds of its last change)."""

    found: Mapping[str, tuple[int, int]]

    @property
    def mark(self) -> str:
        """A fingerprint of these files: equal for equal files only."""
        return hashlib.sha256(repr(sorted(self.found.items())).encode()).hexdigest()

    def of(self, paths: Collection[str]) -> "Files":
        """Those of these paths; a path that is not among them was added or taken away meanwhile."""
        if missing := [path for path in paths if path not in self.found]:
            raise DataChanged(f"files came or went while they were listed: {len(missing)} of them")
        return Files({path: self.found[path] for path in paths})

    def require_unchanged(self, now: "Files") -> None:
        """Raises unless each of these files is there as it was; others may have been added."""
        if any(now.found.get(path) != stamp for path, stamp in self.found.items()):
            raise DataChanged("files of a table were replaced, changed or deleted while a question read them")


def list_files(lister: "SparkSession", places: list[str]) -> Files:
    """All files below these folders, and these files. Nothing of their contents is read."""
    reader = lister.read.format("binaryFile").option("recursiveFileLookup", "true")
    rows = reader.load(places).selectExpr(*STAMP).collect() if places else []
    return Files({str(path): (int(length), int(changed)) for path, length, changed in rows})


def files_of(frame: "DataFrame") -> list[str]:
    """The paths that this frame reads, in the spelling of a listing."""
    return sorted(plain_path(path) for path in frame.inputFiles())


def plain_path(address: str) -> str:
    """file:///a%20b as file:/a b: an address without its escapes, as Hadoop spells a path."""
    plain = unquote(address)
    return plain.replace(":///", ":/", 1)


@dataclass(frozen=True)
class TableFolder:
    """Where the files of one table lie; folders inside it are partitions (year=2024), or just folders."""

    place: str
    partitioned: bool
    files: Files


def tables_in(folder: str, listed: Files) -> dict[str, TableFolder]:
    """The tables in a folder: each Parquet file, and each folder of Parquet files, is the table of its name."""
    base = base_of(folder, listed)
    places: dict[str, str] = {}
    parts: dict[str, dict[str, tuple[int, int]]] = {}
    deep: dict[str, set[bool]] = {}
    for path, stamp in listed.found.items():
        first, _, rest = path.removeprefix(base).partition("/")
        name = fold_case(first.removesuffix(PARQUET))
        if not path.endswith(PARQUET):
            raise refusal(name, path.rpartition("/")[2], "a file in it is not Parquet")
        if places.setdefault(name, first) != first:
            raise refusal(name, f"{places[name]} and {first}", "two tables have one name")
        parts.setdefault(name, {})[path] = stamp
        deep.setdefault(name, set()).add(bool(rest) and all("=" in part for part in rest.split("/")[:-1]))
    if mixed := [name for name, kinds in deep.items() if len(kinds) > 1]:
        raise refusal(
            mixed[0], "folders with and without names like year=2024", "only some of its folders are partitions"
        )
    return {
        name: TableFolder(f"{base}{first}", deep[name] == {True}, Files(parts[name])) for name, first in places.items()
    }


def base_of(folder: str, listed: Files) -> str:
    """The folder as it begins each path, which has its scheme: file:/lake/ for /lake."""
    mark = f"{plain_path(folder).rstrip('/')}/"
    return next((path[: path.index(mark) + len(mark)] for path in listed.found if mark in path), mark)


def frame_of(session: "SparkSession", table: TableFolder, schema: "StructType | None") -> "DataFrame":
    """The table, with a listing that stays as it is: all of its files, or an error."""
    reader = session.read.option("recursiveFileLookup", str(not table.partitioned).lower())
    reader = reader.option(STATE, table.files.mark)
    frame = (reader if schema is None else reader.schema(schema)).parquet(table.place)
    if set(files_of(frame)) != set(table.files.found):
        raise DataChanged("files of a table came or went while they were listed")
    return frame


def require_plain(lister: "SparkSession", folder: str) -> None:
    """Raises if a table of the folder is a Delta table: some of its files are of older states."""
    try:
        found = list_files(lister, [f"{folder.rstrip('/')}/*/_delta_log/*.json"]).found
    except Exception as problem:
        if MISSING in str(problem):
            return
        raise
    for path in found:
        raise refusal(path.split("/")[-3], "_delta_log", "it is a Delta table, whose files are not all of one state")


def refusal(name: str, what: str, why: str) -> PolicyError:
    return PolicyError(
        f"this cannot be read as a table: {why}.\n  found:  {name}: {what}\n"
        "  do:     make it a table of the catalog, and open the curator without the folder"
    )
