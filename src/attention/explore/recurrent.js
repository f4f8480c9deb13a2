// Chapter 9's encoder and decoders once more, for the date that a reader writes. `model` is a state
// dict as torch names it, flat, with two names beside it: `decoder`, the class of the package that
// writes, and `score`, by which its attention compares. A vector is a matrix of one row.

import {
  add,
  embedding,
  linear,
  maskedSoftmax,
  timesTransposed,
  weightedSum,
} from "./attention.js";
import { argmax, filled, range, stack, Tensor } from "./tensor.js";
import { dense } from "./transformer.js";

// Two GRUs read the tokens, one from each end, and their states stand side by side: (key, key_dim).
// Source: Bahdanau, Cho and Bengio 2014, §3.2 and appendix A.2.1.
export function bidirectionalEncoder(ids, model) {
  const x = embedding(ids, model["encoder.embed.table.weight"]);
  const order = range(ids.length);
  const fromLeft = statesOf(x, order, model, "_l0");
  const fromRight = statesOf(x, range(ids.length).reverse(), model, "_l0_reverse");
  return below(order.map((i) => beside(fromLeft[i], fromRight[i])));
}

// The states of a GRU that reads the rows of x in this order, each at the place of its row.
function statesOf(x, order, model, direction) {
  const states = [];
  let state = filled(1, model[`encoder.gru.weight_hh${direction}`].shape[1], () => 0);
  for (const i of order) {
    state = gruCell(beside(x.at(i)), state, model, "encoder.gru", direction);
    states[i] = state;
  }
  return states;
}

// One step of nn.GRUCell. The reset gate r says how much of the old state h the new one, n, is made
// of, and the update gate z how much of h stays:
//   r = σ(W_r x + U_r h)    z = σ(W_z x + U_z h)    n = tanh(W_n x + r · (U_n h))
//   next h = (1 - z) · n + z · h
// Every product has a bias. W and U are stored as one matrix each, the rows of r first, then those
// of z, then those of n.
// Source: Cho et al. 2014, §2.3, where the reset comes before the product, U_n (r · h).
function gruCell(x, state, model, prefix, suffix = "") {
  const part = (name) => model[`${prefix}.${name}${suffix}`];
  const { data: ofInput } = linear(x, part("weight_ih"), part("bias_ih"));
  const { data: ofState } = linear(state, part("weight_hh"), part("bias_hh"));
  const size = state.shape[1];
  return state.map((old, i) => {
    const [forR, forZ, forN] = [i, size + i, 2 * size + i];
    const r = sigmoid(ofInput[forR] + ofState[forR]);
    const z = sigmoid(ofInput[forZ] + ofState[forZ]);
    const n = Math.tanh(ofInput[forN] + r * ofState[forN]);
    return (1 - z) * n + z * old;
  });
}

function sigmoid(value) {
  return 1 / (1 + Math.exp(-value));
}

// The likeliest token at every step, which the next step gets, until the end or `longest` tokens.
// Returns for each step its token, its context, (1, key_dim), and its weights, (1, key); there are
// no weights where the last state stands in the context's place.
// Source: the first state is that of Bahdanau, Cho and Bengio 2014, appendix A.2.2.
export function greedy(encoded, model, { start, end, longest }) {
  const attend = attentionTo(encoded, model);
  const step = model.decoder === "LuongDecoder" ? luongStep : bahdanauStep;
  let state = dense(readFromRight(encoded), model, "decoder.w_s").map(Math.tanh);
  let combined = state.map(() => 0);
  let token = start;
  const steps = [];
  while (steps.length < longest && token !== end) {
    const embedded = embedding([token], model["decoder.embed.table.weight"]);
    const made = step(embedded, { state, combined }, attend, model);
    ({ state, combined } = made);
    token = argmax(made.logits.data);
    steps.push({ token, context: made.context, weights: made.weights });
  }
  return steps;
}

// The query is the state *before* this step, and the context enters the step. The last states stand
// in the context's place where there is no attention.
// Source: Bahdanau, Cho and Bengio 2014, §3.1; Cho et al. 2014, §2.2.
function bahdanauStep(embedded, before, attend, model) {
  const { context, weights } = attend(before.state);
  const state = gruCell(beside(embedded, context), before.state, model, "decoder.cell");
  const logits = dense(beside(state, context, embedded), model, "decoder.w_o");
  return { state, logits, context, weights };
}

// The query is the state *after* this step, which gets no context, but what the step before made of
// its own (input feeding).
// Source: Luong, Pham and Manning 2015, §3, equations 5 and 6, and §3.3.
function luongStep(embedded, before, attend, model) {
  const state = gruCell(beside(embedded, before.combined), before.state, model, "decoder.cell");
  const { context, weights } = attend(state);
  const combined = dense(beside(context, state), model, "decoder.w_c").map(Math.tanh);
  return { state, combined, logits: dense(combined, model, "decoder.w_o"), context, weights };
}

// A function from a query, (1, query_dim), to the context and the weights: softmax over the keys of
// the scores, and the keys averaged with it. The scores are not divided by √d_key.
function attentionTo(encoded, model) {
  if (model.decoder === "LastStateDecoder") {
    const context = beside(readFromLeft(encoded), readFromRight(encoded));
    return () => ({ context });
  }
  const scoresOf = SCORES[model.score](encoded, model);
  return (query) => {
    const weights = maskedSoftmax(stack([scoresOf(query)]));
    return { context: weightedSum(weights, stack([encoded])).at(0), weights: weights.at(0) };
  };
}

// From the keys to a function from a query to its scores, (1, key).
// Source: Bahdanau, Cho and Bengio 2014, appendix A.1.2, for "additive"; Luong, Pham and Manning
// 2015, §3.1, for the others. Their "concat" is the additive score.
const SCORES = {
  additive: (keys, model) => additive(keys, model, "decoder.attention"),
  concat: (keys, model) => additive(keys, model, "decoder.attention.additive"),
  dot: (keys) => (query) => timesTransposed(query, keys),
  general: (keys, model) => (query) =>
    timesTransposed(dense(query, model, "decoder.attention.w"), keys),
};

// v · tanh(W_q · query + W_k · key), where W_k · key is computed once for all queries.
function additive(keys, model, prefix) {
  const ofKeys = dense(keys, model, `${prefix}.w_k`);
  return (query) => {
    const ofQuery = dense(query, model, `${prefix}.w_q`);
    const hidden = range(keys.shape[0]).map((key) => add(ofQuery, ofKeys.at(key)).map(Math.tanh));
    return timesTransposed(model[`${prefix}.v.weight`], below(hidden));
  };
}

// The state that has read the whole text from the left, and the one from the right.
function readFromLeft(encoded) {
  const [keys, keyDim] = encoded.shape;
  return filled(1, keyDim / 2, (_, c) => encoded.at(keys - 1).data[c]);
}

function readFromRight(encoded) {
  const half = encoded.shape[1] / 2;
  return filled(1, half, (_, c) => encoded.at(0).data[half + c]);
}

// Vectors as one, [a; b].
function beside(...vectors) {
  const data = vectors.flatMap((vector) => [...vector.data]);
  return filled(1, data.length, (_, c) => data[c]);
}

function below(vectors) {
  const { data, shape } = stack(vectors);
  return new Tensor([vectors.length, shape.at(-1)], data);
}
