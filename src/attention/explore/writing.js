// The transformer writes a date: the signs so far, what it would write next, the letters under the chosen step's weights, and the map of
// one of its three attentions.

const START = "start";
const STEPS = 11; // ten signs and the end
const NEXT = 3; // likeliest signs that are told

const written = new Map(); // what was written for a text: a slider's step asks for it again

export default explorer({
  model: () => "transformer",

  split: (text) => [...text.toLowerCase().trim().replace(/\s+/g, " ")],

  compute({ tokens, ids }, at, model, { stored: { vocabulary } }) {
    const text = tokens.join("");
    if (written.size > 50) written.clear();
    if (!written.has(text)) written.set(text, write(ids, model, vocabulary));
    return { tokens, vocabulary, ...written.get(text) };
  },

  status({ tokens, signs, cross }, { step, head }) {
    const row = headOf(cross, head).at(step - 1).data;
    return `step ${step} writes ${signs[step - 1]} and looks most at “${tokens[argmax(row)]}” · in the end ${answer(signs)}`;
  },

  draw(frame, { step, head, attention }, room) {
    const { tokens, signs } = frame;
    const at = step - 1;
    const reads = [START, ...signs.slice(0, -1)];
    const who = head === "mean" ? "mean of the four heads" : `head ${head}`;
    const [name, rows, columns, widest, told] = {
      c: ["cross", signs, tokens, 24, "each row writes a sign, each column is a letter"],
      d: ["own", reads, reads, 34, "each row is a sign that was read, each column one up to itself"],
      e: ["encoder", tokens, tokens, 24, "each row and each column is a letter"],
    }[attention[0]];
    const marked = name === "encoder" ? rows : rows.map((sign, i) => (i === at ? `▸ ${sign}` : sign));
    const size = cellSize(room, columns.length, marked, { most: widest, least: 4 });
    const labels = size < 8 ? [] : columns.map((one) => one.slice(0, 2)); // "st" for the start
    const map = matrix({ name: `${name} ${head === "mean" ? 4 : head}`, tensor: headOf(frame[name], head), rows: marked, columns: labels, size, high: Math.max(size, 12), largest: 1 });
    return (
      row("What is written so far, and what comes next", [panel("the decoder reads these, and writes the one in the box", signsSoFar(frame, at)), panel("the likeliest signs for the box", likeliest(frame, at))]) +
      row("Where this step looks among the letters", [panel(`cross-attention, ${who}`, lettersSeen(tokens, headOf(frame.cross, head).at(at).data, room), "weights")]) +
      row(`The map of the ${attention}`, [panel(`${who}: ${told}`, map, "weights")])
    );
  },

  describe({ name, r, c, value }, { tokens, signs }) {
    const [of, head] = name.split(" ");
    const who = head === "4" ? "Mean of the heads" : `Head ${head}`;
    const reads = [START, ...signs];
    if (of === "cross") return `${who}: writing “${signs[r]}”, step ${r + 1}, letter ${c + 1}, “${tokens[c]}”, has the weight ${number(value)}.`;
    if (of === "own") return `${who}: “${reads[r]}”, place ${r}, gives “${reads[c]}”, place ${c}, the weight ${number(value)}.`;
    return `${who}: letter ${r + 1}, “${tokens[r]}”, gives letter ${c + 1}, “${tokens[c]}”, the weight ${number(value)}.`;
  },
});

// Reads all letters once, then writes the likeliest sign at every step. The keys and values of the letters and of earlier signs are
// kept, so that each step projects one row.
function write(ids, model, vocabulary) {
  const layer = "encoder.layers.0";
  let x = embed(ids, model["source_embedding.table.weight"]);
  const reading = attend(layerNorm(x, model, `${layer}.self_attention_norm`), model, `${layer}.self_attention`);
  x = add(x, reading.output);
  x = add(x, feedForward(layerNorm(x, model, `${layer}.feed_forward_norm`), model, `${layer}.feed_forward`));
  const memory = layerNorm(x, model, "encoder.norm");

  const lettersKept = projected(memory, model, "decoder.layers.0.cross_attention");
  const positions = sinusoidalPositions(STEPS, memory.shape[1]);
  let kept;
  let last = vocabulary.indexOf(START);
  const steps = range(STEPS).map((i) => {
    const sign = add(embedding([last], model["target_embedding.table.weight"]), new Tensor([1, memory.shape[1]], positions.at(i).data));
    const step = writeOne(sign, model, kept, lettersKept);
    kept = step.kept;
    last = argmax(step.share.data);
    return { ...step, sign: last };
  });
  const rows = (name, width) => withMean(stack(range(model.n_heads).map((head) => filled(STEPS, width, (r, c) => steps[r][name].at(head).data[c] ?? 0))));
  return {
    signs: steps.map(({ sign }) => vocabulary[sign]),
    shares: stack(steps.map(({ share }) => share)),
    encoder: withMean(reading.weights),
    own: rows("own", STEPS),
    cross: rows("cross", ids.length),
  };
}

