// The heads' results, merged right and wrong, and what the output projection makes of both.
// In the first two lines colour and digit say which token an entry belongs to.

import { embed, linear, mergeHeads, multiHeadAttention, paddingMask } from "./attention.js";
import { explorer } from "./explorer.js";
import { number } from "./format.js";
import { cellSize, headBands, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { range, Tensor } from "./tensor.js";

export default explorer({
  compute({ tokens, ids }, _at, model) {
    const x = embed(ids, model.table);
    const { heads, merged, output } = multiHeadAttention(x, model, paddingMask(tokens));
    const unmoved = new Tensor(merged.shape, heads.data);
    const index = heads.map((_, i) => i);
    return {
      tokens,
      heads,
      right: merged,
      wrong: unmoved,
      right_from: mergeHeads(index),
      wrong_from: new Tensor(merged.shape, index.data),
      right_output: output,
      wrong_output: linear(unmoved, model.w_o, model.b_o),
    };
  },

  status(frame, at) {
    const [heads, length, d_key] = frame.heads.shape;
    const token = (from) => Math.floor(from / d_key) % length;
    const row = (i) => Math.floor(i / (heads * d_key));
    const strays = frame.wrong_from.data.filter((from, i) => token(from) !== row(i)).length;
    return `d_model ${at.d_model} · n_heads ${heads} · d_key ${d_key}` +
      " · numbers in another token's row: 0 by merge_heads," +
      ` ${strays} of ${frame.right.data.length} without the transpose`;
  },

  draw(frame, _at, available) {
    const { tokens, heads, right, right_output, wrong_output } = frame;
    const [count, length, d_key] = heads.shape;
    const entry = (from) => {
      const token = Math.floor(from / d_key) % length;
      return { kind: `t${token % 8}`, strength: 1, text: String(token), key: from };
    };
    const rows = tokens.map((word, i) => `${word} ${i}`);
    const half = available >= 640 ? (available - 18) / 2 : available;
    const size = cellSize(half, right.shape[1], rows, { most: 36 });
    const largest = Math.max(right_output.largest, wrong_output.largest);
    const width = right.shape[1];
    const bands = headBands(count, d_key, size);
    const run = [{ from: 0, to: width, text: "as in memory" }];
    const merged = (name, bands) => {
      const paint = (_, r, c) => entry(frame[`${name}_from`].data[r * width + c]);
      return matrix({ name, tensor: frame[name], rows, size, bands, paint });
    };
    const small = cellSize(available, d_key, rows, { most: 20 });
    const inHeads = range(count).map((i) => {
      const paint = (_, r, c) => entry((i * length + r) * d_key + c);
      const map = matrix({ name: `heads ${i}`, tensor: heads.at(i), rows, size: small, paint });
      return panel(`head ${i}`, map);
    });
    const projected = (name, tensor) => matrix({ name, tensor, rows, size, largest });
    return (
      row(`Each head's weighted sums: ${count} × (${length}, ${d_key})`, inHeads) +
      row(`Merged: (${length}, ${width})`, [
        panel("right: transpose, then view", merged("right", bands)),
        panel("wrong: no transpose", merged("wrong", run)),
      ]) +
      row("After the output projection", [
        panel("right", projected("right_output", right_output), "output"),
        panel("wrong: another result, the same shape", projected("wrong_output", wrong_output)),
      ])
    );
  },

  describe({ name, r, c, key, value }, { tokens, heads, wrong_from }) {
    const [count, length, d_key] = heads.shape;
    if (key === undefined) {
      const output = name === "right_output" ? "Output" : "Output after the wrong merge";
      return `${output} for "${tokens[r]}" ${r}, component ${c}: ${number(value)}.`;
    }
    const head = Math.floor(key / (length * d_key));
    const token = Math.floor(key / d_key) % length;
    const i = wrong_from.data.indexOf(key);
    const lost = Math.floor(i / (count * d_key));
    const column = key % d_key;
    return `Head ${head}, ${tokens[token]} ${token}, column ${column}: ${number(value)}. ` +
      `Right: row ${tokens[token]} ${token}, column ${head * d_key + column}. ` +
      `Without the transpose: row ${tokens[lost]} ${lost}, column ${i % (count * d_key)}.`;
  },
});
