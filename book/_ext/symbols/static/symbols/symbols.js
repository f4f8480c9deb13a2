/* Pointing at Q in a formula lights Q in the code and in the pictures, and back. */
(() => {
  "use strict";

  const NAME = /\bsym-(\w+)/;
  const style = document.createElement("style");
  document.head.append(style);
  let highlighted = "";

  function highlight(target) {
    const name = NAME.exec(target.closest?.(".sym")?.getAttribute("class") ?? "")?.[1] ?? "";
    if (name === highlighted) return;
    highlighted = name;
    // A rule instead of a class on every element: nothing of the page is searched or changed.
    style.textContent = name
      ? `.sym-${name} { background-color: var(--sym-${name}-lit); border-radius: 2px;
        outline: 2px solid var(--sym-${name}); }
      figure.sym-${name} { background-color: transparent; outline-offset: -1px; }`
      : ""; // a tint would pass for a number's colour
  }

  for (const event of ["pointerover", "pointerdown"]) {
    document.addEventListener(event, ({ target }) => highlight(target), { passive: true });
  }
})();
