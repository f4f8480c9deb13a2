// What followed last time: a sequence, an arc from the token that asks to what each head of the last layer looks at, and from the place
// it finds an arc to what the first layer brought there. Heads can be switched off. Head 0.1 is head 1 of layer 0.

const FAINT = 0.1; // a weight below it is not drawn
const STROKES = ["8 4", "", "2 3", "10 3 2 3"]; // of the heads 0.0, 0.1, 1.0, 1.1

const layersOf = (frame) => range(2).flatMap((i) => frame[`layer${i}`] ?? []);
const headsOf = (frame) => layersOf(frame).flatMap((weights, layer) => range(weights.shape[0]).map((head) => ({ layer, head, name: `${layer}.${head}`, nth: 2 * layer + head, weights: weights.at(head) })));

// In a short sequence the slider's last places are all its last token.
const queryOf = (tokens, at) => Math.min(+at.query, tokens.length - 1);

// The place of the last earlier token like the one that asks, or -1.
const lastTime = (tokens, query) => tokens.slice(0, query).lastIndexOf(tokens[query]);

export default explorer({
  model: ({ layers }) => layers,

  split: (text) => text.toLowerCase().replace(/\s/g, "").split(""),

  act(what, memory) {
    const name = what.split(" ")[1];
    memory.off ??= new Set();
    memory.off[memory.off.has(name) ? "delete" : "add"](name);
  },

  compute({ tokens, ids }, { layers }, model, { stored, memory }) {
    const [table, places] = [model["embedding.weight"], model["positions.table"]];
    const dModel = table.shape[1];
    let x = filled(ids.length, dModel, (r, c) => table.data[ids[r] * dModel + c] + places.data[r * dModel + c]);
    const weights = {};
    const off = [];
    for (const layer of range(+layers)) {
      const attended = attend(x, model, `layers.${layer}`, causalMask);
      const size = ids.length * attended.heads.shape[2];
      const silent = range(model.n_heads).filter((head) => memory.off?.has(`${layer}.${head}`));
      const left = new Tensor(attended.heads.shape, attended.heads.data.map((value, i) => (silent.includes(Math.floor(i / size)) ? 0 : value)));
      off.push(...silent.map((head) => `${layer}.${head}`));
      weights[`layer${layer}`] = attended.weights;
      x = add(x, linear(mergeHeads(left), model[`layers.${layer}.w_o.weight`]));
    }
    const logits = linear(x, model["to_next.weight"]);
    const shares = maskedSoftmax(new Tensor([1, ...logits.shape], logits.data)).at(0);
    const { vocabulary, accuracy } = stored;
    return { tokens, ...weights, shares, vocabulary, accuracy, ...(off.length ? { off } : {}) };
  },

  note({ tokens }, at) {
    const query = queryOf(tokens, at);
    return query < +at.query ? `Your sequence ends at place ${query}: query ${at.query} means ${query}.` : "";
  },

  status({ tokens, accuracy, off }, at) {
    return `${at.layers} layer${at.layers > 1 ? "s" : ""} · query ${queryOf(tokens, at)} · ${off ? `without ${off.join(", ")} · with all heads on, ` : ""}right on ${(100 * accuracy).toFixed(1)} % of what can be known in 4,000 new sequences`;
  },

  draw(frame, at, room) {
    const { tokens, off = [] } = frame;
    const query = queryOf(tokens, at);
    const heads = headsOf(frame);
    const found = foundBy(frame, query);
    const strongest = ({ layer, weights }) => {
      const from = asksFrom(frame, layer, query, found);
      const row = weights.at(from).data;
      const key = argmax(row);
      return `from place ${from}: ${number(row[key])} on “${escape(tokens[key])}”, place ${key}`;
    };
    const switches = heads.map(
      (one) =>
        `<button type="button" role="switch" aria-checked="${!off.includes(one.name)}" data-act="head ${one.name}"><svg width="34" height="10" aria-hidden="true"><path class="arc head-${one.nth}" stroke-width="4" stroke-dasharray="${STROKES[one.nth]}" d="M2 5H32"/></svg>head ${one.name} <span>${off.includes(one.name) ? "switched off" : strongest(one)}</span></button>`,
    );
    const across = room >= 560 ? 2 : 1;
    const size = cellSize((room - 18 * (across - 1)) / across, tokens.length, tokens, { most: 26 });
    const maps = heads.map(({ layer, head, name, weights }) => {
      const silent = off.includes(name);
      const map = matrix({ name: `layer${layer} ${head}`, tensor: weights, rows: tokens, columns: tokens, size, high: Math.max(size, 11), largest: 1 }); // so high that row labels stay apart
      return panel(`head ${name}${silent ? ", switched off" : ""}`, `<div${silent ? ' class="off"' : ""}>${map}</div>`, "weights");
    });
    return (
      way(frame, query, Math.min(room, 760)) +
      answer(frame, query) +
      `<p class="switches" role="group" aria-label="Heads: switch one off">${switches.join("")}</p>` +
      row("Every head, every token: each row is a token that looks, each column a token that it looks at", maps)
    );
  },

  describe({ name, r, c, value }, frame) {
    const { tokens } = frame;
    if (name === "word") {
      const looks = headsOf(frame).map(({ name, weights }) => {
        const data = weights.at(r).data;
        const key = argmax(data);
        return `head ${name} mostly at “${tokens[key]}”, place ${key} (${number(data[key])})`;
      });
      return `“${tokens[r]}”, place ${r}, looks: ${looks.join(", ")}.`;
    }
    const [layer, head] = name.match(/\d/g);
    return `Head ${layer}.${head}: “${tokens[r]}”, place ${r}, gives “${tokens[c]}”, place ${c}, the weight ${number(value)}.`;
  },
});

