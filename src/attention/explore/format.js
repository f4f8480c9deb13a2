// Numbers and words as they are written in a picture.

const MINUS = "\u2212";
export const LEAST = 0.05; // of weights that are written, or drawn as lines

// Two decimals, a true minus sign, and no "-0.00".
export function number(x, digits = 2) {
  if (x === -Infinity) return MINUS + "∞";
  if (Number.isNaN(x)) return "NaN";
  const text = Math.abs(x).toFixed(digits);
  return x < 0 && Number(text) !== 0 ? MINUS + text : text;
}

// For inside a cell: no zero before the point.
export function short(x, digits = 2) {
  return number(x, digits).replace(/^(\D?)0\./, "$1.");
}

export function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}

const grouped = new Intl.NumberFormat("en-GB");

// 1234567 as "1,234,567".
export function thousands(value) {
  return grouped.format(value);
}

// “one” and “two”, as in a sentence.
export function listed(words) {
  const quoted = words.map((word) => `“${word}”`);
  return quoted.length > 1 ? `${quoted.slice(0, -1).join(", ")} and ${quoted.at(-1)}` : quoted[0];
}
