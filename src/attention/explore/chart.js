// Curves over an axis, and bars.

import { number } from "./format.js";
import { element, path, rect, svg, tenth, text } from "./markup.js";
import { labelWidth } from "./matrix.js";
import { record } from "./panels.js";

// A chart's axes, and what is drawn along them.
//   width, height       of the whole in pixels, and of what lies between the axes' ends
//   left, right, top    what is left around that
//   across, up          where a value stands, as a share of the way from an axis's start to its end
export class Chart {
  constructor({ width, height, left, right, top, across, up }) {
    Object.assign(this, { width, height, left, right, top, across, up });
    this.end = width - right;
    this.bottom = top + height;
  }

  x(value) {
    return this.left + this.across(value) * (this.end - this.left);
  }

  y(value) {
    return this.top + this.height * (1 - this.up(value));
  }

  at(a, b) {
    return `${tenth(this.x(a))} ${tenth(this.y(b))}`;
  }

  // Through points, which are pairs of values.
  line(look, points) {
    return path(look, points.map(([a, b], i) => (i ? "L" : "M") + this.at(a, b)));
  }

  dot(a, b, r = 4, look = "here") {
    return element("circle", { class: look, cx: tenth(this.x(a)), cy: tenth(this.y(b)), r });
  }

  // Rules at these heights, and the upright axis.
  grid(heights, axis = `M${this.left} ${this.top}V${this.bottom}`) {
    const rules = heights.map((value) => `M${this.left} ${tenth(this.y(value))}H${this.end}`);
    return path("grid", rules, axis);
  }

  // Labels below the axis, and beside it.
  below(values, label = String) {
    return values.map((a) => text("column", tenth(this.x(a)), this.bottom + 16, label(a)));
  }

  beside(values, label = String) {
    return values.map((b) => text("row", this.left - 6, tenth(this.y(b) + 4), label(b)));
  }

  // What the lines are: pairs of a look and a name, in as many lines as they need.
  legend(keys, from = 10) {
    let [x, line] = [from, 0];
    const first = this.bottom + 36;
    const parts = keys.map(([look, name]) => {
      const wide = 42 + 6.6 * name.length;
      if (x + wide > this.width) [x, line] = [from, line + 1];
      const y = first + 18 * line;
      const key = path(look, `M${tenth(x)} ${y}h22`) + text("start", tenth(x + 27), y + 4, name);
      x += wide;
      return key;
    });
    return { parts, height: 18 * line };
  }

  // All of it; `below` is what stands under the axis, in pixels.
  svg(label, below, ...parts) {
    return svg({ class: "curve", width: this.width, height: this.bottom + below, label }, ...parts);
  }
}

// A bar for each number, as long as the number is large, with the number behind it.
//   name     what the tables and the readout call it      tensor  (row, 1) or (row)
//   rows     labels of the bars in the tables             labels  those in the picture, if others
//   column   what the numbers are, for the tables
//   width    of the whole in pixels                       left    of it for the labels
//   space    for the longest written number               pitch   from bar to bar
//   largest  the number whose bar fills its line
//   format   (value) => how a number is written           faint   (row) => whether its bar is
//   aligned  numbers stand in a column at the right, not each behind its bar
//   mark     a number at which a dashed line stands
export function bars({
  name,
  tensor,
  rows,
  labels = rows,
  column,
  width,
  left = labelWidth(labels) + 4,
  space = 42,
  pitch = 20,
  largest = tensor.largest,
  format = number,
  faint = () => false,
  aligned = false,
  mark,
}) {
  const long = width - left - space;
  const length = (value) => (largest ? (Math.min(value, largest) / largest) * long : 0);
  const lines = labels.map((label, r) => {
    const value = tensor.data[r];
    const y = 2 + r * pitch;
    const base = y + pitch / 2 + 2;
    const bar = Math.max(1, length(value));
    const look = { class: "plus" };
    const opacity = { "fill-opacity": faint(r) ? 0.25 : 0.62, stroke: "var(--plus)" };
    return [
      text("row", left - 6, base, label),
      rect(look, left, y, tenth(bar), pitch - 4, opacity),
      aligned
        ? text("value", width - 20, base, format(value))
        : text("value start", tenth(left + bar + 6), base, format(value)),
    ];
  });
  const height = 4 + rows.length * pitch;
  const dashed = { class: "band", "stroke-dasharray": "3 2" };
  record({
    ...{ name, tensor, rows, columns: [column], largest, keys: rows.map(() => undefined) },
    ...{ bars: true, left, top: 0, size: long, high: pitch },
  });
  return svg(
    { "data-name": name, width, height },
    lines,
    Boolean(mark) && path(dashed, `M${tenth(left + length(mark))} 0V${height - 2}`),
    element("path", { class: "outline", transform: `translate(${left} 0)` }),
  );
}
