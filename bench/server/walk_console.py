"""The console by keyboard alone, in Chromium under Playwright: run in the environment that has it.

    python walk_console.py ADDRESS TOKEN

Logs in, visits everything that Tab reaches, completes and asks a question, changes to dark mode, and looks at a phone.
"""

import shutil
import sys

from playwright.sync_api import sync_playwright

FOCUS = """() => {
    const e = document.activeElement, s = getComputedStyle(e), place = e.getBoundingClientRect();
    const seen = s.outlineStyle !== "none" || s.boxShadow !== "none" || e.matches(":focus-visible");
    return [e.tagName, (e.id || e.name || e.textContent.trim()).slice(0, 30), seen && place.width > 0];
}"""
STROKE = "getComputedStyle(document.documentElement).getPropertyValue('--ours').trim()"


def walk(page, address: str, token: str) -> None:
    """Everything by keyboard."""
    page.goto(f"{address}/console/")
    page.keyboard.type(token)
    page.keyboard.press("Enter")
    page.wait_for_selector("#preview .price")
    reached = []
    for _ in range(100):
        page.keyboard.press("Tab")
        tag, name, seen = page.evaluate(FOCUS)
        if tag == "BODY" or (reached and name == reached[0]):
            break
        assert seen, f"the focus is not seen on {tag} {name!r}"
        reached.append(name)
    assert {"sql", "epsilon-slider", "error-slider"} <= set(reached), reached
    page.focus("#sql")
    page.keyboard.press("Control+A")
    page.keyboard.type("SELECT ward, AVG(stay) AS stay FROM vis")
    page.wait_for_timeout(500)
    page.keyboard.press("Alt+ArrowDown")
    page.keyboard.press("Enter")
    assert page.input_value("#sql").endswith("FROM visits")
    page.keyboard.type(" GROUP BY ward")
    page.wait_for_selector("#preview .price")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".answer tbody tr")


def charts_follow_the_mode(page, address: str) -> None:
    """A picture in the colours of the day is not read at night."""
    page.goto(f"{address}/console/data/clinic/budget")
    page.wait_for_selector(".chart canvas")
    before = page.evaluate(STROKE)
    page.evaluate("document.querySelectorAll('.chart canvas').forEach((one) => { one.dataset.old = 'yes'; })")
    page.emulate_media(color_scheme="dark")
    page.wait_for_selector(".chart canvas[data-old]", state="detached")
    assert page.evaluate(STROKE) != before


def main() -> int:
    address, token = sys.argv[1:3]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page, foreign, wrong = browser.new_page(color_scheme="light"), [], []
        page.set_default_timeout(60_000)
        page.on("request", lambda one: None if one.url.startswith(address) else foreign.append(one.url))
        page.on("pageerror", lambda one: wrong.append(str(one)))
        walk(page, address, token)
        charts_follow_the_mode(page, address)
        phone = browser.new_context(**playwright.devices["Pixel 7"], color_scheme="dark").new_page()
        phone.set_default_timeout(60_000)
        phone.goto(f"{address}/console/")
        phone.fill("#token", token)
        phone.press("#token", "Enter")
        phone.wait_for_selector("#preview .price")
        wide = phone.evaluate("document.documentElement.scrollWidth")
        assert wide <= phone.viewport_size["width"], f"{wide} wide on a phone"
        assert not foreign and not wrong, (foreign, wrong)
        browser.close()
    print("ok     by keyboard, from day to night, and on a phone")
    return 0


if __name__ == "__main__":
    sys.exit(main())
