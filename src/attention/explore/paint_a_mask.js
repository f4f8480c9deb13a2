// A mask that the reader paints: what each head looks at under it, what the model answers at each
// verb, and at how many verbs of many sentences it is still right.

import { embed, multiHeadAttention, PAD } from "./attention.js";
import { bars } from "./chart.js";
import { listed, number, percent, thousands } from "./format.js";
import { element, escapeHtml } from "./markup.js";
import { cellSize, labelWidth, matrix } from "./matrix.js";
import { painting, rowSwitches, switches } from "./painting.js";
import { panel, row } from "./panels.js";
import { answersOfVerb, probabilities, readOut } from "./read_out.js";
import { argmax, filled, range, Tensor } from "./tensor.js";

// Whether a query may attend to a key: true = may.
const RULES = {
  "nothing hidden": () => true,
  "padding hidden": (_query, _key, isPad) => !isPad,
  "padding and future hidden": (query, key, isPad) => !isPad && key <= query,
  "only the next word": (query, key) => key === query + 1,
  "each word only itself": (query, key) => key === query,
  "everything hidden": () => false,
};

export default painting({
  model: () => "book",

  // One <pad>, so that there is one to hide.
  prepare: (tokens) => [...tokens, PAD],

  act(what, memory) {
    if (what === "start again") return memory.painted = {};
    const [, r, c] = what.split(" ");
    const { start, mask } = memory.shown;
    const painted = (memory.painted ??= {})[start] ??= {};
    const [height] = mask.shape;
    const isOn = (key) => Boolean(mask.data[r * height + key]);
    const keys = what.startsWith("row") ? range(height) : [Number(c)];
    const on = !keys.some(isOn); // a row of which any cell is on is switched off
    for (const key of keys) painted[`${r} ${key}`] = on;
  },

  compute({ tokens, ids }, at, model, { memory }) {
    const asking = range(tokens.length).filter((i) => model.all_verbs.includes(tokens[i]));
    if (!asking.length) return { problem: `No verb in it asks. Try ${listed(model.all_verbs)}.` };
    const painted = memory.painted?.[at.start_from] ?? {};
    const may = maskOf(at.start_from, painted, (key) => tokens[key] === PAD);
    const x = embed(ids, model.table);
    const { output, weights } = multiHeadAttention(x, model, may);
    const rows = filled(asking.length, output.shape[1], (r, c) => output.at(asking[r]).data[c]);
    const [who, whom] = readOut(rows, model).map(probabilities);
    const given = asking.flatMap((_, nth) => [who.at(nth).data, whom.at(nth).data]);
    const mask = filled(tokens.length, tokens.length, (r, c) => Number(may(r, c)));
    memory.shown = { start: at.start_from, mask };
    const { right, of } = countRight(model, at.start_from, painted);
    return {
      ...{ tokens, asking, mask, weights, right, of },
      answers: given.map((share) => model.vocabulary[argmax(share)]),
      shares: filled(asking.length, 2, (r, c) => Math.max(...given[2 * r + c])),
      share: new Tensor([1, 1], Float64Array.of(right / of)),
    };
  },

  status({ mask, right, of, share }, at) {
    const open = mask.data.filter((may) => may).length;
    return `started from: ${at.start_from} · ${open} of ${mask.data.length} cells on` +
      ` · both answers right at ${thousands(right)} of ${thousands(of)} verbs, ` +
      percent(share.data[0]);
  },

  draw(frame, at, available) {
    const { tokens, asking, mask, weights, share, right, of } = frame;
    const n = tokens.length;
    const rows = tokens.map((word, r) => (asking.includes(r) ? `▸ ${word}` : word));
    const heads = range(weights.shape[0]);
    const fit = (across, most) => {
      const width = (available - 18 * (across - 1)) / across;
      return cellSize(width, n, rows, { most });
    };
    const look = { rows, columns: tokens, largest: 1 };
    const paint = (forbidden, seen = {}) => (_, r, c) =>
      mask.data[r * n + c] ? seen : { kind: "struck", text: forbidden };
    const overCells = switches([n, n], "cell", { drag: true });
    const overLabels = rowSwitches(rows, "row", labelWidth(rows));
    const grid = matrix({
      ...{ ...look, name: "mask", tensor: mask, size: fit(1, 32) },
      paint: paint("0", { text: "1" }),
      over: (places) => overCells(places) + overLabels(places),
    });
    const size = fit(available >= 500 ? 2 : 1, 26);
    const maps = heads.map((i) => {
      const name = `weights ${i}`;
      const map = matrix({ ...look, name, tensor: weights.at(i), size, paint: paint("0") });
      return panel(`weights of head ${i}`, map, "weights");
    });
    const total = bars({
      ...{ name: "share", tensor: share, rows: ["right"], column: "share of the verbs" },
      ...{ width: Math.min(available, 640), space: 60, pitch: 28, largest: 1, mark: 0.5 },
      format: percent,
    });
    const again = { type: "button", "data-act": "start again" };
    return (
      element("p", { class: "switches" }, element("button", again, "start again")) +
      row(
        `The price: both answers right at ${thousands(right)} of ${thousands(of)} verbs`,
        [panel(`of ${of / 2} new sentences with two verbs; dashes: one half`, total)],
        `Most are longer than yours: you paint their first ${n} positions, and the others stay ` +
          `as “${at.start_from}” has them.`,
        true,
      ) +
      row(
        "Your mask: press a cell, drag over several, or press a word at the left for its row",
        [panel("1 = may attend; a row asks, a column is read; ▸ a verb", grid)],
      ) +
      told(frame).map((text) => element("p", { class: "note" }, escapeHtml(text))).join("") +
      asking.map((_, nth) => answersOfVerb(frame, nth)).join("") +
      element(
        "p",
        { class: "note" },
        `The price: each sentence, padded to the longest, starts from “${at.start_from}”. A cell ` +
          "that you switched is as you left it in all of them, at the same position, whatever " +
          "word stands there.",
      ) +
      row("What each head looks at under your mask", maps)
    );
  },

  describe({ name, r, c, value }, { tokens, mask, right, of }) {
    if (name === "share") return `Right at ${thousands(right)} of ${thousands(of)} verbs.`;
    const n = tokens.length;
    const [query, key] = [r, c].map((place) => `“${tokens[place]}” ${place}`);
    if (name !== "mask") {
      const given = mask.data[r * n + c]
        ? `the weight ${number(value)}`
        : "no weight: it is hidden";
      return `Head ${name.split(" ")[1]}: ${query} gives ${key} ${given}.`;
    }
    if (!value) return `Off: ${query} may not attend to ${key}.`;
    const leak = tokens[c] === PAD ? ", which is padding" : c > r ? ", which comes later" : "";
    return `On: ${query} may attend to ${key}${leak}.`;
  },
});

