// Models of one layer and of two, whole or without some of their parts: the answers at each verb of
// a sentence, how far apart the rows are after each sublayer, and what every head looks at.

import { answer, answers, knownAs } from "./answers.js";
import { add, embed, maskedSoftmax, paddingMask } from "./attention.js";
import { bars } from "./chart.js";
import { explorer } from "./explorer.js";
import { number, percent, short } from "./format.js";
import { element } from "./markup.js";
import { cellSize, matrix } from "./matrix.js";
import { panel, row } from "./panels.js";
import { argmax, filled, range, stack, sum, Tensor } from "./tensor.js";
import { attend, dense, feedForward, layerNorm } from "./transformer.js";

const PARTS = { residual: "residual", layer_norm: "layer norm", feed_forward: "feed-forward" };

export default explorer({
  examples: [
    "the dog that the cat chased saw the bird",
    "the dog that chased the cat saw the bird",
    "the dog was seen by the bird that the cat chased",
    "the king that a fox followed knew the girl that was seen by a wolf",
  ],

  model: ({ n_layers }) => String(n_layers),

  // As `reduced` of without_parts.py: x + Sublayer(LayerNorm(x)), without what is switched off.
  compute({ tokens, ids }, at, model, { stored }) {
    const { verbs, vocabulary, right } = stored;
    const has = (part) => at[part] === "on";
    let x = embed(ids, model["embedding.table.weight"]);
    const spread = [distanceFromMean(x)];
    const weights = [];
    for (const i of range(+at.n_layers)) {
      const prefix = `encoder.layers.${i}`;
      const step = (norm, sublayer) => {
        const output = sublayer(has("layer_norm") ? layerNorm(x, model, `${prefix}.${norm}`) : x);
        x = has("residual") ? add(x, output) : output;
        spread.push(distanceFromMean(x));
      };
      step("self_attention_norm", (rows) => {
        const mask = paddingMask(tokens);
        const attended = attend(rows, model, `${prefix}.self_attention`, mask);
        weights.push(attended.weights);
        return attended.output;
      });
      if (has("feed_forward")) {
        step("feed_forward_norm", (rows) => feedForward(rows, model, `${prefix}.feed_forward`));
      } else spread.push(spread.at(-1));
    }
    if (has("layer_norm")) x = layerNorm(x, model, "encoder.norm");
    const places = range(tokens.length).filter((i) => verbs.includes(tokens[i]));
    const [who, whom] = ["who", "whom"].map((question) => {
      const logits = dense(x, model, `to_${question}`);
      const shares = maskedSoftmax(new Tensor([1, ...logits.shape], logits.data)).at(0);
      return places.map((place) => {
        const { data } = shares.at(place);
        const best = argmax(data);
        return [vocabulary[best], data[best]];
      });
    });
    return {
      tokens,
      places,
      who: who.map(([word]) => word),
      whom: whom.map(([word]) => word),
      sure: filled(places.length, 2, (r, c) => [who, whom][c][r][1]),
      weights: stack(weights),
      spread: new Tensor([spread.length, 1], Float64Array.from(spread)),
      verbs,
      vocabulary,
      right,
    };
  },

  note({ places, verbs }) {
    if (places.length) return "";
    return `There is no verb in it that the model knows. It knows ${verbs.join(", ")}.`;
  },

  status({ right }, at) {
    const off = Object.keys(PARTS).filter((name) => at[name] === "off");
    const parts = off.length ? `without ${off.map((name) => PARTS[name]).join(", ")}` : "all parts";
    return `n_layers ${at.n_layers} · ${parts}` +
      ` · both answers right at ${percent(right)} of the verbs of 2,000 new sentences`;
  },

  draw(frame, _at, available) {
    const { tokens, weights, spread } = frame;
    const [layers, heads] = weights.shape;
    const fit = (across) => {
      const share = (available - 18 * (across - 1)) / across;
      return cellSize(share, tokens.length, tokens, { most: 26 });
    };
    const fits = (across) => across <= layers * heads && fit(across) >= 14;
    const size = fit([4, 2].find(fits) ?? 1);
    const labels = range(spread.shape[0]).map(sublayer);
    const distances = bars({
      ...{ name: "spread", tensor: spread, rows: labels, column: "distance", largest: 1 },
      ...{ width: Math.min(available, 520), space: 44, aligned: true },
    });
    const maps = range(layers).flatMap((layer) =>
      range(heads).map((head) => {
        const map = matrix({
          ...{ name: `weights ${layer} ${head}`, tensor: weights.at(layer).at(head) },
          ...{ rows: tokens, columns: tokens, size, largest: 1, paint: inThree },
        });
        return panel(`layer ${layer + 1}, head ${head}`, map, "weights", "later");
      })
    );
    return (
      answersAtVerbs(frame) +
      row("How far the rows are from their mean: at 0 all would be the same", [
        panel("distance from the mean after each sublayer, as a share of their size", distances),
      ]) +
      row("Every head of every layer: each row is a word that looks", maps)
    );
  },

  describe({ name, r, c, value }, { tokens }) {
    if (name === "spread") {
      return `${sublayer(r)}: the rows are ${number(value, 3)} of their size away from their mean.`;
    }
    const [, layer, head] = name.split(" ");
    return `Layer ${+layer + 1}, head ${head}: ` +
      `“${tokens[r]}” gives “${tokens[c]}” the weight ${number(value)}.`;
  },
});

// A weight in three characters, so that one of 1.00 takes no map its digits.
function inThree(value) {
  return { text: short(value, value < 0.995 ? 2 : 1) };
}

// As `spread` of without_parts.py.
function distanceFromMean({ shape: [rows, columns], data }) {
  let [off, size] = [0, 0];
  for (let c = 0; c < columns; c++) {
    const column = range(rows).map((r) => data[r * columns + c]);
    const mean = sum(column) / rows;
    for (const value of column) {
      off += (value - mean) ** 2;
      size += value ** 2;
    }
  }
  return Math.sqrt(off / size);
}

function sublayer(nth) {
  if (!nth) return "words and positions";
  return `layer ${Math.ceil(nth / 2)}, ${nth % 2 ? "attention" : "feed-forward"}`;
}

function answersAtVerbs({ tokens, places, who, whom, sure, vocabulary }) {
  const lines = places.map((place, nth) => {
    const both = [["who", who], ["whom", whom]].map(([question, words], i) =>
      answer(question, knownAs(words[nth], tokens, vocabulary), sure.data[2 * nth + i])
    );
    return answers(tokens[place], both, {});
  });
  return element("div", { "aria-live": "polite" }, lines);
}
