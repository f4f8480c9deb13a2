/* Starts reveal.js, and shows what is on each slide as large as it fits. */
"use strict";

const SMALLEST = 50; // percent of the size that the stylesheet says
const LARGEST = { text: 100, explorer: 130 };

const theme = document.documentElement.dataset;
theme.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";

/** The largest size that fits, of the layouts an explorer has: its controls above the picture, or beside it. */
function fit(slide) {
  const shown = slide.querySelector(".shown");
  const explorer = shown.querySelector(".static-widget");
  const size = (beside) => {
    shown.classList.toggle("beside", beside);
    for (let percent = explorer ? LARGEST.explorer : LARGEST.text; percent > SMALLEST; percent -= 2) {
      shown.style.setProperty("--size", percent / 100);
      if (fits(slide)) return percent;
    }
    return SMALLEST;
  };
  if (explorer) size(size(true) > size(false));
  else size(false);
}

function fits(slide) {
  const scrolls = [...slide.querySelectorAll("pre, .panels, .picture")].some(
    (each) => each.scrollWidth > each.clientWidth + 1,
  );
  return !scrolls && slide.scrollHeight <= slide.clientHeight;
}

// An explorer comes after its slide, and some of its pictures are higher than the first one.
const growing = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const slide = target.closest("section");
    if (slide.classList.contains("present") && !fits(slide)) fit(slide);
  }
});

function enter() {
  const slide = Reveal.getCurrentSlide();
  fit(slide);
  for (const widget of slide.querySelectorAll(".static-widget")) {
    widget.dataset.preventSwipe = "";
    growing.observe(widget);
  }
}

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
  document.fonts.ready.then(enter);
});
const T = { keyCode: 84, key: "T", description: "Light or dark" };
Reveal.addKeyBinding(T, () => {
  theme.theme = theme.theme === "dark" ? "light" : "dark";
});
