// A sentence, what every head looks at from its verb, drawn over the words, and the two answers. Heads can be switched off.

const VERB = "verb";
const DASHES = ["", "8 4", "2 3", "10 3 2 3", "14 4", "5 2", "1 4", "8 3 2 3 2 3"];
const LEAST = 0.05; // a weight below it is not drawn

export default explorer({
  ready: [
    "the red ball chased a dog",
    "the cat saw the other cat",
    "birds sing at dawn",
    "the ball was chased by a dog",
    "a sailor near the house found the bell",
    "the old king was seen by the black fox near the river",
    "the zebra bit the queen",
    "a dog chased the red ball",
  ],

  act(what, memory) {
    const head = +what.split(" ")[1];
    memory.off ??= new Set();
    memory.off[memory.off.has(head) ? "delete" : "add"](head);
  },

  compute({ tokens, ids }, at, model, { stored, memory }) {
    const { heads, weights } = multiHeadAttention(embed(ids, model.table), model, paddingMask(tokens));
    const off = new Set([...(memory.off ?? [])].filter((head) => head < model.n_heads));
    const left = new Tensor(heads.shape, heads.data.map((value, i) => (off.has(Math.floor(i / (heads.shape[1] * heads.shape[2]))) ? 0 : value)));
    const output = linear(mergeHeads(left), model.w_o, model.b_o);
    const verb = tokens.findIndex((token) => stored.verbs.includes(token));
    const row = filled(1, output.shape[1], (_, c) => output.data[Math.max(verb, 0) * output.shape[1] + c]);
    const [who, whom] = ["who", "whom"].map((question) => {
      const logits = linear(row, model[`w_${question}`], model[`b_${question}`]);
      return maskedSoftmax(new Tensor([1, ...logits.shape], logits.data)).at(0).at(0);
    });
    const { verbs, vocabulary, accuracy, roles, grammar, unmet } = stored;
    return { tokens, verb, weights, who, whom, verbs, vocabulary, accuracy, roles, grammar, unmet, ...(off.size ? { off: [...off] } : {}) };
  },

  note({ tokens, unmet }, at) {
    const met = [...new Set(tokens)].filter((token) => unmet.includes(token));
    return met.length ? `At d_model ${at.d_model} the model never met ${listed(met)} in training; wider models did.` : "";
  },

  status({ accuracy, grammar, off }, at) {
    return `d_model ${at.d_model} · n_heads ${at.n_heads} · d_key ${at.d_model / at.n_heads} · right on ${percent(accuracy)} of 4,000 new sentences (${grammar})${off ? ", with all heads on" : ""}`;
  },

  draw(frame, at, room) {
    const { tokens, verb, weights, roles, off = [] } = frame;
    const heads = weights.shape[0];
    const names = roles.map(([who, whom], i) => `head ${i}${role(who, whom) ? `: ${role(who, whom)}` : ""}`);
    const largest = (i) => {
      const row = weights.at(i).at(Math.max(verb, 0)).data;
      const key = row.indexOf(Math.max(...row));
      return `${number(row[key])} on “${escape(tokens[key])}”`;
    };
    const switches = names.map(
      (name, i) =>
        `<button type="button" role="switch" aria-checked="${!off.includes(i)}" data-act="head ${i}"><svg width="34" height="10" aria-hidden="true"><path class="arc head-${i}" stroke-width="4" stroke-dasharray="${DASHES[i]}" d="M2 5H32"/></svg>${name}${verb < 0 ? "" : ` <span>${off.includes(i) ? "switched off" : largest(i)}</span>`}</button>`,
    );
    // As many beside one another as leave their labels room.
    const fit = (across) => cellSize((room - 18 * (across - 1)) / across, tokens.length, tokens, { most: heads === 1 ? 34 : 26 });
    const size = fit([Math.min(4, heads), 3, 2].find((across) => across <= heads && fit(across) >= 14) ?? 1);
    const maps = range(heads).map((i) => panel(off.includes(i) ? `${names[i]}, switched off` : names[i], `<div${off.includes(i) ? ' class="off"' : ""}>${matrix({ name: `weights ${i}`, tensor: weights.at(i), rows: tokens, columns: tokens, size, largest: 1 })}</div>`, "weights"));
    return (
      sentence(frame, room) +
      answers(frame) +
      `<p class="switches" role="group" aria-label="Heads: switch one off">${switches.join("")}</p>` +
      row("Every head, every word: each row is a word that looks, each column a word that it looks at", maps)
    );
  },

  describe({ name, r, c, value }, { tokens, weights }) {
    if (name === "word") {
      const looks = range(weights.shape[0]).map((i) => {
        const data = weights.at(i).at(r).data;
        const key = data.indexOf(Math.max(...data));
        return `head ${i} mostly at “${tokens[key]}” (${number(data[key])})`;
      });
      return `“${tokens[r]}” looks: ${looks.join(", ")}.`;
    }
    return `Head ${name.split(" ")[1]}: “${tokens[r]}” gives “${tokens[c]}” the weight ${number(value)}.`;
  },
});

function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}

// A head has a role where most of what the verb gives it goes to one of the two answers.
function role(who, whom) {
  return who >= 0.6 ? "who" : whom >= 0.6 ? "whom" : "";
}

