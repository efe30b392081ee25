"""The console in a real browser, by the keyboard alone: log in, see the preview, ask, see the answer."""

import re

import pytest

from tests.server.console.chromium import CHROMIUM, chromium

QUESTION = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
TAB, ENTER, END, CTRL = ("Tab", 9), ("Enter", 13), ("End", 35), 2


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_somebody_logs_in_asks_and_sees_the_answer_and_nothing_leaves_the_machine(door, token, tmp_path):
    with chromium(tmp_path) as browser:
        browser.open(f"{door.url}/console/")
        browser.wait_for("document.activeElement.id === 'token'")
        browser.write(token["ann"])
        browser.press(*ENTER)
        browser.wait_for("document.querySelector('#preview .price')")
        browser.run("document.querySelector('#sql').select()")
        browser.write(QUESTION + " ")
        browser.wait_for("document.querySelector('#preview figcaption').innerText.startsWith('n')")
        price, error = (browser.run(f"document.querySelector('#{name}').value") for name in ("epsilon", "error"))
        assert float(price) == 0.1 and float(error) > 0

        # the slider of the price moves the error, by a new preview
        browser.run("document.querySelector('#epsilon-slider').focus()")
        browser.press(*END)
        browser.wait_for(f"Number(document.querySelector('#error').value) < {float(error) / 2}")

        # Ctrl+Enter asks
        browser.run("document.querySelector('#epsilon').select()")
        browser.write("0.1")
        browser.run("document.querySelector('#sql').focus()")
        browser.press(*ENTER, modifiers=CTRL)
        browser.wait_for("document.querySelectorAll('.answer tbody tr').length === 3")
        shown = browser.run("document.querySelector('.answer table').innerText")
        assert {"north", "south", "west"} <= set(shown.split())
        browser.wait_for("document.querySelector('#preview .price').innerText.startsWith('free')")

        # charts are drawn, and every field has a name for a screen reader
        for page in ("budget", "ledger", "policy", "ask"):
            browser.open(f"{door.url}/console/data/clinic/{page}")
            browser.wait_for(f"document.title.toLowerCase().startsWith('{page}')")
            if page == "budget":
                browser.wait_for("document.querySelectorAll('.chart canvas').length === 2")
            nameless = browser.run(
                "[...document.querySelectorAll('input:not([type=hidden]), textarea, select, button, a')].filter((e) =>"
                " !e.getAttribute('aria-label') && !e.labels?.length && !e.textContent.trim()).map((e) => e.outerHTML)"
            )
            assert nameless == []
            phone = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
            browser.send("Emulation.setDeviceMetricsOverride", **phone)
            assert browser.run("document.documentElement.scrollWidth") <= 390
        check_events(browser.events, door.url)


def check_events(events, url):
    """No error, no broken rule of content security, no request to anybody else."""
    for event in events:
        about = event.get("params", {})
        assert event.get("method") != "Runtime.exceptionThrown", event
        entry = about.get("entry", {})
        assert entry.get("level") not in ("error", "warning"), entry
        if event.get("method") == "Network.requestWillBeSent":
            assert re.match(re.escape(url) + "|data:|about:", about["request"]["url"]), about["request"]["url"]
