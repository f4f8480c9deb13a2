// A date that is written sign by sign: the letters with the weights of the chosen step, the signs
// so far, what the writer gets at the step, and the whole map.

import { explorer } from "./explorer.js";
import { number } from "./format.js";
import { lettersSeen } from "./letters.js";
import { path, rect, svg, text } from "./markup.js";
import { cellSize, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { bidirectionalEncoder, greedy } from "./recurrent.js";
import { argmax, range, stack } from "./tensor.js";

const START = "start";
const ENDING = "end";

const signAt = ({ signs }, { step }) => Math.min(step, signs.length) - 1;

export default explorer({
  model: (at) => at.attention,

  split: (text) => [...text.toLowerCase().trim().replace(/\s+/g, " ")],

  // A frame has the answer, `iso`, and the letters that say its parts, `said`, of dates in the menu
  // alone: nobody tells the page what a date of the reader's own means.
  compute({ tokens, ids }, _at, model, { stored }) {
    const { vocabulary, parts, longest, iso, said } = stored;
    if (tokens.length > longest) return { problem: tooLong(longest) };
    const [start, end] = [START, ENDING].map((sign) => vocabulary.indexOf(sign));
    const encoded = bidirectionalEncoder(ids, model);
    const steps = greedy(encoded, model, { start, end, longest: parts.length });
    const signs = steps.map(({ token }) => vocabulary[token]);
    const frame = { tokens, signs, vocabulary, parts, longest };
    if (tokens.join("") === stored.tokens.join("")) Object.assign(frame, { iso, said });
    frame.context = stack(steps.map(({ context }) => context));
    if (steps[0].weights) frame.weights = stack(steps.map(({ weights }) => weights.at(0)));
    return frame;
  },

  status(frame, at) {
    const { signs, tokens, weights } = frame;
    const nth = signAt(frame, at);
    const looks = weights
      ? `looks most at “${tokens[argmax(weights.at(nth).data)]}”`
      : "looks at no letter";
    return `step ${nth + 1} writes ${signs[nth]}, ${looks} · ${inTheEnd(frame)}`;
  },

  draw(frame, at, available) {
    const { tokens, weights, context, parts } = frame;
    const nth = signAt(frame, at);
    const numbers = context.shape[2];
    const underlined = frame.said?.[parts[nth]];
    const seen = lettersSeen(tokens, weights?.at(nth).data, available, underlined);
    const got = matrix({
      ...{ name: `context ${nth}`, tensor: context.at(nth), largest: context.largest },
      ...{ size: cellSize(available, numbers), high: 26 },
    });
    return [
      row("What is written so far", [
        panel(
          frame.iso ? "a sign that is wrong is struck out" : "this step writes the one in the box",
          signsSoFar(frame, nth),
        ),
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

  describe({ name, r, c, value }, { tokens, signs }) {
    if (name === "weights") {
      return `Writing “${signs[r]}”, sign ${r + 1}, letter ${c + 1}, “${tokens[c]}”, ` +
        `has the weight ${number(value)}.`;
    }
    const nth = +name.split(" ")[1];
    return `Step ${nth + 1} writes “${signs[nth]}”: ` +
      `number ${c + 1} of what it gets is ${number(value)}.`;
  },
});

function tooLong(longest) {
  return `This text has more than ${longest} letters. A recurrent model has no positions that ` +
    "run out, so it would read on, but no date that it learned from is as long, and what it " +
    "wrote would tell you nothing. Write a shorter date.";
}

function inTheEnd({ signs, iso }) {
  if (!iso) return `in the end ${signs.filter((sign) => sign !== ENDING).join("")}`;
  const right = range(iso.length).filter((i) => signs[i] === iso[i]).length;
  return `${right} of ${iso.length} signs right in the end`;
}

// The map; the row of the chosen step has a mark.
function alignment({ tokens, signs, weights }, nth, available) {
  const rows = signs.map((sign, i) => (i === nth ? `▸ ${sign}` : sign));
  const size = cellSize(available, tokens.length, ["▸ end"], { most: 20, least: 4 });
  const columns = size < 8 ? [] : tokens;
  const look = { rows, columns, size, high: 18, largest: 1 };
  return matrix({ ...look, name: "weights", tensor: weights });
}

function aboutPart({ parts, said }, nth) {
  const part = parts[nth];
  if (!part) return "no letter says this sign";
  return said
    ? `underlined: the letters that say the ${part}`
    : `this step writes a sign of the ${part}`;
}

// The signs up to this step, and below them the answer where there is one.
function signsSoFar({ signs, iso, parts }, nth) {
  const [left, pitch] = [56, 22];
  const answer = iso && [...iso, ENDING];
  const x = (i) => left + (i + 0.5) * pitch;
  const isWrong = (i) => answer && i <= nth && signs[i] !== answer[i];
  const strike = (i) => path("now wrong", `M${x(i) - 8} 19L${x(i) + 8} 6`);
  const columns = parts.map((_, i) => [
    i <= nth && text(signs[i]?.length > 1 ? "column" : "letter", x(i), 18, signs[i] ?? ""),
    isWrong(i) && strike(i) + text("column", x(i), 56, "≠"),
    answer && text(answer[i] === ENDING ? "column" : "letter quiet", x(i), 42, answer[i]),
  ]);
  const wrong = range(nth + 1).filter(isWrong).map((i) => i + 1);
  const verdict = wrong.length ? `Wrong: sign ${wrong.join(", ")}.` : "None is wrong so far.";
  const written = `Written: ${signs.slice(0, nth + 1).join("")}.`;
  return svg(
    {
      ...{ class: "written", width: left + parts.length * pitch + 8, height: answer ? 60 : 28 },
      label: answer ? `${written} Right: ${iso}. ${verdict}` : written,
    },
    rect("here", left + nth * pitch + 0.5, 0.5, pitch - 1, 25, { rx: 3 }),
    text("row", left - 8, 18, "written"),
    answer && text("row", left - 8, 42, "right"),
    columns,
  );
}
