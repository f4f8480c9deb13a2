// Two heads that the reader aims at a word: the lines of the verb, the answers, and the value rows
// with what comes back of them.

import { answersAtVerb, arcsFromVerb } from "./arcs.js";
import { explorer } from "./explorer.js";
import { number } from "./format.js";
import { cellSize, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { argmax, range } from "./tensor.js";

export default explorer({
  status({ who, whom, vocabulary }, at) {
    const [first, second] = [who, whom].map(({ data }) => vocabulary[argmax(data)]);
    return `head 0 ${aim(at.head_0)} · head 1 ${aim(at.head_1)} · who? ${first} · whom? ${second}`;
  },

  draw(frame, _at, available) {
    const { tokens, verb, weights, values, returned } = frame;
    const heads = range(weights.shape[0]);
    const [, , width] = values.shape;
    const largest = Math.max(values.largest, returned.largest);
    const share = available >= 560 ? (available - 18) / 2 : available;
    const look = { size: cellSize(share, width, tokens, { most: 44 }), high: 24, largest };
    const named = heads.map((head) => `head ${head}`);
    const lines = arcsFromVerb({ ...frame, roles: heads.map(() => [0, 0]) }, available);
    const rows = heads.map((head) => {
      const given = weights.at(head).at(verb).data;
      const said = tokens.map((token, i) =>
        given[i] < 0.005 ? token : `${token} ${number(given[i])}`
      );
      const value = { ...look, name: `values ${head}`, tensor: values.at(head), rows: said };
      return panel(`head ${head}`, matrix(value), "v");
    });
    const back = matrix({ ...look, name: "returned", tensor: returned, rows: named });
    return lines + answersAtVerb(frame) +
      row("The values: a row for each word, beside it the verb's weight", rows) +
      row(`What “${tokens[verb]}” gets back: of each head the weighted sum`, [
        panel("four numbers from each head", back, "output"),
      ]);
  },

  describe({ name, r, c, value }, { tokens, verb }) {
    if (name === "word") return `“${tokens[r]}”, word ${r}.`;
    if (name === "returned") {
      return `Head ${r} brings “${tokens[verb]}” ${number(value)} in column ${c}.`;
    }
    const head = name.split(" ")[1];
    return `Head ${head}: the value of “${tokens[r]}” has ${number(value)} in column ${c}.`;
  },
});

function aim(word) {
  return word === "as trained" ? word : `on “${word}”`;
}