// One row through the decoder's layer: what it gives each sign so far and each letter, and the share of every sign to come.
function writeOne(sign, model, kept, lettersKept) {
  const layer = "decoder.layers.0";
  const one = layerNorm(sign, model, `${layer}.self_attention_norm`);
  const fresh = projected(one, model, `${layer}.self_attention`);
  const all = kept ? fresh.map((rows, i) => below(kept[i], rows)) : fresh;
  const own = attendTo(one, all, model, `${layer}.self_attention`);
  let x = add(sign, own.output);
  const cross = attendTo(layerNorm(x, model, `${layer}.cross_attention_norm`), lettersKept, model, `${layer}.cross_attention`);
  x = add(x, cross.output);
  x = add(x, feedForward(layerNorm(x, model, `${layer}.feed_forward_norm`), model, `${layer}.feed_forward`));
  const logits = dense(layerNorm(x, model, "decoder.norm"), model, "to_logits");
  const share = maskedSoftmax(new Tensor([1, ...logits.shape], logits.data)).at(0).at(0);
  return { own: own.weights, cross: cross.weights, share, kept: all };
}

// Keys and values, (seq, d_model) each.
function projected(x, model, prefix) {
  return ["w_k", "w_v"].map((name) => dense(x, model, `${prefix}.${name}`));
}

function attendTo(x, [keys, values], model, prefix) {
  const [q, k, v] = [dense(x, model, `${prefix}.w_q`), keys, values].map((rows) => splitHeads(rows, model.n_heads));
  const [heads, weights] = scaledDotProductAttention(q, k, v);
  return { output: dense(mergeHeads(heads), model, `${prefix}.w_o`), weights };
}

function below(a, b) {
  return filled(a.shape[0] + b.shape[0], a.shape[1], (r, c) => (r < a.shape[0] ? a.at(r) : b.at(r - a.shape[0])).data[c]);
}

// (heads, query, key), with the mean over the heads behind them.
function withMean(weights) {
  const [heads, queries, keys] = weights.shape;
  const mean = filled(queries, keys, (r, c) => range(heads).reduce((sum, head) => sum + weights.at(head).at(r).data[c], 0) / heads);
  return stack([...range(heads).map((head) => weights.at(head)), mean]);
}

function headOf(weights, head) {
  return weights.at(head === "mean" ? weights.shape[0] - 1 : +head);
}

// "1973-03-04"
function answer(signs) {
  return signs.filter((sign) => sign.length === 1).join("");
}

function likeliest({ shares, vocabulary }, at) {
  const row = [...shares.at(at).data];
  const best = range(row.length).sort((a, b) => row[b] - row[a]).slice(0, NEXT);
  const told = best.map((id) => `<span class="answer"><strong>${escape(vocabulary[id])}</strong> <span class="sure">${number(row[id])}</span></span>`);
  return `<p class="answers">${told.join(" ")}</p>`;
}

// The signs before this step, and in a frame the one that it writes.
function signsSoFar({ signs }, at) {
  const pitch = 22;
  const left = 46;
  const texts = signs.slice(0, at + 1).map((sign, i) => `<text class="letter" x="${left + (i + 0.5) * pitch}" y="18">${escape(sign)}</text>`);
  const wide = at === STEPS - 1 ? 40 : pitch; // "end"
  const here = `<rect class="here" x="${left + (at + 0.5) * pitch - wide / 2 + 0.5}" y="0.5" width="${wide - 1}" height="25" rx="3"/>`;
  const width = left + STEPS * pitch + 12;
  const told = `Read: start ${signs.slice(0, at).join("")}. Written next: ${signs[at]}.`;
  return `<svg class="written" width="${width}" height="26" viewBox="0 0 ${width} 26" role="img" aria-label="${escape(told)}"><text class="letter quiet" x="${left / 2}" y="18">${START}</text>${texts.join("")}${here}</svg>`;
}