function answer({ tokens, shares, vocabulary }, query) {
  const { data } = shares.at(query);
  const best = argmax(data);
  const before = lastTime(tokens, query);
  const due = tokens[before + 1];
  const verdict =
    before < 0
      ? `“${escape(tokens[query])}” has not come before: there is nothing to look up`
      : vocabulary[best] === due
        ? "✓ as last time"
        : `✗ last time “${escape(due)}” followed`;
  return `<p class="answers" aria-live="polite"><span class="asked">after “${escape(tokens[query])}”, place ${query}?</span> <span class="answer"><strong>${escape(vocabulary[best])}</strong> <span class="sure">${number(data[best])}</span></span> <span>${verdict}</span></p>`;
}

// Where most of the last layer's weight from the query goes, or -1: all its heads are switched off.
function foundBy(frame, query) {
  const { tokens, off = [] } = frame;
  const last = layersOf(frame).length - 1;
  const asking = headsOf(frame).filter(({ layer, name }) => layer === last && !off.includes(name));
  return asking.length ? argmax(tokens.map((_, i) => asking.reduce((sum, { weights }) => sum + weights.at(query).data[i], 0))) : -1;
}

// From which place a layer's arcs are drawn: the first of two layers is seen from the place that the last one found.
const asksFrom = (frame, layer, query, found) => (layer < layersOf(frame).length - 1 && found >= 0 ? found : query);

// Above the sequence what the last layer looks at from the query; below it, from the place where most of that goes, the first layer.
function way(frame, query, room) {
  const { tokens, off = [] } = frame;
  const heads = headsOf(frame).filter(({ name }) => !off.includes(name));
  const last = layersOf(frame).length - 1;
  const step = Math.min(30, (room - 12) / tokens.length);
  const x = (i) => 6 + step * (i + 0.5);
  const wide = Math.max(room, 240);
  const asking = heads.filter(({ layer }) => layer === last);
  const total = tokens.map((_, i) => asking.reduce((sum, { weights }) => sum + weights.at(query).data[i], 0));
  const found = foundBy(frame, query);
  const farthest = Math.max(0, ...total.map((sum, i) => (sum > FAINT ? Math.abs(x(query) - x(i)) : 0)));
  const above = 40 + Math.min(90, farthest * 0.3);
  const below = last && found >= 0 ? 74 : 8;
  const arcs = [];
  const labels = [];
  const bow = ({ nth, name, weights }, from, side, room) => {
    const row = weights.at(from).data;
    const strongest = argmax(row);
    const y = side < 0 ? above : above + 26;
    row.forEach((weight, key) => {
      if (weight < FAINT) return;
      const bulge = Math.min(room, 16 + Math.abs(x(from) - x(key)) * 0.3);
      const high = bulge + 7 * (nth % 2);
      const [start, end] = key === from ? [x(key) - 5, x(key) + 5] : [x(from), x(key)];
      const top = y + side * high * 1.33;
      arcs.push(`<path class="arc head-${nth}" stroke-width="${(1 + 4 * weight).toFixed(1)}" stroke-opacity="${(0.3 + 0.7 * weight).toFixed(2)}" stroke-dasharray="${STROKES[nth]}" data-head="${name}" data-weight="${weight}" data-to="${key}" d="M${start.toFixed(1)} ${y}C${start.toFixed(1)} ${top.toFixed(1)} ${end.toFixed(1)} ${top.toFixed(1)} ${end.toFixed(1)} ${y}"/>`);
      if (key === strongest) labels.push({ x: (start + end) / 2, y: y + side * (bulge + (side < 0 ? 14 : 22)), side, nth, text: `${name} ${number(weight)}` });
    });
  };
  for (const head of asking) bow(head, query, -1, 90);
  if (last && found >= 0) for (const head of heads.filter(({ layer }) => layer === 0)) bow(head, found, 1, 34);
  // Labels that would lie over one another stand one above the other.
  const placed = [];
  for (const label of labels) {
    label.x = Math.min(Math.max(label.x, 28), wide - 28);
    while (placed.some((other) => Math.abs(other.x - label.x) < 56 && Math.abs(other.y - label.y) < 14)) label.y += 14 * label.side;
    placed.push(label);
  }
  const lift = Math.max(0, 13 - Math.min(13, ...placed.map(({ y }) => y)));
  const high = Math.max(above + 26 + below, ...placed.map(({ y }) => y + 6));
  const letters = tokens.map((token, i) => {
    const kind = i === query ? " verb" : "";
    const ring = i === found ? `<rect class="found" x="${(x(i) - Math.min(step, 18) / 2).toFixed(1)}" y="${above + 3}" width="${Math.min(step, 18).toFixed(1)}" height="20"/>` : "";
    return `${ring}<text class="word${kind}" data-word="${i}" x="${x(i).toFixed(1)}" y="${above + 18}" style="font-size: ${Math.min(16, step * 1.25).toFixed(1)}px">${escape(token)}</text>`;
  });
  const texts = placed.map(({ x, y, nth, text }) => `<text class="said head-${nth}" style="paint-order: stroke; stroke: var(--ground); stroke-width: 4px" x="${x.toFixed(1)}" y="${y.toFixed(1)}">${text}</text>`);
  const told = found < 0 ? "All heads of the last layer are switched off" : `From “${tokens[query]}”, place ${query}, most of the last layer's weight goes to “${tokens[found]}”, place ${found}`;
  return `<svg class="sentence" width="${wide}" height="${high + lift}" viewBox="0 ${-lift} ${wide} ${high + lift}" role="img" aria-label="${escape(told)}">${arcs.join("")}${texts.join("")}${letters.join("")}</svg>`;
}
