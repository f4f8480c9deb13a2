// Q with its heads marked, then its entries where split_heads puts them and where a bare view puts
// them. Colour and digit say which token an entry came from.

import { embed, linear, splitHeads } from "./attention.js";
import { explorer } from "./explorer.js";
import { number } from "./format.js";
import { cellSize, headBands, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { filled, range, Tensor } from "./tensor.js";

export default explorer({
  compute({ tokens, ids }, _at, model) {
    const q = linear(embed(ids, model.table), model.w_q, model.b_q);
    const index = filled(...q.shape, (r, c) => r * q.shape[1] + c);
    const unmoved = [model.n_heads, q.shape[0], q.shape[1] / model.n_heads];
    return {
      tokens,
      q,
      right: splitHeads(q, model.n_heads),
      wrong: new Tensor(unmoved, q.data),
      right_from: splitHeads(index, model.n_heads),
      wrong_from: new Tensor(unmoved, index.data),
    };
  },

  status({ q, right, wrong_from }, at) {
    const d_key = right.shape[2];
    const mixed = new Set();
    wrong_from.data.forEach((from, i) => {
      const row = Math.floor(i / d_key) % q.shape[0];
      if (Math.floor(from / q.shape[1]) !== row) mixed.add(from);
    });
    return `d_model ${at.d_model} · n_heads ${at.n_heads} · d_key ${d_key}` +
      " · entries of Q in another token's row: 0 by split_heads," +
      ` ${mixed.size} of ${q.data.length} by view alone`;
  },

  draw(frame, _at, available) {
    const { q, right, tokens } = frame;
    const [heads, , d_key] = right.shape;
    const width = q.shape[1];
    const entry = (from) => {
      const token = Math.floor(from / width);
      return { kind: `t${token % 8}`, strength: 1, text: String(token), key: from };
    };
    const rows = tokens.map((word, i) => `${word} ${i}`);
    const size = cellSize(available, width, rows, { most: 28 });
    const whole = matrix({
      ...{ name: "q", tensor: q, rows, size, high: Math.max(size, 14) },
      bands: headBands(heads, d_key, size),
      paint: (_, r, c) => entry(r * width + c),
    });
    const most = Math.min(22, Math.max(size, 14));
    const small = { rows, size: cellSize(available, d_key, rows, { most }) };
    const split = (name) =>
      range(heads).map((i) => {
        const from = frame[`${name}_from`].at(i).data;
        const paint = (_, r, c) => entry(from[r * d_key + c]);
        const tensor = frame[name].at(i);
        return panel(`head ${i}`, matrix({ ...small, name: `${name} ${i}`, tensor, paint }));
      });
    const shape = `${heads} × (${tokens.length}, ${d_key})`;
    return (
      row(`Q, (${tokens.length}, ${width}): a row for each token`, [
        panel("columns belong to heads", whole, "q"),
      ]) +
      row(`Right: view, then transpose. ${shape}`, split("right")) +
      row("Wrong: view alone. The same shape, other contents", split("wrong"))
    );
  },

  describe({ key, value }, { q, right, wrong_from, tokens }) {
    const width = q.shape[1];
    const [, length, d_key] = right.shape;
    const [r, c] = [Math.floor(key / width), key % width];
    const i = wrong_from.data.indexOf(key);
    const head = Math.floor(i / (length * d_key));
    const token = Math.floor(i / d_key) % length;
    return `Q[${tokens[r]} ${r}, ${c}] = ${number(value)}. ` +
      `Right: head ${Math.floor(c / d_key)}, ${tokens[r]} ${r}, column ${c % d_key}. ` +
      `View alone: head ${head}, row of ${tokens[token]} ${token}, column ${i % d_key}.`;
  },
});
