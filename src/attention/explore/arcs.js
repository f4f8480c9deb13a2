// What the trained model answers at a sentence's verb, and an arc from the verb to every word that a head looks at: for views whose
// model has its two read-outs.

const VERB = "verb";
const DASHES = ["", "8 4", "2 3", "10 3 2 3", "14 4", "5 2", "1 4", "8 3 2 3 2 3"];
const LEAST = 0.05; // a weight below it is not drawn

// The verb, the weights and the two answers; heads in `off` are switched off.
function answered({ tokens, ids }, model, verbs, off = new Set()) {
  const { heads, weights } = multiHeadAttention(embed(ids, model.table), model, paddingMask(tokens));
  const left = new Tensor(heads.shape, heads.data.map((value, i) => (off.has(Math.floor(i / (heads.shape[1] * heads.shape[2]))) ? 0 : value)));
  const output = linear(mergeHeads(left), model.w_o, model.b_o);
  const verb = tokens.findIndex((token) => verbs.includes(token));
  const row = filled(1, output.shape[1], (_, c) => output.data[Math.max(verb, 0) * output.shape[1] + c]);
  const [who, whom] = ["who", "whom"].map((question) => {
    const logits = linear(row, model[`w_${question}`], model[`b_${question}`]);
    return maskedSoftmax(new Tensor([1, ...logits.shape], logits.data)).at(0).at(0);
  });
  return { tokens, verb, weights, who, whom };
}

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
    const best = argmax(data);
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
    const strongest = argmax(row);
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
