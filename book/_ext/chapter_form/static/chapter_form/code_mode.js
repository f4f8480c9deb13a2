/* The code of a chapter: folded for who reads, open for who builds. One switch for all of it, which
 * this browser remembers, and a button for each cell.
 *
 * layout.html sets `data-code` before the page is drawn, and the stylesheet folds by it, so that
 * nothing moves when this script comes.
 */
(() => {
  "use strict";

  const KEY = "attention-head-by-head.code";
  const root = document.documentElement;
  const whole = document.querySelector("button.code-mode");
  const cells = document.querySelectorAll(
    ".bd-article .cell > .cell_input:not(#exercises *)",
  );

  const buttons = [...cells].map((cell) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "code-of-cell";
    const show = (shown) => {
      cell.classList.toggle("code-shown", shown);
      button.textContent = shown ? "Hide the code" : "Show the code";
      button.setAttribute("aria-expanded", String(shown));
    };
    button.addEventListener("click", () => show(!cell.classList.contains("code-shown")));
    cell.prepend(button);
    show(false);
    return show;
  });

  const builds = () => root.dataset.code === "build";

  function say() {
    whole.querySelector("span").textContent = builds() ? "Fold the code" : "Show all code";
    whole.title = builds()
      ? "Read: the code of this chapter is folded"
      : "Build: the code of every cell is open";
  }

  whole.addEventListener("click", () => {
    // What stands at the top of the window stays there: cells above it change their height.
    const article = document.querySelector(".bd-article");
    const seen = [...article.querySelectorAll("p, h2, h3, figure, li")]
      .find((element) => element.getBoundingClientRect().top > 60 && element.offsetHeight);
    const before = seen?.getBoundingClientRect().top;
    root.style.overflowAnchor = "none"; // the browser would do it a second time
    if (builds()) delete root.dataset.code;
    else root.dataset.code = "build";
    for (const show of buttons) show(false);
    try {
      localStorage.setItem(KEY, builds() ? "build" : "read");
    } catch {
      // the page works without
    }
    say();
    if (seen) scrollBy({ top: seen.getBoundingClientRect().top - before, behavior: "instant" });
    setTimeout(() => root.style.removeProperty("overflow-anchor"), 500);
  });

  say();
  whole.hidden = false;
})();
