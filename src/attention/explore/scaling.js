// The scores of one query in every head, its weights without a divisor beside those with the chosen
// one, and what each divisor does to the whole sentence, as bars.

import {
  byQuery,
  embed,
  linear,
  maskedSoftmax,
  scaledScores,
  splitHeads,
  times,
} from "./attention.js";
import { bars } from "./chart.js";
import { explorer } from "./explorer.js";
import { number } from "./format.js";
import { cellSize, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { range, sum, Tensor } from "./tensor.js";

const DIVISORS = ["nothing", "√d_key", "d_key", "√d_model"];
const MEASURES = ["spread of the scores", "largest weight", "entropy in nats", "gradient norm"];

// The chosen divisor's place among them.
const chosen = (at) => DIVISORS.indexOf(at.divisor);

// As `statistics` of scaling.py: the spread of the scores within a row; means of the largest
// weight, the entropy and the gradient norm, over all rows.
function statistics(scores, weights) {
  const [heads, queries, keys] = scores.shape;
  const rows = range(heads * queries).map((row) => {
    const score = scores.data.slice(row * keys, (row + 1) * keys);
    const a = Array.from(weights.data.slice(row * keys, (row + 1) * keys));
    const mean = sum(score) / keys;
    const jacobian = a.flatMap((ai, i) => a.map((aj, j) => ((i === j) * ai - ai * aj) ** 2));
    return [
      sum(score.map((s) => (s - mean) ** 2)) / keys,
      Math.max(...a),
      -sum(a.map((x) => x && x * Math.log(x))),
      Math.sqrt(sum(jacobian)),
    ];
  });
  const [variance, ...others] = range(4).map((i) => sum(rows.map((row) => row[i])) / rows.length);
  return [Math.sqrt(variance), ...others];
}

export default explorer({
  compute({ tokens, ids }, _at, model) {
    const x = embed(ids, model.table);
    const [q, k] = ["q", "k"].map((name) =>
      splitHeads(linear(x, model[`w_${name}`], model[`b_${name}`]), model.n_heads)
    );
    const d_key = q.shape[2];
    const divisors = [1, Math.sqrt(d_key), d_key, Math.sqrt(x.shape[1])];
    const unscaled = scaledScores(q, k, 1);
    const scores = divisors.map((by) => times(unscaled, 1 / by));
    const weights = scores.map((each) => maskedSoftmax(each));
    const measured = scores.map((each, i) => statistics(each, weights[i]));
    const length = tokens.length;
    return {
      tokens,
      divisors,
      equal: [0, 1 / length, Math.log(length), Math.sqrt(length - 1) / length],
      unscaled: byQuery(unscaled),
      ...Object.fromEntries(weights.map((a, i) => [`weights${i}`, byQuery(a)])),
      measured: new Tensor(
        [4, 4, 1],
        Float64Array.from(range(16), (i) => measured[i % 4][Math.floor(i / 4)]),
      ),
    };
  },

  status({ measured, divisors }, at) {
    const largest = measured.at(1).data;
    const [before, after] = [largest[0], largest[chosen(at)]].map((value) => number(value));
    return `d_model ${at.d_model} · n_heads ${at.n_heads} · d_key ${divisors[2]}` +
      ` · mean largest weight: ${before} unscaled, ${after} divided by ${at.divisor}`;
  },

  draw(frame, at, available) {
    const { tokens, unscaled, divisors } = frame;
    const by = chosen(at);
    const query = Math.min(at.query, tokens.length - 1); // one's own sentence may be shorter
    const heads = unscaled.shape[1];
    const named = range(heads).map((i) => `head ${i}`);
    const share = available > 620 ? Math.floor((available - 40) / 3) : available;
    // "−4.0" needs a cell of 30 pixels: where the word "head" takes them, its number must do.
    const rows = cellSize(share, tokens.length, named) < 30 ? named.map((_, i) => i) : named;
    const size = cellSize(share, tokens.length, rows, { most: 32 });
    const columns = tokens.map((word, i) => `${word} ${i}`);
    const show = (name, largest) => {
      const tensor = frame[name].at(query);
      return matrix({ name: `${name} ${query}`, tensor, rows, columns, size, largest });
    };
    const count = `${heads} ${heads === 1 ? "head" : "heads"} × ${tokens.length} queries`;
    return (
      row(`Query "${tokens[query]} ${query}" against every key, a row for each head`, [
        panel("unscaled scores q·k", show("unscaled", unscaled.largest), "scores"),
        panel("weights, ÷ nothing", show("weights0", 1), "weights"),
        panel(
          `weights, ÷ ${at.divisor} = ${number(divisors[by])}`,
          show(`weights${by}`, 1),
          "weights",
        ),
      ]) +
      row(
        `The whole sentence, ${count}, divided by …`,
        measures(frame, by, available),
        "Dashed: all keys have the same weight.",
      )
    );
  },

  describe({ name, r, c, value }, { tokens, divisors }, _at) {
    const [kind, i] = name.split(" ");
    if (kind === "measured") {
      const measure = [
        "Spread of the scores within a row",
        "Largest weight, mean over the rows",
        "Entropy, mean over the rows",
        "Gradient norm, mean over the rows",
      ][i];
      return `${measure}, divided by ${DIVISORS[r]}: ${number(value, 3)}.`;
    }
    const who = `head ${r}: "${tokens[i]} ${i}"`;
    const key = `"${tokens[c]} ${c}"`;
    if (kind === "unscaled") {
      return `${who} scores ${key} with ${number(value)}, before any division.`;
    }
    const by = Number(kind.at(-1));
    const divisor = by ? `${DIVISORS[by]} = ${number(divisors[by])}` : "nothing";
    return `${who} attends to ${key} with weight ${number(value)}, ` +
      `its scores divided by ${divisor}.`;
  },
});

// Every measure as four bars, one for each divisor. The dashed line stands where all keys have the
// same weight.
function measures({ measured, equal, tokens }, by, available) {
  const width = available > 620 ? Math.floor((available - 20) / 2) : Math.min(available, 420);
  const largest = [Math.max(4, measured.data[0]), 1, Math.log(tokens.length), 0.5];
  return MEASURES.map((measure, i) =>
    panel(
      measure,
      bars({
        ...{ name: `measured ${i}`, tensor: measured.at(i), rows: DIVISORS, column: "mean" },
        labels: DIVISORS.map((divisor, r) => (r === by ? `▸ ${divisor}` : divisor)),
        ...{ width, left: 76, largest: largest[i], mark: equal[i], aligned: true },
        faint: (r) => r !== 0 && r !== by,
      }),
    )
  );
}
