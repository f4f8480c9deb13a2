// What a view draws: panels in rows, and the matrices in them.

import { element, escapeHtml } from "./markup.js";
import { parse, patch } from "./patch.js";

const PAUSE = 100; // milliseconds

// Of the drawing in hand: the matrices, with their numbers and where their cells stand, and the
// contents of the panels.
let matrices = [];
let contents = [];

// Runs `draw` and returns the HTML that it makes, the matrices and what its panels hold.
export function drawing(draw) {
  [matrices, contents] = [[], []];
  return { html: draw(), matrices, contents };
}

// What is recorded is read out cell by cell and stands in a table of its own.
//   name, tensor   as in `matrix`           rows, columns  labels
//   largest        in full colour           keys           of the cells
//   left, top      where the first cell stands in its SVG
//   size, high     of a cell in pixels
//   dashes, bars   whether negative cells have a dash, and whether it is a set of bars
export function record(matrix) {
  matrices.push(matrix);
}

// A captioned part of the picture; parts stand side by side where there is room. `symbol` is what
// it shows: q, k, v, scores, weights or output, which have colours of their own on the book's
// pages. On a phone one that "stays" is kept in sight while the reader presses what is below it;
// while a text is typed, one that comes "later" waits until the typing rests.
export function panel(caption, body, symbol = "", manner = "") {
  const nth = contents.push(element("figcaption", {}, escapeHtml(caption)) + body) - 1;
  const look = `panel${symbol && ` sym sym-${symbol}`}${manner && ` ${manner}`}`;
  return element("figure", { class: look, "data-panel": nth });
}

// One with a `score` is hidden where the page asks for a guess at it first.
export function row(title, parts, note = "", score = false) {
  return element(
    "div",
    { class: score ? "line score" : "line" },
    element("p", { class: "title" }, escapeHtml(title)),
    element("div", { class: "panels" }, parts),
    note && element("p", { class: "note" }, escapeHtml(note)),
  );
}

// Puts drawings into an element of the page: at once what is on the screen, and after a pause the
// panels that are not, or that may come later than a letter. A letter or a slider's step costs what
// is seen of it.
export function panelsIn(picture) {
  const held = new WeakMap(); // what each panel holds
  const unseen = new WeakSet(); // the panels off the screen
  let wanted = []; // what each is to hold
  let isTyping = false;
  let waiting;
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      unseen[isIntersecting ? "delete" : "add"](target);
    }
    fillSeen();
  });

  function fillSeen() {
    fill((panel) => !unseen.has(panel) && !(isTyping && panel.classList.contains("later")));
  }

  function fillAll() {
    isTyping = false;
    fill(() => true);
  }

  function fill(now) {
    for (const panel of picture.querySelectorAll(".panel")) {
      const content = wanted[panel.dataset.panel];
      if (held.get(panel) === content || !now(panel)) continue;
      patch(panel, parse(content));
      held.set(panel, content);
    }
  }

  function stop() {
    clearTimeout(waiting);
  }

  return {
    show({ html, contents }, typed) {
      stop();
      patch(picture, parse(html));
      wanted = contents;
      isTyping = typed;
      fillSeen();
      waiting = setTimeout(fillAll, PAUSE);
      for (const panel of picture.querySelectorAll(".panel")) watch.observe(panel);
    },

    // In place of a drawing.
    showText(html) {
      stop();
      picture.innerHTML = html;
    },

    disconnect() {
      stop();
      watch.disconnect();
    },
  };
}
