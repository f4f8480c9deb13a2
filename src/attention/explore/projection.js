// X, and Q, K and V made of it, with the columns of each head under a bracket. Below, the three
// weight matrices at one scale, cut into the heads' strips: the area is the number of weights, and
// cutting does not change it.

import { embed, linear } from "./attention.js";
import { explorer } from "./explorer.js";
import { number, thousands } from "./format.js";
import { choice, element, escapeHtml, rect, svg } from "./markup.js";
import { cellSize, headBands, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { Tensor } from "./tensor.js";

const LETTERS = ["q", "k", "v"];

export default explorer({
  act(what, memory) {
    memory.written = +what.split(" ")[1];
  },

  compute({ tokens, ids }, at, model, { memory = {} } = {}) {
    const x = embed(ids, model.table);
    const d_model = x.shape[1];
    const d_key = d_model / model.n_heads;
    const bias = at.bias === "on";
    const frame = { tokens, x };
    for (const letter of LETTERS) {
      const b = model[`b_${letter}`];
      frame[letter] = linear(x, model[`w_${letter}`], bias && b);
      if (bias) frame[`b_${letter}`] = new Tensor([1, d_model], b.data);
    }
    const { written } = memory;
    return {
      ...frame,
      ...(written < tokens.length && { written }),
      d_key,
      weights: d_model * d_model,
      parameters: 3 * (d_model * d_model + bias * d_model),
      head_weights: d_model * d_key,
      head_parameters: 3 * (d_model * d_key + bias * d_key),
      setting: { bias: at.bias },
    };
  },

  status({ d_key, parameters }, at) {
    return `d_model ${at.d_model} · n_heads ${at.n_heads} · d_key ${d_key}` +
      ` · parameters of the three projections: ${thousands(parameters)} for every n_heads`;
  },

  draw(frame, _at, available) {
    const { x, tokens, d_key, written = 0 } = frame;
    const [length, d_model] = x.shape;
    const heads = d_model / d_key;
    const rows = tokens.map((word, i) => `${word} ${i}`);
    // Two matrices side by side, unless their cells would get too small to point at.
    const half = cellSize(available / 2 - 10, d_model, rows, { most: 36 });
    const beside = available >= 600 && half >= 12;
    const size = beside ? half : cellSize(available, d_model, rows, { most: 36 });
    const high = Math.max(size, 14); // of the labels, where many columns make narrow cells
    const bands = headBands(heads, d_key, size);
    const largest = Math.max(...LETTERS.map((letter) => frame[letter].largest));
    const shape = `(${length}, ${d_model})`;
    // The numbers of one word at a time: X and what is made of it are too many to be read at once.
    const paint = (_value, r) => (r === written ? {} : { text: "" });
    const look = { size, high, largest };
    // As wide a label as the tokens have, so that its columns stand under theirs.
    const longest = Math.max(...rows.map((row) => row.length));

    const read = [{ from: 0, to: d_model, text: "read by every head" }];
    const input = matrix({ name: "x", tensor: x, rows, size, high, paint, bands: read });
    const projected = LETTERS.map((letter) => {
      const name = `b_${letter}`;
      const tensor = frame[name];
      const upper = letter.toUpperCase();
      const made = matrix({ ...look, name: letter, tensor: frame[letter], rows, paint, bands });
      const label = `+ ${name}`.padStart(longest);
      const bias = tensor ? matrix({ ...look, name, tensor, rows: [label] }) : "";
      const formula = `${upper} = X·W_${letter}${bias ? ` + ${name}` : ""}`;
      return panel(`${formula} ${shape}`, made + bias, letter);
    });

    const scale = Math.min(5, (available - 60) / 3 / 32);
    const squares = LETTERS.map((letter) => panel(`W_${letter}`, strips(bands, d_model, scale)));
    const each = `${d_key} ${d_key === 1 ? "column" : "columns"} each`;
    const dealt = heads === 1 ? "one head has them all" : `dealt to ${heads} heads, ${each}`;
    return (
      wordButtons(tokens, written) +
      row("X goes in; Q, K and V come out", [
        panel(`X ${shape}: no heads yet`, input),
        ...projected,
      ]) + row(`Parameters: ${dealt}`, [...squares, ledger(frame, d_model, heads)])
    );
  },

  describe({ name, r, c, value }, frame) {
    const { tokens, d_key } = frame;
    if (name === "x") {
      return `X[${tokens[r]} ${r}, ${c}] = ${number(value)}. ` +
        "All three projections read it, for every head.";
    }
    const letter = name.at(-1);
    const upper = letter.toUpperCase();
    const place = `head ${Math.floor(c / d_key)}, its column ${c % d_key} of ${d_key}`;
    if (name !== letter) {
      return `b_${letter}[${c}] = ${number(value)}: added to column ${c} of ${upper} in each of ` +
        `the ${tokens.length} rows (${place}).`;
    }
    const bias = frame[`b_${letter}`];
    const inIt = bias ? `The bias ${number(bias.data[c])} is in it.` : "No bias.";
    return `${upper}[${tokens[r]} ${r}, ${c}] = ${number(value)}: ${place}. ${inIt}`;
  },
});

// Whose numbers are written.
function wordButtons(tokens, written) {
  const buttons = tokens.map((word, i) => choice(`write ${i}`, i === written, escapeHtml(word)));
  const group = { role: "group", "aria-label": "The word whose numbers are written" };
  return element("p", { class: "asking", ...group }, element("span", {}, "numbers of:"), buttons);
}

// A weight matrix, cut into the strips of its heads.
function strips(bands, d_model, scale) {
  const side = scale * d_model;
  const parts = bands.map(({ from, to }, i) => {
    const opacity = { "fill-opacity": i % 2 ? 0.2 : 0.5 };
    return rect("plus", 1 + from * scale, 1, (to - from) * scale, side, opacity);
  });
  return svg({ width: side + 2, height: side + 2 }, parts);
}

// How the parameters of a head add up to those of all.
function ledger(frame, d_model, heads) {
  const { d_key, weights, parameters, head_weights, head_parameters } = frame;
  const biases = parameters / 3 - weights;
  const head_biases = head_parameters / 3 - head_weights;
  const line = (what, one, all) => {
    const cells = [one, thousands(heads), thousands(all)].map((cell) => element("td", {}, cell));
    return element("tr", {}, element("th", { scope: "row" }, what), cells);
  };
  const heading = ["numbers in", "one head", "× heads", "= all"]
    .map((label) => element("th", { scope: "col" }, label));
  const each = `3 · ${thousands(head_weights + head_biases)} = ${thousands(head_parameters)}`;
  return element(
    "table",
    {},
    element("thead", {}, element("tr", {}, heading)),
    element(
      "tbody",
      {},
      line("a matrix", `${d_model} · ${d_key} = ${thousands(head_weights)}`, weights),
      line("a bias", thousands(head_biases), biases),
      line("all three", each, parameters),
    ),
  );
}
