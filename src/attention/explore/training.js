// The model as it learns: the loss and the share of right answers over the steps, what each head gives to who and whom, and at the
// chosen step a sentence with its arcs, its answers and its maps.

const count = new Intl.NumberFormat("en-GB");
const SENTENCES = 128; // of a step

export default explorer({
  model: ({ seed, step }) => `${seed},${step}`,

  compute(sentence, at, model, { stored }) {
    const { verbs, vocabulary, right, roles, losses, steps, rights } = stored;
    return { ...answered(sentence, model, verbs), verbs, vocabulary, right, roles, losses, steps, rights };
  },

  status({ right, losses, steps }, at) {
    const of = losses.shape[0] / steps.at(-1);
    const loss = losses.data[Math.min(losses.shape[0] - 1, Math.floor(at.step * of))];
    return `step ${count.format(at.step)} · ${count.format(at.step * SENTENCES)} sentences seen · loss ${number(loss)} · both right on ${percent(right)} of 4,000 new sentences`;
  },

  draw(frame, at, room) {
    const { tokens, weights, roles } = frame;
    const heads = weights.shape[0];
    const beside = room >= 560;
    const wide = beside ? Math.floor((room - 18) / 2) : room;
    const across = Math.min(2, heads);
    const size = cellSize((room - 18 * (across - 1)) / across, tokens.length, tokens, { most: 24 });
    const named = range(heads).map((i) => `head ${i}`);
    return (
      row("The whole training, and where you are", [
        panel("loss: the line falls; both right: the dots rise", curve(frame, +at.step, wide)),
        panel(
          "mean weight that the verb gives",
          matrix({ name: "roles", tensor: roles, rows: named, columns: ["who", "whom"], size: 60, high: 34, largest: 1 }),
          "weights",
        ),
      ]) +
      sentence({ ...frame, roles: range(heads).map((i) => roles.at(i).data) }, room) +
      answers(frame) +
      row(
        "Every head, every word: each row is a word that looks",
        range(heads).map((i) => panel(named[i], matrix({ name: `weights ${i}`, tensor: weights.at(i), rows: tokens, columns: tokens, size, largest: 1 }), "weights")),
      )
    );
  },

  describe({ name, r, c, value }, { tokens, weights }) {
    if (name === "word") return `“${tokens[r]}”, word ${r}.`;
    if (name === "roles") return `Head ${r} gives ${["who", "whom"][c]} ${number(value)} of the verb's weight, on average over new sentences.`;
    return `Head ${name.split(" ")[1]}: “${tokens[r]}” gives “${tokens[c]}” the weight ${number(value)}.`;
  },
});

// Steps to the right, on a scale of their square root, since most happens early.
function curve({ losses, steps, rights }, step, room) {
  const [left, right, top, height] = [34, 52, 8, 130];
  const last = steps.at(-1);
  const x = (at) => left + Math.sqrt(at / last) * (room - left - right);
  const most = Math.ceil(Math.max(...losses.data));
  const y = (share) => top + height * (1 - share);
  const each = last / losses.shape[0];
  const line = Array.from(losses.data, (loss, i) => `${i ? "L" : "M"}${x((i + 0.5) * each).toFixed(1)} ${y(loss / most).toFixed(1)}`).join("");
  const dots = steps.map((at, i) => `<circle class="${at === step ? "here" : ""}" cx="${x(at).toFixed(1)}" cy="${y(rights[i]).toFixed(1)}" r="${at === step ? 5 : 3.5}"/>`);
  const ticks = [0, 100, 400, 1000, last].map((at) => `<text class="column" x="${x(at).toFixed(1)}" y="${top + height + 16}">${count.format(at)}</text>`);
  const sides = [0, 0.5, 1].map((share) => `<text class="row" x="${left - 6}" y="${y(share) + 4}">${share * most}</text><text class="start" x="${room - right + 8}" y="${y(share) + 4}">${100 * share} %</text>`);
  const rules = [0, 0.5, 1].map((share) => `M${left} ${y(share) + 0.5}H${room - right}`).join("");
  const told = `Loss over ${count.format(last)} steps, from ${number(losses.data[0])} to ${number(losses.data.at(-1))}; both right at the marked steps, from ${percent(rights[0])} to ${percent(rights.at(-1))}`;
  return `<svg class="curve" width="${room}" height="${top + height + 24}" viewBox="0 0 ${room} ${top + height + 24}" role="img" aria-label="${escape(told)}"><path class="grid" d="${rules}"/><path class="now" d="M${x(step).toFixed(1)} ${top}V${top + height}"/><path class="loss" d="${line}"/>${dots.join("")}${ticks.join("")}${sides.join("")}</svg>`;
}
