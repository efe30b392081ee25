"""Chromium without a head, driven over a pipe by its own protocol: JSON messages that end with a zero byte."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from contextlib import contextmanager

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 60.0  # seconds


class Browser:
    """One page of a browser."""

    def __init__(self, write, read):
        self.write_end, self.read_end, self.number, self.buffer = write, read, 0, b""
        self.events = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    session = None

    def send(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            found = self.receive()
            if found.get("id") == self.number:
                assert "error" not in found, found
                return found["result"]
            self.events.append(found)

    def receive(self):
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_end], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not reply"
            self.buffer += os.read(self.read_end, 1 << 20)
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def run(self, script):
        """The value of a JavaScript expression in the page."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, script):
        """Wait until this expression holds."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                if self.run(f"Boolean({script})"):
                    return
            except AssertionError:
                pass  # between two pages
            time.sleep(0.05)
        raise AssertionError(f"never: {script}\n{self.run('document.body.innerText')}")

    def open(self, url):
        self.send("Page.navigate", url=url)
        self.wait_for(f"document.readyState === 'complete' && location.href.startsWith({json.dumps(url[:30])})")

    def press(self, key, code, modifiers=0):
        pressed = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.send("Input.dispatchKeyEvent", type="keyDown", **pressed, **({"text": "\r"} if key == "Enter" else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **pressed)

    def write(self, text):
        """Type into what has the focus."""
        self.send("Input.insertText", text=text)

    def screenshot(self, path, width, height, dark=False, scale=1):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=width < 600)  # fmt: skip
        look = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=look)
        time.sleep(0.6)
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def chromium(folder):
    """A browser with a profile of its own in this folder."""
    to_browser, ours_out = os.pipe()
    ours_in, from_browser = os.pipe()

    def give():  # Chromium reads from 3 and writes to 4
        os.dup2(to_browser, 10), os.dup2(from_browser, 11)
        os.dup2(10, 3), os.dup2(11, 4)

    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
        "--hide-scrollbars", f"--user-data-dir={folder / 'profile'}", "--remote-debugging-pipe", "about:blank",
    ]  # fmt: skip
    process = subprocess.Popen(
        command, preexec_fn=give, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(to_browser), os.close(from_browser)
    try:
        yield Browser(ours_out, ours_in)
    finally:
        os.close(ours_out), os.close(ours_in)
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
