// What every view is made of: controls that choose a frame, its picture, and the same in words and
// tables.

import { currentFrame } from "./current_frame.js";
import { element, escapeHtml } from "./markup.js";
import { ownText } from "./own_text.js";
import { drawing, panelsIn } from "./panels.js";
import { setText } from "./patch.js";
import { pointerOver } from "./pointer.js";
import { linkButton, linkedState, sharedBy } from "./share.js";
import { tablesOf } from "./tables.js";

const NARROWEST = 240; // pixels that a picture is drawn for

const CARRIED = "This is your text from before; “clear” shows the page’s own.";

let fields = 0; // numbers the text fields of a page, to tie each label to its field

// The widget of a view, which is
//   status    (frame, at) => the line that says where the controls stand
//   draw      (frame, at, available) => the picture as text, for so many pixels
//   describe  (cell, frame, at) => the words for the cell that is pointed at
// and, where a reader may write a text of their own,
//   compute   (text, at, model, {stored, read, memory}) => its frame, as Python makes stored ones
//   model     (at) => the name of the weights to compute with
//   split     (text) => its tokens
//   prepare   (tokens) => these and what is added to them
//   note      (frame, at) => what the text lacks
//   examples  texts to try
//   act       (what, memory): a button of the picture (`data-act`) was pressed, or a word was
//             pointed at (`data-ask`); `memory` is its to write into, and the frame is made again;
//             what it returns, places of controls by name, is chosen there
export function explorer(view) {
  return { render: ({ model, el }) => render(view, model, el) };
}

function render(view, model, el) {
  const { status, draw, describe, act } = view;
  const title = model.get("title");
  const examples = model.get("reads")?.examples ?? view.examples ?? [];
  el.classList.add("explorer-view");
  if (examples.length) el.classList.add("with-examples");
  el.innerHTML = skeleton(model.get("reads"), examples, title);
  const [form, notes, line, suggestions, picture, readout, details] = el.children;
  const kind = model.get("reads")?.kind ?? "";
  const frameOf = currentFrame(model, view);
  const panels = panelsIn(picture);
  const tables = tablesOf(details, picture);
  const pointer = pointerOver(picture, readout, (cell) => describe(cell, frame, at));
  const own = ownText(kind, form, suggestions, () => update(true));
  const { memory, redraws } = sharedBy(model); // of the view's own buttons
  let width = el.clientWidth; // asking for it again would lay the page out before every drawing
  let frame, at;
  let near = true; // on the screen, or about to be
  let stale = false;

  // A letter that is typed into one view costs nothing in those that nobody sees.
  function update(typed = false) {
    if (near) redraw(typed);
    else stale = true;
  }

  function catchUp() {
    if (stale) redraw();
  }

  const sight = new IntersectionObserver((entries) => {
    near = entries.at(-1).isIntersecting;
    if (near) catchUp();
  }, { rootMargin: "400px 0px" });
  sight.observe(el);
  window.addEventListener("beforeprint", catchUp);

  function redraw(typed = false) {
    stale = false;
    let missing;
    ({ frame, at, notes: missing } = frameOf(own.field.value, memory));
    setText(notes, own.isCarried() ? `${CARRIED} ${missing}` : missing);
    const problem = frame.problem ?? frame.error;
    const matrices = problem ? showProblem(problem) : showPicture(typed);
    setText(line, problem ? nothingAt(at) : status(frame, at));
    readout.classList.remove("reading");
    setText(readout, problem ? "" : howToRead(matrices));
    pointer.over(matrices);
    tables(matrices);
    details.hidden = !problem && !matrices.length;
    picture.matrices = matrices;
  }

  function showProblem(problem) {
    const kind = frame.error ? "<strong>ValueError</strong> " : "";
    panels.showText(element("p", { class: "error" }, kind, escapeHtml(problem)));
    return [];
  }

  function showPicture(typed) {
    pointer.clear();
    const active = picture.contains(document.activeElement) && document.activeElement.dataset.act;
    const drawn = drawing(() => draw(frame, at, Math.max(NARROWEST, width)));
    // What has no cells has nothing to read out by arrow keys.
    if (drawn.matrices.length) drawn.html = cursor(title) + drawn.html;
    panels.show(drawn, typed);
    if (active) picture.querySelector(`[data-act="${active}"]`)?.focus();
    return drawn.matrices;
  }

  function choose(chosen) {
    for (const [name, place] of Object.entries(chosen ?? {})) model.set(name, place);
    if (chosen) model.save_changes();
    for (const each of redraws) each();
  }

  picture.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-act]");
    if (button) choose(act(button.dataset.act, memory));
  });

  // A word that asks when it is pointed at (`data-ask`); buttons do the same by keyboard.
  picture.addEventListener("pointerover", ({ target }) => {
    const word = target.closest("[data-ask]");
    if (word) choose(act(word.dataset.ask, memory));
  });

  function followLink() {
    const linked = linkedState(el, model);
    if (!linked) return;
    choose(linked.chosen);
    Object.assign(memory, linked.written); // not before: another model would have cleared it
    choose();
    own.write(linked.text);
  }
  linkButton(el, () => ({ at, text: own.field.value, memory }));
  window.addEventListener("hashchange", followLink);

  const changes = model.get("controls").map(({ name }) => `change:${name}`);
  const moved = () => update();
  for (const change of changes) model.on(change, moved);
  model.on("change:sentence", own.clear); // who chooses a sentence wants to see that one

  const resized = new ResizeObserver(() => {
    if (el.clientWidth === width) return;
    width = el.clientWidth;
    update();
  });
  resized.observe(el);
  const releaseArrows = keepArrows(el, own.field);
  redraws.add(update);
  redraw();
  followLink();

  return () => {
    for (const change of changes) model.off(change, moved);
    model.off("change:sentence", own.clear);
    redraws.delete(update);
    sight.disconnect();
    window.removeEventListener("beforeprint", catchUp);
    window.removeEventListener("hashchange", followLink);
    own.disconnect();
    panels.disconnect();
    resized.disconnect();
    releaseArrows();
  };
}

