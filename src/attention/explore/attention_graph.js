// A graph for each head: the tokens that ask on the left, the tokens they attend to on the right,
// and a line for each weight, as wide as the weight is large. Below it the same weights as a map.

import { causalMask, embed, multiHeadAttention, paddingMask } from "./attention.js";
import { explorer } from "./explorer.js";
import { number } from "./format.js";
import { path, svg, text } from "./markup.js";
import { cellSize, labelWidth, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { range } from "./tensor.js";

export default explorer({
  compute({ tokens, ids }, at, model) {
    const padding = paddingMask(tokens);
    const both = (query, key) => padding(query, key) && causalMask(query, key);
    const mask = at.mask === "causal" ? both : padding;
    return { tokens, weights: multiHeadAttention(embed(ids, model.table), model, mask).weights };
  },

  status(frame, at) {
    const [heads, length] = frame.weights.shape;
    const edges = frame.weights.data.filter((weight) => weight > 0).length;
    return `d_model ${at.d_model} · n_heads ${heads} · d_key ${at.d_model / heads}` +
      ` · ${edges} edges with a weight above 0, of ${heads * length * length}`;
  },

  draw(frame, at, available) {
    const { tokens, weights } = frame;
    const length = tokens.length;
    const heads = weights.shape[0];
    const asks = at.query === "all" ? null : Math.min(+at.query, length - 1);
    // What is drawn fills the range of widths: the edges of the token that asks, or all.
    const isDrawn = (_, i) => asks === null || Math.floor(i / length) % length === asks;
    const largest = Math.max(...weights.data.filter(isDrawn));
    const across = Math.min(heads, available < 480 ? 2 : 4);
    const share = Math.floor((available - 18 * (across - 1)) / across);
    const width = Math.min(300, share);
    const look = {
      rows: tokens,
      size: cellSize(width, length, tokens, { most: 26 }),
      largest: 1,
    };
    const keyIn = (head) => (r, c) => (head * length + r) * length + c;
    const graphs = range(heads).map((i) =>
      panel(`head ${i}`, graph(weights.at(i), tokens, width, keyIn(i), largest, asks), "weights")
    );
    const maps = range(heads).map((i) => {
      const paint = (_, r, c) => ({ key: keyIn(i)(r, c) });
      const map = matrix({ ...look, name: `weights ${i}`, tensor: weights.at(i), paint });
      return panel(`head ${i}`, map, "weights", "later");
    });
    return row(
      "Who attends to whom, head by head",
      graphs,
      `The widest line has the weight ${number(largest)}.`,
    ) + row("The same as maps: each row is a word that looks", maps);
  },

  describe({ name, r, c, value }, { tokens }) {
    const edge = `edge from "${tokens[r]}" ${r} to "${tokens[c]}" ${c}`;
    return `Head ${name.split(" ")[1]}: ${edge}, weight ${number(value)}.`;
  },
});

function graph(weights, tokens, width, key, largest, asks) {
  const margin = labelWidth(tokens) + 6; // for wide letters, as in <pad>
  const step = 22;
  const y = (i) => i * step + step / 2;
  const [from, middle, to] = [margin, width / 2, width - margin];
  const edges = Array.from(weights.data, (weight, i) => {
    const [r, c] = [Math.floor(i / tokens.length), i % tokens.length];
    if (weight === 0 || (asks !== null && asks !== r)) return "";
    const share = weight / largest;
    const look = {
      class: "edge",
      "data-key": key(r, c),
      "data-weight": weight,
      "stroke-width": (0.4 + 4.6 * share ** 1.5).toFixed(2),
      "stroke-opacity": (0.25 + 0.5 * share ** 2).toFixed(2),
    };
    return path(look, `M${from} ${y(r)}C${middle} ${y(r)} ${middle} ${y(c)} ${to} ${y(c)}`);
  });
  const labels = tokens.map((token, i) => [
    text(`row${asks === i ? " asking" : ""}`, margin - 6, y(i) + 4, token),
    text("start", width - margin + 6, y(i) + 4, token),
  ]);
  return svg({ width, height: step * tokens.length }, edges, labels);
}
