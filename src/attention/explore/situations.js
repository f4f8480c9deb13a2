// How many times as fast as all pairs each mechanism was: a dot on a scale of powers of ten, and
// how far the runs reached.

import { explorer } from "./explorer.js";
import { number, thousands } from "./format.js";
import { element, path, svg, tenth, text } from "./markup.js";
import { panel, record, row } from "./panels.js";

const POWERS = [-2, -1, 0, 1, 2]; // of ten, at the scale's ticks
const REACH = 2.5; // the power at its ends
const PITCH = 38; // pixels from mechanism to mechanism

export default explorer({
  status({ names, medians }, at) {
    const quicker = names.filter((_, r) => medians.data[r] > 1).length;
    return `${where(at)} · faster than all pairs: ${quicker} of ${names.length}`;
  },

  draw(frame, at, available) {
    const left = frame.untimed.length ? ` Not timed here: ${frame.untimed.join("; ")}.` : "";
    return row(
      `Times as fast as all pairs: ${where(at)}`,
      [panel(
        "left of the dashes slower, right of them faster",
        dots(frame, Math.min(available, 640)),
      )],
      `${frame.measured}. The line behind a dot reaches from the least to the most of the runs.` +
        left,
    );
  },

  describe({ r, value }, { names, least, most }) {
    return `${names[r]}: ${times(value)} times as fast as all pairs, ` +
      `from ${times(least.data[r])} to ${times(most.data[r])} in the runs.`;
  },
});

const where = (at) => `${at.situation}, ${thousands(+at.n)} tokens, ${at.machine}`;

// Two digits or more.
function times(value) {
  return number(value, value < 0.1 ? 3 : value < 99.5 ? 2 : 0);
}

function dots({ names, medians, least, most }, width) {
  const [left, right] = [8, width - 64];
  const bottom = names.length * PITCH + 4;
  const x = (value) => tenth(left + (Math.log10(value) / REACH + 1) / 2 * (right - left));
  record({
    ...{ name: "medians", tensor: medians, rows: names, columns: ["times as fast"] },
    ...{ largest: medians.largest, keys: names.map(() => undefined) },
    ...{ left: 0, top: 0, size: width, high: PITCH },
  });
  return svg(
    { class: "curve", "data-name": "medians", width, height: bottom + 24 },
    names.map((name, r) => {
      const [value, y] = [medians.data[r], r * PITCH + 27];
      return [
        text("start", left, y - 13, name),
        // Beside the dot alone: a line from top to bottom would run through the names.
        POWERS.map((power) => path(power ? "grid" : "now", `M${x(10 ** power)} ${y - 9}v18`)),
        path("loss", `M${x(least.data[r])} ${y}H${x(most.data[r])}`),
        element("circle", { class: "here", cx: x(value), cy: y, r: 5 }),
        text("value start", right + 8, y + 4, times(value)),
      ];
    }),
    POWERS.map((power) => text("column", x(10 ** power), bottom + 16, `${10 ** power}`)),
    element("path", { class: "outline" }),
  );
}
