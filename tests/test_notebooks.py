"""Notebooks are their pages: the code that the tests run on a page is the code of its notebook, cell by cell."""

import json

import pytest

from tests.test_documents import ROOT, blocks
from tools.notebooks import PAGES, notebook, path_of

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@each_page
def test_a_notebook_is_equal_to_its_page(page):
    assert path_of(page).read_text(encoding="utf-8") == notebook(page), "run: python tools/notebooks.py"


@each_page
def test_the_code_of_a_notebook_is_the_code_that_the_tests_run(page):
    """The page's blocks are executed by tests/test_documents.py; the cells must be these, in this order."""
    book = json.loads(path_of(page).read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    run = [block.code.strip("\n") for block in blocks(page.read_text(encoding="utf-8")) if block.kind == "python"]
    assert cells == [code for code in run if code] and len(cells) > 3
    for code in cells:
        compile(code, path_of(page), "exec")


def test_every_notebook_has_a_page():
    assert {path_of(page) for page in PAGES} == set((ROOT / "examples").glob("*.ipynb"))


@each_page
def test_links_of_a_notebook_lead_somewhere(page):
    book = json.loads(path_of(page).read_text(encoding="utf-8"))
    text = "\n".join("".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "markdown")
    for target in (part.split(")")[0].split('"')[0] for part in text.replace('src="', "](").split("](")[1:]):
        path = target.partition("#")[0]
        assert not path or ":" in path or (ROOT / "examples" / path).resolve().exists(), target
