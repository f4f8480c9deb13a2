/* A link arrives at the place that it names. What is far below the window is not laid out
 * (chapter_form.css), and until it has been once, the browser takes its height for 1,500 px. So all
 * of it is laid out for one frame, at a moment when nothing else is to do, or before the page goes
 * to a place; from then on the browser knows the heights (`contain-intrinsic-size: auto`).
 */
(() => {
  "use strict";

  const root = document.documentElement;

  function layOut(then) {
    root.classList.add("laid-out");
    // Heights are remembered when a frame is rendered, after its callbacks.
    requestAnimationFrame(() =>
      setTimeout(() => {
        then?.();
        root.classList.remove("laid-out");
      })
    );
  }

  // An address may end in a widget's name and its state, or show one widget alone (host.js).
  const place = () => document.getElementById(decodeURI(location.hash).slice(1).split("?")[0]);
  const isAlone = new URLSearchParams(location.search).has("alone");
  const [arrival] = performance.getEntriesByType("navigation");

  if (place() && !isAlone && arrival?.type === "navigate") {
    layOut(() => place().scrollIntoView({ behavior: "instant" }));
  } else if ("requestIdleCallback" in window) requestIdleCallback(() => layOut());
  else addEventListener("load", () => layOut());

  addEventListener("hashchange", () => {
    if (location.hash.includes("?") && !isAlone) place()?.scrollIntoView();
  });
})();
