// A softmax in tiles. Above the scores, as far as they were read: queries in the outer loop, keys in the inner one. Below what one query
// holds after every tile of keys: maximum, factor, sum, its output so far, and how far that is from the end result.

const STATE = ["max", "factor", "sum"];
const UNREAD = { kind: "unread", strength: 0.2, text: "" };
const PLAIN = { kind: "plain", strength: 0.05 }; // three numbers of different kinds: no scale of colour fits them

// Which tile of keys is in hand, of how many, and the last of them that the query's tile reads.
function hand({ reads }, at) {
  const [seq, count] = reads.shape;
  const size = seq / count;
  const [row, column] = [Math.floor(+at.query / size), Math.floor(+at.key / size)];
  const seen = reads.at(+at.query).data.filter((read) => read).length;
  return { seq, count, size, row, column, skipped: column >= seen, after: Math.min(column, seen - 1), seen };
}

const keysOf = (nth, size) => (size > 1 ? `keys ${nth * size}–${nth * size + size - 1}` : `key ${nth}`);

export default explorer({
  status(frame, at) {
    const { count, size, skipped, after } = hand(frame, at);
    const read = frame.reads.data.reduce((sum, one) => sum + one, 0) / size;
    const tiles = `${count * count} ${count > 1 ? "tiles" : "tile"} of ${size * size} ${size > 1 ? "scores" : "score"}`;
    const error = frame.errors.at(+at.query).data[after];
    return `tile ${size} · ${tiles}, ${read} read in all · query ${at.query}, key ${at.key}${skipped ? ": skipped" : ""} · largest difference ${number(error)}`;
  },

  draw(frame, at, room) {
    const { words, scores, states, outputs, errors, reads } = frame;
    const { seq, count, size, row: top, column, skipped, after, seen } = hand(frame, at);
    const query = +at.query;
    const labels = words.map((word, i) => `${word} ${i}`);
    const cell = cellSize(room, seq, labels, { most: 34, least: 18 });
    // A tile is not reached yet, read, or skipped.
    const isReached = (r, c) => r < top || (r === top && c <= column);
    const isRead = (r, c) => isReached(r, c) && reads.at(r * size).data[c] === 1;
    const skips = range(count * count).map((i) => [Math.floor(i / count), i % count]).filter(([r, c]) => isReached(r, c) && !isRead(r, c));
    const map = matrix({
      name: "scores",
      tensor: scores,
      rows: labels,
      columns: labels,
      size: cell,
      paint: (value, r, c) => {
        const of = [Math.floor(r / size), Math.floor(c / size)];
        if (!isReached(...of)) return UNREAD;
        return value === -Infinity ? { kind: isRead(...of) ? "struck" : "skipped", strength: 0, text: "" } : {};
      },
    });
    const named = range(count).map((nth) => keysOf(nth, size));
    const high = 22;
    const rows = { rows: named, high };
    // What is not reached yet is dotted, and the last line that was reached is framed.
    const reached = (look) => (value, r) => (r > after ? UNREAD : look);
    const plain = matrix({ name: `states ${query}`, tensor: states.at(query), columns: STATE, size: 52, ...rows, paint: reached(PLAIN) });
    const beside = { rows: room >= 600 ? [] : named, high };
    const out = matrix({ name: `outputs ${query}`, tensor: outputs.at(query), size: cellSize(room, outputs.shape[2], beside.rows, { most: 33 }), columns: range(outputs.shape[2]).map(String), largest: outputs.largest, ...beside, paint: reached({}) });
    const wrong = matrix({ name: `errors ${query}`, tensor: errors.at(query), columns: ["largest"], size: 52, largest: errors.largest, ...beside, paint: reached({}) });
    const framed = (svg) => svg.replace('<path class="outline"/>', (last) => `${outline(svg, after, high)}${last}`);
    return (
      row("The scores, as far as they were read", [panel("row: query, column: key; framed: the tile in hand; dotted: not read yet; struck through: hidden", withTiles(map, hand(frame, at), skips, at, cell), "scores")], told(frame, at)) +
      row(`What query ${query}, “${words[query]}”, holds after each tile`, [panel("largest score, correction, sum", framed(plain)), panel("its output so far", framed(out), "output"), panel("difference from the end", framed(wrong))], seen < count ? `Its tile of queries skips ${seen < count - 1 || size > 1 ? `keys ${seen * size} to ${seq - 1}: they lie` : `key ${seq - 1}: it lies`} in its future.` : "")
    );
  },

  describe({ name, r, c, value }, frame, at) {
    const { words, outputs } = frame;
    const { size } = hand(frame, at);
    if (name === "scores") return value === -Infinity ? `Key ${c} lies in the future of query ${r}.` : `Query ${r}, “${words[r]}”, and key ${c}, “${words[c]}”: score ${number(value)}.`;
    const after = `After ${keysOf(r, size)}`;
    if (name.startsWith("states")) return `${after}: ${["the largest score so far is", "the sums before were multiplied by", "the weights, relative to the largest, sum to"][c]} ${number(value)}.`;
    if (name.startsWith("errors")) return `${after} the output differs from the end result by ${number(value)} at most, in any of its ${outputs.shape[2]} numbers.`;
    const rows = outputs.at(+at.query);
    return `${after} component ${c} of the output is ${number(value)}; in the end it is ${number(rows.at(rows.shape[0] - 1).data[c])}.`;
  },
});

// What the score in hand weighs among those read so far, and among all.
function told(frame, at) {
  const { words, scores, states } = frame;
  const { skipped, after, count } = hand(frame, at);
  const score = scores.at(+at.query).data[+at.key];
  const name = `Key ${at.key}, “${words[+at.key]}”`;
  if (skipped) return `${name}, lies in a tile that is skipped.`;
  if (score === -Infinity) return `${name}, lies in the future of query ${at.query}: its weight is 0.`;
  const weight = (nth) => {
    const [maximum, , total] = states.at(+at.query).at(nth).data;
    return Math.exp(score - maximum) / total;
  };
  return `${name}, for query ${at.query}: ${number(weight(after))} of the weight read so far, ${number(weight(count - 1))} in the end.`;
}

// The map with the borders of its tiles, a stroke through those that are skipped, the tile in hand, and the score in hand.
function withTiles(svg, { seq, count, size, row, column }, skips, at, cell) {
  const side = size * cell;
  const borders = range(count + 1).map((i) => `M${i * side - 0.5} -0.5v${seq * cell}M-0.5 ${i * side - 0.5}h${seq * cell}`);
  const struck = skips.map(([r, c]) => `M${c * side} ${(r + 1) * side - 1}l${side - 1} ${1 - side}`);
  const here = `<path class="now" fill="none" d="M${+at.key * cell + 2} ${+at.query * cell + 2}h${cell - 5}v${cell - 5}h${5 - cell}z"/>`;
  return svg.replace('<path class="outline"/>', (last) => `<path class="strike" d="${struck.join("")}"/><path class="band" d="${borders.join("")}"/><path class="hand" d="M${column * side} ${row * side}h${side - 1}v${side - 1}h${1 - side}z"/>${here}${last}`);
}

// Around one line of a matrix as wide as its grid.
function outline(svg, r, high) {
  const wide = +/class="grid" d="M-0\.5 -0\.5h([\d.]+)/.exec(svg)[1];
  return `<path class="now" fill="none" d="M0 ${r * high}h${wide - 1}v${high - 1}h${1 - wide}z"/>`;
}
