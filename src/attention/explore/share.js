// What the views of one explorer share, and the address of the state that they show.

import { element } from "./markup.js";

const shared = new WeakMap(); // by the explorer's model

// What buttons of the picture wrote, and how to draw each view of the explorer again.
export function sharedBy(model) {
  if (!shared.has(model)) shared.set(model, { memory: {}, redraws: new Set() });
  return shared.get(model);
}

// Of what buttons wrote, this goes into an address: how it is written, and how it is read.
const WRITTEN = {
  off: [(heads) => [...heads].join(), (text) => new Set(text.split(",").map(headOf))],
  asking: [String, Number],
  painted: [JSON.stringify, JSON.parse],
};

const headOf = (name) => (name.includes(".") ? name : Number(name));

// The name by which a page knows this explorer. In a notebook there is none.
const nameOf = (el) => el.closest("[data-name]")?.dataset.name;

// A button below the picture that copies the address of what it shows.
export function linkButton(el, stateNow) {
  const name = nameOf(el);
  if (!name) return;
  const said = element("span", { role: "status" });
  const button = element("button", { type: "button" }, "Copy link to this");
  el.insertAdjacentHTML("beforeend", element("p", { class: "share" }, button, said));
  const [pressed, answer] = el.lastElementChild.children;
  pressed.addEventListener("click", async () => {
    const { at, text, memory } = stateNow();
    const state = new URLSearchParams(at);
    if (text) state.set("text", text);
    for (const [kept, [write]] of Object.entries(WRITTEN)) {
      if (memory[kept]?.size !== 0 && memory[kept] !== undefined) {
        state.set(kept, write(memory[kept]));
      }
    }
    const link = new URL(`#${name}?${state}`, location.href);
    try {
      await navigator.clipboard.writeText(link.href);
      answer.textContent = "Copied.";
    } catch {
      history.replaceState(null, "", link);
      answer.textContent = "It stands in the address of this page.";
    }
  });
}

// The state that the page's address asks this explorer for: the places of its controls, what its
// buttons are to have written, and a text.
export function linkedState(el, model) {
  const [name, query] = decodeURI(location.hash).slice(1).split("?");
  if (query === undefined || name !== nameOf(el)) return;
  const state = new URLSearchParams(query);
  const chosen = {};
  for (const { name: control, options } of model.get("controls")) {
    const place = options.indexOf(state.get(control));
    if (place >= 0) chosen[control] = place;
  }
  const written = {};
  for (const [kept, [, read]] of Object.entries(WRITTEN)) {
    written[kept] = state.has(kept) ? read(state.get(kept)) : undefined;
  }
  return { chosen, written, text: state.get("text") ?? "" };
}
