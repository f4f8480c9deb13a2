// Random features: the weights that softmax gives, and beside them what features of one draw make of them. Below, for each number of
// features, how much of a row's weight lies elsewhere, over 100 draws.

const chosen = ({ features }, at) => features.indexOf(+at.features);
const nthDraw = (at) => +at.draw - 1;

export default explorer({
  status(frame, at) {
    const [nth, draw] = [chosen(frame, at), nthDraw(at)];
    const off = frame.misplaced.at(nth).data[draw];
    return `${at.features} features, ${at.orthogonal === "on" ? "orthogonal" : "independent"} · q and k × ${at.length} · draw ${at.draw} · misplaced ${number(off)}, mean of 100 draws ${number(frame.spread.at(nth).data[0])}`;
  },

  draw(frame, at, room) {
    const { keys, exact, estimates } = frame;
    const [nth, draw] = [chosen(frame, at), nthDraw(at)];
    const rows = keys.map((key) => `asks ${key}`);
    const wide = room >= 600 ? Math.floor((room - 20) / 2) : room;
    const size = cellSize(wide, keys.length, rows, { most: 36, least: 24 });
    const one = (name, tensor) => matrix({ name, tensor, rows, columns: keys.map(String), size, high: 26, largest: 1 });
    const maps = [
      panel("softmax", one("exact", exact), "weights"),
      panel(`${at.features} random features, draw ${at.draw}`, one(`estimates ${nth} ${draw}`, estimates.at(nth).at(draw)), "weights"),
    ];
    return (
      row(
        "Eight questions and the eight pairs that were written: the weights of one head",
        wide < room ? maps : maps.reverse(), // on a phone, what the controls change stands below them
        `Row: the key that is asked. Column: the key of a pair. With softmax the pair that is asked for gets ${number(own(exact))} on average, with these features ${number(own(estimates.at(nth).at(draw)))}.`,
      ) +
      row("How much of a row’s weight lies elsewhere than softmax puts it", [panel("line: mean of 100 draws; bars: 80 of the 100; dot: this draw", curve(frame, nth, draw, Math.min(room, 620)))])
    );
  },

  describe({ name, r, c, value }, frame, at) {
    const { keys, exact } = frame;
    const pair = `Key ${keys[r]} is asked; the pair of key ${keys[c]}`;
    if (name === "exact") return `${pair}: softmax gives it the weight ${number(value)}.`;
    return `${pair}: the features of this draw give it ${number(value)}, softmax ${number(exact.at(r).data[c])}.`;
  },
});

// The mean of a square matrix's diagonal.
function own({ shape: [size], data }) {
  return range(size).reduce((sum, i) => sum + data[i * size + i], 0) / size;
}

// The error by the number of features, each four times the one before.
function curve({ features, spread, misplaced }, nth, draw, room) {
  const [left, right, top, height] = [40, 24, 12, 150];
  const x = (i) => left + 24 + (i / (features.length - 1)) * (room - left - right - 48);
  const y = (share) => top + height * (1 - share);
  const of = (i) => spread.at(i).data;
  const line = features.map((_, i) => `${i ? "L" : "M"}${x(i).toFixed(1)} ${y(of(i)[0]).toFixed(1)}`).join("");
  const bars = features.map((_, i) => `M${x(i).toFixed(1)} ${y(of(i)[1]).toFixed(1)}V${y(of(i)[2]).toFixed(1)}m-5 0h10M${(x(i) - 5).toFixed(1)} ${y(of(i)[1]).toFixed(1)}h10`).join("");
  const ticks = features.map((count, i) => `<text class="column" x="${x(i).toFixed(1)}" y="${top + height + 16}">${count}</text>`);
  const sides = [0, 0.5, 1].map((share) => `<text class="row" x="${left - 6}" y="${y(share) + 4}">${number(share, 1)}</text>`);
  const dot = `<circle class="here" cx="${x(nth).toFixed(1)}" cy="${y(misplaced.at(nth).data[draw]).toFixed(1)}" r="4.5"/>`;
  const label = `Misplaced weight, mean of 100 draws: ${features.map((count, i) => `${number(of(i)[0])} with ${count} features`).join(", ")}`;
  const whole = top + height + 40;
  return `<svg class="curve distance" width="${room}" height="${whole}" viewBox="0 0 ${room} ${whole}" role="img" aria-label="${escape(label)}"><path class="grid" d="M${left} ${y(0)}H${room - right}M${left} ${y(0.5)}H${room - right}M${left} ${y(1)}H${room - right}M${left} ${top}V${top + height}"/><path class="band" d="${bars}"/><path class="loss" fill="none" d="${line}"/>${dot}${ticks.join("")}${sides.join("")}<text class="column" x="${room / 2}" y="${top + height + 34}">features</text></svg>`;
}
