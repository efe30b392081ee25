"""Links of a built site: every one leads to a page and a place in it, and nothing is loaded from elsewhere."""

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("source", "srcset"), ("iframe", "src")}
OUTSIDE_CSS = re.compile(r"url\(\s*['\"]?(?:https?:)?//|@import\s+['\"]?(?:https?:)?//")


class Page(HTMLParser):
    """The links, loaded files and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            if (tag, name) in LOADED and not (tag == "link" and ("rel", "canonical") in attributes):
                self.loaded.append(value)
            elif tag == "a" and name == "href":
                self.links.append(value)


def complaints(site: Path) -> list[str]:
    """What is wrong with a site, one line each."""

    @cache
    def read(path: Path) -> Page:
        page = Page()
        page.feed(path.read_text("utf-8"))
        return page

    wrong: list[str] = []
    for path in sorted(site.rglob("*.html")):
        if path.name == "404.html":  # shown at any address, so its links are absolute
            continue
        page, name = read(path), path.relative_to(site).as_posix()
        outside = [link for link in page.loaded if re.match(r"(?:https?:)?//", link)]
        wrong += [f"{name} loads {link}" for link in outside]
        for link in {*page.links, *page.loaded}:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("#__"):
                continue
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            if not target.is_file():
                wrong.append(f"{name} links to {link}, which is not there")
            elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in read(target).anchors:
                wrong.append(f"{name} links to {link}, which has no such place")
    wrong += [
        f"{path.relative_to(site)} loads from elsewhere"
        for path in sorted(site.rglob("*.css")) if OUTSIDE_CSS.search(path.read_text("utf-8"))
    ]  # fmt: skip
    return wrong
