// The scores of one query in every head, its weights without a divisor beside those with the chosen one, and
// what each divisor does to the whole sentence, as bars.

const DIVISORS = ["nothing", "√d_key", "d_key", "√d_model"];
const MEASURES = ["spread of the scores", "largest weight", "entropy in nats", "gradient norm"];

// The chosen divisor's place among them.
const chosen = (at) => DIVISORS.indexOf(at.divisor);

// As `statistics` of scaling.py: the spread of the scores within a row; means of the largest weight, the entropy and the
// gradient norm, over all rows.
function statistics(scores, weights) {
  const [heads, queries, keys] = scores.shape;
  const rows = range(heads * queries).map((row) => {
    const score = scores.data.slice(row * keys, (row + 1) * keys);
    const a = Array.from(weights.data.slice(row * keys, (row + 1) * keys));
    const mean = score.reduce((x, y) => x + y) / keys;
    let jacobian = 0;
    for (const [i, ai] of a.entries()) for (const [j, aj] of a.entries()) jacobian += ((i === j) * ai - ai * aj) ** 2;
    return [
      score.reduce((sum, s) => sum + (s - mean) ** 2, 0) / keys,
      Math.max(...a),
      a.reduce((sum, x) => sum - (x && x * Math.log(x)), 0),
      Math.sqrt(jacobian),
    ];
  });
  const [variance, ...others] = range(4).map((i) => rows.reduce((sum, row) => sum + row[i], 0) / rows.length);
  return [Math.sqrt(variance), ...others];
}

// One measure as four bars, one for each divisor. `cap` is as long as the longest bar can be; the dashed line
// stands where all keys have the same weight.
function bars({ name, tensor, cap, equal, room, marked }) {
  const rows = DIVISORS.map((by, i) => (i === marked ? `▸ ${by}` : by));
  const left = 76;
  const long = room - left - 42;
  const x = (value) => left + (cap ? (Math.min(value, cap) / cap) * long : 0);
  const parts = rows.map((label, r) => {
    const value = tensor.data[r];
    const y = 2 + r * 20;
    return (
      `<text class="row" x="${left - 6}" y="${y + 12}">${escape(label)}</text>` +
      `<rect class="plus" x="${left}" y="${y}" width="${Math.max(1, x(value) - left).toFixed(1)}" height="16" fill-opacity="${r === 0 || r === marked ? 0.62 : 0.25}"/>` +
      `<text class="value" x="${room - 20}" y="${y + 12}">${number(value)}</text>`
    );
  });
  const line = equal ? `<path class="band" stroke-dasharray="3 2" d="M${x(equal).toFixed(1)} 0V82"/>` : "";
  drawn.push({ name, tensor, rows: DIVISORS, columns: ["mean"], largest: cap, keys: rows.map(() => undefined), left, top: 0, size: long, high: 20 });
  return `<svg data-name="${escape(name)}" width="${room}" height="84" viewBox="0 0 ${room} 84" aria-hidden="true">${parts.join("")}${line}<path class="outline" transform="translate(${left} 0)"/></svg>`;
}

export default explorer({
  compute({ tokens, ids }, at, model) {
    const x = embed(ids, model.table);
    const [q, k] = ["q", "k"].map((name) => splitHeads(linear(x, model[`w_${name}`], model[`b_${name}`]), model.n_heads));
    const d_key = q.shape[2];
    const divisors = [1, Math.sqrt(d_key), d_key, Math.sqrt(x.shape[1])];
    const unscaled = scaledScores(q, k, 1);
    const weights = divisors.map((by) => maskedSoftmax(times(unscaled, 1 / by)));
    const measured = divisors.map((by, i) => statistics(times(unscaled, 1 / by), weights[i]));
    const length = tokens.length;
    return {
      tokens,
      divisors,
      equal: [0, 1 / length, Math.log(length), Math.sqrt(length - 1) / length],
      unscaled: byQuery(unscaled),
      ...Object.fromEntries(weights.map((a, i) => [`weights${i}`, byQuery(a)])),
      measured: new Tensor([4, 4, 1], Float64Array.from(range(16), (i) => measured[i % 4][Math.floor(i / 4)])),
    };
  },

  status({ measured, divisors }, at) {
    const largest = measured.at(1).data;
    return `d_model ${at.d_model} · n_heads ${at.n_heads} · d_key ${divisors[2]} · mean largest weight: ${number(largest[0])} unscaled, ${number(largest[chosen(at)])} divided by ${at.divisor}`;
  },

  draw(frame, at, room) {
    const { tokens, unscaled, divisors, equal, measured } = frame;
    const by = chosen(at);
    const query = Math.min(at.query, tokens.length - 1); // a sentence of one's own may be shorter than the slider
    const heads = unscaled.shape[1];
    const named = Array.from({ length: heads }, (_, i) => `head ${i}`);
    const columns = tokens.map((word, i) => `${word} ${i}`);
    const share = room > 620 ? Math.floor((room - 40) / 3) : room;
    // "−4.0" needs a cell of 30 pixels: where the word "head" takes that room, its number must do.
    const rows = cellSize(share, tokens.length, named) < 30 ? named.map((_, i) => i) : named;
    const size = cellSize(share, tokens.length, rows, { most: 32 });
    const show = (name, tensor, largest) =>
      matrix({
        name: `${name} ${query}`,
        tensor: tensor.at(query),
        rows,
        columns,
        size,
        largest,
      });
    const caps = [Math.max(4, measured.data[0]), 1, Math.log(tokens.length), 0.5];
    const wide = room > 620 ? Math.floor((room - 20) / 2) : Math.min(room, 420);
    const count = `${heads} ${heads === 1 ? "head" : "heads"} × ${tokens.length} queries`;
    return (
      row(`Query "${tokens[query]} ${query}" against every key, a row for each head`, [
        panel("unscaled scores q·k", show("unscaled", unscaled, unscaled.largest), "scores"),
        panel("weights, ÷ nothing", show("weights0", frame.weights0, 1), "weights"),
        panel(`weights, ÷ ${at.divisor} = ${number(divisors[by])}`, show(`weights${by}`, frame[`weights${by}`], 1), "weights"),
      ]) +
      row(
        `The whole sentence, ${count}, divided by …`,
        MEASURES.map((measure, i) =>
          panel(measure, bars({ name: `measured ${i}`, tensor: measured.at(i), cap: caps[i], equal: equal[i], room: wide, marked: by })),
        ),
        "Dashed: all keys have the same weight.",
      )
    );
  },

  describe({ name, r, c, value }, { tokens, divisors }, at) {
    const [kind, i] = name.split(" ");
    if (kind === "measured") {
      const what = ["Spread of the scores within a row", "Largest weight, mean over the rows", "Entropy, mean over the rows", "Gradient norm, mean over the rows"][i];
      return `${what}, divided by ${DIVISORS[r]}: ${number(value, 3)}.`;
    }
    const who = `head ${r}: "${tokens[i]} ${i}"`;
    if (kind === "unscaled") return `${who} scores "${tokens[c]} ${c}" with ${number(value)}, before any division.`;
    const by = Number(kind.at(-1));
    return `${who} attends to "${tokens[c]} ${c}" with weight ${number(value)}, its scores divided by ${by ? `${DIVISORS[by]} = ${number(divisors[by])}` : "nothing"}.`;
  },
});
