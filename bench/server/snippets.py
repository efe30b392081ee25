"""The snippets of docs/ask-from-your-tool.md that need a tool of their own, each run as it stands by that tool."""

import os
import shutil
import string
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.test_documents import ROOT, Block, blocks

PAGE = ROOT / "docs" / "ask-from-your-tool.md"
PLACE = ("host", "port", "user", "data", "token")
PGJDBC = Path("/usr/share/java/postgresql.jar")
ODBC = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu" / "odbc"
WARD = "cardiology"  # what each of them must show
Runner = Callable[[Block, list[str], Path], "subprocess.CompletedProcess[str] | None"]


def run(words: list[str], python: Path) -> int:
    """How many of them fail with these values of PLACE. A tool that is not here is said, and is no failure."""
    failed = 0
    runners: dict[str, Runner] = {"python": lambda *of: by_python(python, *of), "r": by_r, "java": by_java,
                                  "ini": by_odbc}  # fmt: skip
    for block in blocks(PAGE.read_text("utf-8")):
        language, _, marked = block.kind.partition(" ")
        if marked != "clients":
            continue
        with tempfile.TemporaryDirectory() as folder:
            done = runners[language](block, words, Path(folder))
        what = f"snippet of line {block.line}, {language}"
        if done is None:
            print(f"  –     {what}: it is not here")
            continue
        shown = done.stdout + done.stderr
        good = done.returncode == 0 and (WARD in shown or "n=" in shown)
        failed += not good
        print(f"  ok    {what}" if good else f"  FAIL  {what}\n{shown}")
    return failed


def completed(command: list[str | Path], **more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, env={**os.environ, **more}, capture_output=True, text=True, timeout=120)


def by_python(python: Path, block: Block, words: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    place = folder / "snippet.py"
    place.write_text(
        "\n".join(f"{name} = {word!r}" for name, word in zip(PLACE, words, strict=True)) + "\n" + block.code
    )
    return completed([python, place])


def by_r(block: Block, words: list[str], folder: Path) -> "subprocess.CompletedProcess[str] | None":
    if shutil.which("Rscript") is None or completed(["Rscript", "-e", "library(RPostgreSQL)"]).returncode:
        return None
    place = folder / "snippet.R"
    place.write_text(
        "\n".join(f'{name} <- "{word}"' for name, word in zip(PLACE, words, strict=True)) + "\n" + block.code
    )
    return completed(["Rscript", place])


def by_java(block: Block, words: list[str], folder: Path) -> "subprocess.CompletedProcess[str] | None":
    if shutil.which("java") is None or not PGJDBC.exists():
        return None
    place = folder / "Snippet.java"
    names = "\n".join(f'String {name} = "{word}";' for name, word in zip(PLACE, words, strict=True))
    place.write_text(
        f"class Snippet {{ public static void main(String[] a) throws Exception {{ {names}\n{block.code} }} }}"
    )
    return completed(["java", "-cp", PGJDBC, place])


def by_odbc(block: Block, words: list[str], folder: Path) -> "subprocess.CompletedProcess[str] | None":
    """A question, and the description of a table, which asks the catalogue for columns that must not be NULL."""
    if shutil.which("isql") is None or not ODBC.exists():
        return None
    text = string.Template(block.code).substitute(dict(zip(PLACE, words, strict=True)))
    (folder / "odbc.ini").write_text(text.replace("psqlodbcw.so", str(ODBC / "psqlodbcw.so")))
    (folder / "questions").write_text("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward\nhelp visits\n")
    where = {"ODBCINI": str(folder / "odbc.ini"), "ODBCSYSINI": str(folder)}
    ask = f"isql -b -v clinic < {folder / 'questions'} 2>&1"
    return completed(["sh", "-c", f"{ask} && ! {ask} | grep ERROR"], **where)
