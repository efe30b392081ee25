"""`make docs-check`: pages of the built site in Chromium, opened as files: light, dark, on a phone.

axe-core looks at each page, nothing may be requested from elsewhere, and the search must find something.
python -m tools.site.check_browser [FOLDER for screenshots] [PAGE …]
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.server.console.chromium import Browser, chromium
from tools.site.stage import ROOT

SITE = ROOT / "site"
AXE = ROOT / "bench" / ".peers" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
LOOKS = (("light", 1280, False), ("dark", 1280, True), ("phone", 390, False))
FOUND = (
    "axe.run(document, {resultTypes: ['violations']}).then((r) => JSON.stringify(r.violations"
    ".filter((v) => v.impact !== 'minor').map((v) =>"
    " `${v.impact} ${v.id}: ${v.nodes.length} × ${v.nodes.map((n) => n.target).slice(0, 3).join('; ')}`)))"
)
COLOURS = "document.body.dataset.mdColorMedia && document.body.dataset.mdColorScheme"
WORDS = "BudgetExceeded"
QUERY = "document.querySelector('[data-md-component=search-query]')"
OPEN_SEARCH = f"document.querySelector('#__search').click(); {QUERY}.focus(); 1"


def pages() -> list[str]:
    """All pages but those that show a file of code, of which one is enough."""
    found = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
    return [name for name in found if name != "404.html" and not name.startswith("source/")] + [
        "source/sfumato/loss/base.py.html"
    ]


def requests(browser: Browser) -> list[str]:
    """Addresses outside of the site that were asked for since the last look."""
    sent = [e["params"]["request"]["url"] for e in browser.events if e.get("method") == "Network.requestWillBeSent"]
    browser.events.clear()
    return [url for url in sent if not url.startswith(("file:", "data:", "about:", "blob:"))]


def looks(browser: Browser, folder: Path, names: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each page and look, with what is wrong there."""
    for look, width, dark in LOOKS:
        browser.screenshot(folder / "blank.png", width, 900, dark=dark)  # sets size and colours
        browser.open((SITE / names[0]).as_uri())
        browser.wait_for(COLOURS)  # now the theme has stored the colours of the last look, and does not so again
        browser.run("localStorage.clear(); 1")
        for name in names:
            browser.open((SITE / name).as_uri())
            browser.wait_for(
                f"document.querySelector('.md-content') && {COLOURS} === '{'slate' if dark else 'default'}'"
            )
            shot = folder / f"{name.replace('/', '-').removesuffix('.html')}-{look}.png"
            browser.screenshot(shot, width, 900, dark=dark)
            browser.run(AXE.read_text("utf-8") + "; 1")
            found = list(json.loads(browser.run(FOUND))) + [f"asks for {url}" for url in requests(browser)]
            if (wide := browser.run("document.documentElement.scrollWidth")) > width:
                found.append(f"{wide} wide on a screen of {width}")
            yield f"{name}, {look}", found


def search_works(browser: Browser, folder: Path) -> bool:
    browser.open((SITE / "index.html").as_uri())
    browser.wait_for(QUERY)
    browser.run(OPEN_SEARCH)
    browser.wait_for("document.querySelector('.md-search-result__meta').innerText.startsWith('Type')")
    browser.write(WORDS)
    browser.run(f"{QUERY}.dispatchEvent(new Event('keyup')); 1")
    browser.wait_for("document.querySelectorAll('.md-search-result__item').length > 0")
    browser.screenshot(folder / "search.png", 1280, 900)
    return WORDS.lower() in str(browser.run("document.querySelector('.md-search-result__list').innerText")).lower()


def main() -> int:
    wrong = 0
    with tempfile.TemporaryDirectory() as profile, chromium(Path(profile)) as browser:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(profile)
        folder.mkdir(exist_ok=True)
        for name, found in looks(browser, folder, sys.argv[2:] or pages()):
            wrong += len(found)
            if found:
                print(f"WRONG  {name}", *found, sep="\n         ", flush=True)
        if not search_works(browser, folder):
            wrong += 1
            print("WRONG  the search finds nothing")
    print(f"{len(sys.argv[2:] or pages())} pages, {len(LOOKS)} looks each: {wrong} complaints")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
