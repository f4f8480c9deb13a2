// Q with its heads marked, then its entries where split_heads puts them and where a bare view puts them.
// Colour and digit say which token an entry came from.

export default explorer({
  compute({ tokens, ids }, at, model) {
    const q = linear(embed(ids, model.table), model.w_q, model.b_q);
    const index = filled(...q.shape, (r, c) => r * q.shape[1] + c);
    const unmoved = [model.n_heads, q.shape[0], q.shape[1] / model.n_heads];
    return {
      tokens,
      q,
      right: splitHeads(q, model.n_heads),
      wrong: new Tensor(unmoved, q.data),
      right_from: splitHeads(index, model.n_heads),
      wrong_from: new Tensor(unmoved, index.data),
    };
  },

  status(frame, at) {
    const mixed = new Set();
    frame.wrong_from.data.forEach((from, i) => {
      const width = frame.q.shape[1];
      const row = Math.floor(i / frame.right.shape[2]) % frame.q.shape[0];
      if (Math.floor(from / width) !== row) mixed.add(from);
    });
    return `d_model ${at.d_model} · n_heads ${at.n_heads} · d_key ${frame.right.shape[2]} · entries of Q in another token's row: 0 by split_heads, ${mixed.size} of ${frame.q.data.length} by view alone`;
  },

  draw(frame, at, room) {
    const { q, right, wrong, right_from, wrong_from, tokens } = frame;
    const [heads, , d_key] = right.shape;
    const width = q.shape[1];
    const token = (from) => Math.floor(from / width);
    const entry = (from) => ({ kind: `t${token(from) % 8}`, strength: 1, text: String(token(from)), key: from });
    const rows = tokens.map((word, i) => `${word} ${i}`);
    const bands = Array.from({ length: heads }, (_, i) => ({ from: i * d_key, to: (i + 1) * d_key, text: width > 16 && heads > 4 ? i : `head ${i}` }));
    const size = cellSize(room, width, rows, { most: 28 });
    if (heads > 1 && d_key * size < 44) for (const [i, band] of bands.entries()) band.text = i;
    const small = Math.min(22, Math.max(size, 14));
    const split = (name, tensor, from) =>
      Array.from({ length: heads }, (_, i) =>
        panel(
          `head ${i}`,
          matrix({
            name: `${name} ${i}`,
            tensor: tensor.at(i),
            rows,
            size: cellSize(room, d_key, rows, { most: small }),
            paint: (_, r, c) => entry(from.at(i).data[r * d_key + c]),
          }),
        ),
      );
    return (
      row(`Q, (${tokens.length}, ${width}): a row for each token`, [
        panel("columns belong to heads", matrix({ name: "q", tensor: q, rows, size, high: Math.max(size, 14), bands, paint: (_, r, c) => entry(r * width + c) }), "q"),
      ]) +
      row(`Right: view, then transpose. ${heads} × (${tokens.length}, ${d_key})`, split("right", right, right_from)) +
      row("Wrong: view alone. The same shape, other contents", split("wrong", wrong, wrong_from))
    );
  },

  describe({ key, value }, { q, right, wrong_from, tokens }) {
    const width = q.shape[1];
    const [heads, length, d_key] = right.shape;
    const r = Math.floor(key / width);
    const c = key % width;
    const i = wrong_from.data.indexOf(key);
    const place = [Math.floor(i / (length * d_key)), Math.floor(i / d_key) % length, i % d_key];
    return `Q[${tokens[r]} ${r}, ${c}] = ${number(value)}. Right: head ${Math.floor(c / d_key)}, ${tokens[r]} ${r}, column ${c % d_key}. View alone: head ${place[0]}, row of ${tokens[place[1]]} ${place[1]}, column ${place[2]}.`;
  },
});
