// What a decoder keeps of the signs that it has read: which heads of queries share a row, the rows themselves, the bytes, and what the
// model writes with them.

const QUERY_HEADS = 4;
const D_KEY = 12;
const BYTES = 4; // of a float32
const thousands = new Intl.NumberFormat("en-GB");

const isLatent = ({ attention }) => attention.startsWith("latent");
const perToken = ({ kept }) => kept.shape[1] * kept.shape[2];
const wrong = ({ signs, right }) => signs.findIndex((sign, i) => sign !== right[i]);

export default explorer({
  status(frame, at) {
    const held = BYTES * perToken(frame) * at.length;
    return `${at.attention} · length ${at.length} · ${perToken(frame)} numbers for each sign · ${thousands.format(held)} bytes (reserved for all eleven: ${thousands.format(frame.nbytes)})`;
  },

  draw(frame, at, room) {
    const { kept, weights, read, signs, right } = frame;
    const length = +at.length;
    const rows = kept.shape[1];
    const numbers = kept.shape[2];
    const named = isLatent(at) ? [] : range(rows).map(String);
    const across = room >= 560 ? 4 : 2;
    const size = Math.max(4, Math.min(7, Math.floor((room - 18 * (across - 1)) / across / (24 + 3))));
    const bands = isLatent(at)
      ? []
      : [
          { from: 0, to: D_KEY, text: "key" },
          { from: D_KEY, to: numbers, text: "value" },
        ];
    const blocks = range(length).map((i) =>
      panel(`${i + 1}: “${read[i]}”`, matrix({ name: `kept ${i}`, tensor: kept.at(i), rows: named, size, high: 12, largest: kept.largest, bands: numbers === 2 * D_KEY ? bands : [] })),
    );
    const first = wrong(frame);
    return (
      row("Which heads of queries read which rows", [panel(isLatent(at) ? "all read the latent row, each in its own way" : "a head of keys comes with its head of values", heads(rows, isLatent(at)))]) +
      row(
        `Kept of ${length === 1 ? "one sign" : `${length} signs`}: ${isLatent(at) ? "a latent row each" : rows === 1 ? "one row each, of the one head of keys and values" : `${rows} rows each, one for each head of keys and values`}`,
        blocks,
      ) +
      row("As many bytes as multi-head attention?", [panel(`${BYTES} bytes a number; the frame is what multi-head attention would hold`, bar(frame, length, Math.min(room, 460)))]) +
      row(
        `What step ${length} gives to each sign, and what it writes`,
        [
          panel("the weights of the four heads of queries", matrix({ name: `weights ${length - 1}`, tensor: weights.at(length - 1), rows: range(QUERY_HEADS).map((i) => `head ${i}`), columns: read.map((sign, i) => (i < length ? sign.slice(0, 2) : "")), size: cellSize(room, read.length, ["head 0"], { most: 30 }), high: 22, largest: 1 }), "weights"),
          panel("written so far; struck: wrong", written(frame, length)),
        ],
        first < 0 || first >= length ? (first < 0 ? "All that it writes is right." : "Right so far.") : `The right date is ${right.slice(0, -1).join("")}.`,
      )
    );
  },

  describe({ name, r, c, value }, { read, signs }, at) {
    const [of, i] = name.split(" ");
    if (of === "weights") return c > +i ? `“${read[c]}” is not read yet at step ${+i + 1}.` : `Step ${+i + 1} writes “${signs[i]}”: head ${r} gives “${read[c]}”, sign ${c + 1}, the weight ${number(value)}.`;
    if (isLatent(at)) return `Sign ${+i + 1}, “${read[i]}”: number ${c} of its latent row is ${number(value)}.`;
    return `Sign ${+i + 1}, “${read[i]}”: number ${c % D_KEY} of its ${c < D_KEY ? "key" : "value"} in head ${r} is ${number(value)}.`;
  },
});

// Query heads above, what they read below, a line for each pair.
function heads(rows, latent) {
  const [pitch, high, gap, left] = [77, 26, 34, 2];
  const wide = pitch * QUERY_HEADS - 8;
  const box = (x, y, width, text) => `<rect class="found" x="${x + 0.5}" y="${y + 0.5}" width="${width - 1}" height="${high - 1}" rx="3"/><text class="column" x="${x + width / 2}" y="${y + 17}">${escape(text)}</text>`;
  const group = QUERY_HEADS / rows;
  const lower = range(rows).map((i) => box(left + i * group * pitch, high + gap, group * pitch - 8, latent ? "latent row" : `key head ${i}`));
  const upper = range(QUERY_HEADS).map((i) => box(left + i * pitch, 0, pitch - 8, `query ${i}`));
  const lines = range(QUERY_HEADS).map((i) => `M${left + i * pitch + (pitch - 8) / 2} ${high}v${gap}`).join("");
  const label = latent ? "Four heads of queries read one latent row." : range(rows).map((i) => `Key head ${i} serves query heads ${range(group).map((j) => i * group + j).join(", ")}.`).join(" ");
  return `<svg class="written" width="${wide + 4}" height="${2 * high + gap + 1}" viewBox="0 0 ${wide + 4} ${2 * high + gap + 1}" role="img" aria-label="${escape(label)}"><path class="now" d="${lines}"/>${lower.join("")}${upper.join("")}</svg>`;
}

// The bytes in use, in a frame of those that multi-head attention would have in use.
function bar(frame, length, room) {
  const all = BYTES * 2 * QUERY_HEADS * D_KEY;
  const longest = all * frame.kept.shape[0];
  const scale = (room - 2) / longest;
  const held = BYTES * perToken(frame) * length;
  const text = `${thousands.format(held)} bytes; multi-head ${thousands.format(all * length)}: ${number((100 * held) / (all * length), 1)} %`;
  return `<svg class="written" width="${room}" height="46" viewBox="0 0 ${room} 46" role="img" aria-label="${escape(text)}"><rect x="1" y="1" width="${held * scale}" height="20" fill="var(--plus)" fill-opacity="0.5"/><rect class="here" x="1" y="1" width="${all * length * scale}" height="20"/><text class="start" x="1" y="38">${escape(text)}</text></svg>`;
}

function written({ signs, right }, length) {
  const pitch = 24;
  const marks = range(length).map((i) => {
    const x = 14 + i * pitch + (signs[i].length > 1 ? 10 : 0);
    const struck = signs[i] === right[i] ? "" : `<path class="wrong" fill="none" d="M${x - 9} 22L${x + 9} 6"/>`;
    return `<text class="letter" x="${x}" y="19">${escape(signs[i].slice(0, 3))}</text>${struck}`;
  });
  const width = 36 + signs.length * pitch;
  return `<svg class="written" width="${width}" height="28" viewBox="0 0 ${width} 28" role="img" aria-label="Written: ${escape(signs.slice(0, length).join(" "))}">${marks.join("")}</svg>`;
}
