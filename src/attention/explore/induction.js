// What followed last time: a sequence, an arc from the token that asks to what each head of the
// last layer looks at, and from the place it finds an arc to what the first layer brought there.
// Heads can be switched off. Layers are counted from 1: head 1.1 is head 1 of layer 1.

import { answer } from "./answers.js";
import { apart, arc, headSwitches, switchedOff } from "./arcs.js";
import { add, causalMask, linear, maskedSoftmax, mergeHeads } from "./attention.js";
import { explorer } from "./explorer.js";
import { number, percent } from "./format.js";
import { element, escapeHtml, rect, svg, tenth, text } from "./markup.js";
import { cellSize, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { argmax, filled, range, sum, Tensor } from "./tensor.js";
import { attend } from "./transformer.js";

const FAINT = 0.1; // a weight below it is not drawn
const STROKES = ["8 4", "", "2 3", "10 3 2 3"]; // of the heads 1.0, 1.1, 2.0, 2.1

const nameOf = (layer, head) => `${layer + 1}.${head}`;
const layersOf = (frame) => range(2).flatMap((i) => frame[`layer${i}`] ?? []);

const headsOf = (frame) =>
  layersOf(frame).flatMap((weights, layer) =>
    range(weights.shape[0]).map((head) => {
      const nth = 2 * layer + head;
      const name = nameOf(layer, head);
      return { layer, head, name, nth, dashes: STROKES[nth], weights: weights.at(head) };
    })
  );

// In a short sequence the slider's last places are all its last token.
const queryOf = (tokens, at) => Math.min(+at.query, tokens.length - 1);

// The place of the last earlier token like the one that asks, or -1.
const lastTime = (tokens, query) => tokens.slice(0, query).lastIndexOf(tokens[query]);

export default explorer({
  model: ({ layers }) => layers,

  split: (text) => text.toLowerCase().replace(/\s/g, "").split(""),

  act(what, memory) {
    const name = what.split(" ")[1];
    memory.off ??= new Set();
    memory.off[memory.off.has(name) ? "delete" : "add"](name);
  },

  compute({ tokens, ids }, { layers }, model, { stored, memory }) {
    const [table, places] = [model["embedding.weight"], model["positions.table"]];
    const dModel = table.shape[1];
    const entry = (r, c) => table.data[ids[r] * dModel + c] + places.data[r * dModel + c];
    let x = filled(ids.length, dModel, entry);
    const weights = {};
    const off = [];
    for (const layer of range(+layers)) {
      const attended = attend(x, model, `layers.${layer}`, causalMask);
      const isSilent = (head) => memory.off?.has(nameOf(layer, head));
      const silent = new Set(range(model.n_heads).filter(isSilent));
      const left = switchedOff(attended.heads, silent);
      for (const head of silent) off.push(nameOf(layer, head));
      weights[`layer${layer}`] = attended.weights;
      x = add(x, linear(mergeHeads(left), model[`layers.${layer}.w_o.weight`]));
    }
    const logits = linear(x, model["to_next.weight"]);
    const shares = maskedSoftmax(new Tensor([1, ...logits.shape], logits.data)).at(0);
    const { vocabulary, accuracy } = stored;
    return { tokens, ...weights, shares, vocabulary, accuracy, ...(off.length ? { off } : {}) };
  },

  note({ tokens }, at) {
    const query = queryOf(tokens, at);
    if (query >= +at.query) return "";
    return `Your sequence ends at position ${query}: query ${at.query} means ${query}.`;
  },

  status({ tokens, accuracy, off }, at) {
    const without = off ? `without ${off.join(", ")} · with all heads on, ` : "";
    return `${at.layers} layer${at.layers > 1 ? "s" : ""} · query ${queryOf(tokens, at)}` +
      ` · ${without}right on ${percent(accuracy)} of what can be known in 4,000 new sequences`;
  },

  draw(frame, at, available) {
    const { tokens, off = [] } = frame;
    const query = queryOf(tokens, at);
    const heads = headsOf(frame);
    const found = foundBy(frame, query);
    const strongest = ({ layer, weights }) => {
      const from = asksFrom(frame, layer, query, found);
      const row = weights.at(from).data;
      const key = argmax(row);
      const token = escapeHtml(tokens[key]);
      return `from position ${from}: ${number(row[key])} on “${token}”, position ${key}`;
    };
    const switches = heads.map((head) => {
      const isOff = off.includes(head.name);
      const detail = ` ${element("span", {}, isOff ? "switched off" : strongest(head))}`;
      return { ...head, id: head.name, name: `head ${head.name}`, detail, isOff };
    });
    // Two beside each other: on a phone without labels, and the line below says what a cell is.
    const bare = available < 560;
    const labels = bare ? [] : tokens;
    const size = cellSize((available - 18) / 2, tokens.length, labels, { most: 26, least: 3 });
    const high = bare ? size : Math.max(size, 11); // so that row labels stay apart
    const look = { rows: tokens, columns: tokens, bare, size, high, largest: 1 };
    const maps = heads.map(({ layer, head, name, weights }) => {
      const isOff = off.includes(name);
      const map = matrix({ ...look, name: `layer${layer} ${head}`, tensor: weights });
      const caption = `head ${name}${isOff ? ", switched off" : ""}`;
      return panel(caption, element("div", { class: isOff && "off" }, map), "weights", "later");
    });
    return (
      way(frame, query, Math.min(available, 760)) +
      whatFollows(frame, query) +
      headSwitches(switches) +
      row(
        "Every head, every token: each row is a token that looks, " +
          "each column a token that it looks at",
        maps,
      )
    );
  },

  describe({ name, r, c, value }, frame) {
    const { tokens } = frame;
    if (name === "word") {
      const looks = headsOf(frame).map(({ name, weights }) => {
        const data = weights.at(r).data;
        const key = argmax(data);
        return `head ${name} mostly at “${tokens[key]}”, position ${key} (${number(data[key])})`;
      });
      return `“${tokens[r]}”, position ${r}, looks: ${looks.join(", ")}.`;
    }
    const [layer, head] = name.match(/\d/g);
    return `Head ${nameOf(+layer, head)}: “${tokens[r]}”, position ${r}, ` +
      `gives “${tokens[c]}”, position ${c}, the weight ${number(value)}.`;
  },
});

function whatFollows({ tokens, shares, vocabulary }, query) {
  const { data } = shares.at(query);
  const best = argmax(data);
  const before = lastTime(tokens, query);
  const token = `“${escapeHtml(tokens[query])}”`;
  const due = tokens[before + 1];
  const isDue = vocabulary[best] === due;
  const verdict = before < 0
    ? `${token} has not come before: there is nothing to look up`
    : isDue
    ? "✓ as last time"
    : `✗ last time “${escapeHtml(due)}” followed`;
  const parts = [
    element("span", { class: "asked" }, `after ${token}, position ${query}?`),
    answer("", vocabulary[best], data[best]),
    element("span", {}, verdict),
  ];
  return element("p", { class: "answers", "aria-live": "polite" }, parts.join(" "));
}

// The heads of the last layer that are on, and what they give together from the query to each
// place.
function lookingUp(frame, query) {
  const { tokens, off = [] } = frame;
  const last = layersOf(frame).length - 1;
  const heads = headsOf(frame).filter(({ layer, name }) => layer === last && !off.includes(name));
  const given = (i) => sum(heads.map(({ weights }) => weights.at(query).data[i]));
  return { heads, total: tokens.map((_, i) => given(i)) };
}

// Where most of the last layer's weight from the query goes, or -1: all its heads are switched off.
function foundBy(frame, query) {
  const { heads, total } = lookingUp(frame, query);
  return heads.length ? argmax(total) : -1;
}

// From which place a layer's arcs are drawn: the first of two layers is seen from the place that
// the last one found.
function asksFrom(frame, layer, query, found) {
  return layer < layersOf(frame).length - 1 && found >= 0 ? found : query;
}

// Above the sequence what the last layer looks at from the query; below it, from the place where
// most of that goes, the first layer.
function way(frame, query, available) {
  const { tokens, off = [] } = frame;
  const { heads, total } = lookingUp(frame, query);
  const found = foundBy(frame, query);
  const hasFirst = layersOf(frame).length > 1 && found >= 0;
  const first = headsOf(frame).filter(({ layer, name }) => layer === 0 && !off.includes(name));
  const step = Math.min(30, (available - 12) / tokens.length);
  const width = Math.max(available, 240);
  const x = (i) => 6 + step * (i + 0.5);
  const reach = total.map((sum, i) => (sum > FAINT ? Math.abs(x(query) - x(i)) : 0));
  const base = 40 + Math.min(90, Math.max(0, ...reach) * 0.3);
  const above = heads.map((head) => bow(head, query, x, base, -1, 90));
  const below = hasFirst ? first.map((head) => bow(head, found, x, base + 26, 1, 34)) : [];
  const bows = [...above, ...below];
  const within = (x) => Math.min(Math.max(x, 28), width - 28);
  const labels = bows.flatMap(({ labels }) => labels);
  const placed = apart(labels.map((label) => ({ ...label, x: within(label.x) })), 56);
  const lift = Math.max(0, 13 - Math.min(13, ...placed.map(({ y }) => y)));
  const high = Math.max(base + 26 + (hasFirst ? 74 : 8), ...placed.map(({ y }) => y + 6));
  const outlined = { style: "paint-order: stroke; stroke: var(--ground); stroke-width: 4px" };
  return svg(
    {
      ...{ class: "sentence", width, height: high + lift, top: -lift },
      label: found < 0
        ? "All heads of the last layer are switched off"
        : `From “${tokens[query]}”, position ${query}, most of the last layer's weight goes ` +
          `to “${tokens[found]}”, position ${found}`,
    },
    bows.map(({ arcs }) => arcs),
    placed.map(({ x, y, nth, label }) =>
      text({ class: `said head-${nth}`, ...outlined }, tenth(x), tenth(y), label)
    ),
    tokens.map((token, i) => letter(token, i, { query, found, x: x(i), base, step })),
  );
}

// The arcs of one head from a place, upwards (side -1) or downwards, and the label of the
// strongest.
function bow({ nth, name, dashes, weights }, from, x, y, side, highest) {
  const row = weights.at(from).data;
  const strongest = argmax(row);
  const arcs = [];
  const labels = [];
  row.forEach((weight, key) => {
    if (weight < FAINT) return;
    const bulge = Math.min(highest, 16 + Math.abs(x(from) - x(key)) * 0.3);
    const [start, end] = key === from ? [x(key) - 5, x(key) + 5] : [x(from), x(key)];
    const top = tenth(y + side * (bulge + 7 * (nth % 2)) * 1.33);
    const [a, b] = [tenth(start), tenth(end)];
    const d = `M${a} ${y}C${a} ${top} ${b} ${top} ${b} ${y}`;
    arcs.push(arc({ head: name, nth, dashes, weight, to: key, widest: 4 }, d));
    if (key !== strongest) return;
    const label = `${name} ${number(weight)}`;
    const beyond = side < 0 ? 14 : 22;
    labels.push({
      x: (start + end) / 2,
      y: y + side * (bulge + beyond),
      nth,
      label,
      step: 14 * side,
    });
  });
  return { arcs, labels };
}

function letter(token, i, { query, found, x, base, step }) {
  const wide = Math.min(step, 18);
  const size = tenth(Math.min(16, step * 1.25));
  const look = {
    ...{ class: `word${i === query ? " verb" : ""}`, "data-word": i },
    style: `font-size: ${size}px`,
  };
  const ring = rect("found", tenth(x - wide / 2), base + 3, tenth(wide), 20);
  return (i === found ? ring : "") + text(look, tenth(x), base + 18, token);
}
