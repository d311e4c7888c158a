#!/usr/bin/env python3
"""Opens a report in a real browser and uses it as a person would: keyboard, phone, dark, paper, no script. Other pages are looked at on a desktop
and on a phone, in the light and in the dark.

Usage: page.py PAGE.html [--others PAGE.html ...] [--browser PATH] [--screenshots DIR]

Speaks the DevTools protocol over pipes, so that nothing but Python and a Chromium is needed.
"""

import argparse
import base64
import itertools
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time

LARGEST_PAGE = 3_000_000
FIRST_PICTURE_MS = 1000
LEAST_CONTRAST = 4.5


class Browser:
    """A headless Chromium and one tab of it."""

    def __init__(self, path):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_child, self.out = os.pipe()
        self.back, from_child = os.pipe()

        def wire():
            # The browser reads commands from descriptor 3 and writes answers to 4. Copies first: the pipes may be in the way.
            reading, writing = os.dup(to_child), os.dup(from_child)
            for taken in (3, 4):
                if taken not in (reading, writing):
                    continue
                raise OSError("descriptors 3 and 4 are taken")
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        command = [path, "--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
                   "--force-color-profile=srgb", f"--user-data-dir={self.folder.name}"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.append("--no-sandbox")
        self.process = subprocess.Popen(command + ["about:blank"], preexec_fn=wire, close_fds=False,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_child)
        os.close(from_child)
        self.numbers = itertools.count(1)
        self.rest = b""
        self.events = []
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(f"{domain}.enable")

    def receive(self, patience=20.0):
        end = time.monotonic() + patience
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.back], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.back, 1 << 16)
            if not part:
                raise EOFError("the browser has ended")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer.get("result", {})
            self.events.append(answer)

    def wait(self, method):
        while True:
            for at, event in enumerate(self.events):
                if event.get("method") == method:
                    return self.events.pop(at)
            self.events.append(self.receive())

    def open(self, url):
        self.events = [event for event in self.events if event.get("method") != "Page.loadEventFired"]
        self.call("Page.navigate", url=url)
        self.wait("Page.loadEventFired")

    def evaluate(self, text):
        answer = self.call("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{text}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def key(self, name, code):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code)

    def size(self, width, height, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def media(self, kind="", scheme="light"):
        self.call("Emulation.setEmulatedMedia", media=kind, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, selector=None):
        clip = {}
        if selector:
            box = self.evaluate(f"(b=>[b.x+scrollX,b.y+scrollY,b.width,b.height])(document.querySelector('{selector}')"
                                ".getBoundingClientRect())")
            clip = {"clip": dict(zip(("x", "y", "width", "height"), box), scale=1)}
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, **clip)
        return base64.b64decode(shot["data"])

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(5)
        except Exception:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()


# Runs before the page: notes when the first picture of the film has been on screen for a frame.
WATCH = """
(function look(){
  const picture = document.querySelector('.shot.now svg');
  if (picture && picture.getBoundingClientRect().width > 0) {
    requestAnimationFrame(() => requestAnimationFrame(() => { window.firstPicture = performance.now(); }));
  } else requestAnimationFrame(look);
})();
"""

# The least contrast between a text and what is behind it (WCAG 2), and the text.
CONTRAST = """
(() => {
  const parse = c => (c.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = e => { for (; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  let worst = [99, ''];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || ['SCRIPT', 'STYLE', 'title'].includes(e.tagName) || !e.getClientRects().length) continue;
    const style = getComputedStyle(e), text = e.namespaceURI.endsWith('svg') ? style.fill : style.color;
    const under = e.dataset.behind ? parse(e.dataset.behind) : behind(e);
    const [a, b] = [light(parse(text)), light(under)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < worst[0]) worst = [ratio, e.textContent.trim().slice(0, 60)];
  }
  return worst;
})()
"""


# What is cut off, hidden or written over something else: one line each.
FAULTS = """
(() => {
  const faults = [], wide = innerWidth, said = text => text.trim().replace(/\\s+/g, ' ').slice(0, 40);
  if (document.documentElement.scrollWidth > wide) faults.push(`the page is ${document.documentElement.scrollWidth} wide`);
  const scrolls = e => { for (; e; e = e.parentElement) {
    if (['auto', 'scroll'].includes(getComputedStyle(e).overflowX)) return e.tabIndex >= 0; } return false; };
  for (const e of document.querySelectorAll('td, th, p, li, h1, h2, h3, figcaption, pre, b')) {
    const box = e.getBoundingClientRect();
    if (!e.textContent.trim() || !e.getClientRects().length) continue;
    if ((box.right > wide + 1 || box.left < -1) && !scrolls(e)) faults.push(`out of reach: '${said(e.textContent)}'`);
  }
  for (const e of document.querySelectorAll('td')) {
    if (e.textContent.trim() && !e.getClientRects().length && !e.closest('.film, details')) faults.push(`hidden: '${said(e.textContent)}'`);
  }
  for (const svg of document.querySelectorAll('svg')) {
    const frame = svg.getBoundingClientRect();
    if (!frame.width) continue;
    const texts = [...svg.querySelectorAll('text')].map(t => [t.getBoundingClientRect(), t.textContent]).filter(([b]) => b.width);
    texts.forEach(([a, text], k) => {
      if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.top < frame.top - 1 || a.bottom > frame.bottom + 1)
        faults.push(`cut off in '${said(svg.getAttribute('aria-label') || '')}': '${said(text)}'`);
      // Lines of text may touch; letters are smaller than their boxes.
      for (const [b, other] of texts.slice(k + 1)) {
        const over = [Math.min(a.right, b.right) - Math.max(a.left, b.left), Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)];
        if (over[0] > 1 && over[1] > 0.3 * Math.min(a.height, b.height))
          faults.push(`in '${said(svg.getAttribute('aria-label') || '')}' one over the other: '${said(text)}', '${said(other)}'`);
      }
    });
  }
  return faults;
})()
"""


def look(browser, page, check, keep):
    """Looks at a page on a desktop and on a phone, in the light and in the dark."""
    browser.open(page.resolve().as_uri())
    for width, height, phone in ((1280, 900, False), (360, 740, True)):
        browser.size(width, height, phone=phone)
        faults = browser.evaluate(FAULTS)
        check(not faults, f"{page.name} at {width} pixels: nothing cut off, hidden or written over {faults[:4] or ''}")
        for scheme in ("light", "dark"):
            browser.media(scheme=scheme)
            ratio, text = browser.evaluate(CONTRAST)
            check(ratio >= LEAST_CONTRAST, f"{page.name} at {width} pixels, {scheme}: least contrast {ratio:.1f} ('{text}')")
            keep(f"{page.stem}-{width}-{scheme}.png", lambda: browser.picture("body"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--browser", default=next(filter(None, map(shutil.which, (
        "chromium", "chromium-browser", "google-chrome", "chrome"))), None))
    parser.add_argument("--others", type=pathlib.Path, nargs="*", default=[])
    parser.add_argument("--screenshots", type=pathlib.Path)
    arguments = parser.parse_args()
    if not arguments.browser:
        sys.exit("no Chromium was found")
    failures = []

    def check(good, text):
        print(("  ok    " if good else "  FAIL  ") + text)
        if not good:
            failures.append(text)

    def keep(name, data):
        if arguments.screenshots:
            arguments.screenshots.mkdir(parents=True, exist_ok=True)
            (arguments.screenshots / name).write_bytes(data() if callable(data) else data)

    size = arguments.page.stat().st_size
    check(size <= LARGEST_PAGE, f"{size} bytes, at most {LARGEST_PAGE}")
    browser = Browser(arguments.browser)
    try:
        url = arguments.page.resolve().as_uri()
        browser.size(1200, 900)
        browser.media()
        browser.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        first = float("inf")
        # A busy machine may disturb some openings, hardly ten.
        for _ in range(10):
            browser.open(url)
            browser.evaluate("new Promise(done => (function wait(){ window.firstPicture ? done() : setTimeout(wait, 10) })())")
            first = min(first, browser.evaluate("window.firstPicture"))
            if first <= FIRST_PICTURE_MS:
                break
        check(first <= FIRST_PICTURE_MS, f"first picture after {first:.0f} ms, at most {FIRST_PICTURE_MS}")
        keep("light.png", browser.picture("body"))

        # By keyboard alone to the slider, and along it.
        for _ in range(20):
            browser.key("Tab", 9)
            if browser.evaluate("document.activeElement.type") == "range":
                break
        check(browser.evaluate("document.activeElement.type") == "range", "the slider is reached with the tab key")
        shown = "[...document.querySelectorAll('.shot')].map(s => getComputedStyle(s).display !== 'none')"
        before, name = browser.picture(".film"), browser.evaluate("document.activeElement.getAttribute('aria-valuetext')")
        for _ in range(3):
            browser.key("ArrowRight", 39)
        after = browser.picture(".film")
        now = browser.evaluate("document.activeElement.getAttribute('aria-valuetext')")
        frames = browser.evaluate(shown)
        check(sum(frames) == 1 and frames[3], f"three presses of an arrow show the fourth of {len(frames)} frames, alone")
        check(before != after, "the picture changed")
        check(bool(name) and bool(now) and name != now, f"and is named: '{name}' became '{now}'")
        text = browser.evaluate("document.querySelector('output').textContent")
        check(text == now, "the name stands beside the slider too")
        keep("moved.png", after)

        tree = browser.call("Accessibility.getFullAXTree")["nodes"]
        roles = [(node.get("role", {}).get("value"), node.get("name", {}).get("value")) for node in tree if not node.get("ignored")]
        sliders = [name for role, name in roles if role == "slider"]
        images = [name for role, name in roles if role == "image"]
        check(sliders and all(sliders), f"a screen reader finds the slider: {sliders}")
        check(images and all(images), f"and {len(images)} pictures, each with its words")
        check(browser.evaluate("document.documentElement.lang") == "en", "the language is told")
        levels = browser.evaluate("[...document.querySelectorAll('h1,h2,h3')].map(h => Number(h.tagName[1]))")
        check(levels[0] == 1 and levels.count(1) == 1 and all(b - a <= 1 for a, b in zip(levels, levels[1:])),
              "headings are in order")

        for scheme in ("light", "dark"):
            browser.media(scheme=scheme)
            ratio, text = browser.evaluate(CONTRAST)
            check(ratio >= LEAST_CONTRAST, f"{scheme}: least contrast {ratio:.1f}, at least {LEAST_CONTRAST} ('{text}')")
            keep(f"{scheme}.png", browser.picture("body"))

        browser.size(360, 740, phone=True)
        browser.media(scheme="dark")
        widths = browser.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        check(widths[0] <= widths[1] <= 360, f"on a phone: {widths[0]} pixels wide on a screen of {widths[1]}")
        keep("phone.png", browser.picture("body"))

        browser.size(794, 1123)
        browser.media("print")
        frames = browser.evaluate(shown)
        check(all(frames), f"on paper all {len(frames)} frames are printed")
        control = browser.evaluate("getComputedStyle(document.querySelector('.control')).display")
        check(control == "none", "and the slider is not")
        keep("paper.png", browser.picture("body"))
        keep("paper.pdf", base64.b64decode(browser.call("Page.printToPDF", printBackground=True)["data"]))

        for page in [arguments.page, *arguments.others]:
            look(browser, page, check, keep)

        browser.size(1200, 900)
        browser.media()
        browser.call("Emulation.setScriptExecutionDisabled", value=True)
        browser.open(url)
        frames = browser.evaluate(shown)
        check(all(frames), f"without script all {len(frames)} frames are there")

        problems, fetched = [], []
        for event in browser.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                problems.append(parameters["exceptionDetails"]["text"])
            elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                problems.append(str(parameters["args"]))
            elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                problems.append(parameters["entry"]["text"])
            elif method == "Network.requestWillBeSent":
                fetched.append(parameters["request"]["url"].split(":")[0])
        check(not problems, f"no errors on the console {problems or ''}")
        check(set(fetched) <= {"file", "data"}, "nothing was fetched")
    finally:
        browser.close()
    if failures:
        sys.exit(f"{len(failures)} of the checks in the browser failed")


if __name__ == "__main__":
    main()
