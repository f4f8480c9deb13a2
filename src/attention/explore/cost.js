// What a layer costs: the share of each part by the number of tokens, the multiply-adds at one number of tokens, and the numbers that
// are kept for the next token or held at a time.

const DRAWN = ["now", "loss", "then"]; // how the line of each part looks: dashes, a line, dots
const HELD = ["keys and values", "weights of all heads"];

const nth = ({ lengths }, at) => lengths.indexOf(+at.n);

export default explorer({
  status(frame, at) {
    const { data } = frame.parts.at(nth(frame, at));
    const [d, heads] = [+at.d_model, +at.n_heads];
    return `n ${counted(+at.n)} · d_model ${d} · n_heads ${heads} · d_key ${d / heads} · pairs take ${percent(data[1] / sum(data))} of the multiply-adds`;
  },

  draw(frame, at, room) {
    const i = nth(frame, at);
    const d = +at.d_model;
    const beside = room >= 620;
    const look = { room: beside ? Math.floor((room - 24) / 2) : room, told: inWords, space: 84 };
    const parts = frame.parts.at(i);
    return (
      row(
        "Share of a layer’s multiply-adds, by the number of tokens n",
        [panel("", curves(frame, at, Math.min(room, 720)))],
        `Pairs overtake the projections at n = 2 · d_model = ${counted(2 * d)}, and all the rest at n = 6 · d_model = ${counted(6 * d)}: the two marks.`,
      ) +
      row(`With n = ${counted(+at.n)}`, [
        panel("multiply-adds", bars({ ...look, name: `parts ${i}`, tensor: parts, rows: frame.names, column: "millions of multiply-adds" })),
        panel("numbers kept, and held", bars({ ...look, name: `held ${i}`, tensor: frame.held.at(i), rows: HELD, column: "millions of numbers" })),
      ], "The keys and values are kept for the next token. The weights are needed only while the layer computes; a fused kernel never holds them all. The longest bar of a group fills its line: compare the numbers.")
    );
  },

  describe({ name, r, value }, frame, at) {
    if (name.startsWith("held")) return r ? `The weights of all heads, if they are formed: ${inWords(value)} numbers, n_heads · n².` : `Kept for the next token: ${inWords(value)} numbers, 2 · n · d_model.`;
    const { data } = frame.parts.at(nth(frame, at));
    const formula = ["4 · n · d_model²", "2 · n² · d_model", "2 · n · d_model · d_ff, with d_ff = 4 · d_model"][r];
    return `${frame.names[r]}: ${inWords(value)} multiply-adds, ${percent(value / sum(data))}: ${formula}.`;
  },
});

function sum(data) {
  return data.reduce((total, value) => total + value, 0);
}

function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}

function counted(n) {
  return n.toLocaleString("en-US");
}

// A number of millions, with three digits.
function inWords(millions) {
  const [unit, size] = [["trillion", 1e6], ["billion", 1e3], ["million", 1]].find(([, size]) => millions >= size) ?? ["thousand", 1e-3];
  const value = millions / size;
  return `${value >= 1000 ? counted(Math.round(value)) : value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)} ${unit}`;
}

// The three shares along n, which doubles from tick to tick.
function curves({ shares, curve, names, lengths }, at, room) {
  const [left, right, top, height] = [46, 12, 22, 190];
  const [low, high] = [Math.log2(curve[0]), Math.log2(curve.at(-1))];
  const x = (n) => left + ((Math.log2(n) - low) / (high - low)) * (room - left - right);
  const y = (share) => top + height * (1 - share);
  const lines = names.map((_, part) => `<path class="${DRAWN[part]}" fill="none" d="${curve.map((n, i) => `${i ? "L" : "M"}${x(n).toFixed(1)} ${y(shares.at(i).data[part]).toFixed(1)}`).join("")}"/>`);
  const marks = [2, 6].map((times, i) => {
    const n = times * at.d_model;
    // Their labels lean apart: on a phone the marks stand close.
    return `<path class="band" d="M${x(n).toFixed(1)} ${top - 4}v${height + 4}"/><text class="${i ? "start" : "row"}" x="${(x(n) + (i ? -14 : 14)).toFixed(1)}" y="${top - 8}">${counted(n)}</text>`;
  });
  const last = lengths.at(-1);
  const ticks = lengths.filter((n, i) => n === last || (i % 3 === 0 && x(last) - x(n) > 64)).map((n) => `<text class="column" x="${Math.min(x(n), room - 26).toFixed(1)}" y="${top + height + 16}">${counted(n)}</text>`);
  const sides = [0, 0.5, 1].map((share) => `<text class="row" x="${left - 6}" y="${y(share) + 4}">${100 * share} %</text>`);
  const here = shares.at(curve.indexOf(+at.n)).data;
  const dots = names.map((_, part) => `<circle class="here" cx="${x(+at.n).toFixed(1)}" cy="${y(here[part]).toFixed(1)}" r="4"/>`);
  const key = names.map((name, part) => {
    const from = 10 + names.slice(0, part).reduce((wide, before) => wide + 44 + 6.6 * before.length, 0);
    return `<path class="${DRAWN[part]}" fill="none" d="M${from} ${top + height + 34}h22"/><text class="start" x="${from + 27}" y="${top + height + 38}">${name}</text>`;
  });
  const label = `Shares at n ${at.n}: ${names.map((name, part) => `${name} ${percent(here[part])}`).join(", ")}`;
  const whole = top + height + 44;
  return `<svg class="curve distance" width="${room}" height="${whole}" viewBox="0 0 ${room} ${whole}" role="img" aria-label="${escape(label)}"><path class="grid" d="M${left} ${y(0)}H${room - right}M${left} ${y(0.5)}H${room - right}M${left} ${y(1)}H${room - right}M${left} ${top}V${top + height}"/>${marks.join("")}${lines.join("")}${dots.join("")}${ticks.join("")}${sides.join("")}${key.join("")}</svg>`;
}
