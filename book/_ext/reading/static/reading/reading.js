/* Guesses are written down and repeated beside the answer; the navigation marks the chapters that
 * were read.
 *
 * Everything stays in the browser: a guess in this tab, what was read from visit to visit.
 */
(() => {
  "use strict";

  // A browser may refuse to remember; the page works all the same.
  function remembered(storage, key) {
    try {
      return window[storage].getItem(key) ?? "";
    } catch {
      return "";
    }
  }

  function remember(storage, key, value) {
    try {
      window[storage].setItem(key, value);
    } catch {
      // the page works without
    }
  }

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  // --------------------------------------------------------------------------------------- guesses

  const BLANK = /\s*_{3,}.*$/; // the line to write on
  const page = location.pathname.split("/").pop();

  function field(guess, id) {
    if (!guess.dataset.choices) {
      return element("input", { id, type: "text", autocomplete: "off", maxlength: 120 });
    }
    const options = ["", ...guess.dataset.choices.split("|")].map((text) =>
      element("option", { value: text }, text || "choose")
    );
    return element("select", { id }, ...options);
  }

  function addGuess(guess, nth, echoes) {
    const id = `guess-${nth}`;
    const key = `attention-head-by-head.guess ${page} ${nth}`;
    const echo = echoes[nth];
    const said = echo?.textContent.replace(BLANK, "");
    const input = field(guess, id);
    guess.replaceChildren(
      element("label", { for: id }, guess.textContent.replace(BLANK, "")),
      " ",
      input,
    );
    const repeat = () => {
      if (!echo) return;
      const value = input.value.trim();
      const unsaid = element("button", { type: "button" }, "nothing yet");
      unsaid.addEventListener("click", () => input.focus());
      echo.replaceChildren(`${said} `, value ? element("strong", {}, value) : unsaid);
    };
    input.value = remembered("sessionStorage", key);
    input.addEventListener("input", () => {
      remember("sessionStorage", key, input.value);
      repeat();
    });
    repeat();
  }

  const echoes = document.querySelectorAll("p.guessed");
  document.querySelectorAll("p.guess").forEach((guess, nth) => addGuess(guess, nth, echoes));

  // --------------------------------------------------------------------------------- chapters read

  const READ = "attention-head-by-head.read";
  const read = () => new Set(remembered("localStorage", READ).split(" ").filter(Boolean));
  const isChapter = (name) => /^\d\d-/.test(name);

  function mark() {
    const pages = read();
    for (const link of document.querySelectorAll(".bd-links a.reference.internal")) {
      const name = link.getAttribute("href") === "#"
        ? page
        : link.getAttribute("href").split("/").pop();
      if (!isChapter(name) || !pages.has(name) || link.querySelector(".chapter-read")) continue;
      link.append(
        element("span", { class: "chapter-read", role: "img", "aria-label": "read" }, "✓"),
      );
    }
  }

  mark();
  const end = document.getElementById("the-chapter-in-five-lines");
  if (isChapter(page) && end) {
    new IntersectionObserver((entries, observer) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      observer.disconnect();
      remember("localStorage", READ, [...read().add(page)].join(" "));
      mark();
    }).observe(end);
  }

  // ------------------------------------------------------------------------- the table of contents

  // It is longer than a screen: on a phone, too, it opens where the reader is. Beside the text the
  // theme sees to that.
  const here = document.querySelector(".bd-links li.current.active");
  function showHere() {
    const list = here?.closest("dialog");
    if (list) {
      list.scrollTop += here.getBoundingClientRect().top - list.getBoundingClientRect().top -
        list.clientHeight / 2;
    }
  }
  document.querySelector(".primary-toggle")?.addEventListener(
    "click",
    () => requestAnimationFrame(showHere),
  );

  // On a phone it lies over the page: who has chosen a section wants to see it.
  document.addEventListener("click", ({ target }) => {
    const link = target.closest("dialog a[href*='#']");
    if (link?.pathname === location.pathname) link.closest("dialog").close();
  });
})();
