// What a layer of a transformer adds to attention, for what a reader writes. `model` is a state
// dict as torch names it, flat, with `n_heads` beside it; `prefix` says whose part of it is meant,
// such as "encoder.layers.0.self_attention".

import { linear, multiHeadAttention } from "./attention.js";
import { filled, range } from "./tensor.js";

// nn.Linear by its name.
export function dense(x, model, prefix) {
  return linear(x, model[`${prefix}.weight`], model[`${prefix}.bias`]);
}

// Over the numbers of each row, with the population's variance.
export function layerNorm(x, model, prefix, eps = 1e-5) {
  const [rows, columns] = x.shape;
  const [gain, bias] = ["weight", "bias"].map((name) => model[`${prefix}.${name}`].data);
  const moments = range(rows).map((r) => {
    const row = x.data.subarray(r * columns, (r + 1) * columns);
    const mean = row.reduce((sum, value) => sum + value, 0) / columns;
    return [
      mean,
      Math.sqrt(row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / columns + eps),
    ];
  });
  return filled(
    rows,
    columns,
    (r, c) => ((x.data[r * columns + c] - moments[r][0]) / moments[r][1]) * gain[c] + bias[c],
  );
}

export function feedForward(x, model, prefix) {
  const hidden = dense(x, model, `${prefix}.w_1`);
  return dense(hidden.map((value) => Math.max(0, value)), model, `${prefix}.w_2`);
}

// Queries from x, keys and values from `memory`.
export function attend(x, model, prefix, mask, memory = x) {
  const layer = { n_heads: model.n_heads };
  for (const name of "qkvo") {
    layer[`w_${name}`] = model[`${prefix}.w_${name}.weight`];
    layer[`b_${name}`] = model[`${prefix}.w_${name}.bias`];
  }
  return multiHeadAttention(x, layer, mask, memory);
}
