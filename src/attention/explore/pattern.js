// A pattern by position. Above: which pairs of tokens meet, and which tiles must be computed for
// them. Below: whom the information of one token has reached after each layer.

import { explorer } from "./explorer.js";
import { path } from "./markup.js";
import { cellSize, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { range, sum } from "./tensor.js";

const LABELLED = 4; // every fourth token has its number
const BEYOND = { kind: "unread", strength: 0.2, text: "" };

const wholePercent = (part, whole) => `${Math.round((100 * part) / whole)} %`;
const inLayers = (count) => `${count} ${+count === 1 ? "layer" : "layers"}`;

export default explorer({
  status({ pattern, computed, blocks, reached }, at) {
    const seq = pattern.shape[0];
    const inTiles = computed.data[blocks.indexOf(+at.block)];
    const count = sum(reached.at(+at.token).at(+at.layers).data);
    return `${at.pattern}, ${at.width} · ${sum(pattern.data)} of ${seq * seq} pairs` +
      ` · in tiles of ${at.block}: ${inTiles} computed` +
      ` · token ${at.token} reaches ${count} of ${seq} in ${inLayers(at.layers)}`;
  },

  draw(frame, at, available) {
    const { pattern, reached, computed, blocks } = frame;
    const [seq] = pattern.shape;
    const [token, block] = [+at.token, +at.block];
    const labels = range(seq).map((i) => (i % LABELLED ? "" : String(i)));
    const ones = (value) => ({ text: "", strength: value });
    const map = matrix({
      ...{ name: "pattern", tensor: pattern, rows: labels, columns: labels, largest: 1 },
      size: cellSize(available, seq, ["00"], { most: 17, least: 9 }),
      paint: ones,
      over: ({ box, frame }) =>
        path("band", tilesOf(pattern, block).map(([r, c]) => frame(r, c, block, block))) +
        path("now", box(0, token, seq, 1)),
    });
    const layers = range(reached.shape[1]).map(inLayers);
    const cone = matrix({
      ...{ name: `reached ${token}`, tensor: reached.at(token), rows: layers, columns: labels },
      size: cellSize(available, seq, layers, { most: 24, least: 9 }),
      high: 20,
      largest: 1,
      paint: (value, r) => (r > +at.layers ? BEYOND : ones(value)),
    });
    const pairs = sum(pattern.data);
    const inTiles = computed.data[blocks.indexOf(block)];
    const more = inTiles === pairs
      ? "no more than the pattern"
      : `${inTiles - pairs} pairs are computed and then hidden`;
    const count = sum(reached.at(token).at(+at.layers).data);
    return (
      row(
        "Which pairs meet, and which tiles are computed for them",
        [panel(
          `row: query, column: key; framed: tiles of ${block} × ${block} that are computed; ` +
            `dashed: who sees token ${token}`,
          map,
        )],
        `The pattern keeps ${wholePercent(pairs, seq * seq)} of the pairs. ` +
          `Its tiles hold ${wholePercent(inTiles, seq * seq)}: ${more}.`,
      ) +
      row(
        `Tokens that the information of token ${token} has reached`,
        [panel("column: token", cone)],
        `After ${inLayers(at.layers)}: ${count} of ${seq} tokens.`,
      )
    );
  },

  describe({ name, r, c, value }, frame, at) {
    if (name === "pattern") {
      if (value) return `Query ${r} sees key ${c}.`;
      const isComputed = isTileSeen(frame.pattern, +at.block, r, c);
      return `Query ${r} does not see key ${c}${isComputed ? ", and its tile is computed" : ""}.`;
    }
    if (r > +at.layers) return `Layer ${r} is beyond the ${at.layers} chosen.`;
    const can = value ? "can have" : "cannot have";
    return `After ${inLayers(r)} token ${c} ${can} heard of token ${at.token}.`;
  },
});

// Whether any pair of the tile is seen in which this one lies.
function isTileSeen(pattern, block, r, c) {
  const [seq] = pattern.shape;
  const [top, left] = [r - (r % block), c - (c % block)];
  return range(block * block).some((i) =>
    pattern.data[(top + Math.floor(i / block)) * seq + left + (i % block)]
  );
}

// The first cells of the tiles that are computed.
function tilesOf(pattern, block) {
  const count = pattern.shape[0] / block;
  return range(count * count)
    .map((i) => [Math.floor(i / count) * block, (i % count) * block])
    .filter(([r, c]) => isTileSeen(pattern, block, r, c));
}
