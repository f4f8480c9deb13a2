// The mask (1 = may attend), head 0's scores before and after it, and the weights, all with a row
// for each query; then the weights of one query in every head. A forbidden cell has a stroke
// through it, whatever its colour.

import {
  byQuery,
  causalMask,
  embed,
  linear,
  maskedSoftmax,
  PAD,
  paddingMask,
  scaledScores,
  splitHeads,
} from "./attention.js";
import { explorer } from "./explorer.js";
import { number } from "./format.js";
import { cellSize, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { filled, range } from "./tensor.js";

// A sentence of one's own may be shorter than the slider.
const chosen = (frame, at) => Math.min(at.query, frame.queries.length - 1);

const allowed = (frame, query, key) => frame.mask.data[query * frame.keys.length + key] === 1;

export default explorer({
  // The keys are the sentence; so are the queries, but in cross-attention.
  compute({ tokens, ids }, at, model, { stored, read }) {
    const cross = at.mask === "cross-attention";
    const queries = cross ? stored.queries : tokens;
    const project = (ids, name) => {
      const rows = linear(embed(ids, model.table), model[`w_${name}`], model[`b_${name}`]);
      return splitHeads(rows, model.n_heads);
    };
    const q = project(cross ? read(queries) : ids, "q");
    const k = project(ids, "k");
    const padding = paddingMask(tokens);
    const [n, m] = [queries.length, tokens.length];
    const { may, shape } = {
      none: { may: () => true, shape: null },
      padding: { may: padding, shape: [1, 1, 1, m] },
      causal: { may: causalMask, shape: [n, m] },
      "padding and causal": {
        may: (query, key) => padding(query, key) && causalMask(query, key),
        shape: [1, 1, n, m],
      },
      "cross-attention": { may: padding, shape: [1, 1, 1, m] },
    }[at.mask];
    const scores = scaledScores(q, k);
    const weights = maskedSoftmax(scores, may);
    return {
      queries,
      keys: tokens,
      shape,
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
    const sizes = `d_model ${at.d_model} · n_heads ${at.n_heads}`;
    return `${sizes} · d_key ${at.d_model / every.shape[1]}` +
      ` · query "${queries[query]} ${query}" may attend to ${seen} of ${keys.length} keys`;
  },

  draw(frame, at, available) {
    const { queries, keys, shape, mask, scores, masked, weights, every } = frame;
    const query = chosen(frame, at);
    const rows = queries.map((word, r) => (r === query ? `▸ ${word} ${r}` : `${word} ${r}`));
    const columns = keys.map((word, c) => `${word} ${c}`);
    const across = available >= 500 ? 2 : 1;
    const share = (available - 18 * (across - 1)) / across;
    const look = { rows, columns, size: cellSize(share, keys.length, rows, { most: 32 }) };
    // What is forbidden is struck through.
    const masking = (forbidden, { seen = {}, queryOf = (r) => r } = {}) => (_, r, c) =>
      allowed(frame, queryOf(r), c) ? seen : { kind: "struck", text: forbidden };
    const ones = masking("0", { seen: { text: "1" } });
    const one = masking("0", { queryOf: () => query });
    const maps = {
      mask: matrix({ ...look, name: "mask", tensor: mask, largest: 1, paint: ones }),
      scores: matrix({ ...look, name: "scores", tensor: scores }),
      masked: matrix({
        ...{ ...look, name: "masked", tensor: masked, largest: scores.largest },
        paint: masking("−∞"),
      }),
      weights: matrix({
        ...{ ...look, name: "weights", tensor: weights, largest: 1 },
        paint: masking("0"),
      }),
      every: matrix({
        ...{ ...look, name: `every ${query}`, tensor: every.at(query), largest: 1, paint: one },
        rows: range(every.shape[1]).map((i) => `head ${i}`),
      }),
    };
    const same = shape?.at(-2) === 1 ? ", the same for every query" : "";
    const given = shape ? `(${shape.join(", ")})` : "not given";
    return (
      row(`Mask: ${at.mask}${same}`, [
        panel(`${given}: 1 = may attend`, maps.mask),
        panel("scores of head 0", maps.scores, "scores"),
      ]) +
      row("The mask acts on the scores, then softmax makes weights", [
        panel("masked scores of head 0", maps.masked, "scores"),
        panel("weights of head 0: each row sums to 1", maps.weights, "weights"),
      ]) +
      row(`One query, every head: the weights of "${queries[query]} ${query}"`, [
        panel("each row sums to 1", maps.every, "weights"),
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
    if (name === "scores") {
      return `Head 0: ${who} scores ${key} with ${number(value)}, before the mask.`;
    }
    if (name === "masked") {
      const becomes = may ? `stays ${number(value)}` : "is −∞ now: it may not attend to it";
      return `Head 0: the score of ${who} for ${key} ${becomes}.`;
    }
    const attends = may
      ? `attends to ${key} with weight ${number(value)}`
      : `may not attend to ${key}: weight 0`;
    return `Head ${one ? r : 0}: ${who} ${attends}.`;
  },
});
