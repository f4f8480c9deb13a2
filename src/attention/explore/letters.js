// The letters of a written date in lines, with a bar on each as high as its weight.

const PITCH = 18; // pixels from letter to letter
const BAR = 40; // the height of a weight of 1
const LEAST = 0.1; // a weight below it, or beside a larger one, has a bar and no number

// Without weights the letters stand alone; those from `from` on and before `to` are underlined.
function lettersSeen(letters, weights, room, [from, to] = [0, 0]) {
  const lines = brokenLines(letters, Math.floor(room / PITCH));
  const top = weights ? BAR + 16 : 4;
  const high = top + 26;
  const drawn = lines.flatMap((line, nth) => {
    const base = nth * high + top;
    return line.map((i, place) => {
      const x = (place + 0.5) * PITCH;
      const tall = weights ? BAR * weights[i] : 0;
      const bar = weights ? `<rect class="plus" x="${x - 6}" y="${(base - tall).toFixed(1)}" width="12" height="${tall.toFixed(1)}"/>` : "";
      const told = weights && weights[i] >= LEAST && weights[i] >= Math.max(weights[i - 1] ?? 0, weights[i + 1] ?? 0) ? `<text class="column" x="${x}" y="${(base - tall - 4).toFixed(1)}">${short(weights[i])}</text>` : "";
      const under = i >= from && i < to ? `<path class="now" d="M${x - PITCH / 2} ${base + 21}h${PITCH}"/>` : "";
      return `${bar}${told}<text class="letter" x="${x}" y="${base + 16}">${escape(letters[i])}</text>${under}`;
    });
  });
  const width = Math.max(...lines.map((line) => line.length)) * PITCH + 10;
  const best = weights && argmax(weights);
  const told = weights ? `Of “${letters.join("")}”, this step gives most weight, ${number(weights[best])}, to letter ${best + 1}, “${letters[best]}”.` : `“${letters.join("")}”, without weights`;
  return `<svg class="written" width="${width}" height="${lines.length * high}" viewBox="0 0 ${width} ${lines.length * high}" role="img" aria-label="${escape(told)}">${drawn.join("")}</svg>`;
}

// Lines of at most `longest` letters, broken at spaces; a word longer than that is cut.
function brokenLines(letters, longest) {
  const lines = [[]];
  for (const word of letters.join("").match(new RegExp(`\\S{1,${longest - 1}}\\s?|\\s`, "g"))) {
    if (lines.at(-1).length + word.length > longest) lines.push([]);
    const start = lines.flat().length;
    lines.at(-1).push(...range(word.length).map((i) => start + i));
  }
  return lines;
}
