// Attention once more, for the sentence that a reader writes: there is no torch in the page. The
// functions have the names that the package gives them and do the same, for one sentence.
// tests/site compares them with torch on thousands of sentences, and a view first repeats a frame
// that torch computed (`ownFrame`, in current_frame.js).

import { filled, range, stack, Tensor } from "./tensor.js";

export const PAD = "<pad>";
export const UNK = "<unk>";
export const UNK_ID = 1; // and <pad> is 0

// text.py: a word, with the apostrophes and hyphens inside it, or any one other mark that is not a
// space.
const TOKEN = /[\p{L}\p{N}_]+(?:['’-][\p{L}\p{N}_]+)*|[^\p{L}\p{N}_\s]/gu;

export function tokenize(text) {
  return text.toLowerCase().normalize("NFC").match(TOKEN) ?? [];
}

export function sinusoidalPositions(length, dModel) {
  return filled(length, dModel, (position, column) => {
    const angle = position / 10000 ** ((column - (column % 2)) / dModel);
    return column % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

// X without the positions: the rows of the table times √d_model.
export function embedding(ids, table) {
  const dModel = table.shape[1];
  return filled(ids.length, dModel, (r, c) => table.data[ids[r] * dModel + c] * Math.sqrt(dModel));
}

export function add(a, b) {
  return a.map((value, i) => value + b.data[i]);
}

export function embed(ids, table) {
  return add(embedding(ids, table), sinusoidalPositions(ids.length, table.shape[1]));
}

// (rows, inner) · (columns, inner)ᵀ
export function timesTransposed(a, b) {
  const inner = a.shape[1];
  return filled(a.shape[0], b.shape[0], (r, c) => {
    let sum = 0;
    for (let i = 0; i < inner; i++) sum += a.data[r * inner + i] * b.data[c * inner + i];
    return sum;
  });
}

// nn.Linear: the weight is (out, in).
export function linear(x, weight, bias) {
  const y = timesTransposed(x, weight);
  return bias ? filled(...y.shape, (r, c) => y.data[r * y.shape[1] + c] + bias.data[c]) : y;
}

// (seq, d_model) -> (heads, seq, d_key)
export function splitHeads(x, nHeads) {
  const [seq, dModel] = x.shape;
  const dKey = dModel / nHeads;
  const data = new Float64Array(x.data.length);
  for (let h = 0; h < nHeads; h++) {
    for (let s = 0; s < seq; s++) {
      for (let c = 0; c < dKey; c++) {
        data[(h * seq + s) * dKey + c] = x.data[s * dModel + h * dKey + c];
      }
    }
  }
  return new Tensor([nHeads, seq, dKey], data);
}

// (heads, seq, d_key) -> (seq, d_model)
export function mergeHeads(x) {
  const [heads, seq, dKey] = x.shape;
  return filled(
    seq,
    heads * dKey,
    (s, c) => x.data[(Math.floor(c / dKey) * seq + s) * dKey + (c % dKey)],
  );
}

// Masks are functions of query and key: true = may attend.
export function paddingMask(tokens) {
  return (_query, key) => tokens[key] !== PAD;
}

// For as many queries as keys.
export function causalMask(query, key) {
  return key <= query;
}

// (heads, query, d_key), (heads, key, d_key) -> (heads, query, key), divided by √d_key unless
// another divisor is given
export function scaledScores(q, k, divisor = Math.sqrt(q.shape[2])) {
  return stack(
    range(q.shape[0]).map((head) => times(timesTransposed(q.at(head), k.at(head)), 1 / divisor)),
  );
}

export function times(x, factor) {
  return x.map((value) => value * factor);
}

// Over the keys that the mask allows; a query that may attend to nothing gets weights 0.
export function maskedSoftmax(scores, mask = () => true) {
  const [heads, queries, keys] = scores.shape;
  const weights = new Tensor(scores.shape, new Float64Array(scores.data.length));
  for (let row = 0; row < heads * queries; row++) {
    const allowed = range(keys).filter((key) => mask(row % queries, key));
    const largest = Math.max(...allowed.map((key) => scores.data[row * keys + key]));
    let sum = 0;
    for (const key of allowed) {
      sum += weights.data[row * keys + key] = Math.exp(scores.data[row * keys + key] - largest);
    }
    for (const key of allowed) weights.data[row * keys + key] /= sum;
  }
  return weights;
}

// (heads, query, key) · (heads, key, d_key) -> (heads, query, d_key)
export function weightedSum(weights, v) {
  const [, keys, dKey] = v.shape;
  return stack(
    range(weights.shape[0]).map((head) => {
      const [a, values] = [weights.at(head).data, v.at(head).data];
      return filled(weights.shape[1], dKey, (query, c) => {
        let sum = 0;
        for (let key = 0; key < keys; key++) sum += a[query * keys + key] * values[key * dKey + c];
        return sum;
      });
    }),
  );
}

export function scaledDotProductAttention(q, k, v, mask) {
  const weights = maskedSoftmax(scaledScores(q, k), mask);
  return [weightedSum(weights, v), weights];
}

// model: the weights of one trained model; returns the output, the weights, and what they were made
// of. Keys and values come from `memory`.
export function multiHeadAttention(x, model, mask, memory = x) {
  const project = (rows, name) =>
    splitHeads(linear(rows, model[`w_${name}`], model[`b_${name}`]), model.n_heads);
  const [q, k, v] = [project(x, "q"), project(memory, "k"), project(memory, "v")];
  const [heads, weights] = scaledDotProductAttention(q, k, v, mask);
  const merged = mergeHeads(heads);
  return { output: linear(merged, model.w_o, model.b_o), weights, heads, merged };
}

// (heads, query, key) -> (query, heads, key)
export function byQuery(x) {
  const [heads, queries] = x.shape;
  return stack(
    range(queries).map((query) => stack(range(heads).map((head) => x.at(head).at(query)))),
  );
}
