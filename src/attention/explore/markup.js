// HTML and SVG as text: what a view draws is parsed once, by `patch`.

const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

export function escapeHtml(text) {
  return String(text).replace(/[&<>"]/g, (character) => ENTITIES[character]);
}

// One element. Attributes are escaped; children are markup already. Both are left out where they
// are undefined, null or false.
export function element(tag, attributes = {}, ...children) {
  let text = `<${tag}`;
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    text += value === true ? ` ${name}` : ` ${name}="${escapeHtml(value)}"`;
  }
  const inside = children.flat(Infinity).filter((child) => child !== false);
  return `${text}>${inside.join("")}</${tag}>`;
}

// An SVG of this size in pixels. With a label it is an image of its own; without one a reader of
// the screen passes over it, since its cells are read out and stand in a table.
//   top  how far above 0 it begins
export function svg({ width, height, top = 0, label, ...attributes }, ...children) {
  const size = { width, height, viewBox: `0 ${top} ${width} ${height}` };
  const role = label === undefined
    ? { "aria-hidden": "true" }
    : { role: "img", "aria-label": label };
  return element("svg", { ...attributes, ...size, ...role }, ...children);
}

export function path(look, ...steps) {
  return element("path", { ...named(look), d: steps.flat().join("") });
}

export function rect(look, x, y, width, height, attributes = {}) {
  return element("rect", { ...named(look), x, y, width, height, ...attributes });
}

// Words at a place; their class says how they are aligned.
export function text(look, x, y, words) {
  return element("text", { ...named(look), x, y }, escapeHtml(words));
}

// To a tenth of a pixel.
export function tenth(value) {
  return value.toFixed(1);
}

// A look is a class or a set of attributes.
function named(look) {
  return typeof look === "string" ? { class: look } : look;
}

// A button among several of which one is chosen.
export function choice(act, isChosen, words) {
  const state = { type: "button", "aria-pressed": String(isChosen), "data-act": act };
  return element("button", state, words);
}
