// A matrix as a grid of coloured cells with their numbers.

import { LEAST, short } from "./format.js";
import { element, path, svg, text } from "./markup.js";
import { record } from "./panels.js";
import { range } from "./tensor.js";

const FONT = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"; // as in explorer.css
const FULL = 0.62; // opacity of a cell that holds the largest number
const SHADES = 20; // between none and full

// The size of a cell so that `columns` of them and the row labels fit into the available pixels.
export function cellSize(available, columns, rows = [], { most = 34, least = 5 } = {}) {
  const fitting = Math.floor((available - labelWidth(rows) - 2) / columns);
  return Math.max(least, Math.min(most, fitting));
}

export function labelWidth(labels) {
  if (!labels.length) return 0;
  return Math.ceil(9 + 7.6 * Math.max(...labels.map((label) => String(label).length)));
}

// One matrix as SVG. Cells of one colour are one path: an element for each would take several times
// as long to draw.
//   name     what the tables and the readout call it     tensor   (row, column)
//   rows     labels of the rows, or []                   columns  labels of the columns, or []
//   bare     the labels are read out, and not drawn
//   size     of a cell in pixels                         high     of a cell, if not its width
//   largest  the number drawn in full colour
//   paint    (value, r, c) => {kind, strength, text, key}: replaces the signed colours and the
//            numbers, where a view needs to; cells that show the same entry in several matrices
//            share a key; the kind "struck" is a stroke through the cell
//   bands    [{from, to, text}]: brackets above groups of columns
//   over     ({box, frame, size}) => markup that lies over the cells. Both give the path around the
//            cells from (r, c) on: box(r, c, rows, columns) inside of the grid's lines, frame on
//            them
export function matrix({
  name,
  tensor,
  rows = [],
  columns = [],
  bare = false,
  size = 26,
  high = size,
  largest = tensor.largest,
  paint,
  bands = [],
  over = () => "",
}) {
  const [height, width] = tensor.shape;
  const [beside, above] = bare ? [[], []] : [rows, columns];
  const left = labelWidth(beside);
  const slanted = above.some((label) => String(label).length * 7 > size);
  const head = above.length ? (slanted ? labelWidth(above) : 16) : 0;
  const top = (bands.length ? 20 : 0) + head + 2;
  const looks = Array.from(tensor.data, (value, i) => ({
    kind: value < 0 ? "minus" : "plus",
    strength: largest ? Math.min(1, Math.abs(value) / largest) : 0,
    ...paint?.(value, Math.floor(i / width), i % width),
  }));
  const { shown, slot } = numbersIn(tensor, looks, largest, size);
  const dashes = dashesOf(looks.map((look, i) => (shown?.[i] ? {} : look)), width, size, high);
  const dots = size >= 8 ? dotsOf(looks, width, size, high) : "";
  const around = (x, y, w, h) => `M${x} ${y}h${w}v${h}h${-w}z`;
  const box = (r, c, rows = 1, columns = 1) =>
    around(c * size, r * high, columns * size - 1, rows * high - 1);
  const frame = (r, c, rows = 1, columns = 1) =>
    around(c * size - 0.5, r * high - 0.5, columns * size, rows * high);
  record({
    name,
    tensor,
    rows,
    columns,
    largest,
    keys: looks.map(({ key }) => key),
    dashes: Boolean(dashes),
    ...{ left, top, size, high },
  });
  return svg(
    { "data-name": name, width: left + width * size + 1, height: top + height * high + 1 },
    element(
      "g",
      { transform: `translate(${left} ${top})` },
      beside.map((label, r) => text("row", -6, (r + 0.5) * high + 3.5, label)),
      above.map((label, c) => columnLabel(label, (c + 0.5) * size, slanted)),
      bands.map((band) => bracket(band, size, top)),
      path("grid", grid(height, width, size, high)),
      cellsOf(looks, width, size, high),
      slot &&
        range(height).map((r) => digits(shown.slice(r * width, (r + 1) * width), r, slot, high)),
      path("strike", strikes(looks, width, size, high)),
      path("bar", dashes),
      dots && path("dots", dots),
      over({ box, frame, size }),
      element("path", { class: "outline" }),
    ),
  );
}

// The brackets above the columns of each head, with as many words as fit.
export function headBands(heads, dKey, size) {
  return range(heads).map((i) => ({
    from: i * dKey,
    to: (i + 1) * dKey,
    text: dKey * size < 44 ? i : `head ${i}`,
  }));
}

