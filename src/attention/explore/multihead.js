// One map of attention weights for each head, then the output that the heads make together.

export default explorer({
  compute({ tokens, ids }, at, model) {
    const { weights, output } = multiHeadAttention(embed(ids, model.table), model, paddingMask(tokens));
    return { tokens, weights, output };
  },

  status(frame, at) {
    const [heads, length] = frame.weights.shape;
    return `d_model ${at.d_model} · n_heads ${heads} · d_key ${at.d_model / heads} · ${length} tokens in, ${heads} ${heads === 1 ? "map" : "maps"} of ${length} × ${length} weights`;
  },

  draw(frame, at, room) {
    const { tokens, weights, output } = frame;
    const heads = weights.shape[0];
    const across = Math.min(heads, room < 480 ? 2 : 4);
    const size = cellSize((room - 18 * (across - 1)) / across, tokens.length, tokens, { most: heads === 1 ? 34 : 26 });
    const maps = Array.from({ length: heads }, (_, i) =>
      panel(
        `head ${i}`,
        matrix({ name: `weights ${i}`, tensor: weights.at(i), rows: tokens, columns: tokens, size, largest: weights.largest }),
        "weights",
      ),
    );
    const wide = cellSize(room, output.shape[1], tokens, { most: 34 });
    return (
      row("Who attends to whom: each row asks, its weights sum to 1", maps, `Full colour is the largest weight of this frame, ${number(weights.largest)}.`) +
      row(`What comes out: (${tokens.length}, ${output.shape[1]}), a new vector for each token`, [
        // As high as a line of text, where many columns make narrow cells.
        panel("output", matrix({ name: "output", tensor: output, rows: tokens, size: wide, high: Math.max(wide, 14) }), "output"),
      ])
    );
  },

  describe({ name, r, c, value }, { tokens }) {
    if (name === "output") return `Output of "${tokens[r]}", component ${c}: ${number(value)}.`;
    return `Head ${name.split(" ")[1]}: "${tokens[r]}" attends to "${tokens[c]}" with weight ${number(value)}.`;
  },
});
