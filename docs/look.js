// What look.py runs beside a page that is shown in a frame: each function returns what is wrong, in words or numbers.

/** Whether a reader sees the element, wherever it lies. */
const seen = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true });
/** An element in words: its tag and how its text begins. */
const name = (e) => e.tagName.toLowerCase() + ": " + e.textContent.trim().replace(/\s+/g, " ").slice(0, 50);
/** What lays out its own letters, and what is there for machines alone. */
const LEFT_OUT = ".katex, script, style, noscript, title, template";

/** The part of a rectangle that lies in another one, null where there is none. */
function shared(a, b) {
  const left = Math.max(a.left, b.left), right = Math.min(a.right, b.right);
  const top = Math.max(a.top, b.top), bottom = Math.min(a.bottom, b.bottom);
  return right > left && bottom > top ? { left, right, top, bottom } : null;
}

/** Lines of text that a reader sees or would see after scrolling: rectangle, text, element, and what pins it. */
function linesOfText(page) {
  const width = page.documentElement.clientWidth, lines = [];
  const walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, e = node.parentElement;
    if (!node.textContent.trim() || e.closest(LEFT_OUT) || !seen(e)) continue;
    const range = page.createRange();
    range.selectNodeContents(node);
    for (const { left, right, top, bottom } of range.getClientRects())
      if (right > 0 && left < width) // a drawer waits outside
        lines.push({ node, e, words: node.textContent.trim().slice(0, 30), left, right, top, bottom });
  }
  return lines;
}

/** Code, which may not scroll; the output of a program may. */
const isCode = (e) => e.closest("pre") && !e.closest(".site-output");

/** What is cut, or sticks out of the box that it stands in. Tables and equations may scroll, code may not. */
function cut(page, lines) {
  const found = new Map(); // element -> words
  for (const line of lines) {
    let own = true; // until the box that the line stands in has been passed
    for (let e = line.e; e && e !== page.body; e = e.parentElement) {
      const { display, overflowX, overflowY } = page.defaultView.getComputedStyle(e);
      if (/^inline$|contents/.test(display)) continue;
      const box = e.getBoundingClientRect();
      const across = line.right > box.right + 1 || line.left < box.left - 1;
      const down = line.bottom > box.bottom + 3 || line.top < box.top - 3;
      if (/auto|scroll/.test(overflowX + overflowY)) {
        if (across && isCode(e)) found.set(e, "cut until it is scrolled");
        break; // what follows is seen after scrolling
      }
      if (across && /hidden|clip/.test(overflowX)) found.set(e, "cut");
      else if (down && /hidden|clip/.test(overflowY)) found.set(e, "cut below");
      // in code a blank at the end of a line hangs beyond it, unseen
      else if (across && own && !e.closest("pre")) found.set(e, "sticks out of its box");
      own = false;
    }
  }
  // the browser's own measure, for letters that a font draws beyond their rectangles and for ellipses
  for (const e of new Set(lines.map((line) => line.e)))
    if (e.clientWidth && e.scrollWidth > e.clientWidth + 1 && !found.has(e)) {
      const { overflowX } = page.defaultView.getComputedStyle(e);
      if (/hidden|clip/.test(overflowX)) found.set(e, "cut");
      else if (isCode(e)) found.set(e, "cut until it is scrolled");
    }
  return [...found].map(([e, how]) => `${how}: ${name(e)}`);
}

/** The lines as boxes that scroll or hide show them, without those that are pinned over what scrolls below. */
function shownLines(page, lines) {
  const everything = { left: 0, right: page.documentElement.clientWidth, top: -Infinity, bottom: Infinity };
  const boxes = new Map(); // element -> the rectangle in which its content is seen, null for none
  const box = (e) => {
    if (e === null || e === page.body) return everything;
    if (!boxes.has(e)) {
      const outer = box(e.parentElement), style = page.defaultView.getComputedStyle(e);
      if (outer === null || /sticky|fixed/.test(style.position)) boxes.set(e, null);
      else if (/^(visible)+$/.test(style.overflowX + style.overflowY)) boxes.set(e, outer);
      else boxes.set(e, shared(outer, e.getBoundingClientRect()));
    }
    return boxes.get(e);
  };
  return lines.flatMap((line) => {
    const visible = box(line.e) && shared(line, box(line.e));
    return visible ? [{ ...line, ...visible }] : [];
  });
}