function skeleton(reads, examples, title) {
  const { label = "", placeholder = "" } = reads ?? {};
  const id = `own-${++fields}`;
  const field = element("input", {
    ...{ id, type: "text", maxlength: 200, spellcheck: "false", enterkeyhint: "done" },
    ...{ "data-lm-suppress-shortcuts": true, placeholder },
  });
  const buttons = examples.map((text) => element("button", { type: "button" }, escapeHtml(text)));
  const group = { role: "group", "aria-label": "Sentences to try" };
  return [
    element(
      "form",
      { class: "own", autocomplete: "off", hidden: !reads },
      element("label", { for: id }, escapeHtml(label)),
      field,
      element("button", { type: "reset" }, "clear"),
    ),
    element("p", { class: "notes", "aria-live": "polite", hidden: !reads }),
    element("p", { class: "status", role: "status" }),
    element("p", { class: "examples", ...group, hidden: !examples.length }, buttons),
    element("div", {
      ...{ class: "picture", "data-picture": true },
      ...{ role: "group", "aria-label": `Picture: ${title}` },
    }),
    element("p", { class: "readout", "aria-live": "polite" }),
    element(
      "details",
      { class: "tables" },
      element("summary", {}, "The same as tables, and files to save"),
      element("div"),
    ),
  ].join("");
}

// What takes the keyboard of a picture. Screen readers keep the arrow keys for themselves while
// they read a page, and hand them on in an application. The whole picture as one would hide its
// words and buttons from reading; a grid would need an element for every cell, several times as
// slow to draw. So an empty element is the application, and the readout below the picture says what
// it points at.
function cursor(title) {
  return element("div", {
    ...{ class: "cursor", "data-cursor": true, tabindex: 0, role: "application" },
    ...{ "aria-roledescription": "cell cursor" },
    "aria-label": `${title}: arrow keys read the cells`,
  });
}

function nothingAt(at) {
  const sizes = ["d_model", "n_heads"].filter((name) => name in at);
  return [...sizes.map((name) => `${name} ${at[name]}`), "nothing to show"].join(" · ");
}

function howToRead(matrices) {
  if (!matrices.length) return "";
  const what = matrices.every(({ bars }) => bars) ? "bar" : "cell";
  const dash = matrices.some(({ dashes }) => dashes) ? " A dash is a negative number." : "";
  return `Point at a ${what}, tap it, or use the arrow keys.${dash}`;
}

// In JupyterLab and Notebook an arrow key would leave a menu, a slider or the picture for another
// cell. Both pass over an element with this attribute, and look at a key before anything below the
// window does.
function keepArrows(el, field) {
  const mark = ({ key, target }) => {
    if (target === field || !el.closest(".explorer")?.contains(target)) return;
    target.toggleAttribute("data-lm-suppress-shortcuts", key.startsWith("Arrow"));
  };
  window.addEventListener("keydown", mark, true);
  return () => window.removeEventListener("keydown", mark, true);
}
