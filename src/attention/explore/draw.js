// What every view shares: finding the frame, drawing matrices, reading cells out, and the text alternative.
// A view is `export default explorer({ compute, status, draw, describe })`: compute makes a frame of the reader's own sentence,
// the same that Python makes of the stored ones; the others are functions of a frame. Where a view has buttons of its own
// (`data-act`), `act` writes into `memory` what they say, and the frame is computed anew; `note` says what a sentence lacks. `model`
// names the weights to compute with, and `split` makes tokens of what a reader writes. A view of stored frames alone has no `compute`.

const MINUS = "\u2212";
const MONOSPACE = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"; // as in explorer.css

// A tensor of a frame: its shape and its numbers in row-major order. at(i) is its i-th slice.
class Tensor {
  constructor(shape, data) {
    this.shape = shape;
    this.data = data;
  }
  at(i) {
    const size = this.shape.slice(1).reduce((a, b) => a * b, 1);
    return new Tensor(this.shape.slice(1), this.data.subarray(i * size, (i + 1) * size));
  }
  get largest() {
    return this.data.reduce((most, x) => (Number.isFinite(x) ? Math.max(most, Math.abs(x)) : most), 0);
  }
}

// Two decimals, a true minus sign, and no "-0.00".
function number(x, digits = 2) {
  if (x === -Infinity) return MINUS + "∞";
  if (Number.isNaN(x)) return "NaN";
  const text = Math.abs(x).toFixed(digits);
  return x < 0 && Number(text) !== 0 ? MINUS + text : text;
}

// For inside a cell: no zero before the point.
function short(x, digits = 2) {
  return number(x, digits).replace(/^(\D?)0\./, "$1.");
}

function escape(text) {
  return String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
}

// The size of a cell so that `columns` of them and the row labels fit into `room` pixels.
function cellSize(room, columns, rows = [], { most = 34, least = 5 } = {}) {
  return Math.max(least, Math.min(most, Math.floor((room - labelWidth(rows) - 2) / columns)));
}

function labelWidth(labels) {
  return labels.length ? Math.ceil(9 + 7.6 * Math.max(...labels.map((label) => String(label).length))) : 0;
}

const FULL = 0.62; // opacity of a cell that holds the largest number
const SHADES = 20; // between none and full

