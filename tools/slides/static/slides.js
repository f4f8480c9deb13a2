/* Starts reveal.js, and shows what is on each slide as large as it fits. */
"use strict";

// Percent of what the stylesheet says, the largest first.
const TEXT = Array.from({ length: 26 }, (_, i) => 100 - 2 * i);
const EXPLORER = { smallest: 40, largest: 130, step: 3 };
// An explorer's controls stand above its picture or beside it, and the picture's parts in one
// column or in two.
const LAYOUTS = ["", "beside", "columns", "beside columns"];

const theme = document.documentElement.dataset;
theme.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";

function fits(slide) {
  const scrolls = [...slide.querySelectorAll("pre, .panels, .picture")].some(
    (each) => each.scrollWidth > each.clientWidth + 1,
  );
  return !scrolls && slide.scrollHeight <= slide.clientHeight;
}

/** Text in the largest size that fits. */
function fitText(slide, shown) {
  for (const percent of TEXT) {
    shown.style.setProperty("--size", percent / 100);
    if (fits(slide)) return;
  }
}

/** When an explorer has drawn itself again for the room it has now. */
const drawn = () =>
  new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));

/** An explorer in the layout and the size in which it is largest. */
async function fitExplorer(slide, shown) {
  if (shown.classList.contains("fitting")) return;
  shown.classList.add("fitting");
  while (!shown.querySelector("[data-mounted]")) await drawn();
  const best = { percent: EXPLORER.smallest, layout: LAYOUTS[0] };
  for (const layout of LAYOUTS) {
    let [low, high] = [best.percent + EXPLORER.step, EXPLORER.largest];
    for (let percent = low; low <= high; percent = Math.floor((low + high) / 2)) {
      shown.dataset.layout = layout;
      shown.style.setProperty("--size", percent / 100);
      await drawn();
      if (fits(slide)) {
        Object.assign(best, { percent, layout });
        low = percent + EXPLORER.step;
      } else if (percent === best.percent + EXPLORER.step) break; // no larger than what there is
      else high = percent - EXPLORER.step;
    }
  }
  shown.dataset.layout = best.layout;
  shown.style.setProperty("--size", best.percent / 100);
  await drawn();
  shown.classList.remove("fitting");
}

function fit(slide) {
  const shown = slide.querySelector(".shown");
  const widget = shown.querySelector(".static-widget");
  if (!widget) return fitText(slide, shown);
  widget.dataset.preventSwipe = "";
  growing.observe(widget);
  return fitExplorer(slide, shown);
}

// An explorer comes after its slide, and some of its pictures are higher than the first one. While
// a cell is read out the slide stays: to fit it again would take the focus from the picture.
const growing = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const slide = target.closest("section");
    const still = !target.dataset.mounted || target.querySelector(".reading");
    if (!still && slide.classList.contains("present") && !fits(slide)) fit(slide);
  }
});

const enter = () => fit(Reveal.getCurrentSlide());

Reveal.initialize({
  width: 1280,
  height: 720,
  margin: 0.02,
  center: false,
  controlsTutorial: false,
  hash: true,
  slideNumber: "c/t",
  transition: "none",
  plugins: [RevealNotes, RevealZoom],
  // Arrows and the space bar move a control that has the focus, and not the slides.
  keyboardCondition: (event) => !event.target.closest?.(".static-widget, summary"),
}).then(() => {
  enter();
  Reveal.on("slidechanged", enter);
  Reveal.on("overviewshown", () => {
    for (const slide of Reveal.getSlides()) {
      const shown = slide.querySelector(".shown:not(:has(.static-widget))");
      if (shown) fitText(slide, shown);
    }
  });
  document.fonts.ready.then(enter);
});
// The keys of a clicker move the slides wherever the focus is, and Esc leaves an explorer.
document.addEventListener(
  "keydown",
  (event) => {
    const explorer = event.target.closest?.(".static-widget");
    const act = { PageDown: "next", PageUp: "prev" }[event.key];
    if (!explorer || !(act || event.key === "Escape")) return;
    event.preventDefault();
    event.stopPropagation();
    document.activeElement.blur();
    if (act) Reveal[act]();
  },
  true,
);
const T = { keyCode: 84, key: "T", description: "Light or dark" };
Reveal.addKeyBinding(T, () => {
  theme.theme = theme.theme === "dark" ? "light" : "dark";
});
