"""A page opened in Chromium: at a width, in a colour scheme, and what the browser said, asked and shows of it."""

from __future__ import annotations

import base64
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

AXE = next(iter(sorted((Path(__file__).resolve().parents[2] / ".browser").glob("axe-*.js"))), None)
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage", "--disable-extensions",
    "--force-device-scale-factor=1", "--force-color-profile=srgb", "--font-render-hinting=none", "--disable-lcd-text",
    "--disable-background-networking", "--no-first-run", "--lang=en-US",
)  # fmt: skip


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, with a profile of its own that goes with it."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in _FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
    try:
        with _served() as pages:
            yield Browser(driver, pages)
    finally:
        driver.quit()


class Pages(http.server.ThreadingHTTPServer):
    """Serves one page, whatever is asked for, and keeps what was asked for."""

    page: bytes = b""

    def __init__(self) -> None:
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Pages

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(self.server.page)))
        self.end_headers()
        self.wfile.write(self.server.page)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Silent."""


@contextmanager
def _served() -> Iterator[Pages]:
    pages = Pages()
    thread = threading.Thread(target=pages.serve_forever, daemon=True)
    thread.start()
    try:
        yield pages
    finally:
        pages.shutdown()
        pages.server_close()


class Browser:
    """One window; a page stays open in it until the next one."""

    def __init__(self, driver: webdriver.Chrome, pages: Pages) -> None:
        self.driver = driver
        self._pages = pages

    @property
    def asked(self) -> list[str]:
        """What the window asked the server for, since the page was opened."""
        return self._pages.asked

    def open(self, page: str, width: int = 1280, scheme: str = "light", media: str = "", height: int = 900) -> None:
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.tell("Emulation.setEmulatedMedia", media=media, features=features)
        self.driver.get("about:blank")
        self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        self._pages.page = page.encode()
        self._pages.asked.clear()
        self.driver.get(f"http://127.0.0.1:{self._pages.server_port}/")

    def tell(self, command: str, **arguments: Any) -> Any:
        """A command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(command, arguments)

    def run(self, script: str, *arguments: Any) -> Any:
        """What ``script`` returns; it is not of the page, and its policy does not hold for it."""
        return self.driver.execute_script(script, *arguments)

    def press(self, *keys: str) -> None:
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def press_backwards(self) -> None:
        """Shift and Tab."""
        ActionChains(self.driver).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()

    def console(self) -> list[str]:
        """What the console holds: errors, warnings, refused loads."""
        return [entry["message"] for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]

    def unfold(self) -> None:
        """Open all that is folded."""
        self.run("document.querySelectorAll('details').forEach(d => d.open = true)")

    def screenshot(self, height: int) -> bytes:
        """The upper ``height`` pixels of the page, as PNG."""
        width = self.run("return innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        taken = self.tell("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(taken["data"])

    def violations(self) -> list[str]:
        """What axe-core finds that is serious or critical: rule, and the elements."""
        if AXE is None:
            raise FileNotFoundError("axe-core is not there: run tests/browser/setup")
        self.run(AXE.read_text(encoding="utf-8"))
        script = (
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {resultTypes: ['violations']}).then(r => done(JSON.stringify(r.violations)), e => done(JSON.stringify([{impact: 'critical', id: String(e), nodes: []}])))"
        )
        found = json.loads(self.driver.execute_async_script(script))
        return [
            f"{each['id']}: {[node['html'][:160] + ' ' + node.get('failureSummary', '')[:300] for node in each['nodes'][:3]]}"
            for each in found
            if each["impact"] in ("serious", "critical")
        ]

    def overlaps(self) -> list[str]:
        """Pieces of text that lie upon each other, in words: the bounding boxes of all text that is drawn, by pairs."""
        found: list[str] = self.run(_OVERLAPS)
        return found

    def sideways(self) -> int:
        """Pixels by which the page is wider than the window."""
        beyond: int = self.run("return document.documentElement.scrollWidth - innerWidth")
        return beyond


_OVERLAPS = """
document.querySelectorAll('.l').forEach(line => line.style.contentVisibility = 'visible');  // else not laid out below the window
const boxes = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  if (!node.data.trim()) continue;
  const parent = node.parentElement;
  if (parent.closest('.unseen, script, style, .skip, [hidden]')) continue;
  if (!parent.checkVisibility({visibilityProperty: true})) continue;
  const range = document.createRange();
  range.selectNodeContents(node);
  let clip = null;
  for (let at = parent; at; at = at.parentElement) {
    const style = getComputedStyle(at);
    if (style.overflowX !== 'visible' && at !== document.body) {
      const box = at.getBoundingClientRect();
      clip = clip ? {left: Math.max(clip.left, box.left), right: Math.min(clip.right, box.right)} : box;
    }
  }
  for (const rect of range.getClientRects()) {
    const left = clip ? Math.max(rect.left, clip.left) : rect.left, right = clip ? Math.min(rect.right, clip.right) : rect.right;
    if (right - left < 1 || rect.height < 2) continue;
    boxes.push({left, right, top: rect.top + rect.height * 0.15, bottom: rect.bottom - rect.height * 0.15, node, text: node.data.trim().slice(0, 60)});
  }
}
boxes.sort((a, b) => a.top - b.top);
const found = [];
for (let i = 0; i < boxes.length && found.length < 10; i++) {
  const a = boxes[i];
  for (let j = i + 1; j < boxes.length && boxes[j].top < a.bottom; j++) {
    const b = boxes[j];
    if (a.node === b.node) continue;
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left), down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (across > 1.5 && down > 1.5) found.push(`"${a.text}" and "${b.text}" at ${Math.round(a.left)},${Math.round(a.top + scrollY)}`);
  }
}
for (const text of document.querySelectorAll('svg a.node text')) {
  if (!text.checkVisibility()) continue;
  const box = text.parentNode.querySelector('rect').getBoundingClientRect(), own = text.getBoundingClientRect();
  if (own.right > box.right - 2 || own.bottom > box.bottom + 1) found.push(`"${text.textContent.slice(0, 60)}" runs out of its box`);
}
return found;
"""