// One matrix as SVG. Cells of one colour are one path: an element for each would take several times as long to draw.
//   name     what the tables and the readout call it     tensor   (row, column)
//   rows     labels of the rows, or []                   columns  labels of the columns, or []
//   size     of a cell in pixels                         high     of a cell, where it is not its width
//   largest  the number drawn in full colour
//   paint    (value, r, c) => {kind, strength, text, key}: replaces the signed colours and the numbers, where a view needs to; cells that
//            show the same entry in several matrices share a key; the kind "struck" is a stroke through the cell
//   bands    [{from, to, text}]: brackets above groups of columns
function matrix({ name, tensor, rows = [], columns = [], size = 26, high = size, largest = tensor.largest, paint, bands = [] }) {
  const [height, width] = tensor.shape;
  const left = labelWidth(rows);
  const slanted = columns.some((label) => String(label).length * 7 > size);
  const top = (bands.length ? 20 : 0) + (columns.length ? (slanted ? labelWidth(columns) : 16) : 0) + 2;
  const looks = Array.from(tensor.data, (value, i) => ({
    kind: value < 0 ? "minus" : "plus",
    strength: largest ? Math.min(1, Math.abs(value) / largest) : 0,
    ...paint?.(value, Math.floor(i / width), i % width),
  }));
  // All cells show their number, large ones with fewer decimals where there is less room, or none does.
  const decimals = [2, ...(largest >= 2 ? [1] : []), ...(largest >= 10 ? [0] : [])];
  let shown;
  let digits;
  for (const places of decimals) {
    shown = looks.map(({ text }, i) => text ?? short(tensor.data[i], places));
    digits = slots(shown, size);
    if (digits) break;
  }
  const cells = {}; // the path of each kind and shade
  const lines = [];
  let bars = "";
  let strikes = "";
  let dots = "";
  for (let r = 0; r < height; r++) {
    for (let c = 0; c < width; c++) {
      const { kind, strength } = looks[r * width + c];
      const x = c * size;
      const y = r * high;
      const shade = Math.round(SHADES * strength);
      if (kind === "struck") strikes += `M${x} ${y + high - 1}l${size - 1} ${1 - high}`;
      else if (shade) {
        const look = `class="cells ${kind}" fill-opacity="${((FULL * shade) / SHADES).toFixed(3)}"`;
        cells[look] = `${cells[look] ?? ""}M${x} ${y}h${size - 1}v${high - 1}h${1 - size}z`;
      }
      // Grey alone is hard to tell from a small number.
      if (kind === "unread" && size >= 8) dots += `M${x + size / 2 - 1.5} ${y + high / 2 - 0.5}h2`;
      // Colour is not the only sign: a bar marks negative numbers where the digits do not fit.
      if (!digits && kind === "minus") bars += `M${x + size * 0.25} ${y + high / 2 - 0.5}h${size * 0.45}`;
    }
    if (digits) {
      const line = shown.slice(r * width, (r + 1) * width).map((text) => centred(text, digits.count));
      lines.push(`<text class="digits" x="${digits.shift}" y="${(r + 0.5) * high + 3.5}" font-size="${digits.fontSize}">${line.join("")}</text>`);
    }
  }
  const rules = [
    ...Array.from({ length: height + 1 }, (_, r) => `M-0.5 ${r * high - 0.5}h${width * size}`),
    ...Array.from({ length: width + 1 }, (_, c) => `M${c * size - 0.5} -0.5v${height * high}`),
  ];
  const labels = [
    ...rows.map((label, r) => `<text class="row" x="-6" y="${(r + 0.5) * high + 3.5}">${escape(label)}</text>`),
    ...columns.map((label, c) => {
      const x = (c + 0.5) * size;
      return slanted
        ? `<text class="slanted" transform="translate(${x + 3.5} -4) rotate(-90)">${escape(label)}</text>`
        : `<text class="column" x="${x}" y="-5">${escape(label)}</text>`;
    }),
    ...bands.map(({ from, to, text }) => {
      const [x0, x1] = [from * size + 1, to * size - 2];
      return `<path class="band" d="M${x0} ${17 - top}v-4H${x1}v4"/><text class="column" x="${(x0 + x1) / 2}" y="${9 - top}">${escape(text)}</text>`;
    }),
  ];
  const painted = Object.entries(cells).map(([look, d]) => `<path ${look} d="${d}"/>`);
  const w = left + width * size + 1;
  const h = top + height * high + 1;
  drawn.push({ name, tensor, rows, columns, largest, keys: looks.map(({ key }) => key), dashes: Boolean(bars), left, top, size, high });
  return `<svg data-name="${escape(name)}" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}" aria-hidden="true"><g transform="translate(${left} ${top})">${labels.join("")}<path class="grid" d="${rules.join("")}"/>${painted.join("")}${lines.join("")}<path class="strike" d="${strikes}"/><path class="bar" d="${bars}"/>${dots && `<path class="dots" d="${dots}"/>`}<path class="outline"/></g></svg>`;
}

// The numbers of a row are one text in a font whose characters are all equally wide: an element for each number would
// take twice as long to draw. Every cell gets `count` characters, and the font the size at which they fill the cell.
// Nothing is returned where that would be too small to read.
function slots(texts, size) {
  characterWidth ??= measureCharacter();
  const longest = Math.max(...texts.map((text) => text.length));
  const fontSize = (count) => size / (count * characterWidth);
  const least = longest === 1 ? 1 : longest + 1; // a gap between numbers
  const count = Math.max(least, Math.round(size / (10.5 * characterWidth)));
  // The longest number stands in the middle of its cell.
  const shift = (count - longest) % 2 ? -0.5 - size / count / 2 : -0.5;
  return fontSize(count) >= 9 ? { count, fontSize: fontSize(count).toFixed(3), shift } : null;
}

