// The heads' results, merged right and wrong, and what the output projection makes of both.
// In the first two lines colour and digit say which token an entry belongs to.

export default explorer({
  compute({ tokens, ids }, at, model) {
    const { heads, merged, output } = multiHeadAttention(embed(ids, model.table), model, paddingMask(tokens));
    const unmoved = new Tensor(merged.shape, heads.data);
    const index = new Tensor(heads.shape, heads.data.map((_, i) => i));
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
    const strays = Array.from(frame.wrong_from.data).filter((from, i) => token(from) !== Math.floor(i / (heads * d_key)));
    return `d_model ${at.d_model} · n_heads ${heads} · d_key ${d_key} · numbers in another token's row: 0 by merge_heads, ${strays.length} of ${frame.right.data.length} without the transpose`;
  },

  draw(frame, at, room) {
    const { tokens, heads, right, wrong, right_from, wrong_from, right_output, wrong_output } = frame;
    const [count, length, d_key] = heads.shape;
    const entry = (from) => {
      const token = Math.floor(from / d_key) % length;
      return { kind: `t${token % 8}`, strength: 1, text: String(token), key: from };
    };
    const rows = tokens.map((word, i) => `${word} ${i}`);
    const half = room >= 640 ? (room - 18) / 2 : room;
    const size = cellSize(half, right.shape[1], rows, { most: 36 });
    const largest = Math.max(right_output.largest, wrong_output.largest);
    const bands = Array.from({ length: count }, (_, i) => ({ from: i * d_key, to: (i + 1) * d_key, text: d_key * size < 44 ? i : `head ${i}` }));
    const run = [{ from: 0, to: right.shape[1], text: "as in memory" }];
    return (
      row(
        `Each head's weighted sums: ${count} × (${length}, ${d_key})`,
        Array.from({ length: count }, (_, i) =>
          panel(
            `head ${i}`,
            matrix({
              name: `heads ${i}`,
              tensor: heads.at(i),
              rows,
              size: cellSize(room, d_key, rows, { most: 20 }),
              paint: (_, r, c) => entry((i * length + r) * d_key + c),
            }),
          ),
        ),
      ) +
      row(`Merged: (${length}, ${right.shape[1]})`, [
        panel("right: transpose, then view", matrix({ name: "right", tensor: right, rows, size, bands, paint: (_, r, c) => entry(right_from.data[r * right.shape[1] + c]) })),
        panel("wrong: no transpose", matrix({ name: "wrong", tensor: wrong, rows, size, bands: run, paint: (_, r, c) => entry(wrong_from.data[r * wrong.shape[1] + c]) })),
      ]) +
      row("After the output projection", [
        panel("right", matrix({ name: "right_output", tensor: right_output, rows, size, largest }), "output"),
        panel("wrong: another result, the same shape", matrix({ name: "wrong_output", tensor: wrong_output, rows, size, largest })),
      ])
    );
  },

  describe({ name, r, c, key, value }, { tokens, heads, wrong_from }) {
    const [count, length, d_key] = heads.shape;
    if (key === undefined) return `${name === "right_output" ? "Output" : "Output after the wrong merge"} for "${tokens[r]}" ${r}, component ${c}: ${number(value)}.`;
    const head = Math.floor(key / (length * d_key));
    const token = Math.floor(key / d_key) % length;
    const i = wrong_from.data.indexOf(key);
    const lost = Math.floor(i / (count * d_key));
    return `Head ${head}, ${tokens[token]} ${token}, column ${key % d_key}: ${number(value)}. Right: row ${tokens[token]} ${token}, column ${head * d_key + (key % d_key)}. Without the transpose: row ${tokens[lost]} ${lost}, column ${i % (count * d_key)}.`;
  },
});
