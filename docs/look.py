"""Look at every page of the built site in Chromium, wide and narrow: what leaves the page, what is missing, pictures.

    mkdocs build --strict && python docs/look.py [--pictures FOLDER]

Prints a line for each page and width, and exits with status 1 where something leaves the page, text is cut, sticks out
of its box or lies over other text (on the page or in a drawing), an image is missing, an equation is not typeset, or
anything was asked of another host. It needs Chromium or Chrome (or its path in CHROME), and nothing else but Python;
--pictures, which writes a PNG of every page, needs Pillow as well.
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
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "docs" / "look.js"
WIDTHS = (1280, 390)
TALLEST = 6000  # of a picture, in pixels
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")

# A page that shows another in frames of the wanted widths (a window cannot be as narrow as a telephone), and then, or
# when asked to look, says what look.js found in each.
FRAME = """<!doctype html><body style="margin:0">%(frames)s<pre id="found"></pre><script>%(script)s</script><script>
onload = () => setTimeout(async () => {
  const found = [];
  for (const frame of document.querySelectorAll("iframe")) found.push(await look(frame));
  document.getElementById("found").textContent = "FOUND" + JSON.stringify(found) + "END";
}, 300);
</script>"""


class Site(http.server.SimpleHTTPRequestHandler):
    """The built site, and pages in frames under /look/WIDTH,WIDTH/HEIGHT/PAGE."""

    def do_GET(self) -> None:
        """Send a file or frames."""
        match = re.match(r"/look/([\d,]+)/(\d+)(/.*)", self.path)
        if match is None:
            super().do_GET()
            return
        page = html.escape(match[3])
        frames = [
            f'<iframe style="display:block;border:0;width:{width}px;height:{match[2]}px" src="{page}"></iframe>'
            for width in match[1].split(",")
        ]
        text = FRAME % {"frames": "".join(frames), "script": SCRIPT.read_text(encoding="utf-8")}
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
        sys.exit(
            "Chromium or Chrome is needed (apt install chromium), or the path of one in the variable CHROME, as of "
            "playwright install chromium"
        )
    return found


def chrome(*arguments: str) -> str:
    """Run the browser without a window and return what it prints."""
    # --no-sandbox: in a container, as the user root, there is none to be had; the pages are our own
    options = (
        "--headless --no-sandbox --disable-gpu --hide-scrollbars --virtual-time-budget=8000 "
        "--disable-background-networking --disable-component-update --disable-sync"
    )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        return subprocess.run(
            [browser(), *options.split(), f"--user-data-dir={profile}", *arguments],
            capture_output=True,
            text=True,
            timeout=300,
        ).stdout


def look(address: str, page: str) -> list[dict[str, Any]]:
    """Return what was found on a page at each of the widths."""
    widths = ",".join(map(str, WIDTHS))
    dom = chrome(
        "--dump-dom",
        f"--window-size={max(WIDTHS)},{1000 * len(WIDTHS)}",
        f"{address}/look/{widths}/1000{page}",
    )
    match = re.search(r"FOUND(\[.*\])END", dom, re.S)
    if match is None:
        sys.exit(f"{page}: the browser has not shown it")
    found: list[dict[str, Any]] = json.loads(html.unescape(match[1]))
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
    said += [f"text {what}" for what in found["cut"]]
    said += [f"text over text: {what}" for what in found["overlapping"]]
    said += [f"picture {what}" for what in found["drawings"]]
    said += [f"first column covers the others: {what}" for what in found["covered"]]
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
    only = arguments.only.strip("/")
    paths = ["/" + page.removesuffix("index.html") for page in pages if only in page]
    if not paths:
        sys.exit(f"--only {arguments.only!r} is in none of the {len(pages)} paths, such as {pages[-1]!r}")

    def examine(path: str) -> list[dict[str, Any]]:
        found = look(address, path)
        if arguments.pictures is not None:
            name = path.strip("/").replace("/", "-") or "start"
            for width, at_width in zip(WIDTHS, found, strict=True):
                file = arguments.pictures / f"{name}-{width}.png"
                take_picture(address, width, path, at_width["height"], file)
        return found

    with ThreadPoolExecutor(os.cpu_count()) as pool:  # most of the time is the browser's start
        for path, at_widths in zip(paths, pool.map(examine, paths), strict=True):
            for width, found in zip(WIDTHS, at_widths, strict=True):
                reported = faults(found)
                wrong += len(reported)
                print(
                    f"{path:<32} {width:5d} wide  {found['height']:6d} tall  {found['tables']:3d} tables, "
                    f"{found['scrolling']} scroll in their box{''.join(f'{chr(10)}    {fault}' for fault in reported)}",
                    flush=True,
                )
    print(f"{wrong} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
