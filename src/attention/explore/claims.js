// Claims that depend on d_key: what is measured of each, as one line for each case; what the claim
// needs, as a line across; and the numbers at one d_key, as bars.

import { bars, Chart } from "./chart.js";
import { explorer } from "./explorer.js";
import { number, thousands } from "./format.js";
import { path, tenth } from "./markup.js";
import { panel, row } from "./panels.js";
import { range } from "./tensor.js";

const DRAWN = ["loss", "then", "now"]; // how the line of each case looks: a line, dots, dashes
const NEEDED = { class: "band", "stroke-width": 2.5 };

const nth = ({ d_keys }, at) => d_keys.indexOf(+at.d_key);

export default explorer({
  status(frame, at) {
    const { data } = frame.values.at(nth(frame, at));
    const values = frame.names.map((name, i) => `${name}: ${measured(data[i])}`);
    return `d_key ${at.d_key} · ${values.join(" · ")}`;
  },

  draw(frame, at, available) {
    const i = nth(frame, at);
    const width = Math.min(available, 640);
    const values = bars({
      ...{ name: `values ${i}`, tensor: frame.values.at(i), rows: frame.names, column: "measured" },
      ...{ width, space: 64, pitch: 24, format: measured },
    });
    return (
      row(`“${at.claim}”`, [panel(frame.title, curves(frame, at, width))], frame.told) +
      row(`At d_key ${at.d_key}`, [panel(verdict(frame, at), values)])
    );
  },

  describe({ r, value }, frame, at) {
    const needs = frame.needs === null ? "" : ` The claim needs ${measured(frame.needs)}.`;
    return `${frame.names[r]}, d_key ${at.d_key}: ${measured(value)}.${needs}`;
  },
});

// Few digits, and none where the number is large.
function measured(value) {
  return value >= 1000 ? thousands(Math.round(value)) : number(value, value >= 100 ? 0 : 2);
}

// In which cases the claim's need is met here: to a tenth, or, where it needs a rise, whether the
// next narrower head makes more parameters.
function verdict({ values, names, needs, d_keys }, at) {
  const i = d_keys.indexOf(+at.d_key);
  const here = values.at(i).data;
  const [narrow, wide] = i ? [i - 1, i] : [0, 1];
  const rises = (c) => values.at(narrow).data[c] > values.at(wide).data[c] + 1e-6;
  const isClose = (c) => Math.abs(here[c] - needs) <= 0.1 * needs;
  const met = names.filter((_, c) => (needs === null ? rises(c) : isClose(c)));
  const need = needs === null ? "More with more heads" : "Within a tenth of what it needs";
  return `${need}: ${met.join("; ") || "none"}`;
}

// The lines along d_key, which doubles from tick to tick.
function curves({ values, names, d_keys, needs, logarithmic, title }, at, width) {
  const scale = logarithmic ? Math.log2 : (value) => value;
  const all = Array.from(values.data).concat(needs ?? []).map(scale);
  const least = Math.min(...all);
  const most = Math.max(...all);
  const [low, high] = logarithmic ? [Math.floor(least), Math.ceil(most)] : [0, most];
  const chart = new Chart({
    ...{ width, height: 180, left: 52, right: 16, top: 10 },
    across: (i) => i / (d_keys.length - 1),
    up: (value) => (scale(value) - low) / (high - low),
  });
  const i = d_keys.indexOf(+at.d_key);
  const here = values.at(i).data;
  const powers = [low, Math.round((low + high) / 2), high].map((power) => 2 ** power);
  const marks = logarithmic ? powers : [0, high / 2, high];
  const needed = needs === null ? [] : [[NEEDED, "what it needs"]];
  const legend = chart.legend([...names.map((name, c) => [DRAWN[c], name]), ...needed]);
  const measures = names.map((name, c) => `${name} ${measured(here[c])}`);
  return chart.svg(
    `${title}, at d_key ${at.d_key}: ${measures.join(", ")}`,
    46 + legend.height,
    chart.grid(marks),
    needs !== null && path(NEEDED, `M${chart.left} ${tenth(chart.y(needs))}H${chart.end}`),
    names.map((_, c) => chart.line(DRAWN[c], d_keys.map((_, i) => [i, values.at(i).data[c]]))),
    names.map((_, c) => chart.dot(i, here[c])),
    chart.below(range(d_keys.length), (i) => d_keys[i]),
    chart.beside(marks, (value) => (value >= 1000 ? measured(value) : +value.toFixed(2))),
    legend.parts,
  );
}
