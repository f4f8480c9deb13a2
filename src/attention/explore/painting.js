// A view whose cells are switched by clicking, tapping, and Enter or Space at the cell cursor.

import { explorer } from "./explorer.js";
import { element } from "./markup.js";
import { range } from "./tensor.js";

const PRESSED = ["Enter", " "];

// What lies over the cells of a matrix, so `high` if they are not square: clicked, each presses
// `act` as a button does.
export function switches([height, width], name, high) {
  return ({ size }) =>
    range(height * width).map((i) => {
      const [r, c] = [Math.floor(i / width), i % width];
      const corner = `${c * size} ${r * (high ?? size)}`;
      const d = `M${corner}h${size}v${high ?? size}h${-size}z`;
      const press = { "data-act": `${name} ${r} ${c}`, "data-corner": corner };
      return element("path", { d, ...press, fill: "transparent", cursor: "pointer" });
    }).join("");
}

export function painting(view) {
  const { render } = explorer(view);
  return {
    render({ model, el }) {
      const end = render({ model, el });

      // After the drawing is made anew, the cell is read out as it is now.
      function readAgain({ target }) {
        const act = target.closest?.("path[data-act]")?.dataset.act;
        const cell = act && el.querySelector(`path[data-act="${act}"]`);
        if (!cell) return;
        const { left, top, width, height } = cell.getBoundingClientRect();
        const [clientX, clientY] = [left + width / 2, top + height / 2];
        cell.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX, clientY }));
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

      el.addEventListener("click", readAgain);
      window.addEventListener("keydown", press, true);
      return () => {
        el.removeEventListener("click", readAgain);
        window.removeEventListener("keydown", press, true);
        end();
      };
    },
  };
}
