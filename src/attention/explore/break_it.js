// The trained attention with mistakes in it: the weights of each verb of a sentence, the two
// answers there, and at how many verbs of many sentences an answer is lost.

import { knownAs } from "./answers.js";
import {
  embed,
  linear,
  maskedSoftmax,
  mergeHeads,
  PAD,
  paddingMask,
  scaledScores,
  splitHeads,
  weightedSum,
} from "./attention.js";
import { bars } from "./chart.js";
import { explorer } from "./explorer.js";
import { listed, number, thousands } from "./format.js";
import { choice, element } from "./markup.js";
import { cellSize, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { answersOfVerb, probabilities, readOut } from "./read_out.js";
import { argmax, filled, range, stack, sum, Tensor } from "./tensor.js";

const MISTAKES = ["wrong_split", "wrong_axis", "no_scale", "mask_too_late", "no_transpose"];
const NAMES = MISTAKES.map((name) => name.replaceAll("_", " "));
const SHARES = ["a few", "a part", "nearly all"]; // of the verbs: under a tenth, over nine tenths

export default explorer({
  model: () => "trained",

  examples: [
    "the fox bit the wolf and the wolf bit the fox",
    "a child hid the big drum and the queen found the child",
    "birds sing at dawn and a dog chased the red ball",
    "the cat saw the other cat",
    "a dog chased the red ball",
    "the cat saw the dog and the dog chased the other cat",
  ],

  act(what, memory) {
    const [nth, share] = what.split(" ").slice(1).map(Number);
    memory.marks = { ...memory.marks, [nth]: share };
  },

  compute({ tokens, ids }, at, model, { stored, memory = {} }) {
    const { verbs, vocabulary } = model;
    const asking = range(tokens.length).filter((place) => verbs.includes(tokens[place]));
    if (!asking.length) return { problem: `No verb in it asks. Try ${listed(verbs)}.` };
    const { output, weights } = attendWrongly(embed(ids, model.table), model, at, tokens);
    const rows = filled(asking.length, output.shape[1], (r, c) => output.at(asking[r]).data[c]);
    const [who, whom] = readOut(rows, model).map(probabilities);
    const given = asking.flatMap((_, nth) => [who.at(nth).data, whom.at(nth).data]);
    const { right, of, lost } = stored; // the price is torch's, and no sentence here changes it
    return {
      tokens,
      asking,
      weights: stack(asking.map((verb) => rowsOf(weights, verb))),
      answers: given.map((share) => knownAs(vocabulary[argmax(share)], tokens, vocabulary)),
      shares: filled(asking.length, 2, (r, c) => Math.max(...given[2 * r + c])),
      ...{ right, of, lost },
      ...(memory.marks && { marks: memory.marks }),
    };
  },

  // Two more tokens, so that there is something to mask.
  prepare: (tokens) => [...tokens, PAD, PAD],

  status({ right, of, lost }, at) {
    const names = NAMES.filter((_, nth) => isOn(at, nth)).join(" + ");
    return `${names || "no mistake"} · both answers right at ${thousands(right)} of ` +
      `${thousands(of)} verbs · lost: ${thousands(lost.data.at(-1))}`;
  },

  draw(frame, at, available) {
    const { tokens, asking, weights, right, of, lost, marks = {} } = frame;
    const all = right + lost.data.at(-1);
    const rows = [...NAMES, "together"];
    const on = [...NAMES.map((_, nth) => isOn(at, nth)), true];
    const price = () =>
      bars({
        ...{ name: "lost", tensor: lost, rows, column: "verbs lost" },
        labels: rows.map((name, nth) => (isOn(at, nth) ? `▸ ${name}` : name)),
        ...{ width: Math.min(available, 560), pitch: 22, largest: all },
        ...{ format: thousands, faint: (nth) => !on[nth] },
      });
    // The prices are told to those who have guessed all of them, or made a mistake.
    const isTold = Object.keys(marks).length === NAMES.length ||
      NAMES.some((_, nth) => isOn(at, nth));
    const heads = range(weights.shape[1]).map((head) => `head ${head}`);
    const size = cellSize(available, tokens.length, heads, { most: 36 });
    const look = { rows: heads, columns: tokens, size, largest: 1 };
    const looks = asking.map((verb, nth) => {
      const sums = range(heads.length).map((head) => number(sum(weights.at(nth).at(head).data)));
      const map = matrix({ ...look, name: `weights ${nth}`, tensor: weights.at(nth) });
      return panel(`“${tokens[verb]}”: the rows sum to ${sums.join(" and ")}`, map, "weights");
    });
    return (
      row(
        `Of ${thousands(all)} verbs that are right without a mistake, how many does each lose? ` +
          "Mark them first",
        [markers(lost, marks, all)],
        score(lost, marks, all),
      ) +
      (isTold
        ? row(
          "The price",
          [panel("of each mistake alone, and of those that are on together", price())],
          `${thousands(of)} verbs of 300 new sentences, padded to the longest. ` +
            compared(lost, at),
        )
        : "") +
      row(
        "What the row of each verb holds",
        looks,
        isOn(at, 0) && "After the wrong split a row of a head, and a column, " +
            "is no longer the word that it is named after.",
      ) +
      asking.map((_, nth) => answersOfVerb(frame, nth)).join("")
    );
  },

  describe({ name, r, c, value }, { tokens, asking }) {
    if (name === "lost") {
      const by = r < NAMES.length ? `${NAMES[r]} alone` : "what is switched on";
      return `Lost by ${by}: ${thousands(value)} verbs.`;
    }
    const verb = tokens[asking[name.split(" ")[1]]];
    return `Head ${r}: in the row of “${verb}” stands, for “${tokens[c]}”, ${number(value)}.`;
  },
});

function isOn(at, nth) {
  return at[MISTAKES[nth]] === "on";
}

// What a mistake costs alone, as one of SHARES.
function dueMark(lost, nth, all) {
  const share = lost.data[nth] / all;
  return share < 0.1 ? 0 : share > 0.9 ? 2 : 1;
}

// For each mistake buttons to guess what it costs, and the verdict.
function markers(lost, marks, all) {
  const lines = NAMES.map((name, nth) => {
    const due = dueMark(lost, nth, all);
    const buttons = SHARES.map((share, given) =>
      choice(`mark ${nth} ${given}`, marks[nth] === given, share)
    );
    const verdict = !(nth in marks) ? "" : marks[nth] === due ? "✓" : `✗ ${SHARES[due]}`;
    const group = { class: "asking", role: "group", "aria-label": `What ${name} costs` };
    const label = element("span", { class: "named" }, name);
    return element("p", group, label, buttons, element("span", {}, verdict));
  });
  return panel("a few: under a tenth of them; nearly all: over nine tenths", lines.join(""));
}

function score(lost, marks, all) {
  const right = Object.keys(marks).filter((nth) => marks[nth] === dueMark(lost, nth, all));
  const given = Object.keys(marks).length;
  return given === NAMES.length ? `${right.length} of ${given} marks are right.` : "";
}

// The price of several mistakes beside their prices alone.
function compared(lost, at) {
  const chosen = range(NAMES.length).filter((nth) => isOn(at, nth));
  if (chosen.length < 2) return "";
  const alone = chosen.map((nth) => lost.data[nth]);
  const dearest = chosen[argmax(alone)];
  const more = lost.data.at(-1) - lost.data[dearest];
  const than = more
    ? `${thousands(Math.abs(more))} ${more > 0 ? "more" : "fewer"} than`
    : "as many as";
  return `Alone they lose ${alone.map(thousands).join(" + ")} = ${thousands(sum(alone))}; ` +
    `together ${thousands(lost.data.at(-1))}, ${than} ${NAMES[dearest]} alone.`;
}

// multiHeadAttention with the mistakes that are on.
function attendWrongly(x, model, at, tokens) {
  const [wrongSplit, wrongAxis, noScale, maskTooLate, noTranspose] = NAMES.map((_, nth) =>
    isOn(at, nth)
  );
  const split = wrongSplit ? viewAlone : splitHeads;
  const [q, k, v] = ["q", "k", "v"].map((name) =>
    split(linear(x, model[`w_${name}`], model[`b_${name}`]), model.n_heads)
  );
  const scores = noScale ? scaledScores(q, k, 1) : scaledScores(q, k);
  const may = paddingMask(tokens);
  const all = wrongAxis
    ? turned(maskedSoftmax(turned(scores)))
    : maskedSoftmax(scores, maskTooLate ? undefined : may);
  // Over the queries a hidden column is hidden as well after the softmax as before it.
  const keys = tokens.length;
  const weights = all.map((weight, i) => (may(Math.floor(i / keys) % keys, i % keys) ? weight : 0));
  const heads = weightedSum(weights, v);
  const merged = noTranspose ? new Tensor(x.shape, heads.data) : mergeHeads(heads);
  return { output: linear(merged, model.w_o, model.b_o), weights };
}

// The numbers as they lie in memory, with other axes.
function viewAlone(x, nHeads) {
  const [seq, dModel] = x.shape;
  return new Tensor([nHeads, seq, dModel / nHeads], x.data);
}

// (heads, query, key) -> (heads, key, query)
function turned(x) {
  const [heads, rows, columns] = x.shape;
  return stack(
    range(heads).map((head) =>
      filled(columns, rows, (r, c) => x.data[(head * rows + c) * columns + r])
    ),
  );
}

// The row of one query in every head: (heads, key).
function rowsOf(weights, query) {
  return stack(range(weights.shape[0]).map((head) => weights.at(head).at(query)));
}
