// Claims that depend on d_key: what is measured of each, as one line for each case; what the claim needs, as a line across; and the numbers
// at one d_key, as bars.

const DRAWN = ["loss", "then", "now"]; // how the line of each case looks: a line, dots, dashes

const nth = ({ d_keys }, at) => d_keys.indexOf(+at.d_key);

export default explorer({
  status(frame, at) {
    const { data } = frame.values.at(nth(frame, at));
    return `d_key ${at.d_key} · ${frame.names.map((name, i) => `${name}: ${told(data[i])}`).join(" · ")}`;
  },

  draw(frame, at, room) {
    const i = nth(frame, at);
    return (
      row(`“${at.claim}”`, [panel(frame.title, curves(frame, at, Math.min(room, 640)))], frame.told) +
      row(`At d_key ${at.d_key}`, [panel(verdict(frame, at), bars({ name: `values ${i}`, tensor: frame.values.at(i), rows: frame.names, column: "measured", room: Math.min(room, 640), told, space: 64 }))])
    );
  },

  describe({ r, value }, frame, at) {
    const needs = frame.needs === null ? "" : ` The claim needs ${told(frame.needs)}.`;
    return `${frame.names[r]}, d_key ${at.d_key}: ${told(value)}.${needs}`;
  },
});

// A number of the bars: few digits, and none where it is large.
function told(value) {
  return value >= 1000 ? Math.round(value).toLocaleString("en-US") : number(value, value >= 100 ? 0 : 2);
}

// In which cases the claim's need is met here: to a tenth, or, where it needs a rise, whether the next narrower head makes more parameters.
function verdict({ values, names, needs, d_keys }, at) {
  const i = d_keys.indexOf(+at.d_key);
  const here = values.at(i).data;
  const [narrow, wide] = i ? [i - 1, i] : [0, 1];
  const rises = (c) => values.at(narrow).data[c] > values.at(wide).data[c] + 1e-6;
  const met = names.filter((_, c) => (needs === null ? rises(c) : Math.abs(here[c] - needs) <= 0.1 * needs));
  return `${needs === null ? "More with more heads" : "Within a tenth of what it needs"}: ${met.join("; ") || "none"}`;
}

// The lines along d_key, which doubles from tick to tick.
function curves({ values, names, d_keys, needs, logarithmic, title }, at, room) {
  const [left, right, top, height] = [52, 16, 10, 180];
  const scale = logarithmic ? Math.log2 : (value) => value;
  const all = Array.from(values.data).concat(needs ?? []).map(scale);
  const [low, high] = [logarithmic ? Math.floor(Math.min(...all)) : 0, logarithmic ? Math.ceil(Math.max(...all)) : Math.max(...all)];
  const x = (i) => left + (i / (d_keys.length - 1)) * (room - left - right);
  const y = (value) => top + height * (1 - (scale(value) - low) / (high - low));
  const lines = names.map((_, c) => `<path class="${DRAWN[c]}" fill="none" d="${d_keys.map((_, i) => `${i ? "L" : "M"}${x(i).toFixed(1)} ${y(values.at(i).data[c]).toFixed(1)}`).join("")}"/>`);
  const i = d_keys.indexOf(+at.d_key);
  const here = values.at(i).data;
  const dots = names.map((_, c) => `<circle class="here" cx="${x(i).toFixed(1)}" cy="${y(here[c]).toFixed(1)}" r="4"/>`);
  const ticks = d_keys.map((d_key, i) => `<text class="column" x="${x(i).toFixed(1)}" y="${top + height + 16}">${d_key}</text>`);
  const marks = logarithmic ? [2 ** low, 2 ** Math.round((low + high) / 2), 2 ** high] : [0, high / 2, high];
  const sides = marks.map((value) => `<text class="row" x="${left - 6}" y="${(y(value) + 4).toFixed(1)}">${value >= 1000 ? told(value) : +value.toFixed(2)}</text>`);
  const grid = marks.map((value) => `M${left} ${y(value).toFixed(1)}H${room - right}`).join("");
  const across = needs === null ? "" : `<path class="band" stroke-width="2.5" d="M${left} ${y(needs).toFixed(1)}H${room - right}"/>`;
  const keys = names.map((name, c) => [`class="${DRAWN[c]}" fill="none"`, name]).concat(needs === null ? [] : [['class="band" stroke-width="2.5"', "what it needs"]]);
  let [from, line] = [10, 0];
  const key = keys.map(([look, name]) => {
    const wide = 42 + 6.6 * name.length;
    if (from + wide > room) [from, line] = [10, line + 1];
    const at = [from, top + height + 36 + 18 * line];
    from += wide;
    return `<path ${look} d="M${at[0]} ${at[1]}h22"/><text class="start" x="${at[0] + 27}" y="${at[1] + 4}">${escape(name)}</text>`;
  });
  const label = `${title}, at d_key ${at.d_key}: ${names.map((name, c) => `${name} ${told(here[c])}`).join(", ")}`;
  const whole = top + height + 46 + 18 * line;
  return `<svg class="curve distance" width="${room}" height="${whole}" viewBox="0 0 ${room} ${whole}" role="img" aria-label="${escape(label)}"><path class="grid" d="${grid}M${left} ${top}V${top + height}"/>${across}${lines.join("")}${dots.join("")}${ticks.join("")}${sides.join("")}${key.join("")}</svg>`;
}
