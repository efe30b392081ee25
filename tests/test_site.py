"""The site: pages become what its generator reads, every page is on a path, and the reference covers what there is."""

from pathlib import Path

import pytest

import sfumato
from sfumato.aggregates.registry import AGGREGATES
from sfumato.cli.explain import all_errors
from sfumato.sql.functions import FUNCTIONS
from tools.site import check_links
from tools.site.markdown import change_links, escape, for_site, title_of
from tools.site.navigation import PATHS, Unlisted, navigation
from tools.site.reference import pages, public_names
from tools.site.stage import GENERATED, ROOT, BrokenLink, Staging


@pytest.fixture(scope="module")
def reference():
    return pages()


@pytest.fixture(scope="module")
def staged(tmp_path_factory, reference):
    staging = Staging(tmp_path_factory.mktemp("pages"))
    for name, text in reference.items():
        staging.generated(name, text)
    staging.stage_docs()
    staging.stage_linked()
    return staging.folder


def test_pages_that_others_link_to_are_those_that_are_generated(reference):
    assert set(reference) == set(GENERATED)


def test_every_page_is_on_a_path_and_no_link_is_broken(staged):
    found = navigation(staged)
    assert [next(iter(entry)) for entry in found if isinstance(entry, dict)][:3] == ["Start", "Analyst", "Data owner"]
    assert (staged / "source" / "sfumato" / "aggregates" / "mode.py.md").exists()


def test_a_page_on_no_path_is_an_error(staged, tmp_path):
    odd = staged / "forgotten.md"
    odd.write_text("# Forgotten\n", "utf-8")
    try:
        with pytest.raises(Unlisted, match=r"forgotten\.md"):
            navigation(staged)
    finally:
        odd.unlink()
    with pytest.raises(Unlisted, match="is not there"):
        navigation(tmp_path)


def test_each_reader_has_a_path():
    readers = {"Analyst", "Data owner", "Operator", "Modeller", "Surveyor", "Researcher", "Contributor", "Reviewer"}
    assert readers <= set(PATHS)


def test_how_to_pages_fit_on_a_screen_or_two():
    for page in (ROOT / "docs" / "how-to").glob("*.md"):
        assert len(page.read_text("utf-8").splitlines()) < 110, page.name


def test_a_link_to_nothing_stops_the_build(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("# Page\n\n[gone](gone.md)\n", "utf-8")
    with pytest.raises(BrokenLink, match=r"gone\.md leads nowhere"):
        Staging(tmp_path / "out", tmp_path).stage_docs()


def test_code_outside_of_docs_is_shown_in_the_site(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("# Page\n\n[code](../tool.py), `[not](a-link.md)`\n", "utf-8")
    (tmp_path / "tool.py").write_text('"""A tool."""\n', "utf-8")
    staging = Staging(tmp_path / "out", tmp_path)
    staging.stage_docs()
    staging.stage_linked()
    assert "[code](source/tool.py.md), `[not](a-link.md)`" in (tmp_path / "out" / "page.md").read_text("utf-8")
    assert "A tool." in (tmp_path / "out" / "source" / "tool.py.md").read_text("utf-8")


# ---- Markdown -------------------------------------------------------------------------------------------------------


def test_what_stands_after_a_language_is_left_out():
    assert for_site("```python no-run\nx\n```") == "```python\nx\n```"
    assert for_site("````text\n```python no-run\n```\n````") == "````text\n```python no-run\n```\n````"


def test_a_list_after_a_paragraph_becomes_a_list():
    assert for_site("Words:\n- one\n- two") == "Words:\n\n- one\n- two"


def test_code_in_a_list_is_indented_by_four():
    page = for_site("- one\n\n  ```python\n  x = 1\n      y\n  ```\n\nafter")
    assert page == "- one\n\n    ```python\n    x = 1\n        y\n    ```\n\nafter"


def test_links_in_code_are_left_alone():
    page = '[a](b.md) `[a](b.md)`\n```\n[a](b.md)\n```\n<img src="b.png">'
    assert change_links(page, lambda link: f"x/{link}") == page.replace("[a](b.md) `", "[a](x/b.md) `").replace(
        '"b.png"', '"x/b.png"'
    )


def test_a_title_is_the_first_heading():
    assert title_of("```\n# not this\n```\n# `this` one\n") == "this one"
    with pytest.raises(ValueError, match="no heading"):
        title_of("words")


def test_a_docstring_is_shown_as_it_is_written():
    assert escape("a_b * `c_d` <e>") == r"a\_b \* `c_d` \<e\>"


# ---- the reference --------------------------------------------------------------------------------------------------


def test_every_public_name_has_an_entry(reference):
    shown = "\n".join(text for name, text in reference.items() if name.startswith("reference/api/"))
    assert len(public_names()) > 250
    assert not [name for name in public_names() - sfumato.PACKAGES if f"## {name}\n" not in shown]


def test_every_aggregate_function_and_error_has_an_entry(reference):
    assert all(f"`{name}`" in reference["reference/sql.md"] or "|" in name for name in FUNCTIONS)
    assert all(f"### {one.listed}" in reference["reference/sql.md"] for one in AGGREGATES.classes if one.listed)
    assert all(f"## {kind.__name__}\n" in reference["reference/errors.md"] for kind in all_errors())


def test_no_address_of_memory_is_shown(reference):
    assert not [name for name, text in reference.items() if " at 0x" in text]


# ---- links of a built site ------------------------------------------------------------------------------------------


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.html").write_text(text, "utf-8")
    return folder


def test_links_that_lead_nowhere_and_files_from_elsewhere_are_found(tmp_path):
    site = written(
        tmp_path,
        a='<h1 id="top"><a href="b.html#here"></a><a href="b.html#gone"></a><a href="c.html"></a><a href="#top"></a>',
        b='<p id="here"></p><script src="https://example.org/x.js"></script><a href="https://example.org">x</a>',
    )
    (site / "x.css").write_text("@import url(https://example.org/font.css);", "utf-8")
    assert sorted(check_links.complaints(site)) == [
        "a.html links to b.html#gone, which has no such place",
        "a.html links to c.html, which is not there",
        "b.html loads https://example.org/x.js",
        "x.css loads from elsewhere",
    ]