// All cells show their number, large ones with fewer decimals where there is less space, or none
// does. Of weights, which are 1 at most, those below .05 would be nothing but noise.
function numbersIn(tensor, looks, largest, size) {
  const decimals = [2, ...(largest >= 2 ? [1] : []), ...(largest >= 10 ? [0] : [])];
  for (const places of decimals) {
    const shown = looks.map(({ text }, i) =>
      text ?? (largest === 1 && tensor.data[i] < LEAST ? "" : short(tensor.data[i], places))
    );
    for (const texts of [shown, shown.map(wholeShortened)]) {
      const slot = slotFor(texts, size);
      if (slot) return { shown: texts, slot };
    }
  }
  return {};
}

// A weight of 1.00 is a character wider than any other: small cells would lose all their numbers.
function wholeShortened(text) {
  return text === "1.00" ? "1.0" : text;
}

// The numbers of a row are one text in a font whose characters are all equally wide: an element for
// each number would take twice as long to draw. Every cell gets `count` characters, and the font
// the size at which they fill the cell. Nothing is returned where that would be too small to read.
function slotFor(texts, size) {
  characterWidth ??= measureCharacter();
  const longest = Math.max(...texts.map((text) => text.length));
  const fontSize = (count) => size / (count * characterWidth);
  const least = longest === 1 ? 1 : longest + 1; // a gap between numbers
  const count = Math.max(least, Math.round(size / (10.5 * characterWidth)));
  // The longest number stands in the middle of its cell.
  const shift = (count - longest) % 2 ? -0.5 - size / count / 2 : -0.5;
  return fontSize(count) >= 9 ? { count, fontSize: fontSize(count).toFixed(3), shift } : null;
}

let characterWidth; // of the monospaced font, in parts of its size

function measureCharacter() {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `100px ${FONT}`;
  return pen.measureText("0").width / 100;
}

function digits(line, r, { count, fontSize, shift }, high) {
  const place = { class: "digits", x: shift, y: (r + 0.5) * high + 3.5, "font-size": fontSize };
  return element("text", place, line.map((text) => centred(text, count)));
}

function centred(text, count) {
  const space = "\u00a0";
  return text.padStart(Math.ceil((count + text.length) / 2), space).padEnd(count, space);
}

function columnLabel(label, x, slanted) {
  if (!slanted) return text("column", x, -5, label);
  const turned = `translate(${x + 3.5} -4) rotate(-90)`;
  return text({ class: "slanted", transform: turned }, undefined, undefined, label);
}

function bracket({ from, to, text: label }, size, top) {
  const [x0, x1] = [from * size + 1, to * size - 2];
  return path("band", `M${x0} ${17 - top}v-4H${x1}v4`) +
    text("column", (x0 + x1) / 2, 9 - top, label);
}

function grid(height, width, size, high) {
  return [
    ...range(height + 1).map((r) => `M-0.5 ${r * high - 0.5}h${width * size}`),
    ...range(width + 1).map((c) => `M${c * size - 0.5} -0.5v${height * high}`),
  ];
}

// A path of each kind and shade.
function cellsOf(looks, width, size, high) {
  const paths = new Map();
  looks.forEach(({ kind, strength }, i) => {
    const shade = Math.round(SHADES * strength);
    if (!shade || kind === "struck") return;
    const look = `${kind} ${((FULL * shade) / SHADES).toFixed(3)}`;
    const cell = `M${(i % width) * size} ${Math.floor(i / width) * high}`;
    paths.set(look, `${paths.get(look) ?? ""}${cell}h${size - 1}v${high - 1}h${1 - size}z`);
  });
  return [...paths].map(([look, d]) => {
    const [kind, opacity] = look.split(" ");
    return path({ class: `cells ${kind}`, "fill-opacity": opacity }, d);
  });
}

// Marks in the cells of one kind.
function marksOf(looks, kind, width, mark) {
  return looks
    .map((look, i) => (look.kind === kind ? mark(Math.floor(i / width), i % width) : ""))
    .join("");
}

function strikes(looks, width, size, high) {
  const stroke = (r, c) => `M${c * size} ${(r + 1) * high - 1}l${size - 1} ${1 - high}`;
  return marksOf(looks, "struck", width, stroke);
}

// Grey alone is hard to tell from a small number.
function dotsOf(looks, width, size, high) {
  const dot = (r, c) => `M${(c + 0.5) * size - 1.5} ${(r + 0.5) * high - 0.5}h2`;
  return marksOf(looks, "unread", width, dot);
}

// Colour is not the only sign: a dash marks negative numbers that are not written.
function dashesOf(looks, width, size, high) {
  const dash = (r, c) => `M${(c + 0.25) * size} ${(r + 0.5) * high - 0.5}h${size * 0.45}`;
  return marksOf(looks, "minus", width, dash);
}
