// What a score depends on: a "?" and a name at every pair of places. Left the scores of one query by distance, right all of them, below a
// talk in which the question is asked, and how often the model is right in talks of each length.

// The nth of the stored questions, or −1 where the scheme has no vector for that place.
const asked = ({ queries, weights }, at) => {
  const nth = queries.indexOf(+at.query);
  return nth < weights.shape[0] ? nth : -1;
};

// By how much a score changes, at most, when the query and a key before it both move by one place.
function change(scores) {
  const seq = scores.shape[0];
  let most = 0;
  for (let m = 1; m < seq; m++) for (let n = 1; n < m; n++) most = Math.max(most, Math.abs(scores.data[m * seq + n] - scores.data[(m - 1) * seq + n - 1]));
  return most;
}

const told = (scores) => {
  const most = change(scores);
  const last = scores.at(scores.shape[0] - 1).data;
  if (Math.max(...last) - Math.min(...last) < 0.005) return "The same score everywhere. Neither the place nor the distance counts.";
  return most < 0.005 ? "Move query and key by one place: no score changes. Only the distance counts." : `Move query and key by one place: a score changes by up to ${number(most)}. Positions count.`;
};

export default explorer({
  status({ lengths, accuracy }, at) {
    const rights = [16, 64].filter((length) => lengths.includes(length)).map((length) => `${share(accuracy.data[lengths.indexOf(length)])} of talks of ${length} words`);
    return `${at.scheme} · head ${at.head} · query at place ${at.query} · right in ${rights.join(", ")}`;
  },

  draw(frame, at, room) {
    const { scores, weights, accuracy, lengths, trained, refusal } = frame;
    const head = scores.at(+at.head);
    const seq = head.shape[0];
    const nth = asked(frame, at);
    const beside = room >= 560;
    const size = Math.max(4, Math.min(14, Math.floor((beside ? room * 0.48 : room) / seq)));
    const all = matrix({
      name: `scores ${at.head}`,
      tensor: head,
      size,
      paint: (value, r, c) => (c > r ? { kind: "future", strength: 0 } : {}),
    });
    const wide = beside ? Math.min(420, room - seq * size - 22) : room;
    const bars = nth < 0 ? "" : matrix({
      name: `weights ${nth}`,
      tensor: weights.at(nth),
      rows: range(4).map((i) => `head ${i}`),
      size: cellSize(room, weights.shape[2], ["head 0"], { most: 9, least: 4 }),
      high: 16,
      largest: 1,
    });
    return (
      row(
        `Head ${at.head}: the score of a “?” with the name “ann”`,
        [
          panel(nth < 0 ? `no vector for place ${at.query}` : "how many places back “ann” stands", nth < 0 ? `<p class="note" style="max-width: ${wide}px">ValueError: ${escape(refusal)}</p>` : curve(head, +at.query, trained, wide), "scores"),
          panel("row: place of “?”, column: of “ann”", framed(all, head, size, trained, nth < 0 ? -1 : +at.query), "scores"),
        ],
        `Shaded and framed: the places of training. ${told(head)}`,
      ) +
      (nth < 0 ? "" : row("A talk, asked at this place: who spoke last?", [panel(answer(frame, nth), talk(frame, nth, +at.query)), panel("the weights of each head, word by word; shaded above: their mean", bars, "weights")])) +
      row("Right in 1,000 talks of each length", [panel(lengths.length > 1 ? "columns: words of a talk" : "words of a talk; a longer one is refused", matrix({ name: "accuracy", tensor: accuracy, rows: ["share"], columns: lengths.map(String), size: Math.min(48, Math.floor((room - 60) / 6)), high: 26, largest: 1 }))])
    );
  },

  describe({ name, r, c, value }, frame, at) {
    if (name === "accuracy") return `Of 1,000 talks of ${frame.lengths[c]} words it is right in ${share(value)}.`;
    if (name.startsWith("weights")) return c > +at.query ? `Place ${c} lies behind the question.` : `Head ${r}: the “?” at place ${at.query} gives “${frame.words[c]}” at place ${c} the weight ${number(value)}.`;
    if (c > r) return `Place ${c} lies behind place ${r}: the causal mask hides it.`;
    return `A “?” at place ${r} and “ann” at place ${c}, ${r - c} back: score ${number(value)}.`;
  },
});

