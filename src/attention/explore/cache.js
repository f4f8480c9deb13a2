// What a decoder keeps of the signs that it has read: which heads of queries share a row, the rows
// themselves, the bytes, and what the model writes with them.

import { explorer } from "./explorer.js";
import { number, thousands } from "./format.js";
import { path, rect, svg, text } from "./markup.js";
import { cellSize, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { range } from "./tensor.js";

const QUERY_HEADS = 4;
const D_KEY = 12;
const BYTES = 4; // of a float32

const isLatent = ({ attention }) => attention.startsWith("latent");
const perToken = ({ kept }) => kept.shape[1] * kept.shape[2];

export default explorer({
  status(frame, at) {
    const used = BYTES * perToken(frame) * at.length;
    return `${at.attention} · length ${at.length} · ${perToken(frame)} numbers for each sign` +
      ` · ${thousands(used)} bytes (reserved for all eleven: ${thousands(frame.nbytes)})`;
  },

  draw(frame, at, available) {
    const length = +at.length;
    const rows = frame.kept.shape[1];
    const latent = isLatent(at);
    const share = latent
      ? "all read the latent row, each in its own way"
      : "a head of keys comes with its head of values";
    const signs = length === 1 ? "one sign" : `${length} signs`;
    const each = latent
      ? "a latent row each"
      : rows === 1
      ? "one row each, of the one head of keys and values"
      : `${rows} rows each, one for each head of keys and values`;
    return (
      row("Which heads of queries read which rows", [panel(share, heads(rows, latent))]) +
      row(`Kept of ${signs}: ${each}`, keptOf(frame, at, available)) +
      row("Bytes kept, beside those of multi-head attention", [
        panel(
          `${BYTES} bytes a number; the frame is what multi-head attention would hold`,
          bytes(frame, length, Math.min(available, 460)),
        ),
      ]) +
      row(
        `What step ${length} gives to each sign, and what it writes`,
        [
          panel("the weights of the four heads of queries", given(frame, at, available), "weights"),
          panel("written so far; struck: wrong", written(frame, length)),
        ],
        verdict(frame, length),
      )
    );
  },

  describe({ name, r, c, value }, { read, signs }, at) {
    const [tensor, nth] = name.split(" ");
    const sign = +nth + 1;
    if (tensor === "weights") {
      if (c > +nth) return `“${read[c]}” is not read yet at step ${sign}.`;
      return `Step ${sign} writes “${signs[nth]}”: head ${r} gives “${read[c]}”, ` +
        `sign ${c + 1}, the weight ${number(value)}.`;
    }
    const place = isLatent(at)
      ? `number ${c} of its latent row`
      : `number ${c % D_KEY} of its ${c < D_KEY ? "key" : "value"} in head ${r}`;
    return `Sign ${sign}, “${read[nth]}”: ${place} is ${number(value)}.`;
  },
});

// Query heads above, what they read below, a line for each pair.
function heads(rows, latent) {
  const [pitch, high, gap, left] = [77, 26, 34, 2];
  const wide = pitch * QUERY_HEADS - 4;
  const box = (x, y, width, label) =>
    rect("found", x + 0.5, y + 0.5, width - 1, high - 1, { rx: 3 }) +
    text("column", x + width / 2, y + 17, label);
  const group = QUERY_HEADS / rows;
  const lower = range(rows).map((i) => {
    const label = latent ? "latent row" : `key head ${i}`;
    return box(left + i * group * pitch, high + gap, group * pitch - 8, label);
  });
  const queries = range(QUERY_HEADS);
  const upper = queries.map((i) => box(left + i * pitch, 0, pitch - 8, `query ${i}`));
  const lines = queries.map((i) => `M${left + i * pitch + (pitch - 8) / 2} ${high}v${gap}`);
  const served = range(rows).map((i) => {
    const group0 = i * group;
    return `Key head ${i} serves query heads ${range(group).map((j) => group0 + j).join(", ")}.`;
  });
  const label = latent ? "Four heads of queries read one latent row." : served.join(" ");
  return svg(
    { class: "written", width: wide, height: 2 * high + gap + 1, label },
    path("now", lines),
    lower,
    upper,
  );
}

// The rows of every sign that was read.
function keptOf({ kept, read }, at, available) {
  const [, rows, numbers] = kept.shape;
  const across = available >= 560 ? 4 : 2;
  const share = (available - 18 * (across - 1)) / across;
  const bands = [
    { from: 0, to: D_KEY, text: "key" },
    { from: D_KEY, to: numbers, text: "value" },
  ];
  const look = {
    rows: isLatent(at) ? [] : range(rows).map(String),
    size: Math.max(4, Math.min(7, Math.floor(share / (2 * D_KEY + 3)))),
    high: 12,
    largest: kept.largest,
    bands: !isLatent(at) && numbers === 2 * D_KEY ? bands : [],
  };
  return range(+at.length).map((i) =>
    panel(`${i + 1}: “${read[i]}”`, matrix({ ...look, name: `kept ${i}`, tensor: kept.at(i) }))
  );
}

// The bytes in use, in a frame of those that multi-head attention would have in use.
function bytes(frame, length, width) {
  const each = BYTES * 2 * QUERY_HEADS * D_KEY;
  const scale = (width - 2) / (each * frame.kept.shape[0]);
  const used = BYTES * perToken(frame) * length;
  const all = each * length;
  const share = number((100 * used) / all, 1);
  const label = `${thousands(used)} bytes; multi-head ${thousands(all)}: ${share} %`;
  return svg(
    { class: "written", width, height: 46, label },
    rect({ fill: "var(--plus)", "fill-opacity": 0.5 }, 1, 1, used * scale, 20),
    rect("here", 1, 1, all * scale, 20),
    text("start", 1, 38, label),
  );
}

// The weights of the chosen step.
function given({ weights, read }, at, available) {
  const nth = +at.length - 1;
  return matrix({
    ...{ name: `weights ${nth}`, tensor: weights.at(nth), largest: 1 },
    rows: range(QUERY_HEADS).map((i) => `head ${i}`),
    columns: read.map((sign, i) => (i <= nth ? sign.slice(0, 2) : "")),
    size: cellSize(available, read.length, ["head 0"], { most: 30 }),
    high: 22,
  });
}

function written({ signs, right }, length) {
  const pitch = 24;
  const marks = range(length).map((i) => {
    const x = 14 + i * pitch + (signs[i].length > 1 ? 10 : 0);
    const isWrong = signs[i] !== right[i];
    return [
      text("letter", x, 19, signs[i].slice(0, 3)),
      isWrong && path({ class: "wrong", fill: "none" }, `M${x - 9} 22L${x + 9} 6`),
    ];
  });
  const label = `Written: ${signs.slice(0, length).join(" ")}`;
  const width = 36 + signs.length * pitch;
  return svg({ class: "written", width, height: 28, label }, marks);
}

function verdict({ signs, right }, length) {
  const first = signs.findIndex((sign, i) => sign !== right[i]);
  if (first < 0) return "All that it writes is right.";
  return first < length ? `The right date is ${right.slice(0, -1).join("")}.` : "Right so far.";
}
