// X beside the positional encoding, then dot products: between the rows of X, and between positions
// alone. A row that equals another one says so in its label; cells of one distance between
// positions are highlighted together.

import { add, embedding, sinusoidalPositions, timesTransposed } from "./attention.js";
import { explorer } from "./explorer.js";
import { number } from "./format.js";
import { cellSize, labelWidth, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { range, Tensor } from "./tensor.js";

export default explorer({
  compute({ ids, tokens }, at, model) {
    const words = embedding(ids, model.table);
    const [length, d_model] = words.shape;
    const all = sinusoidalPositions(Math.max(12, length), d_model);
    const pe = new Tensor(words.shape, all.data.slice(0, words.data.length));
    const x = at.positions === "on" ? add(words, pe) : words;
    const same = (i, j) => i !== j && x.at(i).data.every((value, c) => value === x.at(j).data[c]);
    const twin = range(length).map((i) => range(length).findIndex((j) => same(i, j)));
    return {
      tokens,
      words,
      pe,
      x,
      dots: timesTransposed(x, x),
      pe_dots: timesTransposed(all, all),
      twin,
    };
  },

  status({ tokens, twin }, at) {
    const equal = twin.filter((i) => i >= 0).length;
    const positions = at.positions === "on" ? "added" : "not added";
    return `d_model ${at.d_model} · positions ${positions}` +
      ` · rows equal to another row: ${equal} of ${tokens.length}`;
  },

  draw({ tokens, x, pe, dots, pe_dots, twin }, at, available) {
    const width = x.shape[1];
    const added = at.positions === "on";
    const rows = tokens.map((word, i) => `${word} ${i}`);
    const marked = rows.map((label, i) => (twin[i] < 0 ? label : `${label} = ${twin[i]}`));
    const places = Array.from({ length: pe_dots.shape[0] }, (_, i) => String(i));
    const here = places.slice(0, tokens.length);
    // Side by side where the digits still fit, else one below the other.
    const beside = Math.floor(
      (available - labelWidth(marked) - labelWidth(here) - 24) / (2 * width),
    );
    const size = beside >= 30
      ? Math.min(30, beside)
      : cellSize(available, width, marked, { most: 30 });
    const high = Math.max(size, 15); // room for the labels where many columns make narrow cells
    const entry = (_value, r, c) => ({ key: 1000 + r * width + c });
    const groups = rows
      .map((_, i) => rows.filter((_, j) => first(twin, j) === i))
      .filter((group) => group.length > 1);
    const shape = `(${tokens.length}, ${width})`;
    const entries = { size, high, paint: entry };
    return (
      row(
        added ? "X = embedding · √d_model + PE" : "X = embedding · √d_model, without PE",
        [
          panel(`X, ${shape}`, matrix({ name: "x", tensor: x, rows: marked, ...entries })),
          panel(
            `PE, ${shape}, ${added ? "added" : "not added"}`,
            matrix({ name: "pe", tensor: pe, rows: here, ...entries }),
          ),
        ],
        groups.length
          ? `Equal rows: ${groups.map((group) => group.join(" and ")).join("; ")}.`
          : "No row equals another.",
      ) +
      row("Dot products", [
        panel(
          "between rows of X",
          matrix({
            name: "dots",
            tensor: dots,
            rows,
            columns: rows,
            size: cellSize(available, tokens.length, rows, { most: 36 }),
          }),
        ),
        panel(
          "between positions, PE · PE: one number for each distance",
          matrix({
            name: "pe_dots",
            tensor: pe_dots,
            rows: places,
            columns: places,
            size: cellSize(available, places.length, places, { most: 30 }),
            paint: (_value, r, c) => ({ key: Math.abs(r - c) }),
          }),
        ),
      ])
    );
  },

  describe({ name, r, c, value }, { tokens, words, x, pe, twin }, at) {
    const token = (i) => `${tokens[i]} ${i}`;
    if (name === "pe_dots") {
      const apart = Math.abs(r - c);
      return `PE(${r}) · PE(${c}) = ${number(value)}, as for any two positions ${apart} apart.`;
    }
    if (name === "dots") {
      const same = r !== c && first(twin, r) === first(twin, c) ? " The two rows are equal." : "";
      return `Row ${token(r)} · row ${token(c)} = ${number(value)}.${same}`;
    }
    const i = r * pe.shape[1] + c;
    const [word, place, sum] = [words, pe, x].map(({ data }) => number(data[i]));
    return at.positions === "off"
      ? `Column ${c} of ${token(r)}: ${word}. PE(${r}) has ${place} there, which is not added.`
      : `Column ${c} of ${token(r)}: embedding ${word}, PE(${r}) ${place}, sum ${sum}.`;
  },
});

// The first of the rows that equal row i: i itself where no other does.
function first(twin, i) {
  return twin[i] < 0 ? i : Math.min(i, twin[i]);
}
