// A view whose cells are switched by clicking, tapping, dragging over them, and by Enter or Space
// at the cell cursor.

import { explorer } from "./explorer.js";
import { element } from "./markup.js";
import { range } from "./tensor.js";

const PRESSED = ["Enter", " "];

// What lies over the cells of a matrix, so `high` if they are not square: clicked, each presses
// `act` as a button does. Those that `drag` are pressed by a pointer that is dragged over them; a
// finger on them does not move the page.
export function switches([height, width], name, { high, drag = false } = {}) {
  const look = { fill: "transparent", cursor: "pointer", "data-drag": drag };
  const style = drag && "touch-action: none";
  return ({ size }) =>
    range(height * width).map((i) => {
      const [r, c] = [Math.floor(i / width), i % width];
      const corner = `${c * size} ${r * (high ?? size)}`;
      const d = `M${corner}h${size}v${high ?? size}h${-size}z`;
      const press = { "data-act": `${name} ${r} ${c}`, "data-corner": corner };
      return element("path", { d, ...press, ...look, style });
    }).join("");
}

// What lies over the labels of the rows: clicked, each presses `act` for its row.
export function rowSwitches(rows, name, left) {
  return ({ size }) =>
    rows.map((_, r) => {
      const d = `M${-left} ${r * size}h${left - 4}v${size}h${4 - left}z`;
      return element("path", {
        d,
        "data-act": `${name} ${r}`,
        fill: "transparent",
        cursor: "pointer",
      });
    }).join("");
}

export function painting(view) {
  const { render } = explorer(view);
  return {
    render({ model, el }) {
      const end = render({ model, el });

      // After the drawing is made again, the cell is read out as it is now.
      function readAgain({ target }) {
        const act = target.closest?.("path[data-act]")?.dataset.act;
        const cell = act && el.querySelector(`path[data-act="${act}"]`);
        if (!cell) return;
        const { left, top, width, height } = cell.getBoundingClientRect();
        const [clientX, clientY] = [left + width / 2, top + height / 2];
        cell.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX, clientY }));
      }

      // Each cell that the pointer is dragged over is pressed once. Where the drag began, too.
      let dragged; // the acts of a drag, none while only one cell was touched
      const cellAt = ({ clientX, clientY }) =>
        document.elementFromPoint(clientX, clientY)?.closest?.("path[data-drag]");

      function begin(event) {
        const cell = cellAt(event);
        dragged = cell && el.contains(cell) ? [cell.dataset.act] : undefined;
        // A finger's later events go to this cell, also when a new drawing has replaced it.
        if (dragged) cell.addEventListener("touchmove", stay, { passive: false });
      }

      // The page does not move under a finger that paints.
      function stay(move) {
        if (dragged && move.cancelable) move.preventDefault();
      }

      function drag(event) {
        const act = dragged && event.buttons && cellAt(event)?.dataset.act;
        if (!act || dragged.includes(act)) return;
        el.setPointerCapture(event.pointerId); // the next drawing replaces the cell
        for (const each of dragged.length === 1 ? [dragged[0], act] : [act]) {
          const cell = el.querySelector(`path[data-act="${each}"]`);
          cell?.dispatchEvent(new MouseEvent("click", { bubbles: true }));
        }
        dragged.push(act);
      }

      // The browser's own click at the end of a drag would press a cell a second time.
      function endDrag(event) {
        if (dragged?.length > 1 && event.isTrusted) event.stopPropagation();
        if (event.isTrusted) dragged = undefined;
      }

      // Before a notebook takes the key for a shortcut of its own.
      function press(event) {
        const { key, target } = event;
        if (!PRESSED.includes(key) || !target.matches?.("[data-cursor]")) return;
        if (!el.contains(target)) return;
        target.toggleAttribute("data-lm-suppress-shortcuts", true);
        event.preventDefault();
        for (const cell of el.querySelectorAll("path[data-act]")) {
          const outline = cell.closest("svg").querySelector(".outline").getAttribute("d") ?? "";
          if (!outline.startsWith(`M${cell.dataset.corner}h`)) continue;
          cell.dispatchEvent(new MouseEvent("click", { bubbles: true }));
          return;
        }
      }

      el.addEventListener("pointerdown", begin);
      el.addEventListener("touchmove", stay, { passive: false });
      el.addEventListener("pointermove", drag);
      el.addEventListener("click", endDrag, true);
      el.addEventListener("click", readAgain);
      window.addEventListener("keydown", press, true);
      return () => {
        el.removeEventListener("pointerdown", begin);
        el.removeEventListener("touchmove", stay);
        el.removeEventListener("pointermove", drag);
        el.removeEventListener("click", endDrag, true);
        el.removeEventListener("click", readAgain);
        window.removeEventListener("keydown", press, true);
        end();
      };
    },
  };
}
