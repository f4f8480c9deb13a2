// Which tokens share a bucket, round by round; the sorted tokens in their chunks; the weights of
// all pairs with those that are left out; and how often a pair meets, by its angle.

import { Chart } from "./chart.js";
import { explorer } from "./explorer.js";
import { number } from "./format.js";
import { path, svg, tenth, text } from "./markup.js";
import { cellSize, labelWidth, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { range, sum } from "./tensor.js";

const nth = (options, value) => options.indexOf(+value);
const ANGLES = range(7).map((i) => 15 * i);
const ROUNDS = [1, 2, 4];
const CHUNKS = [4, 8, 16];
const UNSEEN = { kind: "unread", strength: 0.2, text: "" };

// Of the setting in hand: the buckets and the order of each round, and whether a query sees a key.
function setting({ buckets, order, query, key }, at) {
  const angle = nth(ANGLES, parseInt(at.angle));
  const draw = at.draw - 1;
  const rounds = range(+at.rounds).map((r) => {
    const bucket = buckets.at(angle).at(draw).at(r).data;
    const sorted = order.at(angle).at(draw).at(r).data;
    const chunk = [];
    sorted.forEach((token, rank) => (chunk[token] = Math.floor(rank / at.chunk)));
    return { bucket, sorted, chunk };
  });
  // The same bucket, and the query's own chunk or the one before it.
  const sees = (i, j) =>
    rounds.some(({ bucket, chunk }) =>
      bucket[i] === bucket[j] && (chunk[i] === chunk[j] || chunk[i] === chunk[j] + 1)
    );
  const together = rounds.filter(({ bucket }) => bucket[query] === bucket[key]).length;
  return { angle, draw, rounds, sees, together };
}

const nameOf = ({ query, key }, token) =>
  token === query ? "Q" : token === key ? "K" : String(token);

function pairsOf({ sees }, seq) {
  const seen = (i) => range(seq).filter((j) => i !== j && sees(i, j)).length;
  return sum(range(seq).map(seen));
}

function shareKept({ kept }, at, { angle, draw }) {
  return kept.at(angle).at(draw).at(nth(ROUNDS, at.rounds)).data[nth(CHUNKS, at.chunk)];
}

export default explorer({
  status(frame, at) {
    const of = setting(frame, at);
    const seq = frame.weights.shape[1];
    return `angle ${at.angle} · n_buckets ${at.n_buckets} · rounds ${at.rounds}` +
      ` · chunk ${at.chunk} · draw ${at.draw}` +
      ` · Q and K share a bucket in ${of.together} of ${at.rounds}` +
      ` · Q keeps ${number(shareKept(frame, at, of))} of its weight` +
      ` · ${pairsOf(of, seq)} of ${seq * (seq - 1)} pairs`;
  },

  draw(frame, at, available) {
    const { weights, order, query, key } = frame;
    const of = setting(frame, at);
    const seq = weights.shape[1];
    const labels = range(seq).map((token) => nameOf(frame, token));
    const across = available >= 600 ? 4 : 2;
    const wide = Math.min(176, Math.floor((available - 18 * (across - 1)) / across));
    const cell = Math.min(30, Math.floor((available - labelWidth(["9"]) - 2) / seq));
    const circles = of.rounds.map(({ bucket }, r) => {
      const where = bucket[query] === bucket[key] ? "together" : "apart";
      return panel(`round ${r + 1}: ${where}`, circle(frame, at, of, r, wide));
    });
    const strips = of.rounds.map(({ bucket, sorted }, r) => {
      const borders = bordersOf(bucket, sorted);
      return matrix({
        ...{ name: `order ${of.angle} ${of.draw} ${r}`, rows: [String(r + 1)] },
        tensor: order.at(of.angle).at(of.draw).at(r),
        ...{ size: cell, high: 24 },
        // Neighbouring buckets differ in shade.
        paint: (token, _, c) => {
          const strength = borders.filter((border) => border <= c).length % 2 ? 0.5 : 0.15;
          return { kind: "plain", strength, text: nameOf(frame, token) };
        },
        over: () => cuts(seq, at.chunk, cell, borders),
      });
    });
    const share = available >= 760 ? available - 360 : available;
    const map = matrix({
      ...{ name: `weights ${of.angle}`, tensor: weights.at(of.angle), largest: 1 },
      ...{ rows: labels, columns: labels },
      size: cellSize(share, seq, labels, { most: 25, least: 12 }),
      paint: (_, r, c) => {
        if (r === c) return { kind: "struck", strength: 0, text: "" };
        return of.sees(r, c) ? {} : UNSEEN;
      },
      over: ({ box }) => path("hand", box(query, 0, 1, seq)),
    });
    const lost = 1 - shareKept(frame, at, of);
    return (
      row(
        "Directions and their buckets",
        circles,
        "Thick line: the query Q. Thin: its key K. Shaded: the bucket of Q. Full dots: the other " +
          "tokens in it.",
      ) +
      row(
        "Sorted by bucket and cut into chunks",
        [panel(
          "a line for each round; thick: between chunks, thin: between buckets",
          strips.join(""),
        )],
        "A token sees its own bucket, in its chunk and in the one before.",
      ) +
      row(
        "The pairs that are computed",
        [
          panel(
            "weights over all pairs; row: query, column: key; dotted: left out",
            map,
            "weights",
          ),
          panel(
            "in what share of 1,000 draws such a pair meets, by angle",
            curve(frame, at, Math.min(available, 330)),
          ),
        ],
        lost < 0.005 ? "Q keeps all of its weight." : `Q loses ${number(lost)} of its weight.`,
      )
    );
  },

  describe({ name, r, c, value }, frame, at) {
    const of = setting(frame, at);
    const called = (token) => nameOf(frame, token);
    if (name.startsWith("order")) {
      const { bucket, chunk } = of.rounds[+name.split(" ")[3]];
      return `Token ${called(value)}: bucket ${bucket[value]}, chunk ${chunk[value]}.`;
    }
    if (r === c) return "A token does not attend to itself, unless it sees no other.";
    const pair = of.sees(r, c) ? "This pair is computed." : "This pair is left out.";
    return `Query ${called(r)}, key ${called(c)}: weight ${number(value)} over all pairs. ${pair}`;
  },
});

// Which places of the sorted tokens begin another bucket.
function bordersOf(bucket, sorted) {
  return range(sorted.length).filter((i) => i && bucket[sorted[i - 1]] !== bucket[sorted[i]]);
}

// Between the buckets and between the chunks of a row of sorted tokens.
function cuts(seq, chunk, cell, borders) {
  const chunks = range(Math.ceil(seq / chunk) + 1).map((i) => Math.min(seq, i * chunk));
  return path("band", borders.map((i) => `M${i * cell - 0.5} 0v23`)) +
    path("hand", chunks.map((i) => `M${i * cell - 0.5} -1v25`));
}

function onCircle(degrees, radius, middle) {
  const turn = (degrees * Math.PI) / 180;
  return [middle + radius * Math.cos(turn), middle - radius * Math.sin(turn)].map(tenth);
}

// One round: the borders of the buckets, that of the query shaded, and where the tokens point.
function circle({ circle, places, query, key }, at, { angle, draw, rounds }, r, wide) {
  const of = circle.at(draw).at(r).data;
  const { bucket } = rounds[r];
  const degrees = places.at(angle).data;
  const step = 360 / of.length;
  const [middle, radius] = [wide / 2, wide / 2 - 17];
  const center = `M${middle} ${middle}`;
  const rim = (i) => `L${onCircle((i + 0.5) * step, radius, middle)}`;
  const slices = range(of.length)
    .filter((i) => of[i] === bucket[query])
    .map((i) => `${center}${rim(i - 1)}${rim(i)}z`);
  const borders = range(of.length)
    .filter((i) => of[i] !== of[(i + 1) % of.length])
    .map((i) => center + rim(i));
  const ring = (x, y, radius) =>
    `M${x - radius} ${y}a${radius} ${radius} 0 1 0 ${2 * radius} 0` +
    `a${radius} ${radius} 0 1 0 ${-2 * radius} 0`;
  const dots = range(degrees.length)
    .filter((token) => token !== query && token !== key)
    .map((token) => {
      const [x, y] = onCircle(degrees[token], radius, middle);
      return path(bucket[token] === bucket[query] ? "plus" : "edge", ring(x, y, 4));
    });
  const arm = (look, direction, label) => {
    const [x, y] = onCircle(direction, radius + 9, middle);
    const end = onCircle(direction, radius - 2, middle);
    return path(look, `${center}L${end}`) + text({}, x, +y + 4, label);
  };
  // At 0 degrees both letters stand in one place.
  const arms = angle
    ? arm("loss", degrees[key], "K") + arm("hand", degrees[query], "Q")
    : path("hand", `${center}L${onCircle(90, radius - 2, middle)}`) + text({}, middle, 12, "Q K");
  const shared = bucket[query] === bucket[key] ? "share a bucket" : "lie in two buckets";
  const label = `Round ${r + 1}: Q and K, ${at.angle} apart, ${shared}`;
  return svg(
    { class: "written", width: wide, height: wide, label },
    path({ class: "plus", "fill-opacity": 0.22 }, slices),
    path("band", ring(middle, middle, radius), borders),
    dots,
    arms,
  );
}

// How often a pair meets: a line for the rounds in hand, dots for one round.
function curve({ chance, curve: angles }, at, width) {
  const chart = new Chart({
    ...{ width, height: 150, left: 34, right: 12, top: 12 },
    across: (degrees) => degrees / 90,
    up: (share) => share,
  });
  const [once, some] = [0, nth(ROUNDS, at.rounds)].map((i) => chance.at(i).data);
  const line = (look, data) => chart.line(look, angles.map((angle, i) => [angle, data[i]]));
  const here = parseInt(at.angle);
  const valueOf = (data) => data[angles.indexOf(here)];
  const one = ["then", `1 round: ${number(valueOf(once))}`];
  const more = ["loss", `${at.rounds} rounds: ${number(valueOf(some))}`];
  const isMore = +at.rounds > 1;
  const legend = chart.legend(isMore ? [more, one] : [["loss", one[1]]], chart.left);
  return chart.svg(
    `At ${here} degrees a pair meets in ${number(valueOf(once))} of the draws in one round, ` +
      `in ${number(valueOf(some))} in one of ${at.rounds}`,
    46 + legend.height,
    chart.grid([0, 0.5, 1]),
    line("loss", some),
    isMore && line("then", once),
    (isMore ? [some, once] : [once]).map((data) => chart.dot(here, valueOf(data))),
    chart.below([0, 30, 60, 90], (degrees) => `${degrees}°`),
    chart.beside([0, 0.5, 1]),
    legend.parts,
  );
}