function share(value) {
  return `${(100 * value).toFixed(1)} %`;
}

// The map, with the part that training had in a frame, and the row of the query.
function framed(svg, head, size, trained, query) {
  const part = `<path class="now" fill="none" d="M0 0H${trained * size}V${trained * size}H0z"/>`;
  const here = query < 0 ? "" : `<path class="hand" d="M0 ${query * size}h${(query + 1) * size}v${size - 1}H0z"/>`;
  return svg.replace(/<path class="outline"\/>/, `${part}${here}<path class="outline"/>`);
}

// The scores of one query, by distance; dashed, where it stands elsewhere, those of the last place of training.
function curve(head, query, trained, room) {
  const seq = head.shape[0];
  const [left, right, top, height] = [36, 10, 12, 160];
  const finite = Array.from(head.data).filter(Number.isFinite);
  const [low, high] = [Math.min(0, ...finite), Math.max(0, ...finite)];
  const x = (d) => left + (d / Math.max(1, seq - 1)) * (room - left - right);
  const y = (value) => top + height * (1 - (value - low) / (high - low || 1));
  const line = (m) => range(m + 1).map((d) => `${d ? "L" : "M"}${x(d).toFixed(1)} ${y(head.data[m * seq + m - d]).toFixed(1)}`).join("");
  const last = trained - 1;
  const other = query === last ? "" : `<path class="then" d="${line(last)}"/>`;
  const ticks = range(Math.floor((seq - 1) / 16) + 1).map((i) => i * 16).concat(seq - 1).map((d) => `<text class="column" x="${x(d)}" y="${top + height + 16}">${d}</text>`);
  const sides = [low, high].filter((value, i, all) => value || all.every((each) => !each)).concat(0).map((value) => `<text class="row" x="${left - 6}" y="${y(value) + 4}">${number(value, 0)}</text>`);
  const label = `Score by distance: ${number(head.data[query * seq + query])} at the place itself, ${number(head.data[query * seq])} at ${query} places back`;
  const key = `<text class="start" x="${left}" y="${top + height + 34}">line: “?” at place ${query}${other ? `; dots: at place ${last}` : ""}</text>`;
  return `<svg class="curve distance" width="${room}" height="${top + height + 40}" viewBox="0 0 ${room} ${top + height + 40}" role="img" aria-label="${escape(label)}"><rect x="${left}" y="${top}" width="${x(last) - left}" height="${height}"/><path class="grid" d="M${left} ${y(0) + 0.5}H${room - right}M${left} ${top}V${top + height}"/><path class="loss" d="${line(query)}"/>${other}${ticks.join("")}${sides.join("")}${key}</svg>`;
}

function answer({ shares, names, speakers }, nth) {
  const of = shares.at(nth).data;
  const best = argmax(of);
  return `The model says ${names[best]} (${number(of[best])}). ${names[best] === speakers[nth] ? "That is right." : `Wrong: it was ${speakers[nth]}.`} Underlined: the last name.`;
}

function talk({ words, weights, names }, nth, query) {
  const mean = range(query + 1).map((place) => range(4).reduce((sum, head) => sum + weights.at(nth).at(head).data[place], 0) / 4);
  const said = words.slice(0, query).concat("?");
  const last = said.findLastIndex((word) => names.includes(word));
  const spans = said.map((word, place) => `<span${place === last ? ' class="last"' : ""} style="--w:${mean[place].toFixed(3)}">${escape(word)}${mean[place] >= 0.1 ? ` <small>${short(mean[place])}</small>` : ""}</span>`);
  return `<p class="talk">${spans.join(" ")}</p>`;
}
