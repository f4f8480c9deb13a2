// The mask (1 = may attend), head 0's scores before and after it, and the weights, all with a row for each query; then the weights
// of one query in every head. A forbidden cell has a stroke through it, whatever its colour.

// A sentence of one's own may be shorter than the slider.
const chosen = (frame, at) => Math.min(at.query, frame.queries.length - 1);

const allowed = (frame, query, key) => frame.mask.data[query * frame.keys.length + key] === 1;

export default explorer({
  // The keys are the sentence; so are the queries, but in cross-attention.
  compute({ tokens, ids }, at, model, { stored, read }) {
    const cross = at.mask === "cross-attention";
    const queries = cross ? stored.queries : tokens;
    const project = (ids, name) => splitHeads(linear(embed(ids, model.table), model[`w_${name}`], model[`b_${name}`]), model.n_heads);
    const q = project(cross ? read(queries) : ids, "q");
    const k = project(ids, "k");
    const padding = paddingMask(tokens);
    const may = {
      none: () => true,
      padding,
      causal: causalMask,
      "padding and causal": (query, key) => padding(query, key) && causalMask(query, key),
      "cross-attention": padding,
    }[at.mask];
    const scores = scaledScores(q, k);
    const weights = maskedSoftmax(scores, may);
    const [n, m] = [queries.length, tokens.length];
    return {
      queries,
      keys: tokens,
      shape: { none: null, padding: [1, 1, 1, m], "cross-attention": [1, 1, 1, m], causal: [n, m] }[at.mask] ?? (at.mask === "none" ? null : [1, 1, n, m]),
      mask: filled(n, m, (r, c) => Number(may(r, c))),
      scores: scores.at(0),
      masked: filled(n, m, (r, c) => (may(r, c) ? scores.data[r * m + c] : -Infinity)),
      weights: weights.at(0),
      every: byQuery(weights),
    };
  },

  // Two more tokens, so that there is something to mask.
  prepare: (tokens) => [...tokens, PAD, PAD],

  status(frame, at) {
    const { queries, keys, every } = frame;
    const query = chosen(frame, at);
    const seen = keys.filter((_, c) => allowed(frame, query, c)).length;
    return `d_model ${at.d_model} · n_heads ${at.n_heads} · d_key ${at.d_model / every.shape[1]} · query "${queries[query]} ${query}" may attend to ${seen} of ${keys.length} keys`;
  },

  draw(frame, at, room) {
    const { queries, keys, shape, mask, scores, masked, weights, every } = frame;
    const query = chosen(frame, at);
    const rows = queries.map((word, r) => (r === query ? `▸ ${word} ${r}` : `${word} ${r}`));
    const columns = keys.map((word, c) => `${word} ${c}`);
    const across = room >= 500 ? 2 : 1;
    const size = cellSize((room - 18 * (across - 1)) / across, keys.length, rows, { most: 32 });
    const show = (name, tensor, largest, struck, { labels = rows, queryOf = (r) => r } = {}) =>
      matrix({
        name,
        tensor,
        rows: labels,
        columns,
        size,
        largest,
        paint: (value, r, c) => (allowed(frame, queryOf(r), c) ? (name === "mask" ? { text: "1" } : {}) : { kind: "struck", text: struck }),
      });
    const heads = Array.from({ length: every.shape[1] }, (_, i) => `head ${i}`);
    const same = shape?.at(-2) === 1 ? ", the same for every query" : "";
    return (
      row(`Mask: ${at.mask}${same}`, [
        panel(`${shape ? `(${shape.join(", ")})` : "not given"}: 1 = may attend`, show("mask", mask, 1, "0")),
        panel("scores of head 0", matrix({ name: "scores", tensor: scores, rows, columns, size }), "scores"),
      ]) +
      row("The mask acts on the scores, then softmax makes weights", [
        panel("masked scores of head 0", show("masked", masked, scores.largest, "−∞"), "scores"),
        panel("weights of head 0: each row sums to 1", show("weights", weights, 1, "0"), "weights"),
      ]) +
      row(`One query, every head: the weights of "${queries[query]} ${query}"`, [
        panel("each row sums to 1", show(`every ${query}`, every.at(query), 1, "0", { labels: heads, queryOf: () => query }), "weights"),
      ])
    );
  },

  describe({ name, r, c, value }, frame, at) {
    const { queries, keys } = frame;
    const one = name.startsWith("every");
    const query = one ? chosen(frame, at) : r;
    const who = `"${queries[query]} ${query}"`;
    const key = `"${keys[c]} ${c}"`;
    const may = allowed(frame, query, c);
    if (name === "mask") return `${who} ${may ? "may" : "may not"} attend to ${key}.`;
    if (name === "scores") return `Head 0: ${who} scores ${key} with ${number(value)}, before the mask.`;
    if (name === "masked") return `Head 0: the score of ${who} for ${key} ${may ? `stays ${number(value)}` : "is −∞ now: it may not attend to it"}.`;
    return `Head ${one ? r : 0}: ${who} ${may ? `attends to ${key} with weight ${number(value)}` : `may not attend to ${key}: weight 0`}.`;
  },
});
