// A sentence, what every head looks at from one of its verbs, drawn over the words, and the two
// answers. Another verb can be pointed at, and heads can be switched off.

import {
  answered,
  answersAtVerb,
  arcsFromVerb,
  ask,
  headSwitches,
  roleOf,
  verbButtons,
} from "./arcs.js";
import { explorer } from "./explorer.js";
import { listed, number, percent } from "./format.js";
import { element, escapeHtml } from "./markup.js";
import { cellSize, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { argmax, range } from "./tensor.js";

export default explorer({
  examples: [
    "the fox bit the wolf and the wolf bit the fox",
    "the red ball chased a dog",
    "the cat saw the other cat",
    "the ball was chased by a dog",
    "a sailor near the house found the bell",
  ],

  act(what, memory) {
    if (what.startsWith("ask")) return ask(what, memory);
    const head = +what.split(" ")[1];
    memory.off ??= new Set();
    memory.off[memory.off.has(head) ? "delete" : "add"](head);
  },

  compute(sentence, _at, model, { stored, memory }) {
    const off = new Set([...(memory.off ?? [])].filter((head) => head < model.n_heads));
    const { verbs, vocabulary, accuracy, roles, grammar, unmet, plurals } = stored;
    const same = { verbs, vocabulary, accuracy, roles, grammar, unmet, plurals };
    const without = off.size ? { off: [...off] } : {};
    const { asking } = memory;
    return { ...answered(sentence, model, verbs, { asking, off }), ...same, ...without };
  },

  note({ tokens, unmet, plurals, verbs }, at) {
    if (verbs.includes(tokens[1]) && !plurals.includes(tokens[0])) {
      return "It learnt sentences such as “the dog bit the man”. Without the articles it is " +
        "mostly wrong.";
    }
    const met = [...new Set(tokens)].filter((token) => unmet.includes(token));
    if (!met.length) return "";
    return `At d_model ${at.d_model} the model never met ${listed(met)} in training; ` +
      "wider models did.";
  },

  status({ accuracy, grammar, off }, at) {
    const sizes = `d_model ${at.d_model} · n_heads ${at.n_heads}`;
    return `${sizes} · d_key ${at.d_model / at.n_heads}` +
      ` · right at ${percent(accuracy)} of the verbs of 4,000 new sentences (${grammar})` +
      (off ? ", with all heads on" : "");
  },

  draw(frame, _at, available) {
    const { tokens, verb, weights, roles, off = [] } = frame;
    const heads = range(weights.shape[0]);
    const names = roles.map((given, i) => {
      const role = roleOf(given);
      return `head ${i}${role ? `: ${role}` : ""}`;
    });
    const strongest = (i) => {
      const row = weights.at(i).at(verb).data;
      const key = argmax(row);
      return `${number(row[key])} on “${escapeHtml(tokens[key])}”`;
    };
    const switches = heads.map((i) => {
      const isOff = off.includes(i);
      const detail = verb >= 0 && ` ${element("span", {}, isOff ? "switched off" : strongest(i))}`;
      return { id: i, nth: i, name: names[i], detail, isOff };
    });
    // As many beside one another as leave their labels enough width.
    const most = heads.length === 1 ? 34 : 26;
    const fit = (across) => {
      const share = (available - 18 * (across - 1)) / across;
      return cellSize(share, tokens.length, tokens, { most });
    };
    const fits = (across) => across <= heads.length && fit(across) >= 14;
    const size = fit([Math.min(4, heads.length), 3, 2].find(fits) ?? 1);
    const maps = heads.map((i) => {
      const isOff = off.includes(i);
      const look = { rows: tokens, columns: tokens, size, largest: 1 };
      const map = matrix({ ...look, name: `weights ${i}`, tensor: weights.at(i) });
      const caption = isOff ? `${names[i]}, switched off` : names[i];
      return panel(caption, element("div", { class: isOff && "off" }, map), "weights", "later");
    });
    return (
      verbButtons(frame) +
      arcsFromVerb(frame, available) +
      answersAtVerb(frame) +
      headSwitches(switches) +
      row(
        "Every head, every word: each row is a word that looks, " +
          "each column a word that it looks at",
        maps,
      )
    );
  },

  describe({ name, r, c, value }, { tokens, weights }) {
    if (name === "word") {
      const looks = range(weights.shape[0]).map((i) => {
        const data = weights.at(i).at(r).data;
        const key = argmax(data);
        return `head ${i} mostly at “${tokens[key]}” (${number(data[key])})`;
      });
      return `“${tokens[r]}” looks: ${looks.join(", ")}.`;
    }
    const head = name.split(" ")[1];
    return `Head ${head}: “${tokens[r]}” gives “${tokens[c]}” the weight ${number(value)}.`;
  },
});
