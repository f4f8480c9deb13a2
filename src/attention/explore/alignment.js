// A date that is written sign by sign: the letters with the weights of the chosen step, the signs
// so far, what the writer gets at the step, and the whole map.

import { explorer } from "./explorer.js";
import { number } from "./format.js";
import { lettersSeen } from "./letters.js";
import { path, rect, svg, text } from "./markup.js";
import { cellSize, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { argmax, range } from "./tensor.js";

const ENDING = "end";

const signAt = ({ signs }, { step }) => Math.min(step, signs.length) - 1;

export default explorer({
  status(frame, at) {
    const { signs, iso, letters, weights } = frame;
    const nth = signAt(frame, at);
    const right = range(iso.length).filter((i) => signs[i] === iso[i]).length;
    const looks = weights
      ? `looks most at “${letters[argmax(weights.at(nth).data)]}”`
      : "looks at no letter";
    return `step ${at.step} writes ${signs[nth]}, ${looks}` +
      ` · ${right} of ${iso.length} signs right in the end`;
  },

  draw(frame, at, available) {
    const { letters, weights, context, parts, said } = frame;
    const nth = signAt(frame, at);
    const numbers = context.shape[2];
    const seen = lettersSeen(letters, weights?.at(nth).data, available, said[parts[nth]]);
    const got = matrix({
      ...{ name: `context ${nth}`, tensor: context.at(nth), largest: context.largest },
      ...{ size: cellSize(available, numbers), high: 26 },
    });
    return [
      row("What is written so far", [
        panel("a sign that is wrong is struck out", signsSoFar(frame, nth)),
      ]),
      row(
        weights ? "Where this step looks" : "There are no weights: this writer sees no letter",
        [panel(aboutPart(frame, nth), seen, "weights")],
      ),
      row(`What the writer gets at this step: ${numbers} numbers`, [
        panel(
          weights
            ? "the context: the letters' states, averaged with these weights"
            : "the last states: the same at every step",
          got,
        ),
      ]),
      weights && row("All steps: each row writes one sign, each column is a letter", [
        panel("alignment: the weights of every step", alignment(frame, nth, available), "weights"),
      ]),
    ].filter(Boolean).join("");
  },

  describe({ name, r, c, value }, { letters, signs }) {
    if (name === "weights") {
      return `Writing “${signs[r]}”, sign ${r + 1}, letter ${c + 1}, “${letters[c]}”, ` +
        `has the weight ${number(value)}.`;
    }
    const nth = +name.split(" ")[1];
    return `Step ${nth + 1} writes “${signs[nth]}”: ` +
      `number ${c + 1} of what it gets is ${number(value)}.`;
  },
});

// The map; the row of the chosen step has a mark.
function alignment({ letters, signs, weights }, nth, available) {
  const rows = signs.map((sign, i) => (i === nth ? `▸ ${sign}` : sign));
  const size = cellSize(available, letters.length, ["▸ end"], { most: 20 });
  const look = { rows, columns: letters, size, high: 18, largest: 1 };
  return matrix({ ...look, name: "weights", tensor: weights });
}

function aboutPart({ parts }, nth) {
  if (!parts[nth]) return "no letter says this sign";
  return `underlined: the letters that say the ${parts[nth]}`;
}

// The signs up to this step, and the answer below them.
function signsSoFar({ signs, iso }, nth) {
  const [left, pitch] = [56, 22];
  const answer = [...iso, ENDING];
  const x = (i) => left + (i + 0.5) * pitch;
  const isWrong = (i) => i <= nth && signs[i] !== answer[i];
  const strike = (i) => path("now wrong", `M${x(i) - 8} 19L${x(i) + 8} 6`);
  const columns = answer.map((sign, i) => [
    i <= nth && text(signs[i]?.length > 1 ? "column" : "letter", x(i), 18, signs[i] ?? ""),
    isWrong(i) && strike(i) + text("column", x(i), 56, "≠"),
    text(sign === ENDING ? "column" : "letter quiet", x(i), 42, sign),
  ]);
  const wrong = range(nth + 1).filter(isWrong).map((i) => i + 1);
  const verdict = wrong.length ? `Wrong: sign ${wrong.join(", ")}.` : "None is wrong so far.";
  return svg(
    {
      ...{ class: "written", width: left + answer.length * pitch + 8, height: 60 },
      label: `Written: ${signs.slice(0, nth + 1).join("")}. Right: ${iso}. ${verdict}`,
    },
    rect("here", left + nth * pitch + 0.5, 0.5, pitch - 1, 25, { rx: 3 }),
    text("row", left - 8, 18, "written"),
    text("row", left - 8, 42, "right"),
    columns,
  );
}
