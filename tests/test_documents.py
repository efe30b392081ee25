"""All pages at the top of the repository and in docs/ are executed and their links followed: none promises what is not.

A block marked `python` is run, `python no-run` is only compiled, `pycon` is checked as a doctest; `make clients` runs
what is marked with `clients`.
The blocks of one document run in order and share their names, in an empty folder.
"""

import doctest
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pytest

from tools.site.stage import GENERATED

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]

FENCED = re.compile(r"^ *(?P<fence>`{3,}|~{3,})(?P<kind>[^\n`]*)\n(?P<code>.*?)^ *(?P=fence)[`~]* *$", re.M | re.S)
INLINE_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.S)
LINK = re.compile(
    r"""\]\(\s*<?([^)>\s]+)>?(?:\s+["'(][^)]*)?\)"""  # [text](target "title"), ![text](target)
    r"""|^ {0,3}\[[^\]\n]+\]:\s*<?([^>\s]+)"""  # [name]: target
    r"""|<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=["']([^"']+)""",
    re.M,
)

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())


@dataclass(frozen=True)
class Block:
    """A fenced block: what it says it is, its text, and the line of the document its text begins on."""

    kind: str
    code: str
    line: int


def blocks(text: str) -> Iterator[Block]:
    for match in FENCED.finditer(text):
        line = text.count("\n", 0, match.start("code")) + 1
        yield Block(" ".join(match["kind"].split()), textwrap.dedent(match["code"]), line)


def run(document: Path) -> None:
    """Run a document from top to bottom. Errors carry the document's own line numbers."""
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(document.read_text(encoding="utf-8")):
        match block.kind:
            case "python" | "python no-run" | "python clients":
                code = compile("\n" * (block.line - 1) + block.code, document, "exec")
                if block.kind == "python":
                    exec(code, names)
            case "pycon":
                check_session(block, document, names)
            case kind if kind.lower().startswith("py"):
                pytest.fail(f"{document}:{block.line}: a block is python, python no-run or pycon, not {kind!r}")


def check_session(block: Block, document: Path, names: dict[str, object]) -> None:
    session = doctest.DocTestParser().get_doctest(block.code, names, document.name, str(document), block.line - 1)
    assert session.examples, f"{document}:{block.line}: a pycon block without a line that starts with >>>"
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    report: list[str] = []
    failed, _ = runner.run(session, out=report.append, clear_globs=False)
    names.update(session.globs)  # doctest works on a copy
    if failed:
        pytest.fail("".join(report), pytrace=False)


def broken_links(document: Path, root: Path) -> list[str]:
    """Links and images of a document that point at nothing, or out of the repository."""
    prose = INLINE_CODE.sub("", FENCED.sub("", document.read_text(encoding="utf-8")))
    targets = (next(filter(None, match)) for match in LINK.findall(prose))
    return [target for target in targets if is_ours(target) and not leads_somewhere(target, document, root)]


def is_ours(target: str) -> bool:
    return not re.match(r"[a-z][a-z0-9+.-]*:|//|#", target, re.I)


def leads_somewhere(target: str, document: Path, root: Path) -> bool:
    path = (document.parent / unquote(re.split(r"[?#]", target)[0])).resolve()
    is_there = path.exists() or path in {root.resolve() / "docs" / name for name in GENERATED}
    return is_there and path.is_relative_to(root.resolve())


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


NAMED_FILE = re.compile(r"`((?:sfumato|tests|tools|bench)/[\w/-]+(?:\.\w+|/))`")


def missing_files(document: Path, root: Path) -> list[str]:
    """Files and folders of the repository that a document names in code style and that are not there."""
    return [name for name in NAMED_FILE.findall(document.read_text(encoding="utf-8")) if not (root / name).exists()]


@pytest.mark.slow
@each_document
def test_the_code_of_a_document_runs(document, empty_folder):
    run(document)


@each_document
def test_the_links_of_a_document_lead_somewhere(document):
    assert not broken_links(document, ROOT)


@each_document
def test_the_files_that_a_document_names_exist(document):
    assert not missing_files(document, ROOT)


def test_a_file_that_is_not_there_is_reported(tmp_path):
    page = written(tmp_path, "`sfumato/gone.py`, `tests/gone/`, `page.md`, `sfumato ask`, `docs/NNNN.md`\n")
    assert missing_files(page, tmp_path) == ["sfumato/gone.py", "tests/gone/"]


def written(folder: Path, text: str) -> Path:
    path = folder / "page.md"
    path.write_text(text, encoding="utf-8")
    return path


def test_blocks_share_their_names_and_run_in_order(empty_folder):
    session_in_a_list = "- item\n\n  ```pycon\n  >>> b = a + 1\n  ```\n"
    run(written(empty_folder, f"```python\na = 1\n```\n{session_in_a_list}```python\nassert b == 2\n```\n"))


def test_a_block_marked_no_run_is_compiled_only(empty_folder):
    run(written(empty_folder, "```python no-run\nnot_defined\n```\n"))
    with pytest.raises(SyntaxError):
        run(written(empty_folder, "```python no-run\nnot a program\n```\n"))


def test_other_blocks_are_left_alone(empty_folder):
    run(written(empty_folder, "```sql\nSELECT 1\n```\n```\nplain\n```\n````text\n```python\nnot_defined\n```\n````\n"))


@pytest.mark.parametrize("kind", ["py", "python3", "Python", "python norun"])
def test_a_misspelt_kind_of_block_does_not_go_unnoticed(empty_folder, kind):
    with pytest.raises(pytest.fail.Exception, match="python no-run or pycon"):
        run(written(empty_folder, f"```{kind}\n1\n```\n"))


def test_an_error_carries_the_line_of_the_document(empty_folder):
    with pytest.raises(ZeroDivisionError) as caught:
        run(written(empty_folder, "# Title\n\n```python\n1\n1 / 0\n```\n"))
    assert caught.traceback[-1].lineno + 1 == 5


def test_a_wrong_session_is_reported(empty_folder):
    with pytest.raises(pytest.fail.Exception, match="line 4"):
        run(written(empty_folder, "# Title\n\n```pycon\n>>> 1 + 1\n3\n```\n"))


def test_broken_links_are_reported(tmp_path):
    page = written(
        tmp_path,
        "[self](page.md#top) [top](#top) [web](https://example.org) [gone](gone.md) ![gone](gone.svg 'title')\n"
        "`[code](is-code.md)` <img alt='x' src=\"gone.png\"> [out](../../elsewhere)\n\n[ref]: gone-too.md\n",
    )
    assert broken_links(page, tmp_path) == ["gone.md", "gone.svg", "gone.png", "../../elsewhere", "gone-too.md"]
