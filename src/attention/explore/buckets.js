// Which tokens share a bucket, round by round; the sorted tokens in their chunks; the weights of all pairs with those that are left out;
// and how often a pair meets, by its angle.

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
  const sees = (i, j) => rounds.some(({ bucket, chunk }) => bucket[i] === bucket[j] && (chunk[i] === chunk[j] || chunk[i] === chunk[j] + 1));
  return { angle, draw, rounds, sees, together: rounds.filter(({ bucket }) => bucket[query] === bucket[key]).length };
}

const nameOf = ({ query, key }, token) => (token === query ? "Q" : token === key ? "K" : String(token));

function pairsOf({ sees }, seq) {
  return range(seq).reduce((sum, i) => sum + range(seq).filter((j) => i !== j && sees(i, j)).length, 0);
}

const shareKept = ({ kept }, at, { angle, draw }) => kept.at(angle).at(draw).at(nth(ROUNDS, at.rounds)).data[nth(CHUNKS, at.chunk)];

export default explorer({
  status(frame, at) {
    const of = setting(frame, at);
    const seq = frame.weights.shape[1];
    return `angle ${at.angle} · n_buckets ${at.n_buckets} · rounds ${at.rounds} · chunk ${at.chunk} · draw ${at.draw} · Q and K share a bucket in ${of.together} of ${at.rounds} · Q keeps ${number(shareKept(frame, at, of))} of its weight · ${pairsOf(of, seq)} of ${seq * (seq - 1)} pairs`;
  },

  draw(frame, at, room) {
    const { weights, order, query, key } = frame;
    const of = setting(frame, at);
    const seq = weights.shape[1];
    const labels = range(seq).map((token) => nameOf(frame, token));
    const across = room >= 600 ? 4 : 2;
    const wide = Math.min(176, Math.floor((room - 18 * (across - 1)) / across));
    const cell = Math.min(30, Math.floor((room - labelWidth(["9"]) - 2) / seq));
    const strips = of.rounds.map(({ bucket, sorted }, r) =>
      inChunks(
        matrix({
          name: `order ${of.angle} ${of.draw} ${r}`,
          tensor: order.at(of.angle).at(of.draw).at(r),
          rows: [String(r + 1)],
          size: cell,
          high: 24,
          // Neighbouring buckets differ in shade.
          paint: (token, _, c) => ({ kind: "plain", strength: shadeOf(bucket, sorted, c), text: nameOf(frame, token) }),
        }),
        at.chunk,
        seq,
        cell,
        bordersOf(bucket, sorted),
      ),
    );
    const map = matrix({
      name: `weights ${of.angle}`,
      tensor: weights.at(of.angle),
      rows: labels,
      columns: labels,
      size: cellSize(Math.min(room, room >= 760 ? room - 360 : room), seq, labels, { most: 25, least: 12 }),
      largest: 1,
      paint: (value, r, c) => (r === c ? { kind: "struck", strength: 0, text: "" } : of.sees(r, c) ? {} : UNSEEN),
    });
    const lost = 1 - shareKept(frame, at, of);
    return (
      row(
        "Directions and their buckets",
        of.rounds.map(({ bucket }, r) => panel(`round ${r + 1}: ${bucket[query] === bucket[key] ? "together" : "apart"}`, circle(frame, at, of, r, wide))),
        "Thick line: the query Q. Thin: its key K. Shaded: the bucket of Q. Full dots: the other tokens in it.",
      ) +
      row("Sorted by bucket and cut into chunks", [panel("a line for each round; thick: between chunks, thin: between buckets", strips.join(""))], "A token sees its own bucket, in its chunk and in the one before.") +
      row(
        "The pairs that are computed",
        [
          panel("weights over all pairs; row: query, column: key; dotted: left out", framed(map, query), "weights"),
          panel("in what share of 1,000 draws such a pair meets, by angle", curve(frame, at, Math.min(room, 330))),
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
    return `Query ${called(r)}, key ${called(c)}: weight ${number(value)} over all pairs. ${of.sees(r, c) ? "This pair is computed." : "This pair is left out."}`;
  },
});

// Which places of the sorted tokens begin another bucket.
function bordersOf(bucket, sorted) {
  return range(sorted.length - 1).filter((i) => bucket[sorted[i]] !== bucket[sorted[i + 1]]).map((i) => i + 1);
}

function shadeOf(bucket, sorted, c) {
  return bordersOf(bucket, sorted).filter((border) => border <= c).length % 2 ? 0.5 : 0.15;
}

function inChunks(svg, chunk, seq, cell, borders) {
  const thin = borders.map((i) => `M${i * cell - 0.5} 0v23`).join("");
  const thick = range(Math.ceil(seq / chunk) + 1).map((i) => `M${Math.min(seq, i * chunk) * cell - 0.5} -1v25`).join("");
  return svg.replace('<path class="outline"/>', (last) => `<path class="band" d="${thin}"/><path class="hand" d="${thick}"/>${last}`);
}

// The row of the query.
function framed(svg, query) {
  const [, wide] = /class="grid" d="M-0\.5 -0\.5h([\d.]+)/.exec(svg);
  const size = +wide / 16;
  return svg.replace('<path class="outline"/>', (last) => `<path class="hand" d="M0 ${query * size}h${wide - 1}v${size - 1}H0z"/>${last}`);
}

function point(degrees, radius, middle) {
  const turn = (degrees * Math.PI) / 180;
  return [middle + radius * Math.cos(turn), middle - radius * Math.sin(turn)].map((x) => x.toFixed(1));
}

// One round: the borders of the buckets, that of the query shaded, and where the tokens point.
function circle(frame, at, { angle, draw, rounds }, r, wide) {
  const { circle, places, query, key } = frame;
  const of = circle.at(draw).at(r).data;
  const { bucket } = rounds[r];
  const degrees = places.at(angle).data;
  const step = 360 / of.length;
  const [middle, radius] = [wide / 2, wide / 2 - 17];
  const slices = range(of.length)
    .filter((i) => of[i] === bucket[query])
    .map((i) => `M${middle} ${middle}L${point((i - 0.5) * step, radius, middle)}L${point((i + 0.5) * step, radius, middle)}z`);
  const borders = range(of.length)
    .filter((i) => of[i] !== of[(i + 1) % of.length])
    .map((i) => `M${middle} ${middle}L${point((i + 0.5) * step, radius, middle)}`);
  const dots = range(degrees.length)
    .filter((token) => token !== query && token !== key)
    .map((token) => {
      const [x, y] = point(degrees[token], radius, middle);
      const ring = `M${x - 4} ${y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0`;
      return bucket[token] === bucket[query] ? `<path class="plus" d="${ring}"/>` : `<path class="edge" d="${ring}"/>`;
    });
  const arm = (token, look, long) => `<path class="${look}" d="M${middle} ${middle}L${point(degrees[token], radius - 2, middle)}"/><text x="${point(degrees[token], radius + long, middle)[0]}" y="${+point(degrees[token], radius + long, middle)[1] + 4}">${nameOf(frame, token)}</text>`;
  const apart = angle ? 9 : 0; // at 0 degrees both letters stand in one place
  const letters = apart ? arm(key, "loss", 9) + arm(query, "hand", 9) : `<path class="hand" d="M${middle} ${middle}L${point(90, radius - 2, middle)}"/><text x="${middle}" y="12">Q K</text>`;
  const round = `M${middle - radius} ${middle}a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 ${-2 * radius} 0`;
  const label = `Round ${r + 1}: Q and K, ${at.angle} apart, ${bucket[query] === bucket[key] ? "share a bucket" : "lie in two buckets"}`;
  return `<svg class="written" width="${wide}" height="${wide}" viewBox="0 0 ${wide} ${wide}" role="img" aria-label="${escape(label)}"><path class="plus" fill-opacity="0.22" d="${slices.join("")}"/><path class="band" d="${round}${borders.join("")}"/>${dots.join("")}${letters}</svg>`;
}

// How often a pair meets: a line for the rounds in hand, dots for one round.
function curve({ chance, curve: angles }, at, room) {
  const [left, right, top, height] = [34, 12, 12, 150];
  const x = (degrees) => left + (degrees / 90) * (room - left - right);
  const y = (share) => top + height * (1 - share);
  const [once, some] = [0, nth(ROUNDS, at.rounds)].map((i) => chance.at(i).data);
  const line = (data) => angles.map((degrees, i) => `${i ? "L" : "M"}${x(degrees).toFixed(1)} ${y(data[i]).toFixed(1)}`).join("");
  const here = parseInt(at.angle);
  const values = [some, once].map((data) => data[angles.indexOf(here)]);
  const dots = (+at.rounds === 1 ? values.slice(1) : values).map((value) => `<circle class="here" cx="${x(here).toFixed(1)}" cy="${y(value).toFixed(1)}" r="4"/>`);
  const ticks = [0, 30, 60, 90].map((degrees) => `<text class="column" x="${x(degrees)}" y="${top + height + 16}">${degrees}°</text>`);
  const sides = [0, 0.5, 1].map((share) => `<text class="row" x="${left - 6}" y="${y(share) + 4}">${share}</text>`);
  const label = `At ${here} degrees a pair meets in ${number(values[1])} of the draws in one round, in ${number(values[0])} in one of ${at.rounds}`;
  const low = top + height + 36;
  const more = +at.rounds > 1;
  const key = `<path class="loss" d="M${left} ${low}h22"/><text class="start" x="${left + 27}" y="${low + 4}">${more ? `${at.rounds} rounds` : "1 round"}: ${number(values[0])}</text>${more ? `<path class="then" d="M${left + 136} ${low}h22"/><text class="start" x="${left + 163}" y="${low + 4}">1 round: ${number(values[1])}</text>` : ""}`;
  return `<svg class="curve distance" width="${room}" height="${low + 10}" viewBox="0 0 ${room} ${low + 10}" role="img" aria-label="${escape(label)}"><path class="grid" d="M${left} ${y(0)}H${room - right}M${left} ${y(0.5)}H${room - right}M${left} ${y(1)}H${room - right}M${left} ${top}V${top + height}"/><path class="loss" d="${line(some)}"/>${more ? `<path class="then" d="${line(once)}"/>` : ""}${dots.join("")}${ticks.join("")}${sides.join("")}${key}</svg>`;
}
