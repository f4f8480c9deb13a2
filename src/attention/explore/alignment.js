// A date that is written sign by sign: the letters with the weights of the chosen step, the signs so far, what the writer gets at the
// step, and the whole map.

const ENDING = "end";

export default explorer({
  status({ signs, iso, letters, weights }, { step }) {
    const at = Math.min(step, signs.length) - 1;
    const right = range(iso.length).filter((i) => signs[i] === iso[i]).length;
    const looks = weights ? `looks most at “${letters[argmax(weights.at(at).data)]}”` : "looks at no letter";
    return `step ${step} writes ${signs[at]}, ${looks} · ${right} of ${iso.length} signs right in the end`;
  },

  draw(frame, { step }, room) {
    const { letters, signs, weights, context, parts, said } = frame;
    const at = Math.min(step, signs.length) - 1;
    const numbers = context.shape[2];
    const caption = weights ? "the context: the letters' states, averaged with these weights" : "the last states: the same at every step";
    return (
      row("What is written so far", [panel("a sign that is wrong is struck out", signsSoFar(frame, at))]) +
      row(weights ? "Where this step looks" : "There are no weights: this writer sees no letter", [panel(aboutPart(frame, at), lettersSeen(letters, weights?.at(at).data, room, said[parts[at]]), "weights")]) +
      row(`What the writer gets at this step: ${numbers} numbers`, [panel(caption, matrix({ name: `context ${at}`, tensor: context.at(at), size: cellSize(room, numbers), high: 26, largest: context.largest }))]) +
      (weights ? row("All steps: each row writes one sign, each column is a letter", [panel("alignment: the weights of every step", alignment(frame, at, room), "weights")]) : "")
    );
  },

  describe({ name, r, c, value }, { letters, signs }) {
    if (name === "weights") return `Writing “${signs[r]}”, sign ${r + 1}, letter ${c + 1}, “${letters[c]}”, has the weight ${number(value)}.`;
    return `Step ${+name.split(" ")[1] + 1} writes “${signs[name.split(" ")[1]]}”: number ${c + 1} of what it gets is ${number(value)}.`;
  },
});

// The map; the row of the chosen step has a mark.
function alignment({ letters, signs, weights }, at, room) {
  const rows = signs.map((sign, i) => (i === at ? `▸ ${sign}` : sign));
  return matrix({ name: "weights", tensor: weights, rows, columns: letters, size: cellSize(room, letters.length, ["▸ end"], { most: 20 }), high: 18, largest: 1 });
}

function aboutPart({ parts }, at) {
  return parts[at] ? `underlined: the letters that say the ${parts[at]}` : "no letter says this sign";
}

// The signs up to this step, and the answer below them.
function signsSoFar({ signs, iso }, at) {
  const [left, pitch] = [56, 22];
  const answer = [...iso, ENDING];
  const x = (i) => left + (i + 0.5) * pitch;
  const wrong = (i) => i <= at && signs[i] !== answer[i];
  const texts = answer.map((sign, i) => {
    const written = i <= at ? `<text class="${signs[i]?.length > 1 ? "column" : "letter"}" x="${x(i)}" y="18">${escape(signs[i] ?? "")}</text>` : "";
    const stroke = wrong(i) ? `<path class="now wrong" d="M${x(i) - 8} 19L${x(i) + 8} 6"/><text class="column" x="${x(i)}" y="56">≠</text>` : "";
    return `${written}${stroke}<text class="${sign === ENDING ? "column" : "letter quiet"}" x="${x(i)}" y="42">${escape(sign)}</text>`;
  });
  const here = `<rect class="here" x="${left + at * pitch + 0.5}" y="0.5" width="${pitch - 1}" height="25" rx="3"/>`;
  const width = left + answer.length * pitch + 8;
  const wrongs = range(at + 1).filter(wrong);
  const told = `Written: ${signs.slice(0, at + 1).join("")}. Right: ${iso}. ${wrongs.length ? `Wrong: sign ${wrongs.map((i) => i + 1).join(", ")}.` : "None is wrong so far."}`;
  return `<svg class="written" width="${width}" height="60" viewBox="0 0 ${width} 60" role="img" aria-label="${escape(told)}">${here}<text class="row" x="${left - 8}" y="18">written</text><text class="row" x="${left - 8}" y="42">right</text>${texts.join("")}</svg>`;
}
