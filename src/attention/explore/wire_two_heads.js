// Two heads that the reader wires: a circuit with what each query, key and value reads, the way
// through both heads on one sequence, and on how many sequences the wiring is right.

import { arc } from "./arcs.js";
import { explorer } from "./explorer.js";
import { listed, number } from "./format.js";
import { element, escapeHtml, path, rect, svg, tenth, text } from "./markup.js";
import { cellSize, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { range } from "./tensor.js";

const [TOKEN, PLACE, BEFORE, WROTE] = [
  "its token",
  "its position",
  "the previous position",
  "what layer 1 wrote",
];
const WIRES = [TOKEN, PLACE, BEFORE, WROTE];
const PORTS = [["query", "Q", "q"], ["key", "K", "k"], ["copies", "V", "v"]];
const FAINT = 0.05; // a weight below it is not drawn

// How many sequences each wiring was right on that the reader has seen, until the page is left.
const tried = new Map();

const layersOf = ({ layer1 }) => (layer1 ? 2 : 1);
const wiringOf = (layer, at) => PORTS.map(([port]) => at[`${port}_${layer}`]);
const isPlace = (part) => [PLACE, BEFORE].includes(part);

export default explorer({
  status(frame, at) {
    const { right, of } = frame;
    return `${at.layers} ${layersOf(frame) > 1 ? "layers" : "layer, and layer 2 is left out"}` +
      ` · right on ${right} of ${of} sequences`;
  },

  draw(frame, at, available) {
    const { tokens } = frame;
    const circuitWide = Math.min(available, 320);
    const beside = available >= 660;
    const wide = beside ? available - circuitWide - 18 : available;
    const across = available >= 480 ? 2 : 1;
    const share = (available - 18 * (across - 1)) / across;
    const labels = tokens.map((token, i) => `${token} ${i}`);
    const look = { rows: labels, columns: tokens, largest: 1 };
    const size = cellSize(share, tokens.length, labels, { most: 30 });
    const maps = range(layersOf(frame)).map((layer) => {
      const name = `layer${layer}`;
      const map = matrix({ ...look, name, tensor: frame[name], size });
      return panel(`layer ${layer + 1}`, map, "weights");
    });
    return (
      row("Your wiring, and what it does to one such sequence", [
        panel("what each query, key and value hangs on", circuit(frame, at, circuitWide)),
        panel("the sequence, from its tokens to what it says", way(frame, wide)),
      ], "The last token has come before, and what followed it then is the answer.") +
      verdict(frame) +
      element("p", { class: "note" }, soFar(frame, at)) +
      told(frame, at).map((line) => element("p", {}, escapeHtml(line))).join("") +
      row("What each row looks at: each row is a query, each column a key", maps)
    );
  },

  describe({ name, r, c, value }, frame) {
    const { tokens, wrote } = frame;
    if (name === "word") {
      const looks = range(layersOf(frame)).map((layer) =>
        `in layer ${layer + 1} at ${named(seen(frame, layer, r), tokens)}`
      );
      return `“${tokens[r]}”, position ${r}, looks ${looks.join(", and ")}; ` +
        `layer 1 wrote into its row: ${wrote[r]}.`;
    }
    return `Layer ${+name.at(-1) + 1}: “${tokens[r]}”, position ${r}, ` +
      `gives “${tokens[c]}”, position ${c}, the weight ${number(value)}.`;
  },
});

// The places that a row looks at.
function seen(frame, layer, query) {
  const { data } = frame[`layer${layer}`].at(query);
  return range(data.length).filter((key) => data[key] > FAINT);
}

function named(places, tokens) {
  if (places.length > 2) return `${places.length} rows alike`;
  return places.map((place) => `“${tokens[place]}”, position ${place}`).join(", and ");
}

function inWords(says) {
  if (!says.length) return "no letter";
  return listed(says) + (says.length > 1 ? ", in a tie" : "");
}

function verdict({ tokens, answer: says, due }) {
  const last = escapeHtml(tokens.at(-1));
  const told = says.length === 1 ? says[0] : says.length ? "a tie" : "no letter";
  const mark = told === due ? "✓ as last time" : `✗ last time “${escapeHtml(due)}” followed`;
  const parts = [
    element("span", { class: "asked" }, `after the last “${last}”?`),
    element("strong", {}, escapeHtml(told)),
    element("span", {}, mark),
  ];
  return element("p", { class: "answers", "aria-live": "polite" }, parts.join(" "));
}

// The best of what the reader has tried.
function soFar({ right, of, ...frame }, at) {
  const wiring = range(layersOf(frame)).map((layer) => wiringOf(layer, at).join()).join();
  tried.set(wiring, right);
  const best = Math.max(...tried.values());
  const solved = [...tried.values()].filter((each) => each === of).length;
  const count = `${tried.size} wiring${tried.size > 1 ? "s" : ""}`;
  return `You have tried ${count}. Your best so far: ${best} of ${of}` +
    (solved ? `, in ${solved} way${solved > 1 ? "s" : ""}.` : ".");
}

// What the wiring does on the sequence, and what goes wrong there.
function told(frame, at) {
  const { tokens, right, of, due } = frame;
  const last = tokens.at(-1);
  const lines = [ofLayer1(at)];
  if (layersOf(frame) > 1) lines.push(ofLayer2(frame, at));
  lines.push(outcome(frame));
  if (layersOf(frame) === 1) {
    lines.push(
      `There is no second look: in layer 1 the row of “${due}” holds its token and positions, ` +
        `and nothing in it says that the token before it is “${last}”.`,
    );
  }
  if (right > 0 && right < of) {
    lines.push(
      `That it is right on ${right} is chance: it steps back by a fixed number of positions, and ` +
        "what followed can stand at any of five.",
    );
  }
  return lines;
}

function ofLayer1(at) {
  const [query, key, copies] = wiringOf(0, at);
  return `Layer 1: ${pattern(query, key)} It copies ` +
    `${copies === TOKEN ? "the token" : "the position"} that it finds there.`;
}

function pattern(query, key) {
  if (isPlace(query) !== isPlace(key)) {
    return "a token is compared with a position. They have nothing in common, so every score is " +
      "0 and each row spreads its weight over all that it may see.";
  }
  if (query === TOKEN) return "each row looks at itself, and at the same token before it.";
  if (query === PLACE) return "each row finds its own position, and looks at itself.";
  return "each row looks at the one before it. Nothing is before position 0, so that row looks " +
    "at itself.";
}

function ofLayer2(frame, at) {
  const { tokens, wrote } = frame;
  const [query, key, copies] = wiringOf(1, at);
  const asks = query === TOKEN
    ? `“${tokens.at(-1)}”`
    : `what layer 1 wrote into it (${wrote.at(-1).replace("+", " and ")})`;
  const keys = key === WROTE ? "what layer 1 wrote into each row" : {
    [TOKEN]: "the token of each row",
    [BEFORE]: "the position before each row",
  }[key];
  const found = seen(frame, 1, tokens.length - 1);
  const kind = (part) => isPlace(part === WROTE ? at.copies_0 : part);
  const why = kind(query) !== kind(key)
    ? "A token and a position never agree, so it looks"
    : found.length > 2
    ? "Several keys agree equally well, so it looks"
    : "It looks";
  const looks = `${why} at ${named(found, tokens)}.`;
  const what = copies === TOKEN ? "the token there" : "what layer 1 wrote there";
  return `Layer 2: the last row asks with ${asks}. The keys are ${keys}. ${looks} ` +
    `It copies ${what}.`;
}

function outcome({ tokens, answer: says, due }) {
  const last = tokens.at(-1);
  if (!says.length) return "What arrives is a position, and a position is not a letter to say.";
  if (says.length > 1) return `No letter leads: ${listed(says)} have the same share.`;
  if (says[0] === due) return `So it says “${due}”, which followed the first “${last}”.`;
  const itself = says[0] === last ? ", the token that asks" : "";
  return `So it says “${
    says[0]
  }”${itself}. Right is “${due}”, since it followed the first “${last}”.`;
}

// The parts of a row as wires, and above them the heads, whose query, key and value each hang on
// one of them. What layer 1 writes is a wire that begins at its head.
function circuit(frame, at, width) {
  const layers = layersOf(frame);
  const left = 110;
  const top = 76; // of the first wire
  const wire = (part) => top + 26 * WIRES.indexOf(part);
  const unit = (width - left - 4) / 20;
  const x = (units) => left + unit * units;
  const parts = WIRES.slice(0, layers > 1 ? 4 : 3).map((part) => {
    const from = part === WROTE ? x(8) : left;
    const label = part === WROTE ? "layer 1 wrote" : part;
    return text("row", left - 8, wire(part) + 4, label) +
      path("grid", `M${tenth(from)} ${wire(part)}H${tenth(x(layers > 1 ? 18 : 8))}`);
  });
  const heads = range(layers).map((layer) => {
    const start = 0.5 + 9.5 * layer;
    const hangs = wiringOf(layer, at).map((part, nth) => {
      const [, name, symbol] = PORTS[nth];
      const ink = `var(--sym-${symbol}, var(--ink))`;
      const [across, end] = [tenth(x(start + 1 + 2 * nth)), wire(part)];
      const line = { style: `stroke: ${ink}; stroke-width: 2; fill: none` };
      const dot = { cx: across, cy: end, r: 4, style: `fill: ${ink}; shape-rendering: auto` };
      return path(line, `M${across} 46V${end}`) + element("circle", dot) +
        text({ style: `fill: ${ink}; font-weight: 700` }, across, 42, name);
    });
    const isLast = layer === layers - 1;
    const [edge, out] = [tenth(x(start + 6)), tenth(x(start + 7.5))];
    const way = isLast
      ? `M${edge} 27H${out}m-5 -4l5 4l-5 4`
      : `M${edge} 27H${out}V${wire(WROTE)}m-4 -5l4 5l4 -5`;
    return [
      rect({ class: "box", style: FRAME }, tenth(x(start)), 8, tenth(6 * unit), 38),
      text("column", tenth(x(start + 3)), 24, `layer ${layer + 1}`),
      path({ style: FRAME }, way),
      isLast && text("start", tenth(x(start + 7.5) + 4), 31, "says"),
      hangs,
    ];
  });
  const label = range(layers).map((layer) => {
    const [query, key, copies] = wiringOf(layer, at);
    return `Layer ${layer + 1}: the query reads ${query}, the key ${key}; it copies ${copies}`;
  }).join(". ");
  const height = wire(layers > 1 ? WROTE : BEFORE) + 14;
  return svg({ class: "sentence", width, height, label }, parts, heads);
}

const FRAME = "stroke: var(--ink); stroke-width: 1.5; fill: none; shape-rendering: auto";

// The sequence from above to below: its tokens, what layer 1 looks at and writes, what layer 2
// looks at from the last row, and what it says. A line goes from what is seen to the row that sees.
function way(frame, width) {
  const { tokens, wrote, answer: says, due } = frame;
  const layers = layersOf(frame);
  const last = tokens.length - 1;
  const left = 92;
  const step = Math.min(42, (width - left - 4) / tokens.length);
  const x = (i) => left + step * (i + 0.5);
  const gap = 74;
  const y = (line) => 36 + gap * line; // the base of a line's words
  const strand = (layer, key, query) => {
    const [from, to] = [y(layer) + 6, y(layer + 1) - 16];
    const middle = (from + to) / 2;
    const [a, b] = [tenth(x(key)), tenth(x(query))];
    const weight = frame[`layer${layer}`].at(query).data[key];
    return arc(
      { head: layer, nth: layer, weight, to: key, widest: 3 },
      `M${a} ${from}C${a} ${middle} ${b} ${middle} ${b} ${to}`,
    );
  };
  const strands = (layer, queries) =>
    queries.flatMap((query) => seen(frame, layer, query).map((key) => strand(layer, key, query)));
  const places = tokens.map((_, i) => text("column", tenth(x(i)), 14, i));
  const letters = tokens.map((token, i) => {
    const look = { class: `word${i === last ? " verb" : ""}`, "data-word": i };
    return text(look, tenth(x(i)), y(0), token);
  });
  const written = wrote.map((what, i) =>
    text({ class: "column", style: "font-weight: 600" }, tenth(x(i)), y(1), what)
  );
  const said = says.length === 1 ? says[0] : "?";
  const mark = `${said} ${said === due ? "✓" : "✗"}`;
  const ground = y(layers) + (layers > 1 ? 0 : 26); // of what it says
  const label = `The sequence ${tokens.join(" ")}. Layer 1 wrote into its rows: ` +
    `${wrote.join(", ")}. From the last row, layer ${layers} looks at ` +
    `${named(seen(frame, layers - 1, last), tokens)}. It says ${inWords(says)}.`;
  return svg(
    { class: "sentence", width: Math.ceil(x(last) + step / 2 + 4), height: ground + 10, label },
    text("row", left - 8, 14, "position"),
    text("row", left - 8, y(0), "token"),
    text("row", left - 8, y(0.5) + 2, "layer 1 looks"),
    strands(0, range(tokens.length)),
    text("row", left - 8, y(1), "and wrote"),
    layers > 1 && [
      text("row", left - 8, y(1.5) + 2, "layer 2 looks"),
      strands(1, [last]),
    ],
    text("row", left - 8, ground, "and says"),
    places,
    rect("found", tenth(x(tokens.indexOf(due)) - 10), y(0) - 16, 20, 21),
    letters,
    written,
    text({ class: "word" }, tenth(x(last)), ground, mark),
  );
}