function answers({ tokens, verb, who, whom, vocabulary, verbs }) {
  if (verb < 0) return `<p class="answers none">There is no verb in it that the model knows. It knows ${verbs.join(", ")}. Try one of them.</p>`;
  const unknown = tokens.filter((token) => !vocabulary.includes(token));
  const told = [["who", who], ["whom", whom]].map(([question, { data }]) => {
    const best = data.indexOf(Math.max(...data));
    // The model's <unk> is the word that it did not know, where there is one such word.
    const word = best === UNK_ID && new Set(unknown).size === 1 ? unknown[0] : vocabulary[best];
    return `<span class="answer" data-question="${question}" data-answer="${escape(vocabulary[best])}"><span class="asked">${question}?</span> <strong>${escape(word)}</strong> <span class="sure">${number(data[best])}</span></span>`;
  });
  return `<p class="answers" aria-live="polite"><span class="asked">“${escape(tokens[verb])}”</span> ${told.join(" ")}</p>`;
}

let pen;

function widthOf(word) {
  if (!pen) {
    pen = document.createElement("canvas").getContext("2d");
    pen.font = `600 16px ${getComputedStyle(document.body).fontFamily}`;
  }
  return pen.measureText(word).width;
}

// The words, in a line or, where that is too long, in a column, and an arc from the verb to every word that a head looks at.
function sentence({ tokens, verb, weights, roles, off = [] }, room) {
  const heads = range(weights.shape[0]).filter((head) => !off.includes(head));
  const widths = tokens.map((word) => Math.ceil(widthOf(word)) + 1);
  const gap = 15;
  const long = widths.reduce((sum, width) => sum + width + gap, 0);
  const lying = long <= room;
  const wide = Math.min(room, 640);
  const space = lying ? Math.min(gap + 14, gap + (room - long) / tokens.length) : 30;
  const starts = tokens.map((_, i) => widths.slice(0, i).reduce((sum, width) => sum + width + space, 6));
  const at = (i) => (lying ? starts[i] + widths[i] / 2 : 20 + i * space);
  const side = Math.max(...widths) + 16; // where arcs start in a column
  const reach = (i) => Math.abs(at(i) - at(verb));
  const farthest = verb < 0 ? 0 : Math.max(...tokens.map((_, i) => reach(i)));
  const above = lying ? 34 + Math.min(86, farthest * 0.42) : 0;
  const surest = tokens.map((_, i) => Math.max(...heads.map((head) => weights.at(head).at(Math.max(verb, 0)).data[i])));
  const arcs = [];
  const labels = [];
  for (const [nth, head] of heads.entries()) {
    if (verb < 0) break;
    const row = weights.at(head).at(verb).data;
    const strongest = row.indexOf(Math.max(...row));
    tokens.forEach((word, i) => {
      const weight = row[i];
      if (weight < LEAST) return;
      const bulge = (i === verb ? 26 : Math.min(lying ? 86 : wide - side - 70, 20 + reach(i) * 0.42)) + nth * 6;
      const [from, to] = i === verb ? [at(verb) - 8, at(verb) + 8] : [at(verb), at(i) + (nth - (heads.length - 1) / 2) * 2];
      const d = lying
        ? `M${from} ${above - 2}C${from} ${above - 2 - bulge * 1.33} ${to} ${above - 2 - bulge * 1.33} ${to} ${above - 2}`
        : `M${side} ${from}C${side + bulge * 1.33} ${from} ${side + bulge * 1.33} ${to} ${side} ${to}`;
      arcs.push(`<path class="arc head-${head}" stroke-width="${(1 + 6 * weight).toFixed(1)}" stroke-opacity="${(0.3 + 0.7 * weight).toFixed(2)}" stroke-dasharray="${DASHES[head]}" data-head="${head}" data-weight="${weight}" data-to="${i}" d="${d}"/>`);
      if (i !== strongest || (heads.length > 2 && weight < surest[i])) return; // of many heads, one for each word
      const [x, y] = lying ? [(from + to) / 2, above - 8 - bulge] : [side + bulge + 6, (from + to) / 2 + 4];
      labels.push({ x, y, text: `${role(...roles[head]) || `head ${head}`} ${number(weight)}`, head });
    });
  }
  // Labels that would lie over one another stand one above the other.
  const placed = [];
  for (const label of labels) {
    while (placed.some((other) => Math.abs(other.x - label.x) < 62 && Math.abs(other.y - label.y) < 14)) label.y += lying ? -14 : 14;
    placed.push(label);
  }
  const lift = Math.max(0, 12 - Math.min(12, ...placed.map(({ y }) => y)));
  const texts = placed.map(({ x, y, text, head }) => `<text class="${lying ? "" : "start "}said head-${head}" x="${x}" y="${y}">${text}</text>`);
  const words = tokens.map((word, i) => {
    const [x, y] = lying ? [at(i), above + 16] : [8 + Math.max(...widths), at(i) + 5];
    return `<text class="word${i === verb ? ` ${VERB}` : ""}${lying ? "" : " row"}" data-word="${i}" x="${x}" y="${y}">${escape(word)}</text>`;
  });
  const [w, h] = lying ? [starts.at(-1) + widths.at(-1) + 6, above + 26] : [wide, 20 + tokens.length * space];
  const told = verb < 0 ? "No verb" : `From “${tokens[verb]}”`;
  return `<svg class="sentence" width="${w}" height="${h + lift}" viewBox="0 ${-lift} ${w} ${h + lift}" role="img" aria-label="${escape(told)}, a line from the verb to each word, as wide as the head's weight">${arcs.join("")}${texts.join("")}${words.join("")}</svg>`;
}
