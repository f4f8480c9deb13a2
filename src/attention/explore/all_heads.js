// All heads of a published model at once, each as dark as it follows a rule; one of them is open.

import { number, short } from "./format.js";
import { choice, element } from "./markup.js";
import { cellSize, matrix } from "./matrix.js";
import { painting, switches } from "./painting.js";
import { panel, row } from "./panels.js";
import { range, sum } from "./tensor.js";

const MAP = 384; // pixels of the open head's map
const GRID = 284; // of all heads
const HIGH = 16; // a row of it
const LEAST = 0.02; // of a row, to be shown as shares
const ENOUGH = 0.5; // a head follows a rule with half of its weight or more

export default painting({
  // A head that is pressed is the one that the sliders choose.
  act(what) {
    const [, layer, head] = what.split(" ");
    return { layer: +layer, head: +head };
  },

  status(frame, at) {
    const rule = at.rule;
    const scores = scoresOf(frame, rule);
    const count = scores.data.filter((score) => score >= ENOUGH).length;
    const score = scores.at(+at.layer).data[at.head];
    const follow = isCost(frame, rule)
      ? `without it the loss rises by ${number(score, 3)}`
      : `${
        number(score)
      } of its weight · ${count} of ${scores.data.length} heads give half or more`;
    const left = isLeftOut(at) ? " · the map without the first token" : "";
    return `head ${at.layer}.${at.head} · ${rule}: ${follow}${left}`;
  },

  draw(frame, at, available) {
    const { tokens, weights, best } = frame;
    const { rule } = at;
    const [layer, head] = [+at.layer, +at.head];
    const words = tokens.map(shown);
    const nth = frame.rules.indexOf(rule);
    const scores = scoresOf(frame, rule);
    const weight = weights.at(layer).at(head);
    const map = matrix({
      ...{ name: `weights ${layer} ${head}`, tensor: weight, rows: words, columns: words },
      size: cellSize(Math.min(available, MAP), tokens.length, words, { most: 26, least: 11 }),
      largest: 1,
      paint: isLeftOut(at) ? withoutFirst(weight) : asItIs,
    });
    const layers = range(scores.shape[0]);
    const size = cellSize(Math.min(available, GRID), scores.shape[1], layers, { most: 32 });
    const all = matrix({
      ...{ name: `scores ${nth}`, tensor: scores, size, high: HIGH },
      rows: layers,
      columns: range(scores.shape[1]),
      paint: (value) => ({ text: isCost(frame, rule) ? hundredths(value) : tenths(value) }),
      over: ({ box, size }) =>
        element("path", { class: "hand", d: box(layer, head) }) +
        switches(scores.shape, "open", { high: HIGH })({ size }),
    });
    const rank = Array.from(scores.data, (score, i) => [score, i]).sort(([a], [b]) => b - a);
    const strongest = rank.slice(0, best).map(([score, i]) => {
      const [of, which] = [Math.floor(i / scores.shape[1]), i % scores.shape[1]];
      return button(of, which, score, of === layer && which === head);
    });
    return (
      row(`Highest by this rule, measured ${frame.measured[nth]}`, [
        element("p", { class: "asking", role: "group", "aria-label": "Open a head" }, strongest),
      ]) +
      row(`Head ${layer}.${head} in this sentence, and all heads by the rule`, [
        panel(`head ${layer}.${head}; row: query, column: key`, map, "", "stays"),
        panel("row: layer, column: head; press one", all),
      ], removal(frame, at))
    );
  },

  describe({ name, r, c, value }, { tokens, rules }) {
    if (name.startsWith("weights")) {
      if (c > r) return `“${shown(tokens[r])}” does not see “${shown(tokens[c])}”: it comes later.`;
      return `“${shown(tokens[r])}” gives “${shown(tokens[c])}” about ${number(value, 1)}.`;
    }
    const rule = rules[+name.split(" ")[1]];
    return `Head ${r}.${c}, ${rule}: ${number(value, 3)}.`;
  },
});

function scoresOf({ rules, scores }, rule) {
  return scores.at(rules.indexOf(rule));
}

function isLeftOut(at) {
  return at.leave_out_the_first_token === "on";
}

// The last of the rules is none: it is a price.
function isCost({ rules }, rule) {
  return rules.at(-1) === rule;
}

function shown(token) {
  return token.trim() || "␣";
}

// What the mask hides is no weight of 0.
const ofMap = (value, r, c) => (c > r ? "" : tenths(value));

function asItIs(value, r, c) {
  return { text: ofMap(value, r, c) };
}

// The first key greyed out, and the other weights of its row as shares of what is left.
function withoutFirst(weight) {
  return (value, r, c) => {
    if (c === 0) return { kind: "unread", strength: 0.2, text: "" };
    const left = sum(weight.at(r).data.slice(1));
    const share = left > LEAST ? value / left : 0;
    return { kind: "t0", strength: share, text: ofMap(share, r, c) };
  };
}

function tenths(value) {
  return value < 0.05 ? "" : value >= 0.95 ? "1" : short(value, 1);
}

function hundredths(value) {
  return Math.abs(value) < 0.015 ? "" : short(value, 2);
}

function button(layer, head, score, isOpen) {
  return choice(`open ${layer} ${head}`, isOpen, `${layer}.${head} · ${number(score)}`);
}

function removal(frame, { layer, head }) {
  const costs = frame.scores.at(frame.scores.shape[0] - 1);
  const cost = costs.at(+layer).data[head];
  const dearer = costs.data.filter((each) => each > cost).length;
  const copied = frame.copied.at(+layer).data[head];
  const changes = cost < 0 ? "falls" : "rises";
  return `Without head ${layer}.${head} the loss on four texts ${changes} by ` +
    `${number(Math.abs(cost), 3)} nats, rank ${dearer + 1} of ${costs.data.length}. ` +
    `It then copies ${number(copied)} of a repeated text; with all heads, ${number(frame.whole)}.`;
}
