"""Make notebooks of the lectures and examples: `python tools/notebooks.py` writes examples/*.ipynb from pages of docs/.

Code of a page becomes cells of code, everything else cells of text; figures and links point to the page's own. Cells
have no outputs, and nothing depends on the time, so equal pages make equal files. A test holds both equal.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = re.compile(r"^```python\n(.*?)^```$\n?", re.M | re.S)
PAGES = tuple(
    page
    for folder in ("lectures", "examples")
    for page in sorted((ROOT / "docs" / folder).glob("*.md"))
    if CODE.search(page.read_text(encoding="utf-8"))
)
TARGET = re.compile(r"(\]\(|src=\")(?!https?:|#|mailto:)([^)\"]+)")


def notebook(page: Path) -> str:
    """The notebook of a page, as the text of its file."""
    parts = CODE.split(page.read_text(encoding="utf-8"))  # text, code, text, code, …
    cells = []
    for place, part in enumerate(parts):
        text = part.strip("\n")
        if text and place % 2:
            cells.append(cell("code", text, len(cells)) | {"execution_count": None, "outputs": []})
        elif text:
            cells.append(cell("markdown", TARGET.sub(lambda match: match[1] + moved(match[2], page), text), len(cells)))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(book, ensure_ascii=False, indent=1) + "\n"


def cell(kind: str, text: str, place: int) -> dict[str, object]:
    """A cell with its number as its name."""
    return {"cell_type": kind, "id": f"cell-{place}", "metadata": {}, "source": text.splitlines(keepends=True)}


def moved(target: str, page: Path) -> str:
    """A relative link of the page, seen from examples/."""
    path, mark, place = target.partition("#")
    if not path:
        return target
    found = (page.parent / path).resolve()
    return f"../{found.relative_to(ROOT).as_posix()}{mark}{place}"


def path_of(page: Path) -> Path:
    """Where the notebook of a page lies."""
    return ROOT / "examples" / f"{page.stem}.ipynb"


def main() -> int:
    """Write all notebooks."""
    (ROOT / "examples").mkdir(exist_ok=True)
    for page in PAGES:
        path_of(page).write_text(notebook(page), encoding="utf-8")
    print(f"{len(PAGES)} notebooks are in examples/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
