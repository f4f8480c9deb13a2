// What the trained model answers at a verb of a sentence, and arcs from a token to what heads look
// at. Of two verbs the reader chooses the one that asks.

import { answer, answers, knownAs } from "./answers.js";
import { embed, linear, mergeHeads } from "./attention.js";
import { multiHeadAttention, paddingMask, UNK } from "./attention.js";
import { LEAST, listed, number } from "./format.js";
import { choice, element, escapeHtml, path, svg, text } from "./markup.js";
import { probabilities, readOut } from "./read_out.js";
import { argmax, filled, range } from "./tensor.js";

const DASHES = ["", "8 4", "2 3", "10 3 2 3", "14 4", "5 2", "1 4", "8 3 2 3 2 3"];
const GAP = 15; // between the words of a line
const HIGHEST = 86; // of an arc over a line

// The verb that asks, the weights and the two answers. It is the word at `asking` where that is a
// verb, else the first verb; heads in `off` are switched off.
export function answered({ tokens, ids }, model, verbs, { asking, off = new Set() } = {}) {
  const x = embed(ids, model.table);
  const { heads, weights } = multiHeadAttention(x, model, paddingMask(tokens));
  const output = linear(mergeHeads(switchedOff(heads, off)), model.w_o, model.b_o);
  const places = verbPlaces(tokens, verbs);
  const verb = places.includes(asking) ? asking : (places[0] ?? -1);
  const width = output.shape[1];
  const row = filled(1, width, (_, c) => output.data[Math.max(verb, 0) * width + c]);
  const [who, whom] = readOut(row, model).map((logits) => probabilities(logits).at(0));
  return { tokens, verb, weights, who, whom };
}

function verbPlaces(tokens, verbs) {
  return range(tokens.length).filter((place) => verbs.includes(tokens[place]));
}

// A button for each verb of a sentence with several: it asks next.
export function verbButtons({ tokens, verb, verbs }) {
  const places = verbPlaces(tokens, verbs);
  if (places.length < 2) return "";
  const buttons = places.map((place) =>
    choice(`ask ${place}`, place === verb, escapeHtml(tokens[place]))
  );
  const group = { role: "group", "aria-label": "The verb that asks" };
  return element("p", { class: "asking", ...group }, element("span", {}, "asks:"), buttons);
}

// What `verbButtons` and the verbs among the words do.
export function ask(what, memory) {
  memory.asking = +what.split(" ")[1];
}

// The results of heads (heads, seq, d_key), with zeros for those that are off.
export function switchedOff(heads, off) {
  const size = heads.shape[1] * heads.shape[2];
  return heads.map((value, i) => (off.has(Math.floor(i / size)) ? 0 : value));
}

// A button for each head, with its line and a detail, that switches the head off and on.
export function headSwitches(heads) {
  const buttons = heads.map(({ id, nth, dashes = DASHES[nth], name, detail, isOff }) => {
    const look = { class: `arc head-${nth}`, "stroke-width": 4, "stroke-dasharray": dashes };
    const line = svg({ width: 34, height: 10 }, path(look, "M2 5H32"));
    const state = { role: "switch", "aria-checked": String(!isOff), "data-act": `head ${id}` };
    return element("button", { type: "button", ...state }, line, name, detail);
  });
  const group = { role: "group", "aria-label": "Heads: switch one off" };
  return element("p", { class: "switches", ...group }, buttons);
}

// A head has a role where most of what the verb gives it goes to one of the two answers.
export function roleOf([who, whom]) {
  return who >= 0.6 ? "who" : whom >= 0.6 ? "whom" : "";
}

export function answersAtVerb({ tokens, verb, who, whom, vocabulary, verbs }) {
  if (verb < 0) {
    const known = `It knows ${verbs.join(", ")}. Try one of them.`;
    const none = `There is no verb in it that the model knows. ${known}`;
    return element("p", { class: "answers none" }, none);
  }
  const both = [["who", who], ["whom", whom]].map(([question, { data }]) => {
    const best = argmax(data);
    const word = vocabulary[best];
    const names = { "data-question": question, "data-answer": word };
    return answer(question, knownAs(word, tokens, vocabulary), data[best], names);
  });
  const absent = [who, whom].map(({ data }) => vocabulary[argmax(data)])
    .filter((word) => word !== UNK && !tokens.includes(word));
  const note = absent.length &&
    `Not in the sentence: ${listed([...new Set(absent)])}. ` +
      `The model answers with one of its ${vocabulary.length} words.`;
  return answers(tokens[verb], both) + (note ? element("p", { class: "note" }, note) : "");
}

// One arc of a head to a token, as wide as its weight.
export function arc({ head, nth, dashes = DASHES[nth], weight, to, widest = 6 }, d) {
  const look = {
    class: `arc head-${nth}`,
    "stroke-width": (1 + widest * weight).toFixed(1),
    "stroke-opacity": (0.3 + 0.7 * weight).toFixed(2),
    "stroke-dasharray": dashes,
    "data-head": head,
    "data-weight": weight,
    "data-to": to,
  };
  return path(look, d);
}

