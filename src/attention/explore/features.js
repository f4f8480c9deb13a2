// Random features: the weights that softmax gives, and beside them what features of one draw make
// of them. Below, for each number of features, how much of a row's weight lies elsewhere, over 100
// draws.

import { Chart } from "./chart.js";
import { explorer } from "./explorer.js";
import { number } from "./format.js";
import { path, tenth, text } from "./markup.js";
import { cellSize, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { range, sum } from "./tensor.js";

const chosen = ({ features }, at) => features.indexOf(+at.features);
const nthDraw = (at) => +at.draw - 1;

export default explorer({
  status(frame, at) {
    const [nth, draw] = [chosen(frame, at), nthDraw(at)];
    const off = frame.misplaced.at(nth).data[draw];
    const kind = at.orthogonal === "on" ? "orthogonal" : "independent";
    return `${at.features} features, ${kind} · q and k × ${at.length} · draw ${at.draw}` +
      ` · misplaced ${number(off)}, mean of 100 draws ${number(frame.spread.at(nth).data[0])}`;
  },

  draw(frame, at, available) {
    const { keys, exact, estimates } = frame;
    const [nth, draw] = [chosen(frame, at), nthDraw(at)];
    const estimate = estimates.at(nth).at(draw);
    const rows = keys.map((key) => `asks ${key}`);
    const wide = available >= 600 ? Math.floor((available - 20) / 2) : available;
    const size = cellSize(wide, keys.length, rows, { most: 36, least: 24 });
    const look = { rows, columns: keys.map(String), size, high: 26, largest: 1 };
    const maps = [
      panel("softmax", matrix({ ...look, name: "exact", tensor: exact }), "weights"),
      panel(
        `${at.features} random features, draw ${at.draw}`,
        matrix({ ...look, name: `estimates ${nth} ${draw}`, tensor: estimate }),
        "weights",
      ),
    ];
    return (
      row(
        "Eight questions and the eight pairs that were written: the weights of one head",
        // On a phone, what the controls change stands below them.
        wide < available ? maps : maps.reverse(),
        "Row: the key that is asked. Column: the key of a pair. With softmax the pair that is " +
          `asked for gets ${number(own(exact))} on average, ` +
          `with these features ${number(own(estimate))}.`,
      ) +
      row("How much of a row’s weight lies elsewhere than softmax puts it", [
        panel(
          "line: mean of 100 draws; bars: 80 of the 100; dot: this draw",
          curve(frame, nth, draw, Math.min(available, 620)),
        ),
      ])
    );
  },

  describe({ name, r, c, value }, { keys, exact }) {
    const pair = `Key ${keys[r]} is asked; the pair of key ${keys[c]}`;
    if (name === "exact") return `${pair}: softmax gives it the weight ${number(value)}.`;
    const [estimate, weight] = [number(value), number(exact.at(r).data[c])];
    return `${pair}: the features of this draw give it ${estimate}, softmax ${weight}.`;
  },
});

// The mean of a square matrix's diagonal.
function own({ shape: [size], data }) {
  return sum(range(size).map((i) => data[i * size + i])) / size;
}

// The error by the number of features, each four times the one before.
function curve({ features, spread, misplaced }, nth, draw, width) {
  const inset = 24;
  const [left, right] = [40, 24];
  const long = width - left - right;
  const chart = new Chart({
    ...{ width, height: 150, left, right, top: 12 },
    across: (i) => (inset + (i / (features.length - 1)) * (long - 2 * inset)) / long,
    up: (share) => share,
  });
  const of = (i) => spread.at(i).data;
  const places = range(features.length);
  const bars = places.map((i) => {
    const [, low, high] = of(i);
    const [x, y] = [chart.x(i), chart.y(low)].map(tenth);
    const foot = `M${tenth(chart.x(i) - 5)} ${y}h10`;
    return `M${x} ${y}V${tenth(chart.y(high))}m-5 0h10${foot}`;
  });
  const means = features.map((count, i) => `${number(of(i)[0])} with ${count} features`);
  return chart.svg(
    `Misplaced weight, mean of 100 draws: ${means.join(", ")}`,
    40,
    chart.grid([0, 0.5, 1]),
    path("band", bars),
    chart.line("loss", places.map((i) => [i, of(i)[0]])),
    chart.dot(nth, misplaced.at(nth).data[draw], 4.5),
    chart.below(places, (i) => features[i]),
    chart.beside([0, 0.5, 1], (share) => number(share, 1)),
    text("column", width / 2, chart.bottom + 34, "features"),
  );
}
