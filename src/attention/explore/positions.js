// What a score depends on: a "?" and a name at every pair of places. Left the scores of one query
// by distance, right all of them, below a talk in which the question is asked, and how often the
// model is right in talks of each length.

import { Chart } from "./chart.js";
import { explorer } from "./explorer.js";
import { number, percent, short } from "./format.js";
import { element, escapeHtml, path, rect, text } from "./markup.js";
import { cellSize, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { argmax, range, sum } from "./tensor.js";

const HEADS = 4;
const LEAST = 0.1; // a smaller weight is not written beside its word

// The nth of the stored questions, or −1 where the scheme has no vector for that place.
const asked = ({ queries, weights }, at) => {
  const nth = queries.indexOf(+at.query);
  return nth < weights.shape[0] ? nth : -1;
};

// By how much a score changes, at most, when the query and a key before it both move by one place.
function change({ shape: [seq], data }) {
  const moved = (m, n) => Math.abs(data[m * seq + n] - data[(m - 1) * seq + n - 1]);
  let most = 0;
  for (let m = 1; m < seq; m++) for (let n = 1; n < m; n++) most = Math.max(most, moved(m, n));
  return most;
}

function whatCounts(scores) {
  const most = change(scores);
  const last = scores.at(scores.shape[0] - 1).data;
  if (Math.max(...last) - Math.min(...last) < 0.005) {
    return "The same score everywhere. Neither the position nor the distance counts.";
  }
  const moved = "Move query and key by one position:";
  return most < 0.005
    ? `${moved} no score changes. Only the distance counts.`
    : `${moved} a score changes by up to ${number(most)}. Positions count.`;
}

export default explorer({
  status({ lengths, accuracy }, at) {
    const rights = [16, 64].filter((length) => lengths.includes(length)).map((length) => {
      const share = accuracy.data[lengths.indexOf(length)];
      return `${percent(share)} of talks of ${length} words`;
    });
    return `${at.scheme} · head ${at.head} · query at position ${at.query}` +
      ` · right in ${rights.join(", ")}`;
  },

  draw(frame, at, available) {
    const { scores, trained, refusal } = frame;
    const head = scores.at(+at.head);
    const seq = head.shape[0];
    const query = +at.query;
    const nth = asked(frame, at);
    const beside = available >= 560;
    const share = beside ? available * 0.48 : available;
    const size = Math.max(4, Math.min(14, Math.floor(share / seq)));
    const wide = beside ? Math.min(420, available - seq * size - 22) : available;
    const byDistance = nth < 0
      ? panel(
        `no vector for position ${query}`,
        element(
          "p",
          { class: "note", style: `max-width: ${wide}px` },
          `ValueError: ${escapeHtml(refusal)}`,
        ),
        "scores",
      )
      : panel("how many places back “ann” stands", curve(head, query, trained, wide), "scores");
    const all = matrix({
      ...{ name: `scores ${at.head}`, tensor: head, size },
      paint: (_, r, c) => (c > r ? { kind: "future", strength: 0 } : {}),
      over: ({ box, frame }) =>
        path("band", frame(0, 0, trained, trained)) +
        (nth < 0 ? "" : path("hand", box(query, 0, 1, query + 1))),
    });
    return row(
      `Head ${at.head}: the score of a “?” with the name “ann”`,
      [byDistance, panel("row: position of “?”, column: of “ann”", all, "scores")],
      `Shaded and framed: the positions of training. ${whatCounts(head)}`,
    ) + (nth < 0 ? "" : questionIn(frame, nth, query, available)) + accuracies(frame, available);
  },

  describe({ name, r, c, value }, frame, at) {
    if (name === "accuracy") {
      return `Of 1,000 talks of ${frame.lengths[c]} words it is right in ${percent(value)}.`;
    }
    if (name.startsWith("weights")) {
      if (c > +at.query) return `Position ${c} comes after the question.`;
      const place = `“${frame.words[c]}” at position ${c}`;
      return `Head ${r}: the “?” at position ${at.query} gives ${place} the weight ` +
        `${number(value)}.`;
    }
    if (c > r) return `Position ${c} comes after position ${r}: the causal mask hides it.`;
    return `A “?” at position ${r} and “ann” at position ${c}, ${r - c} back: ` +
      `score ${number(value)}.`;
  },
});

// The scores of one query, by distance; dotted, where it stands elsewhere, those of the last place
// of training.
function curve({ shape: [seq], data }, query, trained, width) {
  const finite = Array.from(data).filter(Number.isFinite);
  const [low, high] = [Math.min(0, ...finite), Math.max(0, ...finite)];
  const chart = new Chart({
    ...{ width, height: 160, left: 36, right: 10, top: 12 },
    across: (distance) => distance / Math.max(1, seq - 1),
    up: (score) => (score - low) / (high - low || 1),
  });
  const line = (look, m) => chart.line(look, range(m + 1).map((d) => [d, data[m * seq + m - d]]));
  const last = trained - 1;
  const isElsewhere = query !== last;
  const every16 = range(Math.floor((seq - 1) / 16) + 1).map((i) => i * 16);
  const label = `Score by distance: ${number(data[query * seq + query])} at the position itself, ` +
    `${number(data[query * seq])} at ${query} places back`;
  const key = `line: “?” at position ${query}${isElsewhere ? `; dots: at position ${last}` : ""}`;
  return chart.svg(
    label,
    40,
    rect({}, chart.left, chart.top, chart.x(last) - chart.left, chart.height),
    chart.grid([0]),
    line("loss", query),
    isElsewhere && line("then", last),
    chart.below([...every16, seq - 1]),
    chart.beside([...new Set([low, high, 0])], (value) => number(value, 0)),
    text("start", chart.left, chart.bottom + 34, key),
  );
}

// A talk, its words shaded as the question looks at them, and the weights of every head.
function questionIn(frame, nth, query, available) {
  const { weights } = frame;
  const map = matrix({
    ...{ name: `weights ${nth}`, tensor: weights.at(nth), largest: 1 },
    rows: range(HEADS).map((i) => `head ${i}`),
    size: cellSize(available, weights.shape[2], ["head 0"], { most: 9, least: 4 }),
    high: 16,
  });
  return row("A talk, asked at this position: who spoke last?", [
    panel(answer(frame, nth), talk(frame, nth, query)),
    panel("the weights of each head, word by word; shaded above: their mean", map, "weights"),
  ]);
}

function answer({ shares, names, speakers }, nth) {
  const { data } = shares.at(nth);
  const best = argmax(data);
  const verdict = names[best] === speakers[nth]
    ? "That is right."
    : `Wrong: it was ${speakers[nth]}.`;
  return `The model says ${names[best]} (${number(data[best])}). ${verdict} ` +
    "Underlined: the last name.";
}

function talk({ words, weights, names }, nth, query) {
  const ofHeads = (place) => range(HEADS).map((head) => weights.at(nth).at(head).data[place]);
  const mean = range(query + 1).map((place) => sum(ofHeads(place)) / HEADS);
  const spoken = words.slice(0, query).concat("?");
  const last = spoken.findLastIndex((word) => names.includes(word));
  const spans = spoken.map((word, place) => {
    const look = { class: place === last && "last", style: `--w:${mean[place].toFixed(3)}` };
    const weight = mean[place] >= LEAST ? " " + element("small", {}, short(mean[place])) : "";
    return element("span", look, escapeHtml(word), weight);
  });
  return element("p", { class: "talk" }, spans.join(" "));
}

function accuracies({ accuracy, lengths }, available) {
  const caption = lengths.length > 1
    ? "columns: words of a talk"
    : "words of a talk; a longer one is refused";
  const map = matrix({
    ...{ name: "accuracy", tensor: accuracy, rows: ["share"], columns: lengths.map(String) },
    ...{ size: Math.min(48, Math.floor((available - 60) / 6)), high: 26, largest: 1 },
  });
  return row("Right in 1,000 talks of each length", [panel(caption, map)], "", true);
}