let characterWidth; // of the monospaced font, in parts of its size

function measureCharacter() {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `100px ${MONOSPACE}`;
  return pen.measureText("0").width / 100;
}

function centred(text, count) {
  const space = "\u00a0";
  return text.padStart(Math.ceil((count + text.length) / 2), space).padEnd(count, space);
}

// A captioned part of the picture; parts stand side by side where there is room. `symbol` is what it shows: q, k, v, scores,
// weights or output, which have colours of their own on the book's pages.
function panel(caption, body, symbol = "") {
  const nth = panels.push(`<figcaption>${escape(caption)}</figcaption>${body}`) - 1;
  return `<figure class="panel${symbol && ` sym sym-${symbol}`}" data-panel="${nth}"></figure>`;
}

function row(title, parts, note = "") {
  return `<div class="line"><p class="title">${escape(title)}</p><div class="panels">${parts.join("")}</div>${note ? `<p class="note">${escape(note)}</p>` : ""}</div>`;
}

// Of the last drawing: the matrices, with their numbers and where their cells stand, and the contents of the panels.
let drawn = [];
let panels = [];

// What a reader wrote goes along from view to view and from page to page, in this tab and nowhere else: sentences to where sentences
// are read, dates to where dates are.
const KEPT = "attention-head-by-head.";

function kept(kind) {
  try {
    return sessionStorage.getItem(KEPT + kind) ?? "";
  } catch {
    return ""; // a notebook's output may not have storage
  }
}

function keep(kind, text) {
  try {
    sessionStorage.setItem(KEPT + kind, text);
  } catch {
    // the views of this page still hear of it
  }
  window.dispatchEvent(new CustomEvent(KEPT + kind, { detail: text }));
}

// A message's buffer, moved to where it may begin.
function copied(view) {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength).slice().buffer;
}

// Numbers in half precision: a sign, five bits of exponent, ten of fraction.
function halves(bits) {
  return Float32Array.from(bits, (half) => {
    const exponent = (half >> 10) & 31;
    const size = exponent ? 2 ** (exponent - 25) * (1024 + (half & 1023)) : 2 ** -24 * (half & 1023);
    return half & 0x8000 ? -size : size;
  });
}

// A frame as it is stored, with its tensors taken out of the buffer.
function unpacked(stored, numbers) {
  return Object.fromEntries(
    Object.entries(stored).map(([name, value]) => {
      if (!value?.shape) return [name, value];
      const size = value.shape.reduce((a, b) => a * b, 1);
      return [name, new Tensor(value.shape, numbers.subarray(value.at, value.at + size))];
    }),
  );
}

// By how much two frames differ; infinitely where they do not hold the same things.
function difference(frame, other) {
  const parts = Object.keys({ ...frame, ...other }).map((name) => {
    const [a, b] = [frame[name], other[name]].map((value) => (value instanceof Tensor ? value.data : value));
    if (typeof a === "number" || typeof a === "string" || a == null || b == null) return distance(a, b);
    if (a.length !== b.length) return Infinity;
    return Math.max(0, ...Array.from(a, (x, i) => distance(x, b[i])));
  });
  return Math.max(0, ...parts);
}

function distance(a, b) {
  if (a === b) return 0;
  return typeof a === "number" && typeof b === "number" ? Math.abs(a - b) : Infinity;
}

function listed(words) {
  const quoted = words.map((word) => `“${word}”`);
  return quoted.length > 1 ? `${quoted.slice(0, -1).join(", ")} and ${quoted.at(-1)}` : quoted[0];
}

const CLOSE = 1e-4; // frames are stored in float32
const PAUSE = 100; // milliseconds

let fields = 0; // numbers the text fields of a page, to tie each label to its field

