// pymdownx.arithmatex (generic) leaves each equation as \( .. \) or \[ .. \] in an element of class "arithmatex".
// Without JavaScript it stays there as TeX.
document.addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll(".arithmatex")) {
    const text = place.textContent.trim();
    katex.render(text.slice(2, -2), place, { displayMode: text.startsWith("\\["), throwOnError: false });
  }
});
