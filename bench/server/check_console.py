"""`make console`: every page of the console in Chromium, looked at by axe-core: light, dark, and on a phone; and the
console by keyboard alone, under Playwright.

python -m bench.server.check_console [FOLDER for screenshots]
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sfumato.server.demo import serve_demo
from tests.server.console.chromium import Browser, chromium

PLAYWRIGHT = Path(__file__).parents[1] / ".peers" / "server-browser" / "bin" / "python"
AXE = Path(__file__).parents[1] / ".peers" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
PAGES = ("ask", "budget", "ledger", "policy", "people", "audit")
LOOKS = (("light", 1280, False), ("dark", 1280, True), ("phone", 390, False))
FOUND = (
    "axe.run(document, {resultTypes: ['violations']}).then((r) => JSON.stringify(r.violations.map((v) =>"
    " `${v.id}: ${v.nodes.map((n) => n.target + ' ' + n.failureSummary).slice(0, 2).join('; ')}`)))"
)
DRAFT = "document.querySelector('#text').value = document.querySelector('#text').value.replace('= 0.2 ', '= 0.3 ')"


def violations(browser: Browser) -> list[str]:
    browser.run(AXE.read_text("utf-8") + "; 1")
    return list(json.loads(browser.run(FOUND)))


def prepare(browser: Browser, base: str, page: str) -> None:
    """Open a page, in the state in which it shows most."""
    browser.open(f"{base}/console/data/clinic/{page}")
    browser.wait_for(f"document.title.toLowerCase().startsWith('{page}')")
    if page == "ask":
        browser.wait_for("document.querySelector('#preview .price')")
        browser.run("document.querySelector('#sql').focus()")
        browser.press("Enter", 13, modifiers=2)
        browser.wait_for("document.querySelectorAll('.answer tbody tr').length > 1")
    if page == "budget":
        browser.wait_for("document.querySelectorAll('.chart canvas').length >= 3")
    if page == "policy":
        browser.run(DRAFT)
        browser.run("document.querySelector('button[value=review]').click()")
        browser.wait_for("document.querySelector('#change')")


def looks(browser: Browser, base: str, token: str, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Each page and look, with what is wrong there."""
    browser.open(f"{base}/console/")
    browser.wait_for("document.activeElement.id === 'token'")
    yield "login", violations(browser)
    browser.write(token)
    browser.press("Enter", 13)
    for page in PAGES:
        browser.wait_for("document.querySelector('nav')")
        prepare(browser, base, page)
        for look, width, dark in LOOKS:
            browser.screenshot(folder / f"console-{page}-{look}.png", width, 1000, dark=dark)
            found = violations(browser)
            if (wide := browser.run("document.documentElement.scrollWidth")) > width:
                found.append(f"{wide} wide on a screen of {width}")
            yield f"{page}, {look}", found


def main() -> int:
    wrong, demo = 0, serve_demo()
    with tempfile.TemporaryDirectory() as profile, chromium(Path(profile)) as browser:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(profile)
        folder.mkdir(exist_ok=True)
        try:
            for name, found in looks(browser, demo.url.rpartition("/")[0], demo.tokens["owner"], folder):
                wrong += len(found)
                print(f"{'ok    ' if not found else 'WRONG '} {name}", *found, sep="\n         ", flush=True)
            if PLAYWRIGHT.exists():
                place = [demo.url.rpartition("/")[0], demo.tokens["journalist"]]
                wrong += subprocess.run([PLAYWRIGHT, Path(__file__).with_name("walk_console.py"), *place]).returncode
        finally:
            demo.stop()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
