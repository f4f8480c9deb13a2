// A graph for each head: the tokens that ask on the left, the tokens they attend to on the right, and a line for
// each weight, as wide as the weight is large. Below it the same weights as a map.

export default explorer({
  compute({ tokens, ids }, at, model) {
    const padding = paddingMask(tokens);
    const mask = at.mask === "causal" ? (query, key) => padding(query, key) && causalMask(query, key) : padding;
    return { tokens, weights: multiHeadAttention(embed(ids, model.table), model, mask).weights };
  },

  status(frame, at) {
    const [heads, length] = frame.weights.shape;
    const edges = frame.weights.data.filter((weight) => weight > 0).length;
    return `d_model ${at.d_model} · n_heads ${heads} · d_key ${at.d_model / heads} · ${edges} edges with a weight above 0, of ${heads * length * length}`;
  },

  draw(frame, at, room) {
    const { tokens, weights } = frame;
    const heads = weights.shape[0];
    const asks = at.query === "all" ? null : Math.min(+at.query, tokens.length - 1);
    // What is drawn fills the range of widths: the edges of the token that asks, or all.
    const largest = asks === null ? weights.largest : Math.max(...weights.data.filter((_, i) => Math.floor(i / tokens.length) % tokens.length === asks));
    const across = Math.min(heads, room < 480 ? 2 : 4);
    const width = Math.min(heads === 1 ? 300 : 220, Math.floor((room - 18 * (across - 1)) / across));
    const size = cellSize(width, tokens.length, tokens, { most: 26 });
    return row(
      "Who attends to whom, head by head",
      Array.from({ length: heads }, (_, i) => {
        const key = (r, c) => (i * tokens.length + r) * tokens.length + c;
        const map = matrix({
          name: `weights ${i}`,
          tensor: weights.at(i),
          rows: tokens,
          size,
          largest: weights.largest,
          paint: (value, r, c) => ({ key: key(r, c) }),
        });
        return panel(`head ${i}`, graph(weights.at(i), tokens, width, key, largest, asks) + map, "weights");
      }),
      `The widest line has the weight ${number(largest)}.`,
    );
  },

  describe({ name, r, c, value }, { tokens }) {
    return `Head ${name.split(" ")[1]}: edge from "${tokens[r]}" ${r} to "${tokens[c]}" ${c}, weight ${number(value)}.`;
  },
});

function graph(weights, tokens, width, key, largest, asks) {
  const margin = labelWidth(tokens) + 6; // room for wide letters, as in <pad>
  const step = 22;
  const height = step * tokens.length;
  const y = (i) => i * step + step / 2;
  const lines = Array.from(weights.data, (weight, i) => {
    const r = Math.floor(i / tokens.length);
    const c = i % tokens.length;
    if (weight === 0 || (asks !== null && asks !== r)) return "";
    const share = weight / largest;
    const middle = width / 2;
    return `<path class="edge" data-key="${key(r, c)}" data-weight="${weight}" stroke-width="${(0.4 + 4.6 * share ** 1.5).toFixed(2)}" stroke-opacity="${(0.25 + 0.5 * share ** 2).toFixed(2)}" d="M${margin} ${y(r)}C${middle} ${y(r)} ${middle} ${y(c)} ${width - margin} ${y(c)}"/>`;
  });
  const labels = tokens.map(
    (token, i) =>
      `<text class="row${asks === i ? " asking" : ""}" x="${margin - 6}" y="${y(i) + 4}">${escape(token)}</text><text class="start" x="${width - margin + 6}" y="${y(i) + 4}">${escape(token)}</text>`,
  );
  return `<svg width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" aria-hidden="true">${lines.join("")}${labels.join("")}</svg>`;
}
