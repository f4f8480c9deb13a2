// One map of attention weights for each head, then the output that the heads make together.

import { embed, multiHeadAttention, paddingMask } from "./attention.js";
import { explorer } from "./explorer.js";
import { number } from "./format.js";
import { cellSize, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { range } from "./tensor.js";

export default explorer({
  compute({ tokens, ids }, _at, model) {
    const x = embed(ids, model.table);
    const { weights, output } = multiHeadAttention(x, model, paddingMask(tokens));
    return { tokens, weights, output };
  },

  status(frame, at) {
    const [heads, length] = frame.weights.shape;
    const maps = `${heads} ${heads === 1 ? "map" : "maps"} of ${length} × ${length} weights`;
    return `d_model ${at.d_model} · n_heads ${heads} · d_key ${at.d_model / heads}` +
      ` · ${length} tokens in, ${maps}`;
  },

  draw(frame, _at, available) {
    const { tokens, weights, output } = frame;
    const heads = weights.shape[0];
    const across = Math.min(heads, available < 480 ? 2 : 4);
    const share = (available - 18 * (across - 1)) / across;
    const look = {
      rows: tokens,
      columns: tokens,
      size: cellSize(share, tokens.length, tokens, { most: heads === 1 ? 34 : 26 }),
      largest: weights.largest,
    };
    const maps = range(heads).map((i) =>
      panel(
        `head ${i}`,
        matrix({ ...look, name: `weights ${i}`, tensor: weights.at(i) }),
        "weights",
      )
    );
    const size = cellSize(available, output.shape[1], tokens, { most: 34 });
    const high = Math.max(size, 14); // of a line of text, where many columns make narrow cells
    const out = matrix({ name: "output", tensor: output, rows: tokens, size, high });
    const shape = `(${tokens.length}, ${output.shape[1]})`;
    return row(
      "Who attends to whom: each row asks, its weights sum to 1",
      maps,
      `Full colour is the largest weight of this frame, ${number(weights.largest)}.`,
    ) +
      row(`What comes out: ${shape}, a new vector for each token`, [
        panel("output", out, "output"),
      ]);
  },

  describe({ name, r, c, value }, { tokens }) {
    if (name === "output") return `Output of "${tokens[r]}", component ${c}: ${number(value)}.`;
    const head = name.split(" ")[1];
    return `Head ${head}: "${tokens[r]}" attends to "${tokens[c]}" with weight ${number(value)}.`;
  },
});