function explorer({ model: modelOf = (at) => `${at.d_model},${at.n_heads ?? 2}`, compute, split = tokenize, prepare = (tokens) => tokens, act, note, ready = [], status, draw, describe }) {
  return {
    render({ model, el }) {
      const controls = model.get("controls");
      const frames = model.get("frames");
      const models = model.get("models");
      const { kind, label, placeholder, vocabulary, longest } = model.get("reads") ?? { kind: "", label: "", placeholder: "" };
      const numbers = new Float32Array(copied(model.get("numbers")));
      const weights = halves(new Uint16Array(copied(model.get("weights"))));

      el.classList.add("explorer-view");
      if (ready.length) el.classList.add("with-ready");
      const id = `own-${++fields}`;
      el.innerHTML = `
        <form class="own" autocomplete="off"${kind ? "" : " hidden"}><label for="${id}">${escape(label)}</label><input id="${id}" type="text" maxlength="200" spellcheck="false" enterkeyhint="done" data-lm-suppress-shortcuts placeholder="${escape(placeholder)}"><button type="reset">clear</button></form>
        <p class="heard" aria-live="polite"${kind ? "" : " hidden"}></p>
        <p class="status" role="status"></p>
        <p class="ready" role="group" aria-label="Sentences to try"${ready.length ? "" : " hidden"}>${ready.map((text) => `<button type="button">${escape(text)}</button>`).join("")}</p>
        <div class="picture" data-picture tabindex="0" role="group" aria-label="Picture. Arrow keys read its cells."></div>
        <p class="readout" aria-live="polite"></p>
        <details class="tables"><summary>The same as tables, and files to save</summary><div></div></details>`;
      const [form, heard, line, taps, picture, readout, tables] = el.children;
      const field = form.querySelector("input");
      let frame, at;
      let own = []; // the matrices that are drawn
      let contents = []; // of the panels, as they are to be
      let width = el.clientWidth; // kept, since asking for it anew would lay the page out before every drawing

      const idOf = (token) => (vocabulary.includes(token) ? vocabulary.indexOf(token) : UNK_ID);
      const read = (tokens) => tokens.map(idOf);
      const trained = new Map(); // the weights that were used, by their name

      function weightsOf(name) {
        if (!trained.has(name)) trained.set(name, unpacked(models[name], weights));
        return trained.get(name);
      }

      // What torch computed for the controls as they stand, of the first sentence or of the chosen one.
      function storedFrame(first = false) {
        const places = controls.map(({ name }) => (first && name === "sentence" ? 0 : Number(model.get(name)))); // a Checkbox links a boolean
        return frames[places.filter((_, i) => controls[i].frame).join(",")];
      }

      const memory = {};
      const proven = new Set(); // the settings of which torch's own frame was computed again, with the same result

      // The frame of the reader's own tokens.
      function ownFrame(tokens) {
        const stored = unpacked(storedFrame(true), numbers);
        const one = weightsOf(modelOf(at));
        const make = (tokens, memory) => compute({ tokens, ids: read(tokens) }, at, one, { stored, read, memory });
        const chosen = controls.filter(({ name, frame }) => frame && name !== "sentence");
        const setting = chosen.map(({ name }) => at[name]).join();
        if (!proven.has(setting)) {
          const off = difference(make(stored.keys ?? stored.tokens, {}), stored);
          if (!(off < CLOSE)) return { problem: `This page computes torch's own example differently than torch does (by ${off}), so it does not show yours.` };
          proven.add(setting);
        }
        return make(prepare(tokens), memory);
      }

      function current() {
        at = Object.fromEntries(controls.map(({ name, options }) => [name, options[Number(model.get(name))]]));
        const stored = storedFrame();
        const tokens = kind ? split(field.value) : [];
        const unknown = [...new Set(tokens)].filter((token) => !vocabulary.includes(token));
        let notes = "";
        if (stored.error || (!tokens.length && !act)) frame = unpacked(stored, numbers);
        else if (tokens.length > longest) frame = { problem: `The model reads at most ${longest} tokens; this ${kind} has ${tokens.length}.` };
        else if (unknown.length && !vocabulary.includes(UNK)) frame = { problem: `The model does not know ${listed(unknown)}.` };
        else {
          frame = ownFrame(tokens.length ? tokens : stored.tokens);
          if (unknown.length) notes = `The model does not know ${listed(unknown)}; it reads ${UNK}${unknown.length > 1 ? " for each" : ""}. `;
          notes = frame.problem ? "" : (notes + (note?.(frame, at) ?? "")).trim();
        }
        say(heard, notes);
      }

      const held = new WeakMap(); // what each panel holds
      const unseen = new WeakSet(); // the panels off the screen
      let waiting; // for a pause, to fill those too: a letter or a slider's step costs what is seen of it
      const watch = new IntersectionObserver((entries) => {
        for (const { target, isIntersecting } of entries) unseen[isIntersecting ? "delete" : "add"](target);
        fill(seen);
      });

      function seen(panel) {
        return !unseen.has(panel);
      }

      function fill(now = () => true) {
        for (const panel of picture.querySelectorAll(".panel")) {
          const content = contents[panel.dataset.panel];
          if (held.get(panel) === content || !now(panel)) continue;
          become(panel, parsed(content));
          held.set(panel, content);
        }
      }

      function redraw() {
        clearTimeout(waiting);
        current();
        drawn = [];
        panels = [];
        const problem = frame.problem ?? frame.error;
        if (problem) {
          picture.innerHTML = `<p class="error">${frame.error ? "<strong>ValueError</strong> " : ""}${escape(problem)}</p>`;
        } else {
          unlight();
          const acting = picture.contains(document.activeElement) && document.activeElement.dataset.act;
          become(picture, parsed(draw(frame, at, Math.max(240, width))));
          contents = panels;
          fill(seen);
          waiting = setTimeout(fill, PAUSE);
          for (const panel of picture.querySelectorAll(".panel")) watch.observe(panel);
          if (acting) picture.querySelector(`[data-act="${acting}"]`)?.focus();
        }
        say(line, problem ? [sizes(at), "nothing to show"].filter(Boolean).join(" · ") : status(frame, at));
        readout.classList.remove("reading");
        say(readout, problem ? "" : `Point at a ${drawn.every(({ bars }) => bars) ? "bar" : "cell"}, tap it, or use the arrow keys.${drawn.some(({ dashes }) => dashes) ? " A dash is a negative number." : ""}`);
        own = picture.matrices = drawn;
        if (tables.open) fillTables();
      }

      function fillTables() {
        tables.lastElementChild.innerHTML = frame.problem || frame.error ? "" : own.map(table).join("");
      }

      let lit = ""; // what is pointed at: a pointer moves many times within a cell

      function unlight() {
        lit = "";
        for (const old of picture.querySelectorAll(".on")) old.classList.remove("on");
        for (const old of picture.querySelectorAll(".outline[d]")) old.removeAttribute("d");
      }

      // Outlines cells, and lights the edges and the words that belong to them.
      function light(belongs, others) {
        unlight();
        for (const { name, tensor, keys, size, high } of own) {
          const width = tensor.shape[1];
          const cells = keys.map((key, i) => [Math.floor(i / width), i % width, key]).filter(([r, c, key]) => belongs({ name, r, c, key }));
          const edge = cells.map(([r, c]) => `M${c * size} ${r * high}h${size - 1}v${high - 1}h${1 - size}z`);
          if (edge.length) picture.querySelector(`[data-name="${name}"] .outline`)?.setAttribute("d", edge.join(""));
        }
        for (const other of picture.querySelectorAll(others)) other.classList.add("on");
      }

      let cursor = null; // the cell that was read last

      function point({ name, r, c }) {
        if (lit === `${name} ${r} ${c}`) return;
        const { tensor, keys } = own.find((each) => each.name === name);
        const i = r * tensor.shape[1] + c;
        const key = keys[i];
        light((cell) => (cell.name === name && cell.r === r && cell.c === c) || (key !== undefined && cell.key === key), `[data-key="${key}"], [data-word="${r}"]`);
        lit = `${name} ${r} ${c}`;
        cursor = { name, r, c };
        readout.classList.add("reading");
        readout.textContent = describe({ name, r, c, key, value: tensor.data[i] }, frame, at);
      }

      // A word lights its row in every map.
      function pointWord(r) {
        light((cell) => cell.r === r, `[data-word="${r}"]`);
        readout.classList.add("reading");
        readout.textContent = describe({ name: "word", r }, frame, at);
      }

      const pointed = ({ target, clientX, clientY }) => {
        const word = target.closest("[data-word]");
        if (word) return pointWord(+word.dataset.word);
        const svg = target.closest("[data-name]");
        const of = own.find(({ name }) => name === svg?.dataset.name);
        if (!of) return;
        const box = svg.getBoundingClientRect();
        const scale = box.width / svg.width.baseVal.value; // of slides, which are as large as their screen
        const [r, c] = [Math.floor(((clientY - box.top) / scale - of.top) / of.high), Math.floor(((clientX - box.left) / scale - of.left) / of.size)];
        if (r >= 0 && c >= 0 && r < of.tensor.shape[0] && c < of.tensor.shape[1]) point({ name: of.name, r, c });
      };
      picture.addEventListener("pointermove", pointed);
      picture.addEventListener("pointerdown", pointed);
      picture.addEventListener("focus", () => {
        if (own.length && picture.matches(":focus-visible")) point(own.find(({ name }) => name === cursor?.name) ? cursor : { name: own[0].name, r: 0, c: 0 });
      });
      picture.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
        const nth = own.findIndex(({ name }) => name === cursor?.name);
        if (!step || nth < 0) return;
        event.preventDefault();
        const [r, c] = [cursor.r + step[0], cursor.c + step[1]];
        const [height, width] = own[nth].tensor.shape;
        if (r >= 0 && c >= 0 && r < height && c < width) return point({ name: cursor.name, r, c });
        // Past the edge of a matrix: on to the one after it, or back to the one before.
        const other = own[nth + step[0] + step[1]];
        if (other) point({ name: other.name, r: 0, c: 0 });
      });
      picture.addEventListener("click", (event) => {
        const button = event.target.closest("[data-act]");
        if (!button) return;
        act(button.dataset.act, memory);
        redraw();
      });
      taps.addEventListener("click", ({ target }) => target.matches("button") && keep(kind, target.textContent));
      tables.addEventListener("click", ({ target }) => {
        const [kind, nth] = (target.dataset.save ?? "").split(" ");
        if (kind === "csv") save(`${own[nth].name}.csv`, "text/csv", csv(own[nth]));
        if (kind === "svg") save(`${own[nth].name}.svg`, "image/svg+xml", standalone(picture.querySelector(`svg[data-name="${own[nth].name}"]`)));
      });
      tables.addEventListener("toggle", () => tables.open && fillTables());

      // In JupyterLab and Notebook an arrow key would leave a menu, a slider or the picture for another cell.
      // Both pass over an element with this attribute, and look at a key before anything below the window does.
      const keepArrows = ({ key, target }) => {
        if (target !== field && el.closest(".explorer")?.contains(target)) target.toggleAttribute("data-lm-suppress-shortcuts", key.startsWith("Arrow"));
      };
      window.addEventListener("keydown", keepArrows, true);

      const listen = controls.map(({ name }) => `change:${name}`);
      for (const event of listen) model.on(event, redraw);

      field.addEventListener("input", () => keep(kind, field.value));
      form.addEventListener("submit", (event) => event.preventDefault());
      form.addEventListener("reset", (event) => {
        event.preventDefault();
        keep(kind, "");
        field.focus();
      });
      field.addEventListener("keydown", (event) => event.stopPropagation()); // a notebook has shortcuts of one letter
      const follow = ({ detail }) => {
        if (field.value !== detail) field.value = detail;
        redraw();
      };
      window.addEventListener(KEPT + kind, follow);
      // Who chooses a sentence wants to see that one.
      const chosen = () => field.value && keep(kind, "");
      model.on("change:sentence", chosen);
      field.value = kept(kind);
      const resized = new ResizeObserver(() => {
        if (el.clientWidth === width) return;
        width = el.clientWidth;
        redraw();
      });
      resized.observe(el);
      redraw();
      return () => {
        for (const event of listen) model.off(event, redraw);
        model.off("change:sentence", chosen);
        window.removeEventListener(KEPT + kind, follow);
        resized.disconnect();
        watch.disconnect();
        clearTimeout(waiting);
        window.removeEventListener("keydown", keepArrows, true);
      };
    },
  };
}

