// What a layer costs: the share of each part by the number of tokens, the multiply-adds at one
// number of tokens, and the numbers that are kept for the next token or held at a time.

import { bars, Chart } from "./chart.js";
import { explorer } from "./explorer.js";
import { percent, thousands } from "./format.js";
import { path, tenth, text } from "./markup.js";
import { panel, row } from "./panels.js";
import { sum } from "./tensor.js";

const DRAWN = ["now", "loss", "then"]; // how the line of each part looks: dashes, a line, dots
const HELD = ["keys and values", "attention weights"];

const nth = ({ lengths }, at) => lengths.indexOf(+at.n);

export default explorer({
  status(frame, at) {
    const { data } = frame.parts.at(nth(frame, at));
    const [d, heads] = [+at.d_model, +at.n_heads];
    return `n ${thousands(+at.n)} · d_model ${d} · n_heads ${heads} · d_key ${d / heads}` +
      ` · pairs take ${percent(data[1] / sum(data))} of the multiply-adds`;
  },

  draw(frame, at, available) {
    const i = nth(frame, at);
    const d = +at.d_model;
    const width = available >= 620 ? Math.floor((available - 24) / 2) : available;
    const look = { width, space: 84, pitch: 24, format: inWords };
    const parts = bars({
      ...{ ...look, name: `parts ${i}`, tensor: frame.parts.at(i), rows: frame.names },
      column: "millions of multiply-adds",
    });
    const held = bars({
      ...{ ...look, name: `held ${i}`, tensor: frame.held.at(i), rows: HELD },
      column: "millions of numbers",
    });
    return (
      row(
        "Share of a layer’s multiply-adds, by the number of tokens n",
        [panel("", curves(frame, at, Math.min(available, 720)))],
        `Pairs overtake the projections at n = 2 · d_model = ${thousands(2 * d)}, ` +
          `and all the rest at n = 6 · d_model = ${thousands(6 * d)}: the two marks.`,
      ) +
      row(
        `With n = ${thousands(+at.n)}`,
        [panel("multiply-adds", parts), panel("numbers stored", held)],
        "The keys and values are kept for the next token. The weights are needed only while the " +
          "layer computes; a kernel that works in tiles never holds them all. The two groups " +
          "have scales of their own.",
      )
    );
  },

  describe({ name, r, value }, frame, at) {
    if (name.startsWith("held")) {
      return r
        ? `All attention weights, if they are formed: ${inWords(value)} numbers, n_heads · n².`
        : `Kept for the next token: ${inWords(value)} numbers, 2 · n · d_model.`;
    }
    const { data } = frame.parts.at(nth(frame, at));
    const formula = [
      "4 · n · d_model²",
      "2 · n² · d_model",
      "2 · n · d_model · d_ff, with d_ff = 4 · d_model",
    ][r];
    const share = percent(value / sum(data));
    return `${frame.names[r]}: ${inWords(value)} multiply-adds, ${share}: ${formula}.`;
  },
});

// A number of millions, with three digits.
function inWords(millions) {
  const units = [["trillion", 1e6], ["billion", 1e3], ["million", 1]];
  const [unit, size] = units.find(([, size]) => millions >= size) ?? ["thousand", 1e-3];
  const value = millions / size;
  const digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return `${value >= 1000 ? thousands(Math.round(value)) : value.toFixed(digits)} ${unit}`;
}

// The three shares along n, which doubles from tick to tick.
function curves({ shares, curve, names, lengths }, at, width) {
  const [low, high] = [Math.log2(curve[0]), Math.log2(curve.at(-1))];
  const chart = new Chart({
    ...{ width, height: 190, left: 46, right: 12, top: 22 },
    across: (n) => (Math.log2(n) - low) / (high - low),
    up: (share) => share,
  });
  const marks = [2, 6].map((times, i) => {
    const n = times * at.d_model;
    const x = chart.x(n);
    // Their labels lean apart: on a phone the marks stand close.
    const [look, label] = i ? ["start", x - 14] : ["row", x + 14];
    return path("band", `M${tenth(x)} ${chart.top - 4}V${chart.bottom}`) +
      text(look, tenth(label), chart.top - 8, thousands(n));
  });
  const last = lengths.at(-1);
  const clear = (n, i) => n === last || (i % 3 === 0 && chart.x(last) - chart.x(n) > 64);
  const ticks = lengths.filter(clear).map((n) =>
    text("column", tenth(Math.min(chart.x(n), width - 26)), chart.bottom + 16, thousands(n))
  );
  const here = shares.at(curve.indexOf(+at.n)).data;
  const legend = chart.legend(names.map((name, part) => [DRAWN[part], name]));
  return chart.svg(
    `Shares at n ${at.n}: ${names.map((name, i) => `${name} ${percent(here[i])}`).join(", ")}`,
    46 + legend.height,
    chart.grid([0, 0.5, 1]),
    marks,
    names.map((_, part) =>
      chart.line(DRAWN[part], curve.map((n, i) => [n, shares.at(i).data[part]]))
    ),
    names.map((_, part) => chart.dot(+at.n, here[part])),
    ticks,
    chart.beside([0, 0.5, 1], (share) => `${100 * share} %`),
    legend.parts,
  );
}
