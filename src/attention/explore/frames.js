// Frames and weights as they are stored: JSON beside one buffer of numbers.

import { Tensor } from "./tensor.js";

// The single-precision numbers of a message.
export function singles(view) {
  return new Float32Array(aligned(view));
}

// Those in half precision: a sign, five bits of exponent, ten of fraction.
export function halves(view) {
  return Float32Array.from(new Uint16Array(aligned(view)), (half) => {
    const exponent = (half >> 10) & 31;
    const fraction = half & 1023;
    const size = exponent ? 2 ** (exponent - 25) * (1024 + fraction) : 2 ** -24 * fraction;
    return half & 0x8000 ? -size : size;
  });
}

// A message's bytes may begin anywhere in their buffer; an array of numbers may not.
function aligned(view) {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength).slice().buffer;
}

const LEVELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Causal weights (…, query, key), stored up to the diagonal, a character for each: `from_levels` of
// pretrained/maps.py.
function causal({ levels, shape }) {
  const seq = shape.at(-1);
  const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
  let nth = 0;
  for (let start = 0; start < data.length; start += seq) {
    for (let key = 0; key <= (start / seq) % seq; key++) {
      data[start + key] = (LEVELS.indexOf(levels[nth++]) / (LEVELS.length - 1)) ** 2;
    }
  }
  return new Tensor(shape, data);
}

// A stored frame, with its tensors taken out of the buffer.
export function unpacked(stored, numbers) {
  return Object.fromEntries(
    Object.entries(stored).map(([name, value]) => {
      if (!value?.shape) return [name, value];
      if (value.levels) return [name, causal(value)];
      const size = value.shape.reduce((a, b) => a * b, 1);
      return [name, new Tensor(value.shape, numbers.subarray(value.at, value.at + size))];
    }),
  );
}

// By how much two frames differ; infinitely where they do not hold the same things.
export function difference(frame, other) {
  const parts = Object.keys({ ...frame, ...other }).map((name) => {
    const [a, b] = [frame[name], other[name]].map((value) => value?.data ?? value);
    if (typeof a !== "object" || !a || !b) return distance(a, b);
    if (a.length !== b.length) return Infinity;
    return Math.max(0, ...Array.from(a, (x, i) => distance(x, b[i])));
  });
  return Math.max(0, ...parts);
}

function distance(a, b) {
  if (a === b) return 0;
  return typeof a === "number" && typeof b === "number" ? Math.abs(a - b) : Infinity;
}
