"""Look at every page of the built site in Chromium, wide and narrow: what leaves the page, what is missing, pictures.

    mkdocs build --strict && python docs/look.py [--pictures FOLDER]

Prints a line for each page and width, and exits with status 1 where something leaves the page, an image is missing, an
equation is not typeset, or anything was asked of another host. It needs Chromium or Chrome (or its path in CHROME), and
nothing else but Python; --pictures, which writes a PNG of every page, needs Pillow as well.
"""

from __future__ import annotations

import argparse
import functools
import html
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WIDTHS = (1280, 390)
TALLEST = 6000  # of a picture, in pixels
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")

# A page that shows another in a frame of the wanted width (a window cannot be as narrow as a telephone), and then, or
# when asked to look, says what it found.
FRAME = """<!doctype html><body style="margin:0"><iframe id="f" style="border:0;width:%(width)dpx;height:%(height)dpx"
src="%(page)s"></iframe><pre id="found"></pre><script>
const frame = document.getElementById("f");
frame.onload = () => setTimeout(() => {
  const page = frame.contentDocument, width = page.documentElement.clientWidth;
  const boxed = (e) => { for (let p = e.parentElement; p; p = p.parentElement)
    if (/auto|scroll|hidden/.test(frame.contentWindow.getComputedStyle(p).overflowX) && p !== page.body) return true;
    return false; };
  const name = (e) => e.tagName.toLowerCase() + ": " + e.textContent.trim().replace(/\\s+/g, " ").slice(0, 50);
  const out = [...page.querySelectorAll("article :is(table, pre, img, p, li, code, div)")].filter(
    (e) => e.getBoundingClientRect().right > width + 1 && !boxed(e));
  document.getElementById("found").textContent = "FOUND" + JSON.stringify({
    height: page.documentElement.scrollHeight,
    sideways: page.documentElement.scrollWidth > width + 1,
    outside: out.map(name).slice(0, 5),
    tables: page.querySelectorAll("article table").length,
    scrolling: [...page.querySelectorAll(".md-typeset__scrollwrap")].filter(
      (e) => e.scrollWidth > e.clientWidth + 1).length,
    images: [...page.images].filter((i) => i.complete && !i.naturalWidth).map((i) => i.src),
    raw: [...page.querySelectorAll(".arithmatex")].filter((e) => !e.querySelector(".katex-html, .katex-error")).length,
    wrong: page.querySelectorAll(".katex-error").length,
    hosts: [...new Set(frame.contentWindow.performance.getEntriesByType("resource").map((r) => new URL(r.name).host))]
      .filter((h) => h && h !== location.host),
  }) + "END";
}, 300);
</script>"""


class Site(http.server.SimpleHTTPRequestHandler):
    """The built site, and the frame under /look/WIDTH/HEIGHT/PAGE."""

    def do_GET(self) -> None:
        """Send a file or a frame."""
        match = re.match(r"/look/(\d+)/(\d+)(/.*)", self.path)
        if match is None:
            super().do_GET()
            return
        text = FRAME % {"width": int(match[1]), "height": int(match[2]), "page": html.escape(match[3])}
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def browser() -> str:
    """Return the browser's path. Raises SystemExit where there is none."""
    found = os.environ.get("CHROME") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        sys.exit("Chromium or Chrome is needed, or its path in the variable CHROME")
    return found


def chrome(*arguments: str) -> str:
    """Run the browser without a window and return what it prints."""
    # --no-sandbox: in a container, as the user root, there is none to be had; the pages are our own
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--virtual-time-budget=8000",
    ]
    return subprocess.run(
        [browser(), *options, *arguments], capture_output=True, text=True, timeout=120
    ).stdout


def look(address: str, width: int, page: str) -> dict[str, Any]:
    """Return what was found on a page at a width."""
    dom = chrome("--dump-dom", f"--window-size={max(width, 600)},1000", f"{address}/look/{width}/1000{page}")
    match = re.search(r"FOUND(\{.*\})END", dom, re.S)
    if match is None:
        sys.exit(f"{page}: the browser has not shown it")
    found: dict[str, Any] = json.loads(html.unescape(match[1]))
    return found


def take_picture(address: str, width: int, page: str, height: int, file: Path) -> None:
    """Write a PNG of the page."""
    from PIL import Image

    height = min(height, TALLEST)
    chrome(
        f"--screenshot={file}",
        f"--window-size={max(width, 600)},{height}",
        f"{address}/look/{width}/{height}{page}",
    )
    with Image.open(file) as image:
        image.crop((0, 0, width, height)).save(file)


def faults(found: dict[str, Any]) -> list[str]:
    """Return what is wrong, in words."""
    said = [f"leaves the page: {what}" for what in found["outside"]]
    said += ["scrolls sideways as a whole"] if found["sideways"] else []
    said += [f"image missing: {image}" for image in found["images"]]
    said += [f"{found['raw']} equations not typeset"] if found["raw"] else []
    said += [f"{found['wrong']} equations wrong"] if found["wrong"] else []
    return said + [f"asked of another host: {host}" for host in found["hosts"]]


def main() -> int:
    """Look at every page; return 1 where something is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--site", type=Path, default=ROOT / "site", help="the built site (default site/)")
    parser.add_argument("--pictures", type=Path, help="a folder for pictures of all pages")
    parser.add_argument("--only", default="", help="only pages whose path contains this")
    arguments = parser.parse_args()
    pages = sorted(p.relative_to(arguments.site).as_posix() for p in arguments.site.rglob("index.html"))
    if not pages:
        sys.exit(f"{arguments.site}: no pages; build them with: mkdocs build --strict")
    if arguments.pictures is not None:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    handler = functools.partial(Site, directory=str(arguments.site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    wrong = 0
    for page in pages:
        if arguments.only not in page:
            continue
        path = "/" + page.removesuffix("index.html")
        for width in WIDTHS:
            found = look(address, width, path)
            told = faults(found)
            wrong += len(told)
            print(
                f"{path:<32} {width:5d} wide  {found['height']:6d} tall  {found['tables']:3d} tables, "
                f"{found['scrolling']} scroll in their box{''.join(f'{chr(10)}    {fault}' for fault in told)}",
                flush=True,
            )
            if arguments.pictures is not None:
                name = path.strip("/").replace("/", "-") or "start"
                take_picture(
                    address, width, path, found["height"], arguments.pictures / f"{name}-{width}.png"
                )
    print(f"{wrong} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
