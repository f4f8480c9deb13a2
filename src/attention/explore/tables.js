// The matrices of a picture as tables, and as files to save.

import { number } from "./format.js";
import { element, escapeHtml } from "./markup.js";
import { range } from "./tensor.js";

// What a picture keeps of its look outside of the page.
const LOOKS = [
  ...["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray"],
  ...["font-family", "font-size", "font-weight", "text-anchor", "opacity"],
];

// Ties a <details> to a picture: its tables are written while it is open. Returns how it is told of
// another drawing.
export function tablesOf(details, picture) {
  let matrices = [];

  function write() {
    if (details.open) details.lastElementChild.innerHTML = matrices.map(table).join("");
  }

  details.addEventListener("toggle", write);
  details.addEventListener("click", ({ target }) => {
    const [kind, nth] = (target.dataset.save ?? "").split(" ");
    if (!kind) return;
    const { name } = matrices[nth];
    if (kind === "csv") save(`${name}.csv`, "text/csv", csv(matrices[nth]));
    else {
      const drawn = picture.querySelector(`svg[data-name="${name}"]`);
      save(`${name}.svg`, "image/svg+xml", standalone(drawn));
    }
  });

  return (drawn) => {
    matrices = drawn;
    write();
  };
}

function table({ name, tensor, rows, columns }, nth) {
  const [height, width] = tensor.shape;
  const header = (scope, label) => element("th", { scope }, escapeHtml(label));
  const lines = range(height).map((r) => {
    const numbers = tensor.data.subarray(r * width, (r + 1) * width);
    const cells = Array.from(numbers, (value) => element("td", {}, number(value)));
    return element("tr", {}, header("row", rows[r] ?? r), cells);
  });
  const head = [header("col", "row"), ...range(width).map((c) => header("col", columns[c] ?? c))];
  const buttons = ["svg", "csv"].map((kind) => {
    const label = `save ${escapeHtml(name)} as ${kind.toUpperCase()}`;
    return element("button", { type: "button", "data-save": `${kind} ${nth}` }, label);
  });
  return element(
    "div",
    { class: "scroll", tabindex: 0, role: "group", "aria-label": name },
    element(
      "table",
      {},
      element("caption", {}, escapeHtml(name)),
      element("thead", {}, element("tr", {}, head)),
      element("tbody", {}, lines),
    ),
  ) + element("p", { class: "saves" }, buttons.join(" "));
}

// The numbers as they were computed, with the labels of rows and columns.
function csv({ tensor, rows, columns }) {
  const [height, width] = tensor.shape;
  const quoted = (label) => `"${String(label).replaceAll('"', '""')}"`;
  const head = ["", ...range(width).map((c) => quoted(columns[c] ?? c))].join(",");
  const lines = range(height).map((r) => {
    const numbers = tensor.data.slice(r * width, (r + 1) * width);
    return [quoted(rows[r] ?? r), ...numbers].join(",");
  });
  return [head, ...lines, ""].join("\n");
}

// A picture that looks the same outside of the page: every element gets the values that the
// stylesheet gives it here.
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const [theirs, ours] = [svg, copy].map((each) => [each, ...each.querySelectorAll("*")]);
  theirs.forEach((element, i) => {
    const look = getComputedStyle(element);
    for (const name of LOOKS) ours[i].setAttribute(name, look.getPropertyValue(name));
    for (const name of ["class", "style"]) ours[i].removeAttribute(name);
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(copy);
}

function save(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name.replaceAll(" ", "-");
  link.click();
  URL.revokeObjectURL(link.href);
}