// Labels {x, y} that would lie over one another are moved, one after another, by `step` upwards or
// downwards.
export function apart(labels, wide, step) {
  const placed = [];
  for (const label of labels) {
    const over = ({ x, y }) => Math.abs(x - label.x) < wide && Math.abs(y - label.y) < 14;
    while (placed.some(over)) label.y += label.step ?? step;
    placed.push(label);
  }
  return placed;
}

// The words, in a line or, where that is too long, in a column, and an arc from the verb to every
// word that a head looks at.
export function arcsFromVerb(frame, available) {
  const { tokens, verb, verbs } = frame;
  const places = verbPlaces(tokens, verbs);
  const layout = layoutOf(tokens, verb, available);
  const { lying, at, base, side } = layout;
  const { arcs, labels } = verb < 0 ? { arcs: [], labels: [] } : arcsOver(frame, layout);
  const placed = apart(labels, 62, lying ? -14 : 14);
  const lift = Math.max(0, 12 - Math.min(12, ...placed.map(({ y }) => y)));
  const words = tokens.map((word, i) => {
    const look = `word${i === verb ? " verb" : ""}${lying ? "" : " row"}`;
    const [x, y] = lying ? [at(i), base + 16] : [side - 8, at(i) + 5];
    const asks = places.includes(i) && i !== verb && `ask ${i}`;
    return text(
      { class: asks ? `${look} other` : look, "data-word": i, "data-ask": asks },
      x,
      y,
      word,
    );
  });
  const from = verb < 0 ? "No verb" : `From “${tokens[verb]}”`;
  return svg(
    {
      ...{ class: "sentence", width: layout.width, height: layout.height + lift, top: -lift },
      label: `${from}, a line from the verb to each word, as wide as the head's weight`,
    },
    arcs,
    placed.map(({ x, y, label, head }) =>
      text(`${lying ? "" : "start "}said head-${head}`, x, y, label)
    ),
    words,
  );
}

// Where the words stand: `at` is the middle of each along the line or the column.
function layoutOf(tokens, verb, available) {
  const widths = tokens.map((word) => Math.ceil(widthOf(word)) + 1);
  const long = widths.reduce((sum, width) => sum + width + GAP, 0);
  const side = Math.max(...widths) + 16; // where arcs start in a column
  if (long > available) {
    const step = 30;
    const width = Math.min(available, 640);
    const at = (i) => 20 + i * step;
    const highest = width - side - 70;
    return { lying: false, at, base: 0, side, highest, width, height: 20 + tokens.length * step };
  }
  const space = Math.min(GAP + 14, GAP + (available - long) / tokens.length);
  const starts = [6];
  for (const width of widths) starts.push(starts.at(-1) + width + space);
  const at = (i) => starts[i] + widths[i] / 2;
  const farthest = verb < 0 ? 0 : Math.max(...tokens.map((_, i) => Math.abs(at(i) - at(verb))));
  const base = 34 + Math.min(HIGHEST, farthest * 0.42);
  const width = starts.at(-1) - space + 6;
  return { lying: true, at, base, side, highest: HIGHEST, width, height: base + 26 };
}

function arcsOver({ tokens, verb, weights, roles, off = [] }, { lying, at, base, side, highest }) {
  const heads = range(weights.shape[0]).filter((head) => !off.includes(head));
  const given = (head) => weights.at(head).at(verb).data;
  const surest = tokens.map((_, i) => Math.max(...heads.map((head) => given(head)[i])));
  const arcs = [];
  const labels = [];
  for (const [nth, head] of heads.entries()) {
    const row = given(head);
    const strongest = argmax(row);
    tokens.forEach((_, i) => {
      const weight = row[i];
      if (weight < LEAST) return;
      const reach = Math.abs(at(i) - at(verb));
      const bulge = (i === verb ? 26 : Math.min(highest, 20 + reach * 0.42)) + nth * 6;
      const shift = (nth - (heads.length - 1) / 2) * 2;
      const [from, to] = i === verb ? [at(verb) - 8, at(verb) + 8] : [at(verb), at(i) + shift];
      const [foot, top] = lying ? [base - 2, base - 2 - bulge * 1.33] : [side, side + bulge * 1.33];
      const d = lying
        ? `M${from} ${foot}C${from} ${top} ${to} ${top} ${to} ${foot}`
        : `M${foot} ${from}C${top} ${from} ${top} ${to} ${foot} ${to}`;
      arcs.push(arc({ head, nth: head, weight, to: i }, d));
      // Of many heads, one label for each word.
      if (i !== strongest || (heads.length > 2 && weight < surest[i])) return;
      const middle = (from + to) / 2;
      const [x, y] = lying ? [middle, base - 8 - bulge] : [side + bulge + 6, middle + 4];
      const label = `${roleOf(roles[head]) || `head ${head}:`} ${number(weight)}`;
      labels.push({ x, y, label, head });
    });
  }
  return { arcs, labels };
}

let pen;

function widthOf(word) {
  if (!pen) {
    pen = document.createElement("canvas").getContext("2d");
    pen.font = `600 16px ${getComputedStyle(document.body).fontFamily}`;
  }
  return pen.measureText(word).width;
}
