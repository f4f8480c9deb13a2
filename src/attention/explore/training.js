// The model as it learns: the loss and the share of right answers over the steps, what each head
// gives to who and whom, and at the chosen step a sentence with its arcs, its answers and its maps.

import { answered, answersAtVerb, arcsFromVerb, ask, verbButtons } from "./arcs.js";
import { Chart } from "./chart.js";
import { explorer } from "./explorer.js";
import { number, percent, thousands } from "./format.js";
import { path, tenth, text } from "./markup.js";
import { cellSize, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { range } from "./tensor.js";

const SENTENCES = 128; // of a step

export default explorer({
  model: ({ seed, step }) => `${seed},${step}`,

  act: ask,

  compute(sentence, _at, model, { stored, memory }) {
    const { verbs, vocabulary, right, roles, losses, steps, rights } = stored;
    const same = { verbs, vocabulary, right, roles, losses, steps, rights };
    return { ...answered(sentence, model, verbs, memory), ...same };
  },

  status({ right, losses, steps }, at) {
    const count = losses.shape[0];
    const nth = Math.min(count - 1, Math.floor((at.step * count) / steps.at(-1)));
    return `step ${thousands(at.step)} · ${thousands(at.step * SENTENCES)} sentences seen` +
      ` · loss ${number(losses.data[nth])}` +
      ` · both right at ${percent(right)} of the verbs of 4,000 new sentences`;
  },

  draw(frame, at, available) {
    const { tokens, weights, roles } = frame;
    const heads = weights.shape[0];
    const wide = available >= 560 ? Math.floor((available - 18) / 2) : available;
    const across = Math.min(2, heads);
    const share = (available - 18 * (across - 1)) / across;
    const size = cellSize(share, tokens.length, tokens, { most: 24 });
    const named = range(heads).map((i) => `head ${i}`);
    const given = matrix({
      ...{ name: "roles", tensor: roles, rows: named, columns: ["who", "whom"] },
      ...{ size: 60, high: 34, largest: 1 },
    });
    const maps = named.map((name, i) => {
      const look = { rows: tokens, columns: tokens, size, largest: 1 };
      const map = matrix({ ...look, name: `weights ${i}`, tensor: weights.at(i) });
      return panel(name, map, "weights");
    });
    return (
      row("The whole training, and where you are", [
        panel("loss: the line falls; both right: the dots rise", curve(frame, +at.step, wide)),
        panel("mean weight that the verb gives", given, "weights"),
      ]) +
      verbButtons(frame) +
      arcsFromVerb({ ...frame, roles: range(heads).map((i) => roles.at(i).data) }, available) +
      answersAtVerb(frame) +
      row("Every head, every word: each row is a word that looks", maps)
    );
  },

  describe({ name, r, c, value }, { tokens }) {
    if (name === "word") return `“${tokens[r]}”, word ${r}.`;
    if (name === "roles") {
      const role = ["who", "whom"][c];
      return `Head ${r} gives ${role} ${number(value)} of the verb's weight, ` +
        "on average over new sentences.";
    }
    const head = name.split(" ")[1];
    return `Head ${head}: “${tokens[r]}” gives “${tokens[c]}” the weight ${number(value)}.`;
  },
});

// Steps to the right, on a scale of their square root, since most happens early.
function curve({ losses, steps, rights }, step, width) {
  const last = steps.at(-1);
  const most = Math.ceil(Math.max(...losses.data));
  const chart = new Chart({
    ...{ width, height: 130, left: 34, right: 52, top: 8 },
    across: (at) => Math.sqrt(at / last),
    up: (share) => share,
  });
  const each = last / losses.shape[0];
  const heights = [0, 0.5, 1];
  const label = `Loss over ${thousands(last)} steps, from ${number(losses.data[0])} ` +
    `to ${number(losses.data.at(-1))}; both right at the marked steps, ` +
    `from ${percent(rights[0])} to ${percent(rights.at(-1))}`;
  return chart.svg(
    label,
    24,
    chart.grid(heights, ""),
    path("now", `M${tenth(chart.x(step))} ${chart.top}V${chart.bottom}`),
    chart.line("loss", Array.from(losses.data, (loss, i) => [(i + 0.5) * each, loss / most])),
    steps.map((at, i) =>
      at === step ? chart.dot(at, rights[i], 5) : chart.dot(at, rights[i], 3.5, "")
    ),
    chart.below([0, 100, 400, 1000, last], thousands),
    chart.beside(heights, (share) => share * most),
    heights.map((share) => text("start", chart.end + 8, chart.y(share) + 4, `${100 * share} %`)),
  );
}
