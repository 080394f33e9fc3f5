# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, asked over a pipe in the DevTools protocol. Needs nothing but Python's own library.

    with Browser() as browser:
        page = browser.open("/tmp/page.html", width=390)
        page.evaluate("document.title"), page.problems, page.requests, page.screenshot("/tmp/page.png")"""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
LIMIT_S = 60


class BrowserError(Exception):
    pass


def find():
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    def __init__(self):
        self.path = find()
        if not self.path:
            raise BrowserError("no chromium: scripts/install-deps")
        self.directory = tempfile.TemporaryDirectory(prefix="stratus-browser-", ignore_cleanup_errors=True)
        self.number, self.buffer, self.events = 0, b"", []
        (theirs_in, self.to), (self.back, theirs_out) = os.pipe(), os.pipe()
        # Chromium reads from descriptor 3 and writes to 4.
        command = ["bash", "-c", f'exec 3<&{theirs_in} 4>&{theirs_out} "$@"', "-", self.path, "--headless", "--no-sandbox",
                   "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
                   "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-dev-shm-usage",
                   "--disable-extensions", "--hide-scrollbars", "--force-color-profile=srgb",
                   "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={self.directory.name}",
                   "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            command, pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True, env={**os.environ, "HOME": self.directory.name})
        os.close(theirs_in)
        os.close(theirs_out)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # a session of its own
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.to)
        os.close(self.back)
        self.directory.cleanup()

    def receive(self, until):
        """The next message, or None when there is none in time."""
        while b"\0" not in self.buffer:
            if not select.select([self.back], [], [], max(0, until - time.monotonic()))[0]:
                return None
            data = os.read(self.back, 1 << 20)
            if not data:
                raise BrowserError("chromium ended")
            self.buffer += data
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        until = time.monotonic() + LIMIT_S
        while True:
            answer = self.receive(until)
            if answer is None:
                raise BrowserError(f"no answer to {method} in {LIMIT_S} s")
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error'].get('message')}")
                return answer["result"]
            self.events.append(answer)

    def await_event(self, session, name):
        until = time.monotonic() + LIMIT_S
        while not any(event.get("sessionId") == session and event["method"] == name for event in self.events):
            event = self.receive(until)
            if event is None:
                raise BrowserError(f"no {name} in {LIMIT_S} s")
            self.events.append(event)

    def open(self, path, width=1280, height=900):
        return Page(self, path, width, height)


class Page:
    def __init__(self, browser, path, width, height):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.url = f"file://{os.path.abspath(path)}"
        self.call("Page.navigate", url=self.url)
        browser.await_event(self.session, "Page.loadEventFired")

    def call(self, method, **parameters):
        return self.browser.call(method, session=self.session, **parameters)

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression}: {answer['exceptionDetails'].get('text')}")
        return answer["result"].get("value")

    def mine(self, name):
        return [event["params"] for event in self.browser.events
                if event.get("sessionId") == self.session and event["method"] == name]

    @property
    def problems(self):
        """What the console says."""
        return [entry["entry"]["text"] for entry in self.mine("Log.entryAdded")] + [
            str(call["args"]) for call in self.mine("Runtime.consoleAPICalled")] + [
            str(thrown["exceptionDetails"]) for thrown in self.mine("Runtime.exceptionThrown")]

    @property
    def requests(self):
        """Addresses that the page asked for besides its own; data in the page itself is none."""
        asked = [sent["request"]["url"] for sent in self.mine("Network.requestWillBeSent")]
        return [url for url in asked if url != self.url and not url.startswith("data:")]

    def screenshot(self, path):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 8000), "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
