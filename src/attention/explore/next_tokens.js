// A published model writes: the text so far, and the likeliest tokens of the chosen step.

import { bars } from "./chart.js";
import { explorer } from "./explorer.js";
import { number } from "./format.js";
import { element, escapeHtml } from "./markup.js";
import { panel, row } from "./panels.js";

const WIDEST = 460; // pixels of the bars
const UNIFORM = Math.log(49152); // the loss of a model that holds all tokens for equally likely

export default explorer({
  status({ written, shares }, at) {
    const nth = at.step - 1;
    const [share] = shares.at(nth).data;
    return `${where(at)}step ${at.step} writes ${quoted(written[nth])}, ` +
      `probability ${number(share)}`;
  },

  draw({ read, written, likeliest, shares, names, losses }, at, available) {
    const nth = at.step - 1;
    const tokens = likeliest[nth].map(quoted);
    return (
      row("The text so far", [panel("read, then written", soFar(read, written, nth))]) +
      row(`The likeliest tokens at step ${at.step}, of 49,152`, [
        panel(
          "their probabilities; the first is written",
          bars({
            name: `shares ${nth}`,
            tensor: shares.at(nth),
            rows: tokens,
            column: "probability",
            width: Math.min(available, WIDEST),
            largest: 1,
          }),
        ),
      ]) +
      (losses ? row("What it costs", [panel(PRICES, prices(names, losses, at, available))]) : "")
    );
  },

  describe({ name, r, value }, { likeliest, names }, at) {
    if (name === "losses") return `${names[r]}: loss ${number(value)}.`;
    return `${quoted(likeliest[at.step - 1][r])} has probability ${number(value)}.`;
  },
});

const PRICES = "loss in nats, the mean of four texts; at the dashes all tokens are equally likely";

function prices(names, losses, { mistake }, available) {
  return bars({
    name: "losses",
    tensor: losses,
    rows: names,
    labels: names.map((name) => (name === mistake ? `▸ ${name}` : name)),
    column: "loss",
    width: Math.min(available, WIDEST),
    faint: (r) => names[r] !== mistake,
    aligned: true,
    mark: UNIFORM,
  });
}

function where({ mistake, temperature }) {
  return mistake ? `${mistake} · ` : temperature ? `temperature ${temperature} · ` : "";
}

// A line break is a sign, and a space at its begin belongs to a token.
function quoted(token) {
  return `“${token.replaceAll("\n", "⏎")}”`;
}

function soFar(read, written, nth) {
  const shown = (token) => escapeHtml(token.replaceAll("\n", "⏎"));
  const before = written.slice(0, nth).map(shown).join("");
  return element(
    "p",
    { class: "talk" },
    element("span", { class: "asked" }, shown(read.join(""))),
    before,
    element("span", { class: "last" }, shown(written[nth])),
  );
}
