// A sentence, what every head looks at from its verb, drawn over the words, and the two answers. Heads can be switched off.

export default explorer({
  ready: [
    "the red ball chased a dog",
    "the cat saw the other cat",
    "birds sing at dawn",
    "the ball was chased by a dog",
    "a sailor near the house found the bell",
    "the old king was seen by the black fox near the river",
    "the zebra bit the queen",
    "a dog chased the red ball",
  ],

  act(what, memory) {
    const head = +what.split(" ")[1];
    memory.off ??= new Set();
    memory.off[memory.off.has(head) ? "delete" : "add"](head);
  },

  compute(sentence, at, model, { stored, memory }) {
    const off = new Set([...(memory.off ?? [])].filter((head) => head < model.n_heads));
    const { verbs, vocabulary, accuracy, roles, grammar, unmet } = stored;
    return { ...answered(sentence, model, verbs, off), verbs, vocabulary, accuracy, roles, grammar, unmet, ...(off.size ? { off: [...off] } : {}) };
  },

  note({ tokens, unmet }, at) {
    const met = [...new Set(tokens)].filter((token) => unmet.includes(token));
    return met.length ? `At d_model ${at.d_model} the model never met ${listed(met)} in training; wider models did.` : "";
  },

  status({ accuracy, grammar, off }, at) {
    return `d_model ${at.d_model} · n_heads ${at.n_heads} · d_key ${at.d_model / at.n_heads} · right on ${percent(accuracy)} of 4,000 new sentences (${grammar})${off ? ", with all heads on" : ""}`;
  },

  draw(frame, at, room) {
    const { tokens, verb, weights, roles, off = [] } = frame;
    const heads = weights.shape[0];
    const names = roles.map(([who, whom], i) => `head ${i}${role(who, whom) ? `: ${role(who, whom)}` : ""}`);
    const largest = (i) => {
      const row = weights.at(i).at(Math.max(verb, 0)).data;
      const key = argmax(row);
      return `${number(row[key])} on “${escape(tokens[key])}”`;
    };
    const switches = names.map(
      (name, i) =>
        `<button type="button" role="switch" aria-checked="${!off.includes(i)}" data-act="head ${i}"><svg width="34" height="10" aria-hidden="true"><path class="arc head-${i}" stroke-width="4" stroke-dasharray="${DASHES[i]}" d="M2 5H32"/></svg>${name}${verb < 0 ? "" : ` <span>${off.includes(i) ? "switched off" : largest(i)}</span>`}</button>`,
    );
    // As many beside one another as leave their labels room.
    const fit = (across) => cellSize((room - 18 * (across - 1)) / across, tokens.length, tokens, { most: heads === 1 ? 34 : 26 });
    const size = fit([Math.min(4, heads), 3, 2].find((across) => across <= heads && fit(across) >= 14) ?? 1);
    const maps = range(heads).map((i) => panel(off.includes(i) ? `${names[i]}, switched off` : names[i], `<div${off.includes(i) ? ' class="off"' : ""}>${matrix({ name: `weights ${i}`, tensor: weights.at(i), rows: tokens, columns: tokens, size, largest: 1 })}</div>`, "weights"));
    return (
      sentence(frame, room) +
      answers(frame) +
      `<p class="switches" role="group" aria-label="Heads: switch one off">${switches.join("")}</p>` +
      row("Every head, every word: each row is a word that looks, each column a word that it looks at", maps)
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
    return `Head ${name.split(" ")[1]}: “${tokens[r]}” gives “${tokens[c]}” the weight ${number(value)}.`;
  },
});
