// A line of code that goes on below is indented deeper than it begins (site.css indents it by a fixed width).
document.addEventListener("DOMContentLoaded", () => {
  for (const line of document.querySelectorAll(".md-typeset pre > code > [id^='__span']")) {
    const deep = line.textContent.search(/\S/) + 4;
    line.style.paddingLeft = `${deep}ch`;
    line.style.textIndent = `${-deep}ch`;
  }
});