/** Pairs of texts, one printed over the other: by more than a third of a line's height. */
function overlapping(lines) {
  const found = new Set();
  lines.sort((a, b) => a.top - b.top);
  for (let i = 0; i < lines.length; i++) {
    const a = lines[i];
    for (let j = i + 1; j < lines.length && lines[j].top < a.bottom; j++) {
      const b = lines[j], both = a.node === b.node ? null : shared(a, b);
      const height = Math.min(a.bottom - a.top, b.bottom - b.top);
      if (both && both.right - both.left > 2 && both.bottom - both.top > height / 3)
        found.add(`"${a.words}" and "${b.words}"`);
    }
  }
  return [...found];
}

/** What is wrong in the drawings (SVG) of a page: texts that leave them, and texts over each other. */
async function drawings(page) {
  const found = [];
  for (const image of page.images) {
    const path = new URL(image.src).pathname;
    if (!path.endsWith(".svg")) continue;
    const place = document.createElement("div");
    place.innerHTML = await (await fetch(path)).text();
    document.body.append(place);
    const picture = place.querySelector("svg"), outer = picture.getBoundingClientRect();
    const lines = [...picture.querySelectorAll("text")].map((e) => {
      const { left, right, top, bottom } = e.getBoundingClientRect();
      return { node: e, words: e.textContent.trim().replace(/\s+/g, " "), left, right, top, bottom };
    });
    const file = path.split("/").pop();
    for (const t of lines)
      if (t.left < outer.left - 1 || t.right > outer.right + 1 || t.top < outer.top - 1 || t.bottom > outer.bottom + 1)
        found.push(`${file}: "${t.words}" leaves the picture`);
    found.push(...overlapping(lines).map((pair) => `${file}: ${pair} overlap`));
    place.remove();
  }
  return found;
}

/** Everything that is found on the page in a frame. */
async function look(frame) {
  const page = frame.contentDocument, width = page.documentElement.clientWidth;
  const lines = linesOfText(page);
  const boxed = (e) => {
    for (let p = e.parentElement; p && p !== page.body; p = p.parentElement)
      if (/auto|scroll|hidden/.test(page.defaultView.getComputedStyle(p).overflowX)) return true;
    return false;
  };
  const out = [...page.querySelectorAll("article :is(table, pre, img, p, li, code, div)")].filter(
    (e) => e.getBoundingClientRect().right > width + 1 && !boxed(e));
  const resources = page.defaultView.performance.getEntriesByType("resource").map((r) => new URL(r.name).host);
  return {
    height: page.documentElement.scrollHeight,
    sideways: page.documentElement.scrollWidth > width + 1,
    outside: out.map(name).slice(0, 5),
    cut: cut(page, lines).slice(0, 5),
    overlapping: overlapping(shownLines(page, lines)).slice(0, 5),
    drawings: await drawings(page),
    tables: page.querySelectorAll("article table").length,
    scrolling: [...page.querySelectorAll(".md-typeset__scrollwrap")].filter(
      (e) => e.scrollWidth > e.clientWidth + 1).length,
    covered: [...page.querySelectorAll(".md-typeset__scrollwrap")].filter(
      (e) => e.scrollWidth > e.clientWidth + 1 && e.querySelector("td")?.offsetWidth > 0.6 * e.clientWidth).map(name),
    images: [...page.images].filter((i) => i.complete && !i.naturalWidth).map((i) => i.src),
    raw: [...page.querySelectorAll(".arithmatex")].filter((e) => !e.querySelector(".katex-html, .katex-error")).length,
    wrong: page.querySelectorAll(".katex-error").length,
    hosts: [...new Set(resources)].filter((h) => h && h !== location.host),
  };
}
