"""A headless Chromium, driven over a pipe by its own protocol: opens a page, presses keys, and tells what it logged."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

_SECONDS = 60
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe")
_KEYS = {"Tab": ("Tab", 9, ""), "Enter": ("Enter", 13, "\r"), "Down": ("ArrowDown", 40, ""), "Space": (" ", 32, " ")}


def chromium() -> str | None:
    """The path of the browser, if one is installed."""
    names = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
    return next(filter(None, map(shutil.which, names)), None)


class Browser:
    """One browser, with one page at a time."""

    def __init__(self, program: str) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="zlayout-browser-", ignore_cleanup_errors=True)
        to_browser, self._out = self._pipe()
        self._in, from_browser = self._pipe()

        def descriptors() -> None:
            os.dup2(to_browser, 3)
            os.dup2(from_browser, 4)

        self._process = subprocess.Popen(
            [program, *_FLAGS, f"--user-data-dir={self._home.name}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=descriptors,  # noqa: PLW1509 - nothing else runs here
            pass_fds=(3, 4),
            start_new_session=True,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._number, self._rest, self._events = 0, b"", []
        self._session: str | None = None
        self._target: str | None = None

    @staticmethod
    def _pipe() -> tuple[int, int]:
        # Far from the numbers that the browser's ends get.
        ends = os.pipe()
        high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 50) for end in ends)
        for end in ends:
            os.close(end)
        return high  # type: ignore[return-value]

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._out)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._in)
        self._home.cleanup()

    def open(self, page: Path, *, dark: bool = False, fragment: str = "", width: int = 1280) -> None:
        """Opens a page in place of the one before."""
        if self._target is not None:
            self._send("Target.closeTarget", {"targetId": self._target}, session=None)
        self._target = self._send("Target.createTarget", {"url": "about:blank"}, session=None)["targetId"]
        attached = self._send("Target.attachToTarget", {"targetId": self._target, "flatten": True}, session=None)
        self._session = attached["sessionId"]
        for domain in ("Runtime", "Log", "Network", "Page"):
            self._send(f"{domain}.enable")
        self._events.clear()
        self.colours(dark=dark)
        size = {"width": width, "height": 1600, "deviceScaleFactor": 1, "mobile": False}
        self._send("Emulation.setDeviceMetricsOverride", size)
        self._send("Page.navigate", {"url": page.as_uri() + fragment})
        self.until("document.readyState === 'complete' && location.protocol === 'file:'")

    def colours(self, *, dark: bool) -> None:
        """Chooses the colours of the system."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._send("Emulation.setEmulatedMedia", {"features": [scheme]})

    def press(self, *keys: str) -> None:
        """Presses keys of the keyboard."""
        for key in keys:
            name, code, text = _KEYS[key]
            shared = {"key": name, "code": name if name != " " else "Space", "windowsVirtualKeyCode": code}
            self._send("Input.dispatchKeyEvent", {"type": "keyDown", "text": text, **shared})
            self._send("Input.dispatchKeyEvent", {"type": "keyUp", **shared})

    def point_at(self, selector: str) -> None:
        """Moves the mouse over the middle of an element."""
        box = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); "
            "e.scrollIntoView({block: 'center'}); "
            "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for shift in (-2, 0):
            self._send("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": box[0] + shift, "y": box[1] + shift})

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        asked = {"expression": script, "returnByValue": True, "awaitPromise": True}
        answer = self._send("Runtime.evaluate", asked)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, condition: str) -> None:
        """Waits until an expression is true."""
        end = time.monotonic() + _SECONDS
        while not self.run(condition):
            assert time.monotonic() < end, f"never true: {condition}\n" + "\n".join(self.complaints())
            time.sleep(0.05)

    def complaints(self) -> list[str]:
        """Warnings, errors and exceptions since the page was opened, in the console and of the browser itself."""
        self.run("1")
        found = []
        for event in self._events:
            told = event["params"]
            if event["method"] == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
                found.append(" ".join(str(each.get("value", each.get("description"))) for each in told["args"]))
            elif event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(told["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded":
                found.append(told["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """What the page asked for besides itself."""
        self.run("1")
        urls = [
            each["params"]["request"]["url"] for each in self._events if each["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in urls[1:] if not url.startswith("data:")]

    def picture(self, path: Path) -> None:
        """Saves a picture of the whole page."""
        import base64

        size = self._send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self._send("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
        path.write_bytes(base64.b64decode(shot["data"]))

    def accessible(self) -> list[dict[str, Any]]:
        """What a screen reader finds: role and name of each node."""
        nodes = self._send("Accessibility.getFullAXTree")["nodes"]
        kept = [each for each in nodes if not each["ignored"]]
        return [{part: each.get(part, {}).get("value") for part in ("role", "name")} for each in kept]

    def _send(self, method: str, params: dict[str, Any] | None = None, session: str | None = "page") -> dict[str, Any]:
        self._number += 1
        asked: dict[str, Any] = {"id": self._number, "method": method, "params": params or {}}
        if session is not None:
            asked["sessionId"] = self._session
        os.write(self._out, json.dumps(asked).encode() + b"\0")
        while True:
            told = self._receive()
            if told.get("id") == self._number:
                assert "error" not in told, (method, told.get("error"))
                answer: dict[str, Any] = told["result"]
                return answer
            if "method" in told and told.get("sessionId") == self._session:
                self._events.append(told)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], _SECONDS)
            assert ready, "the browser does not answer"
            more = os.read(self._in, 1 << 20)
            assert more, "the browser has ended"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(line)
        return told
