// The letters of a written date in lines, with a bar on each as high as its weight.

import { number, short } from "./format.js";
import { path, rect, svg, tenth, text } from "./markup.js";
import { argmax, range } from "./tensor.js";

const PITCH = 18; // pixels from letter to letter
const BAR = 40; // the height of a weight of 1
const LEAST = 0.1; // a weight below it, or beside a larger one, has a bar and no number

// Without weights the letters stand alone; those from `from` on and before `to` are underlined.
export function lettersSeen(letters, weights, available, [from, to] = [0, 0]) {
  const lines = brokenLines(letters, Math.floor(available / PITCH));
  const top = weights ? BAR + 16 : 4;
  const high = top + 26;
  const parts = lines.flatMap((line, nth) => {
    const base = nth * high + top;
    return line.map((i, place) => {
      const x = (place + 0.5) * PITCH;
      return [
        weights && bar(weights, i, x, base),
        text("letter", x, base + 16, letters[i]),
        i >= from && i < to && path("now", `M${x - PITCH / 2} ${base + 21}h${PITCH}`),
      ];
    });
  });
  const width = Math.max(...lines.map((line) => line.length)) * PITCH + 10;
  const label = labelOf(letters.join(""), letters, weights);
  return svg({ class: "written", width, height: lines.length * high, label }, parts);
}

function bar(weights, i, x, base) {
  const high = BAR * weights[i];
  const beside = Math.max(weights[i - 1] ?? 0, weights[i + 1] ?? 0);
  const isWritten = weights[i] >= LEAST && weights[i] >= beside;
  return rect("plus", x - 6, tenth(base - high), 12, tenth(high)) +
    (isWritten ? text("column", x, tenth(base - high - 4), short(weights[i])) : "");
}

function labelOf(written, letters, weights) {
  if (!weights) return `“${written}”, without weights`;
  const best = argmax(weights);
  return `Of “${written}”, this step gives most weight, ${number(weights[best])}, ` +
    `to letter ${best + 1}, “${letters[best]}”.`;
}

// Lines of at most `longest` letters, broken at spaces; a word longer than that is cut.
function brokenLines(letters, longest) {
  const lines = [[]];
  const words = new RegExp(`\\S{1,${longest - 1}}\\s?|\\s`, "g");
  for (const word of letters.join("").match(words)) {
    if (lines.at(-1).length + word.length > longest) lines.push([]);
    const start = lines.flat().length;
    lines.at(-1).push(...range(word.length).map((i) => start + i));
  }
  return lines;
}
