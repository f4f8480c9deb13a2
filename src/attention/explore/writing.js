// The transformer writes a date: the signs so far, what it would write next, the letters under the
// chosen step's weights, and the map of one of its three attentions.

import { answer } from "./answers.js";
import {
  add,
  embed,
  embedding,
  maskedSoftmax,
  mergeHeads,
  scaledDotProductAttention,
  sinusoidalPositions,
  splitHeads,
} from "./attention.js";
import { explorer } from "./explorer.js";
import { number } from "./format.js";
import { lettersSeen } from "./letters.js";
import { element, rect, svg, text } from "./markup.js";
import { cellSize, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { argmax, filled, range, stack, sum, Tensor } from "./tensor.js";
import { attend, dense, feedForward, layerNorm } from "./transformer.js";

const START = "start";
const STEPS = 11; // ten signs and the end
const NEXT = 3; // likeliest signs that are written out

const written = new Map(); // what was written for a text: a slider's step asks for it again

export default explorer({
  model: () => "transformer",

  split: (text) => [...text.toLowerCase().trim().replace(/\s+/g, " ")],

  compute({ tokens, ids }, _at, model, { stored: { vocabulary } }) {
    const text = tokens.join("");
    if (written.size > 50) written.clear();
    if (!written.has(text)) written.set(text, write(ids, model, vocabulary));
    return { tokens, vocabulary, ...written.get(text) };
  },

  status({ tokens, signs, cross }, { step, head }) {
    const { data } = headOf(cross, head).at(step - 1);
    const looks = `looks most at “${tokens[argmax(data)]}”`;
    return `step ${step} writes ${signs[step - 1]} and ${looks} · in the end ${dateOf(signs)}`;
  },

  draw(frame, at, available) {
    const { tokens, cross } = frame;
    const nth = at.step - 1;
    const who = at.head === "mean" ? "mean of the four heads" : `head ${at.head}`;
    const weights = headOf(cross, at.head).at(nth).data;
    return (
      row("What is written so far, and what comes next", [
        panel("the decoder reads these, and writes the one in the box", signsSoFar(frame, nth)),
        panel("the likeliest signs for the box", likeliest(frame, nth)),
      ]) +
      row("Where this step looks among the letters", [
        panel(`cross-attention, ${who}`, lettersSeen(tokens, weights, available), "weights"),
      ]) +
      row(`The map of the ${at.attention}`, [chosenMap(frame, at, who, available)])
    );
  },

  describe({ name, r, c, value }, { tokens, signs }) {
    const [of, head] = name.split(" ");
    const who = head === "4" ? "Mean of the heads" : `Head ${head}`;
    const weight = `the weight ${number(value)}`;
    const reads = [START, ...signs];
    if (of === "cross") {
      return `${who}: writing “${signs[r]}”, step ${r + 1}, ` +
        `letter ${c + 1}, “${tokens[c]}”, has ${weight}.`;
    }
    if (of === "own") {
      return `${who}: “${reads[r]}”, position ${r}, gives “${reads[c]}”, position ${c}, ${weight}.`;
    }
    return `${who}: letter ${r + 1}, “${tokens[r]}”, ` +
      `gives letter ${c + 1}, “${tokens[c]}”, ${weight}.`;
  },
});

// The map of one of the three attentions; the row of the chosen step has a mark.
function chosenMap(frame, { step, head, attention }, who, available) {
  const { tokens, signs } = frame;
  const reads = [START, ...signs.slice(0, -1)];
  const [name, rows, columns, most, meaning] = {
    c: ["cross", signs, tokens, 24, "each row writes a sign, each column is a letter"],
    d: ["own", reads, reads, 34, "each row is a sign that was read, each column one up to itself"],
    e: ["encoder", tokens, tokens, 24, "each row and each column is a letter"],
  }[attention[0]];
  const mark = (sign, i) => (name !== "encoder" && i === step - 1 ? `▸ ${sign}` : sign);
  const marked = rows.map(mark);
  const size = cellSize(available, columns.length, marked, { most, least: 4 });
  const map = matrix({
    name: `${name} ${head === "mean" ? 4 : head}`,
    tensor: headOf(frame[name], head),
    rows: marked,
    columns: size < 8 ? [] : columns.map((one) => one.slice(0, 2)), // "st" for the start
    ...{ size, high: Math.max(size, 12), largest: 1 },
  });
  return panel(`${who}: ${meaning}`, map, "weights");
}

// Reads all letters once, then writes the likeliest sign at every step. The keys and values of the
// letters and of earlier signs are kept, so that each step projects one row.
function write(ids, model, vocabulary) {
  const layer = "encoder.layers.0";
  let x = embed(ids, model["source_embedding.table.weight"]);
  const normed = layerNorm(x, model, `${layer}.self_attention_norm`);
  const reading = attend(normed, model, `${layer}.self_attention`);
  x = add(x, reading.output);
  x = addFeedForward(x, model, layer);
  const memory = layerNorm(x, model, "encoder.norm");

  const lettersCached = projected(memory, model, "decoder.layers.0.cross_attention");
  const positions = sinusoidalPositions(STEPS, memory.shape[1]);
  let cached;
  let last = vocabulary.indexOf(START);
  const steps = range(STEPS).map((i) => {
    const place = new Tensor([1, memory.shape[1]], positions.at(i).data);
    const sign = add(embedding([last], model["target_embedding.table.weight"]), place);
    const step = writeOne(sign, model, cached, lettersCached);
    cached = step.cached;
    last = argmax(step.share.data);
    return { ...step, sign: last };
  });
  const rows = (name, width) => {
    const entry = (head) => (r, c) => steps[r][name].at(head).data[c] ?? 0;
    return withMean(stack(range(model.n_heads).map((head) => filled(STEPS, width, entry(head)))));
  };
  return {
    signs: steps.map(({ sign }) => vocabulary[sign]),
    shares: stack(steps.map(({ share }) => share)),
    encoder: withMean(reading.weights),
    own: rows("own", STEPS),
    cross: rows("cross", ids.length),
  };
}

// One row through the decoder's layer: what it gives each sign so far and each letter, and the
// share of every sign to come.
function writeOne(sign, model, cached, lettersCached) {
  const layer = "decoder.layers.0";
  const one = layerNorm(sign, model, `${layer}.self_attention_norm`);
  const fresh = projected(one, model, `${layer}.self_attention`);
  const all = cached ? fresh.map((rows, i) => below(cached[i], rows)) : fresh;
  const own = attendTo(one, all, model, `${layer}.self_attention`);
  let x = add(sign, own.output);
  const other = layerNorm(x, model, `${layer}.cross_attention_norm`);
  const cross = attendTo(other, lettersCached, model, `${layer}.cross_attention`);
  x = addFeedForward(add(x, cross.output), model, layer);
  const logits = dense(layerNorm(x, model, "decoder.norm"), model, "to_logits");
  const share = maskedSoftmax(new Tensor([1, ...logits.shape], logits.data)).at(0).at(0);
  return { own: own.weights, cross: cross.weights, share, cached: all };
}

function addFeedForward(x, model, layer) {
  const normed = layerNorm(x, model, `${layer}.feed_forward_norm`);
  return add(x, feedForward(normed, model, `${layer}.feed_forward`));
}

// Keys and values, (seq, d_model) each.
function projected(x, model, prefix) {
  return ["w_k", "w_v"].map((name) => dense(x, model, `${prefix}.${name}`));
}

function attendTo(x, [keys, values], model, prefix) {
  const queries = dense(x, model, `${prefix}.w_q`);
  const [q, k, v] = [queries, keys, values].map((rows) => splitHeads(rows, model.n_heads));
  const [heads, weights] = scaledDotProductAttention(q, k, v);
  return { output: dense(mergeHeads(heads), model, `${prefix}.w_o`), weights };
}

function below(a, b) {
  const rows = a.shape[0];
  const row = (r) => (r < rows ? a.at(r) : b.at(r - rows));
  return filled(rows + b.shape[0], a.shape[1], (r, c) => row(r).data[c]);
}

// (heads, query, key), with the mean over the heads behind them.
function withMean(weights) {
  const [count, queries, keys] = weights.shape;
  const heads = range(count).map((head) => weights.at(head));
  const ofHeads = (r, c) => heads.map((head) => head.data[r * keys + c]);
  const mean = filled(queries, keys, (r, c) => sum(ofHeads(r, c)) / count);
  return stack([...heads, mean]);
}

function headOf(weights, head) {
  return weights.at(head === "mean" ? weights.shape[0] - 1 : +head);
}

// "1973-03-04"
function dateOf(signs) {
  return signs.filter((sign) => sign.length === 1).join("");
}

function likeliest({ shares, vocabulary }, nth) {
  const row = [...shares.at(nth).data];
  const best = range(row.length).sort((a, b) => row[b] - row[a]).slice(0, NEXT);
  const parts = best.map((id) => answer("", vocabulary[id], row[id]));
  return element("p", { class: "answers" }, parts.join(" "));
}

// The signs before this step, and in a frame the one that it writes.
function signsSoFar({ signs }, nth) {
  const [left, pitch] = [46, 22];
  const x = (i) => left + (i + 0.5) * pitch;
  const wide = nth === STEPS - 1 ? 40 : pitch; // "end"
  return svg(
    {
      ...{ class: "written", width: left + STEPS * pitch + 12, height: 26 },
      label: `Read: start ${signs.slice(0, nth).join("")}. Written next: ${signs[nth]}.`,
    },
    text("letter quiet", left / 2, 18, START),
    signs.slice(0, nth + 1).map((sign, i) => text("letter", x(i), 18, sign)),
    rect("here", x(nth) - wide / 2 + 0.5, 0.5, wide - 1, 25, { rx: 3 }),
  );
}