// A text that stays the same is left alone.
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const template = document.createElement("template");

function parsed(html) {
  template.innerHTML = html;
  return template.content;
}

// Makes `old` what `wanted` is, but for what panels hold, and leaves alone what is the same in both, so that the browser need not
// style, lay out and paint it again.
function become(old, wanted) {
  let one = old.firstChild;
  for (const node of [...wanted.childNodes]) {
    const next = one?.nextSibling;
    if (!one) old.append(node);
    else if (one.nodeName !== node.nodeName || node.nodeType !== Node.ELEMENT_NODE) {
      if (!one.isEqualNode(node)) one.replaceWith(node);
    } else if (!one.isEqualNode(node)) {
      for (const { name } of [...one.attributes]) if (!node.hasAttribute(name)) one.removeAttribute(name);
      for (const { name, value } of node.attributes) if (one.getAttribute(name) !== value) one.setAttribute(name, value);
      if (!("panel" in node.dataset)) become(one, node);
    }
    one = next;
  }
  while (one) {
    const next = one.nextSibling;
    one.remove();
    one = next;
  }
}

function sizes(at) {
  return ["d_model", "n_heads"].filter((name) => name in at).map((name) => `${name} ${at[name]}`).join(" · ");
}

function table({ name, tensor, rows, columns }, nth) {
  const [height, width] = tensor.shape;
  const head = Array.from({ length: width }, (_, c) => `<th scope="col">${escape(columns[c] ?? c)}</th>`).join("");
  const lines = Array.from({ length: height }, (_, r) => {
    const numbers = Array.from({ length: width }, (_, c) => `<td>${number(tensor.data[r * width + c])}</td>`);
    return `<tr><th scope="row">${escape(rows[r] ?? r)}</th>${numbers.join("")}</tr>`;
  });
  const buttons = ["svg", "csv"].map((kind) => `<button type="button" data-save="${kind} ${nth}">save ${escape(name)} as ${kind.toUpperCase()}</button>`);
  return `<div class="scroll" tabindex="0" role="group" aria-label="${escape(name)}"><table><caption>${escape(name)}</caption><thead><tr><th scope="col">row</th>${head}</tr></thead><tbody>${lines.join("")}</tbody></table></div><p class="saves">${buttons.join(" ")}</p>`;
}

// The numbers as they were computed, with the labels of rows and columns.
function csv({ tensor, rows, columns }) {
  const [height, width] = tensor.shape;
  const quoted = (label) => `"${String(label).replaceAll('"', '""')}"`;
  const head = ["", ...range(width).map((c) => quoted(columns[c] ?? c))].join(",");
  const lines = range(height).map((r) => [quoted(rows[r] ?? r), ...tensor.data.slice(r * width, (r + 1) * width)].join(","));
  return [head, ...lines, ""].join("\n");
}

const LOOKS = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "font-family", "font-size", "font-weight", "text-anchor", "opacity"];

// A picture that keeps its look outside of the page: every element gets the values that the stylesheet gives it here.
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const [theirs, ours] = [svg, copy].map((each) => [each, ...each.querySelectorAll("*")]);
  theirs.forEach((element, i) => {
    const look = getComputedStyle(element);
    for (const name of LOOKS) ours[i].setAttribute(name, look.getPropertyValue(name));
    for (const name of ["class", "style"]) ours[i].removeAttribute(name);
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(copy);
}

function save(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name.replaceAll(" ", "-");
  link.click();
  URL.revokeObjectURL(link.href);
}
