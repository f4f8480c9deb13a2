// A pattern by position. Above: which pairs of tokens meet, and which tiles must be computed for them. Below: whom the information of one
// token has reached after each layer.

const percent = (part, whole) => `${Math.round((100 * part) / whole)} %`;
const total = ({ data }) => data.reduce((sum, one) => sum + one, 0);
const LABELLED = 4; // every fourth token has its number

export default explorer({
  status(frame, at) {
    const seq = frame.pattern.shape[0];
    const computed = frame.computed.data[frame.blocks.indexOf(+at.block)];
    const heard = total(frame.reached.at(+at.token).at(+at.layers));
    return `${at.pattern}, ${at.width} · ${total(frame.pattern)} of ${seq * seq} pairs · in tiles of ${at.block}: ${computed} computed · token ${at.token} reaches ${heard} of ${seq} in ${at.layers} ${+at.layers > 1 ? "layers" : "layer"}`;
  },

  draw(frame, at, room) {
    const { pattern, reached, computed, blocks } = frame;
    const [seq] = pattern.shape;
    const token = +at.token;
    const labels = range(seq).map((i) => (i % LABELLED ? "" : String(i)));
    const cell = cellSize(room, seq, ["00"], { most: 17, least: 9 });
    const ones = (value) => ({ text: "", strength: value });
    const map = matrix({ name: "pattern", tensor: pattern, rows: labels, columns: labels, size: cell, largest: 1, paint: ones });
    const layers = range(reached.shape[1]).map((i) => `${i} ${i === 1 ? "layer" : "layers"}`);
    const wide = cellSize(room, seq, layers, { most: 24, least: 9 });
    const cone = matrix({
      name: `reached ${token}`,
      tensor: reached.at(token),
      rows: layers,
      columns: labels,
      size: wide,
      high: 20,
      largest: 1,
      paint: (value, r) => (r > +at.layers ? { kind: "unread", strength: 0.2, text: "" } : ones(value)),
    });
    const pairs = total(pattern);
    const inTiles = computed.data[blocks.indexOf(+at.block)];
    const heard = total(reached.at(token).at(+at.layers));
    return (
      row(
        "Which pairs meet, and which tiles are computed for them",
        [panel(`row: query, column: key; framed: tiles of ${at.block} × ${at.block} that are computed; dashed: who sees token ${token}`, framed(map, pattern, +at.block, token, cell))],
        `The pattern keeps ${percent(pairs, seq * seq)} of the pairs. Its tiles hold ${percent(inTiles, seq * seq)}: ${inTiles === pairs ? "no more than the pattern" : `${inTiles - pairs} pairs are computed and then hidden`}.`,
      ) +
      row(`Whom the information of token ${token} has reached`, [panel("column: token", cone)], `After ${at.layers} ${+at.layers > 1 ? "layers" : "layer"}: ${heard} of ${seq} tokens.`)
    );
  },

  describe({ name, r, c, value }, frame, at) {
    if (name === "pattern") return value ? `Query ${r} sees key ${c}.` : `Query ${r} does not see key ${c}${isComputed(frame.pattern, +at.block, r, c) ? ", and its tile is computed" : ""}.`;
    if (r > +at.layers) return `Layer ${r} is beyond the ${at.layers} chosen.`;
    return `After ${r} ${r === 1 ? "layer" : "layers"} token ${c} ${value ? "can have" : "cannot have"} heard of token ${at.token}.`;
  },
});

// Whether any pair of the tile is seen in which this one lies.
function isComputed(pattern, block, r, c) {
  const [seq] = pattern.shape;
  const [top, left] = [r - (r % block), c - (c % block)];
  return range(block * block).some((i) => pattern.data[(top + Math.floor(i / block)) * seq + left + (i % block)]);
}

// The map with a frame around every tile that is computed, and one around the column of the token.
function framed(svg, pattern, block, token, cell) {
  const [seq] = pattern.shape;
  const side = block * cell;
  const count = seq / block;
  const tiles = range(count * count).map((i) => [Math.floor(i / count), i % count]).filter(([r, c]) => isComputed(pattern, block, r * block, c * block));
  const frames = tiles.map(([r, c]) => `M${c * side - 0.5} ${r * side - 0.5}h${side}v${side}h${-side}z`);
  const column = `<path class="now" fill="none" d="M${token * cell} 0v${seq * cell - 1}h${cell - 1}v${1 - seq * cell}z"/>`;
  return svg.replace('<path class="outline"/>', (last) => `<path class="band" d="${frames.join("")}"/>${column}${last}`);
}
