"""Drives a headless Chromium through the DevTools protocol: opens a page, evaluates, clicks, types, takes pictures.

Needs chromium-headless-shell (or chromium) and Python's websocket-client (Debian: python3-websocket).
"""
import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

import websocket

BROWSERS = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]


class Browser:
    """One page. `errors` collects what goes wrong in it, `requests` the addresses that it asks for."""

    def __init__(self):
        program = next(filter(None, map(shutil.which, BROWSERS)), None)
        if program is None:
            raise SystemExit("no browser found: install chromium-headless-shell")
        self.folder = tempfile.mkdtemp(prefix="kappascope-browser-")
        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
             "--remote-allow-origins=*", f"--user-data-dir={self.folder}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.number, self.errors, self.requests = 0, [], []
        self.socket = websocket.create_connection(self._address(), timeout=60)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.call(f"{domain}.enable")

    session = None

    def _address(self):
        path = os.path.join(self.folder, "DevToolsActivePort")
        for _ in range(300):
            if os.path.exists(path):
                lines = open(path).read().split("\n")
                if len(lines) >= 2:
                    return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
            time.sleep(0.1)
        raise SystemExit("the browser did not start within 30 s")

    def _notice(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.errors.append(str(params["args"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def call(self, method, **params):
        """Calls a method of the protocol and returns its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._notice(answer)

    def open(self, path):
        """Opens a file and waits until it has loaded."""
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        for _ in range(600):
            if self.evaluate("document.readyState === 'complete' && location.protocol === 'file:'"):
                return
            time.sleep(0.1)
        raise SystemExit(f"{path}: not loaded within 60 s")

    def evaluate(self, expression):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def view(self, width, height, dark, medium="screen"):
        """Sets the size of the window; below 600 pixels it is a phone's. `medium`: or "print"."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", media=medium,
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def scripts(self, allowed):
        """Whether pages that are opened from now on may run scripts."""
        self.call("Emulation.setScriptExecutionDisabled", value=not allowed)

    def _mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def point(self, element):
        """Moves the mouse to the middle of an element, given as an expression."""
        x, y = self.evaluate(
            f"(e => {{ e.scrollIntoView({{block: 'center', inline: 'end'}});"
            f" const r = e.getBoundingClientRect(); return [r.x + r.width/2, r.y + r.height/2]; }})({element})")
        self._mouse("mouseMoved", x, y)
        return x, y

    def click(self, element):
        x, y = self.point(element)
        for kind in ["mousePressed", "mouseReleased"]:
            self._mouse(kind, x, y, button="left", clickCount=1)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def picture(self, path, whole=False):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        self.socket.close()
        # The program may be a script that starts the browser: all of its session ends.
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
