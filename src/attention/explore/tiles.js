// A softmax in tiles. Above the scores, as far as they were read: queries in the outer loop, keys
// in the inner one. Below what one query holds after every tile of keys: maximum, factor, sum, its
// output so far, and how far that is from the end result.

import { explorer } from "./explorer.js";
import { number } from "./format.js";
import { path } from "./markup.js";
import { cellSize, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { range, sum } from "./tensor.js";

const STATE = ["max", "factor", "sum"];
const UNREAD = { kind: "unread", strength: 0.2, text: "" };
const PLAIN = { kind: "plain", strength: 0.05 }; // three kinds of numbers: no scale of colour fits

// Which tile of keys is in hand, of how many, and the last of them that the query's tile reads.
function inHand({ reads }, at) {
  const [seq, count] = reads.shape;
  const size = seq / count;
  const [row, column] = [Math.floor(+at.query / size), Math.floor(+at.key / size)];
  const seen = reads.at(+at.query).data.filter((read) => read).length;
  const skipped = column >= seen;
  return { seq, count, size, row, column, skipped, after: Math.min(column, seen - 1), seen };
}

const keysOf = (nth, size) =>
  size > 1 ? `keys ${nth * size}–${nth * size + size - 1}` : `key ${nth}`;

export default explorer({
  status(frame, at) {
    const { count, size, skipped, after } = inHand(frame, at);
    const read = sum(frame.reads.data) / size;
    const scores = `${size * size} ${size > 1 ? "scores" : "score"}`;
    const tiles = `${count * count} ${count > 1 ? "tiles" : "tile"} of ${scores}`;
    const error = frame.errors.at(+at.query).data[after];
    return `tile ${size} · ${tiles}, ${read} read when all is done` +
      ` · query ${at.query}, key ${at.key}${skipped ? ": skipped" : ""}` +
      ` · largest difference ${number(error)}`;
  },

  draw(frame, at, available) {
    const { words, scores } = frame;
    const hand = inHand(frame, at);
    const query = +at.query;
    const labels = words.map((word, i) => `${word} ${i}`);
    const map = matrix({
      ...{ name: "scores", tensor: scores, rows: labels, columns: labels },
      size: cellSize(available, hand.seq, labels, { most: 34, least: 18 }),
      ...tiled(frame, at, hand),
    });
    return (
      row(
        "The scores, as far as they were read",
        [panel(
          "row: query, column: key; framed: the tile in hand; dotted: not read yet; " +
            "struck through: hidden",
          map,
          "scores",
        )],
        weightOf(frame, at, hand),
      ) +
      row(
        `What query ${query}, “${words[query]}”, holds after each tile`,
        statesOf(frame, query, hand, available),
        skips(hand),
      )
    );
  },

  describe({ name, r, c, value }, frame, at) {
    const { words, outputs } = frame;
    const { size } = inHand(frame, at);
    if (name === "scores") {
      if (value === -Infinity) return `Key ${c} lies in the future of query ${r}.`;
      const pair = `Query ${r}, “${words[r]}”, and key ${c}, “${words[c]}”`;
      return `${pair}: score ${number(value)}.`;
    }
    const after = `After ${keysOf(r, size)}`;
    if (name.startsWith("states")) {
      const state = [
        "the largest score so far is",
        "the sums before were multiplied by",
        "the weights, relative to the largest, sum to",
      ][c];
      return `${after}: ${state} ${number(value)}.`;
    }
    if (name.startsWith("errors")) {
      return `${after} the output differs from the end result by ${number(value)} at most, ` +
        `in any of its ${outputs.shape[2]} numbers.`;
    }
    const rows = outputs.at(+at.query);
    const last = number(rows.at(rows.shape[0] - 1).data[c]);
    return `${after} component ${c} of the output is ${number(value)}; in the end it is ${last}.`;
  },
});

// How the scores are painted, and over them the borders of the tiles, a stroke through those that
// are skipped, the tile in hand, and the score in hand. A tile is not reached yet, read, or
// skipped.
function tiled({ reads }, at, { count, size, row, column }) {
  const isReached = (r, c) => r < row || (r === row && c <= column);
  const isRead = (r, c) => isReached(r, c) && reads.at(r * size).data[c] === 1;
  const tiles = range(count * count).map((i) => [Math.floor(i / count), i % count]);
  const skipped = tiles.filter(([r, c]) => isReached(r, c) && !isRead(r, c));
  return {
    paint: (value, r, c) => {
      const tile = [Math.floor(r / size), Math.floor(c / size)];
      if (!isReached(...tile)) return UNREAD;
      if (value !== -Infinity) return {};
      return { kind: isRead(...tile) ? "struck" : "skipped", strength: 0, text: "" };
    },
    over: ({ box, frame, size: cell }) => {
      const side = size * cell;
      const struck = skipped.map(([r, c]) =>
        `M${c * side} ${(r + 1) * side - 1}l${side - 1} ${1 - side}`
      );
      const [x, y] = [at.key * cell + 2, at.query * cell + 2];
      return path("strike", struck) +
        path("band", tiles.map(([r, c]) => frame(r * size, c * size, size, size))) +
        path("hand", box(row * size, column * size, size, size)) +
        path("now", `M${x} ${y}h${cell - 5}v${cell - 5}h${5 - cell}z`);
    },
  };
}

// What a query holds after each tile: what is not reached yet is dotted, and the last line that was
// reached is framed.
function statesOf({ states, outputs, errors }, query, { count, size, after }, available) {
  const named = range(count).map((nth) => keysOf(nth, size));
  const beside = available >= 600 ? [] : named;
  const numbers = outputs.shape[2];
  const lines = (name, tensor, look, painted) => {
    const paint = (_, r) => (r > after ? UNREAD : painted);
    const over = ({ box }) => path("now", box(after, 0, 1, tensor.shape[2]));
    const one = { name: `${name} ${query}`, tensor: tensor.at(query) };
    return matrix({ ...one, high: 22, rows: beside, paint, over, ...look });
  };
  return [
    panel(
      "largest score, correction, sum",
      lines("states", states, { rows: named, columns: STATE, size: 52 }, PLAIN),
    ),
    panel(
      "its output so far",
      lines("outputs", outputs, {
        columns: range(numbers).map(String),
        size: cellSize(available, numbers, beside, { most: 33 }),
        largest: outputs.largest,
      }, {}),
      "output",
    ),
    panel(
      "difference from the end",
      lines("errors", errors, { columns: ["largest"], size: 52, largest: errors.largest }, {}),
    ),
  ];
}

function skips({ seen, count, size, seq }) {
  if (seen >= count) return "";
  const keys = seen < count - 1 || size > 1
    ? `keys ${seen * size} to ${seq - 1}: they lie`
    : `key ${seq - 1}: it lies`;
  return `Its tile of queries skips ${keys} in its future.`;
}

// What the score in hand weighs among those read so far, and among all.
function weightOf({ words, scores, states }, at, { skipped, after, count }) {
  const score = scores.at(+at.query).data[+at.key];
  const name = `Key ${at.key}, “${words[+at.key]}”`;
  if (skipped) return `${name}, lies in a tile that is skipped.`;
  if (score === -Infinity) {
    return `${name}, lies in the future of query ${at.query}: its weight is 0.`;
  }
  const weight = (nth) => {
    const [maximum, , total] = states.at(+at.query).at(nth).data;
    return number(Math.exp(score - maximum) / total);
  };
  return `${name}, for query ${at.query}: ${weight(after)} of the weight read so far, ` +
    `${weight(count - 1)} in the end.`;
}