function maskOf(start, painted, isPad) {
  return (query, key) => painted[`${query} ${key}`] ?? RULES[start](query, key, isPad(key));
}

// At how many verbs both answers are right, and of how many. Only the rows of verbs are computed:
// no answer is read elsewhere.
function countRight(model, start, painted) {
  const { sentences, asks } = model;
  let right = 0;
  for (const s of range(sentences.shape[0])) {
    const ids = sentences.at(s).data;
    const may = maskOf(start, painted, (key) => ids[key] === 0);
    const x = embed(ids, model.table);
    const verbs = range(asks.shape[1]).map((nth) => asks.at(s).at(nth).data);
    const rows = filled(verbs.length, x.shape[1], (nth, c) => x.at(verbs[nth][0]).data[c]);
    const mask = (nth, key) => may(verbs[nth][0], key);
    const { output } = multiHeadAttention(rows, model, mask, x);
    const [first, second] = readOut(output, model);
    verbs.forEach(([, who, whom], nth) => {
      if (argmax(first.at(nth).data) === who && argmax(second.at(nth).data) === whom) right++;
    });
  }
  return { right, of: asks.shape[0] * asks.shape[1] };
}

// The rows that see nothing, and the cells that leak.
function told({ tokens, mask }) {
  const n = tokens.length;
  const cells = range(n * n).filter((i) => mask.data[i]);
  const empty = range(n).filter((r) => !mask.at(r).data.some((may) => may));
  const pads = cells.filter((i) => tokens[i % n] === PAD).length;
  const later = cells.filter((i) => i % n > Math.floor(i / n) && tokens[i % n] !== PAD).length;
  const names = empty.map((r) => `“${tokens[r]}” ${r}`).join(", ");
  return [
    empty.length
      ? `See nothing, so that all their weights are 0: ${
        empty.length === n ? "all rows" : names
      }. Nothing comes of the words there; an answer read there is a guess.`
      : "Every row sees something.",
    `Leaks: ${cellsOf(pads)} on padding, which nobody should read; ${
      cellsOf(later)
    } on later words` +
    ", which a model that writes must not read.",
  ];
}

function cellsOf(count) {
  return count === 1 ? "1 cell" : `${count || "no"} cells`;
}
