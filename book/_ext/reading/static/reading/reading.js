/* Guesses get a verdict and are repeated beside the answer; the navigation marks the chapters that
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

  /** What a guess is, and how that is said. */
  function judged({ answer, near }, value) {
    if (value === answer) return ["right", "✓ Right."];
    if (near?.split("|").includes(value)) return ["near", "≈ Near."];
    return ["wrong", "✗ Not so."];
  }

  function addGuess(guess, nth, echoes) {
    const id = `guess-${nth}`;
    const key = `attention-head-by-head.guess ${page} ${nth}`;
    const echo = echoes[nth];
    const said = echo.textContent.replace(BLANK, "");
    const fold = guess.nextElementSibling; // the answer, and why it is so
    const verdict = element("p", { class: "guess-verdict", role: "status" });
    const buttons = guess.dataset.choices.split("|").map((text) =>
      element("button", { type: "button", "data-right": text === guess.dataset.answer }, text)
    );
    const label = element("span", { id }, guess.textContent.replace(BLANK, ""));
    const choices = element("span", { role: "group", "aria-labelledby": id }, ...buttons);
    guess.replaceChildren(label, " ", choices);
    guess.after(verdict);
    echo.id = `answer-${nth}`;

    function show(value) {
      for (const button of buttons) {
        button.setAttribute("aria-pressed", String(button.textContent === value));
      }
      const unsaid = element("button", { type: "button" }, "nothing yet");
      unsaid.addEventListener("click", () => buttons[0].focus());
      echo.replaceChildren(`${said} `, value ? element("strong", {}, value) : unsaid);
      if (!value) return;
      const [kind, words] = judged(guess.dataset, value);
      guess.dataset.verdict = kind;
      if (picture) uncover();
      verdict.textContent = words;
      echo.append(` ${words}`);
    }

    // Where the first picture says the answer, it waits for the guess or for the reader's hand.
    // A link to a state is a move, too.
    const isWaiting = "hides" in guess.dataset && !location.hash.includes("?");
    const picture = isWaiting && document.querySelector(".static-widget");
    const uncover = () => picture.removeAttribute("data-unguessed");
    if (picture) {
      picture.dataset.unguessed = "";
      for (const event of ["input", "click"]) picture.addEventListener(event, uncover);
    }

    for (const button of buttons) {
      button.addEventListener("click", () => {
        remember("sessionStorage", key, button.textContent);
        show(button.textContent);
        fold.open = true;
      });
    }
    const where = element("a", { href: `#answer-${nth}` }, "Where the chapter measures it");
    fold.append(element("p", {}, where));
    const before = remembered("sessionStorage", key);
    show(buttons.some(({ textContent }) => textContent === before) ? before : "");
  }

  const echoes = document.querySelectorAll("p.guessed");
  document.querySelectorAll("p.guess").forEach((guess, nth) => addGuess(guess, nth, echoes));

  // ----------------------------------------------------------------------------------------- marks

  // Of a list every point is marked before any of them is judged.
  function addMarks(list) {
    const marks = [...list.querySelectorAll(".mark")];
    const status = element("p", { class: "guess-verdict", role: "status" });
    list.after(status);
    const chosen = () => marks.map((mark) => mark.querySelector("[aria-pressed=true]"));
    for (const mark of marks) {
      const said = mark.parentElement.textContent.trim();
      const buttons = mark.dataset.choices.split("|").map((text) => {
        const button = element("button", { type: "button", "aria-pressed": "false" }, text);
        button.addEventListener("click", () => {
          for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
          judge();
        });
        return button;
      });
      mark.setAttribute("role", "group");
      mark.setAttribute("aria-label", said);
      mark.replaceChildren(...buttons, element("span", { class: "judged" }));
    }

    function judge() {
      const given = chosen();
      if (given.includes(null)) return;
      const right = marks.map((mark, nth) => given[nth].textContent === mark.dataset.answer);
      marks.forEach((mark, nth) => {
        mark.querySelector(".judged").textContent = right[nth] ? "✓" : `✗ ${mark.dataset.answer}`;
      });
      status.textContent = `${right.filter(Boolean).length} of ${marks.length} marks are right.`;
    }
  }

  for (const list of document.querySelectorAll("ol:has(.mark)")) addMarks(list);

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
    target.closest(".launch a[href*='#']")?.closest("details").removeAttribute("open");
  });
})();
