// Pointing at a cell, by mouse, touch or arrow keys: it is outlined and read out.

const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

// `read` says the words for what is pointed at. Returns how the pointer is told of a new drawing.
export function pointerOver(picture, readout, read) {
  let matrices = []; // of the drawing
  let pointed = ""; // at which cell: a pointer moves many times within one
  let cursor = null; // the cell that was read last

  function clear() {
    pointed = "";
    for (const old of picture.querySelectorAll(".on")) old.classList.remove("on");
    for (const old of picture.querySelectorAll(".outline[d]")) old.removeAttribute("d");
  }

  // Outlines cells, and highlights the edges and the words that belong to them.
  function highlight(belongs, others) {
    clear();
    for (const { name, tensor, keys, size, high } of matrices) {
      const width = tensor.shape[1];
      const outline = keys.map((key, i) => {
        const [r, c] = [Math.floor(i / width), i % width];
        if (!belongs({ name, r, c, key })) return "";
        return `M${c * size} ${r * high}h${size - 1}v${high - 1}h${1 - size}z`;
      }).join("");
      if (outline) {
        picture.querySelector(`[data-name="${name}"] .outline`)?.setAttribute("d", outline);
      }
    }
    for (const other of picture.querySelectorAll(others)) other.classList.add("on");
  }

  function readOut(what) {
    readout.classList.add("reading");
    readout.textContent = read(what);
  }

  function pointAt({ name, r, c }) {
    if (pointed === `${name} ${r} ${c}`) return;
    const { tensor, keys } = matrices.find((each) => each.name === name);
    const i = r * tensor.shape[1] + c;
    const key = keys[i];
    const isIt = (cell) => cell.name === name && cell.r === r && cell.c === c;
    const isSame = (cell) => key !== undefined && cell.key === key;
    highlight((cell) => isIt(cell) || isSame(cell), `[data-key="${key}"], [data-word="${r}"]`);
    pointed = `${name} ${r} ${c}`;
    cursor = { name, r, c };
    readOut({ name, r, c, key, value: tensor.data[i] });
  }

  // A word highlights its row in every map.
  function pointAtWord(r) {
    highlight((cell) => cell.r === r, `[data-word="${r}"]`);
    readOut({ name: "word", r });
  }

  function follow({ target, clientX, clientY }) {
    const word = target.closest("[data-word]");
    if (word) return pointAtWord(+word.dataset.word);
    const svg = target.closest("[data-name]");
    const matrix = matrices.find(({ name }) => name === svg?.dataset.name);
    if (!matrix) return;
    const { name, tensor, left, top, size, high } = matrix;
    const box = svg.getBoundingClientRect();
    // Slides are as large as their screen.
    const scale = box.width / svg.width.baseVal.value;
    const r = Math.floor(((clientY - box.top) / scale - top) / high);
    const c = Math.floor(((clientX - box.left) / scale - left) / size);
    if (isInside(tensor, r, c)) pointAt({ name, r, c });
  }

  function isInside({ shape: [height, width] }, r, c) {
    return r >= 0 && c >= 0 && r < height && c < width;
  }

  function move(event) {
    const step = STEPS[event.key];
    const nth = matrices.findIndex(({ name }) => name === cursor?.name);
    if (!step || nth < 0) return;
    event.preventDefault();
    const [r, c] = [cursor.r + step[0], cursor.c + step[1]];
    if (isInside(matrices[nth].tensor, r, c)) return pointAt({ name: cursor.name, r, c });
    // Past the edge of a matrix: on to the one after it, or back to the one before.
    const other = matrices[nth + step[0] + step[1]];
    if (other) pointAt({ name: other.name, r: 0, c: 0 });
  }

  picture.addEventListener("pointermove", follow);
  picture.addEventListener("pointerdown", follow);
  picture.addEventListener("keydown", move);
  // Who clicked goes on by keyboard from there.
  picture.addEventListener("click", ({ target }) => {
    if (!target.closest("button")) cursorIn(picture)?.focus({ preventScroll: true });
  });
  picture.addEventListener("focusin", ({ target }) => {
    if (target !== cursorIn(picture) || !matrices.length || !target.matches(":focus-visible")) {
      return;
    }
    const isThere = matrices.some(({ name }) => name === cursor?.name);
    pointAt(isThere ? cursor : { name: matrices[0].name, r: 0, c: 0 });
  });

  return {
    clear,
    over(drawn) {
      matrices = drawn;
    },
  };
}

function cursorIn(picture) {
  return picture.querySelector("[data-cursor]");
}
