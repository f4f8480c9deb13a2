// X, and Q, K and V made of it, with the columns of each head under a bracket. Below, the three weight matrices at
// one scale, cut into the heads' strips: the area is the number of weights, and cutting does not change it.

const LETTERS = ["q", "k", "v"];
const { format: count } = new Intl.NumberFormat("en-GB");

export default explorer({
  compute({ tokens, ids }, at, model) {
    const x = embed(ids, model.table);
    const d_model = x.shape[1];
    const d_key = d_model / model.n_heads;
    const bias = at.bias === "on";
    const frame = { tokens, x };
    for (const letter of LETTERS) {
      const b = model[`b_${letter}`];
      frame[letter] = linear(x, model[`w_${letter}`], bias && b);
      if (bias) frame[`b_${letter}`] = new Tensor([1, d_model], b.data);
    }
    return {
      ...frame,
      d_key,
      weights: d_model * d_model,
      parameters: 3 * (d_model * d_model + bias * d_model),
      head_weights: d_model * d_key,
      head_parameters: 3 * (d_model * d_key + bias * d_key),
    };
  },

  status({ d_key, parameters }, at) {
    return `d_model ${at.d_model} · n_heads ${at.n_heads} · d_key ${d_key} · parameters of the three projections: ${count(parameters)} for every n_heads`;
  },

  draw(frame, at, room) {
    const { x, tokens, d_key, weights, parameters, head_weights, head_parameters } = frame;
    const [length, d_model] = x.shape;
    const heads = d_model / d_key;
    const rows = tokens.map((word, i) => `${word} ${i}`);
    // Two matrices side by side, unless their cells would get too small to point at.
    const half = cellSize(room / 2 - 10, d_model, rows, { most: 36 });
    const beside = room >= 600 && half >= 12;
    const size = beside ? half : cellSize(room, d_model, rows, { most: 36 });
    const high = Math.max(size, 14); // room for the labels where many columns make narrow cells
    const bands = Array.from({ length: heads }, (_, i) => ({
      from: i * d_key,
      to: (i + 1) * d_key,
      text: d_key * size < 44 ? i : `head ${i}`,
    }));
    const shape = `(${length}, ${d_model})`;
    const largest = Math.max(...LETTERS.map((letter) => frame[letter].largest));
    const projected = LETTERS.map((letter) => {
      const bias = frame[`b_${letter}`];
      const upper = letter.toUpperCase();
      return panel(
        `${upper} = X·W_${letter}${bias ? ` + b_${letter}` : ""} ${shape}`,
        matrix({ name: letter, tensor: frame[letter], rows, size, high, bands, largest }) +
          // As wide a label as the tokens have, so that its columns stand under theirs.
          (bias ? matrix({ name: `b_${letter}`, tensor: bias, rows: [`+ b_${letter}`.padStart(Math.max(...rows.map((r) => r.length)))], size, high, largest }) : ""),
        letter,
      );
    });

    const scale = Math.min(5, (room - 60) / 3 / 32);
    const side = scale * d_model;
    const squares = LETTERS.map((letter) =>
      panel(
        `W_${letter}`,
        `<svg width="${side + 2}" height="${side + 2}" aria-hidden="true">${bands
          .map(({ from }, i) => `<rect class="plus" x="${1 + from * scale}" y="1" width="${d_key * scale}" height="${side}" fill-opacity="${i % 2 ? 0.2 : 0.5}"/>`)
          .join("")}</svg>`,
      ),
    );
    const biases = parameters / 3 - weights;
    const head_biases = head_parameters / 3 - head_weights;
    const line = (what, one, all) => `<tr><th scope="row">${what}</th><td>${one}</td><td>${count(heads)}</td><td>${count(all)}</td></tr>`;
    const ledger = `<table><thead><tr><th scope="col">numbers in</th><th scope="col">one head</th><th scope="col">× heads</th><th scope="col">= all</th></tr></thead><tbody>${[
      line("a matrix", `${d_model} · ${d_key} = ${count(head_weights)}`, weights),
      line("a bias", count(head_biases), biases),
      line("all three", `3 · ${count(head_weights + head_biases)} = ${count(head_parameters)}`, parameters),
    ].join("")}</tbody></table>`;

    return (
      row(`X goes in; Q, K and V come out`, [panel(`X ${shape}: no heads yet`, matrix({ name: "x", tensor: x, rows, size, high, bands: [{ from: 0, to: d_model, text: "read by every head" }] })), ...projected]) +
      row(`Parameters: ${heads === 1 ? "one head has them all" : `dealt to ${heads} heads, ${d_key} ${d_key === 1 ? "column" : "columns"} each`}`, [...squares, ledger])
    );
  },

  describe({ name, r, c, value }, frame) {
    const { tokens, d_key } = frame;
    if (name === "x") return `X[${tokens[r]} ${r}, ${c}] = ${number(value)}. All three projections read it, for every head.`;
    const letter = name.at(-1);
    const upper = letter.toUpperCase();
    const place = `head ${Math.floor(c / d_key)}, its column ${c % d_key} of ${d_key}`;
    if (name !== letter) return `b_${letter}[${c}] = ${number(value)}: added to column ${c} of ${upper} in each of the ${tokens.length} rows (${place}).`;
    const bias = frame[`b_${letter}`];
    return `${upper}[${tokens[r]} ${r}, ${c}] = ${number(value)}: ${place}.${bias ? ` The bias ${number(bias.data[c])} is in it.` : " No bias."}`;
  },
});
