// Attention once more, for the sentence that a reader writes: there is no torch in the page. The functions have the names that
// the package gives them and do the same, for one sentence. tests/site compares them with torch on thousands of sentences,
// and a view first repeats a frame that torch computed (`ownFrame`, in draw.js).

const PAD = "<pad>";
const UNK = "<unk>";
const UNK_ID = 1; // and <pad> is 0

// text.py: a word, with the apostrophes and hyphens inside it, or any one other mark that is not a space.
const TOKEN = /[\p{L}\p{N}_]+(?:['’-][\p{L}\p{N}_]+)*|[^\p{L}\p{N}_\s]/gu;

function tokenize(text) {
  return text.toLowerCase().match(TOKEN) ?? [];
}

// The index of the largest number, as torch's argmax of one axis.
function argmax(data) {
  return data.indexOf(Math.max(...data));
}

// (rows, columns) filled by a function of the place.
function filled(rows, columns, entry) {
  const data = new Float64Array(rows * columns);
  for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) data[r * columns + c] = entry(r, c);
  return new Tensor([rows, columns], data);
}

function sinusoidalPositions(length, dModel) {
  return filled(length, dModel, (position, column) => {
    const angle = position / 10000 ** ((column - (column % 2)) / dModel);
    return column % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

// X without the positions: the rows of the table times √d_model.
function embedding(ids, table) {
  const dModel = table.shape[1];
  return filled(ids.length, dModel, (r, c) => table.data[ids[r] * dModel + c] * Math.sqrt(dModel));
}

function add(a, b) {
  return new Tensor(a.shape, a.data.map((value, i) => value + b.data[i]));
}

function embed(ids, table) {
  return add(embedding(ids, table), sinusoidalPositions(ids.length, table.shape[1]));
}

// (rows, inner) · (columns, inner)ᵀ
function timesTransposed(a, b) {
  const inner = a.shape[1];
  return filled(a.shape[0], b.shape[0], (r, c) => {
    let sum = 0;
    for (let i = 0; i < inner; i++) sum += a.data[r * inner + i] * b.data[c * inner + i];
    return sum;
  });
}

// nn.Linear: the weight is (out, in).
function linear(x, weight, bias) {
  const y = timesTransposed(x, weight);
  return bias ? filled(...y.shape, (r, c) => y.data[r * y.shape[1] + c] + bias.data[c]) : y;
}

// (seq, d_model) -> (heads, seq, d_key)
function splitHeads(x, nHeads) {
  const [seq, dModel] = x.shape;
  const dKey = dModel / nHeads;
  const data = new Float64Array(x.data.length);
  for (let h = 0; h < nHeads; h++)
    for (let s = 0; s < seq; s++) for (let c = 0; c < dKey; c++) data[(h * seq + s) * dKey + c] = x.data[s * dModel + h * dKey + c];
  return new Tensor([nHeads, seq, dKey], data);
}

// (heads, seq, d_key) -> (seq, d_model)
function mergeHeads(x) {
  const [heads, seq, dKey] = x.shape;
  return filled(seq, heads * dKey, (s, c) => x.data[(Math.floor(c / dKey) * seq + s) * dKey + (c % dKey)]);
}

// Masks are functions of query and key: true = may attend.
function paddingMask(tokens) {
  return (query, key) => tokens[key] !== PAD;
}

// For as many queries as keys.
function causalMask(query, key) {
  return key <= query;
}

// (heads, query, d_key), (heads, key, d_key) -> (heads, query, key), divided by √d_key unless told otherwise
function scaledScores(q, k, divisor = Math.sqrt(q.shape[2])) {
  return stack(range(q.shape[0]).map((head) => times(timesTransposed(q.at(head), k.at(head)), 1 / divisor)));
}

function times(x, factor) {
  return new Tensor(x.shape, x.data.map((value) => value * factor));
}

// Over the keys that the mask allows; a query that may attend to nothing gets weights 0.
function maskedSoftmax(scores, mask = () => true) {
  const [heads, queries, keys] = scores.shape;
  const weights = new Tensor(scores.shape, new Float64Array(scores.data.length));
  for (let row = 0; row < heads * queries; row++) {
    const allowed = range(keys).filter((key) => mask(row % queries, key));
    const largest = Math.max(...allowed.map((key) => scores.data[row * keys + key]));
    let sum = 0;
    for (const key of allowed) sum += weights.data[row * keys + key] = Math.exp(scores.data[row * keys + key] - largest);
    for (const key of allowed) weights.data[row * keys + key] /= sum;
  }
  return weights;
}

// (heads, query, key) · (heads, key, d_key) -> (heads, query, d_key)
function weightedSum(weights, v) {
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

function scaledDotProductAttention(q, k, v, mask) {
  const weights = maskedSoftmax(scaledScores(q, k), mask);
  return [weightedSum(weights, v), weights];
}

// model: the weights of one trained model; returns the output, the weights, and what they were made of. Keys and values come from
// `memory`.
function multiHeadAttention(x, model, mask, memory = x) {
  const [q, k, v] = ["q", "k", "v"].map((name) => splitHeads(linear(name === "q" ? x : memory, model[`w_${name}`], model[`b_${name}`]), model.n_heads));
  const [heads, weights] = scaledDotProductAttention(q, k, v, mask);
  const merged = mergeHeads(heads);
  return { output: linear(merged, model.w_o, model.b_o), weights, heads, merged };
}

function stack(tensors) {
  const data = new Float64Array(tensors.length * tensors[0].data.length);
  tensors.forEach((tensor, i) => data.set(tensor.data, i * tensor.data.length));
  return new Tensor([tensors.length, ...tensors[0].shape], data);
}

// (heads, query, key) -> (query, heads, key)
function byQuery(x) {
  const [heads, queries] = x.shape;
  return stack(range(queries).map((query) => stack(range(heads).map((head) => x.at(head).at(query)))));
}

function range(length) {
  return Array.from({ length }, (_, i) => i);
}
