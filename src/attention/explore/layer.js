// Models of one layer and of two, whole or without some of their parts: the answers at each verb of a sentence, how far apart the rows
// are after each sublayer, and what every head looks at.

export default explorer({
  ready: [
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
    const spread = [apart(x)];
    const weights = [];
    for (const i of range(+at.n_layers)) {
      const prefix = `encoder.layers.${i}`;
      const step = (norm, sublayer) => {
        const output = sublayer(has("layer_norm") ? layerNorm(x, model, `${prefix}.${norm}`) : x);
        x = has("residual") ? add(x, output) : output;
        spread.push(apart(x));
      };
      step("self_attention_norm", (rows) => {
        const attended = attend(rows, model, `${prefix}.self_attention`, paddingMask(tokens));
        weights.push(attended.weights);
        return attended.output;
      });
      if (has("feed_forward")) step("feed_forward_norm", (rows) => feedForward(rows, model, `${prefix}.feed_forward`));
      else spread.push(spread.at(-1));
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
    return places.length ? "" : `There is no verb in it that the model knows. It knows ${verbs.join(", ")}.`;
  },

  status({ right }, at) {
    const off = Object.entries({ residual: "residual", layer_norm: "layer norm", feed_forward: "feed-forward" }).filter(([name]) => at[name] === "off");
    const without = off.length ? `without ${off.map(([, part]) => part).join(", ")}` : "all parts";
    return `n_layers ${at.n_layers} · ${without} · both answers right at ${(100 * right).toFixed(1)} % of the verbs of 2,000 new sentences`;
  },

  draw(frame, at, room) {
    const { tokens, weights, spread } = frame;
    const [layers, heads] = weights.shape;
    const fit = (across) => cellSize((room - 18 * (across - 1)) / across, tokens.length, tokens, { most: 26 });
    const size = fit([4, 2].find((across) => across <= layers * heads && fit(across) >= 14) ?? 1);
    const apartness = panel("distance from the mean after each sublayer, as a share of their size", bars(spread, Math.min(room, 520)));
    const maps = range(layers).flatMap((layer) =>
      range(heads).map((head) => panel(`layer ${layer + 1}, head ${head}`, matrix({ name: `weights ${layer} ${head}`, tensor: weights.at(layer).at(head), rows: tokens, columns: tokens, size, largest: 1, paint: inThree }), "weights")),
    );
    return (
      answersAtVerbs(frame) +
      row("How far the rows are from their mean: at 0 all would be the same", [apartness]) +
      row("Every head of every layer: each row is a word that looks", maps)
    );
  },

  describe({ name, r, c, value }, { tokens }) {
    if (name === "spread") return `${labelOf(r)}: the rows are ${number(value, 3)} of their size away from their mean.`;
    const [, layer, head] = name.split(" ");
    return `Layer ${+layer + 1}, head ${head}: “${tokens[r]}” gives “${tokens[c]}” the weight ${number(value)}.`;
  },
});

// A weight in three characters, so that one of 1.00 takes no map its digits.
function inThree(value) {
  return { text: short(value, value < 0.995 ? 2 : 1) };
}

// As `spread` of without_parts.py.
function apart({ shape: [rows, columns], data }) {
  let [off, size] = [0, 0];
  for (let c = 0; c < columns; c++) {
    const column = range(rows).map((r) => data[r * columns + c]);
    const mean = column.reduce((sum, value) => sum + value, 0) / rows;
    for (const value of column) {
      off += (value - mean) ** 2;
      size += value ** 2;
    }
  }
  return Math.sqrt(off / size);
}

function labelOf(nth) {
  return nth ? `layer ${Math.ceil(nth / 2)}, ${nth % 2 ? "attention" : "feed-forward"}` : "words and positions";
}

function answersAtVerbs({ tokens, places, who, whom, sure, vocabulary }) {
  const unknown = new Set(tokens.filter((token) => !vocabulary.includes(token)));
  // The model's <unk> is the word that it did not know, where there is one such word.
  const shown = (word) => (word === UNK && unknown.size === 1 ? [...unknown][0] : word);
  const told = places.map((place, nth) => {
    const both = [who[nth], whom[nth]].map((word, i) => `<span class="answer"><span class="asked">${["who", "whom"][i]}?</span> <strong>${escape(shown(word))}</strong> <span class="sure">${number(sure.data[2 * nth + i])}</span></span>`);
    return `<p class="answers"><span class="asked">“${escape(tokens[place])}”</span> ${both.join(" ")}</p>`;
  });
  return `<div aria-live="polite">${told.join("")}</div>`;
}

// A bar for each sublayer, as long as the rows are far apart.
function bars(tensor, room) {
  const rows = range(tensor.shape[0]).map(labelOf);
  const left = labelWidth(rows) + 4;
  const long = room - left - 44;
  const parts = rows.map((label, r) => {
    const value = tensor.data[r];
    const y = 2 + r * 20;
    return (
      `<text class="row" x="${left - 6}" y="${y + 12}">${label}</text>` +
      `<rect class="plus" x="${left}" y="${y}" width="${Math.max(1, value * long).toFixed(1)}" height="16" fill-opacity="0.62"/>` +
      `<text class="value" x="${room - 20}" y="${y + 12}">${number(value)}</text>`
    );
  });
  drawn.push({ name: "spread", tensor, rows, columns: ["distance"], largest: 1, keys: rows.map(() => undefined), left, top: 0, size: long, high: 20 });
  const high = 4 + rows.length * 20;
  return `<svg data-name="spread" width="${room}" height="${high}" viewBox="0 0 ${room} ${high}" aria-hidden="true">${parts.join("")}<path class="outline" transform="translate(${left} 0)"/></svg>`;
}
