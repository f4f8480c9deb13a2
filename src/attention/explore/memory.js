// What a layer keeps of the pairs that were written, and what it answers when each key is asked: a
// cache has a row for every pair, a state has one size.

import { explorer } from "./explorer.js";
import { number, percent, thousands } from "./format.js";
import { cellSize, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";

const IN_A_ROW = 16; // answers
const EMPTY = { kind: "unread", strength: 0.1, text: "" }; // a cell of a pair that is not written
const NOT_YET = "This pair is not written yet.";

const nthOf = ({ lengths }, at) => lengths.indexOf(+at.pairs);

export default explorer({
  status(frame, at) {
    const nth = nthOf(frame, at);
    const { data } = frame.answers.at(nth);
    const right = frame.values.filter((value, i) => data[i] === value).length;
    const written = `${at.pairs} ${at.pairs === "1" ? "pair" : "pairs"} written`;
    return `${at.mechanism} · ${written} · the layer keeps ${thousands(frame.sizes[nth])}` +
      ` numbers · ${right} of ${at.pairs} answers right`;
  },

  draw(frame, at, available) {
    const wide = available >= 620 ? Math.floor((available - 18) / 2) : available;
    return row("What one of the two heads keeps", [
      keptBy(frame, at, wide),
      asked(frame, at, wide),
    ]) +
      row("Right in 2,000 new texts", [
        panel(
          "columns: pairs of a text",
          matrix({
            ...{ name: "accuracy", tensor: frame.accuracy, largest: 1, size: 48, high: 26 },
            ...{ rows: ["share"], columns: frame.measured.map(String) },
          }),
        ),
      ]);
  },

  describe({ name, r, c, value }, frame, at) {
    const { keys, values, measured, kept } = frame;
    if (name === "accuracy") {
      return `Asked for one of ${measured[c]} pairs, it is right in ${
        percent(value)
      } of 2,000 texts.`;
    }
    if (name.startsWith("answers")) {
      const i = r * IN_A_ROW + c;
      if (i >= +at.pairs) return NOT_YET;
      const verdict = values[i] === value ? "which is right" : `and ${values[i]} is right`;
      return `Asked for key ${keys[i]}, it answers ${value}, ${verdict}.`;
    }
    if (name !== "kept") return `${number(value)}, a sum over ${at.pairs} pairs.`;
    if (r >= +at.pairs) return NOT_YET;
    const half = kept.shape[1] / 2;
    const vector = `the ${c < half ? "key" : "value"} vector`;
    return `Key ${keys[r]} with value ${values[r]}: number ${c % half} of ${vector} is ` +
      `${number(value)}.`;
  },
});

function keptBy(frame, at, available) {
  const { kept } = frame;
  if (kept.shape.length === 3) {
    const nth = nthOf(frame, at);
    const [, rows, columns] = kept.shape;
    const caption = `a state of ${rows} · ${columns} numbers: sums over all pairs`;
    const size = cellSize(available, columns, [], { most: 20 });
    return panel(caption, matrix({ name: `kept ${nth}`, tensor: kept.at(nth), size }));
  }
  const columns = kept.shape[1];
  const size = cellSize(available, columns, [], { most: 14 });
  const bands = [
    { from: 0, to: columns / 2, text: "key" },
    { from: columns / 2, to: columns, text: "value" },
  ];
  const paint = (_value, r) => (r < +at.pairs ? {} : EMPTY);
  return panel(
    `a cache: a row of ${columns} numbers for each pair`,
    matrix({ name: "kept", tensor: kept, size, high: 6, bands, paint }),
  );
}

// Each key asked by itself, in the order of writing: what is answered.
function asked(frame, at, available) {
  const nth = nthOf(frame, at);
  const paint = (value, r, c) => {
    const i = r * IN_A_ROW + c;
    if (i >= +at.pairs) return EMPTY;
    const isRight = value === frame.values[i];
    const text = isRight ? String(value) : `✗${value}`;
    return { kind: "plain", strength: isRight ? 0.15 : 0.5, text };
  };
  const size = cellSize(available, IN_A_ROW, [], { most: 28 });
  return panel(
    "each key asked, oldest first: its answer; ✗ wrong",
    matrix({ name: `answers ${nth}`, tensor: frame.answers.at(nth), size, paint }),
  );
}
