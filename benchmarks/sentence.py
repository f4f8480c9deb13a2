"""From a letter typed into the text field to the new picture, on a processor slowed six times.

    python -m benchmarks.sentence

Needs the built pages (`make book`) and Chromium. On the landing page and on two chapters, sentences
are typed letter by letter; each time is taken from the field's `input` event to the frame in which
the picture is painted.
"""

import json
import statistics

from playwright.sync_api import sync_playwright

from benchmarks.slider import HTML, serve
from tools.chromium import CHROMIUM_ARGUMENTS, find_chromium

SLOWED = 6  # times, as a phone's processor is
PAGES = ("index", "02-projecting-to-q-k-v", "07-the-whole-module")
SENTENCES = (
    "the old king near the river was seen by a small fox.",
    "a young sailor found the other bell",
)

TYPE = """
async ([widget, sentences]) => {
  const field = widget.querySelector(".own input");
  const times = [];
  for (const sentence of sentences) {
    for (let end = 1; end <= sentence.length; end++) {
      await new Promise(resolve => setTimeout(resolve, 30));
      await new Promise(resolve => requestAnimationFrame(() => {
        const before = performance.now();
        field.value = sentence.slice(0, end);
        field.dispatchEvent(new Event("input", {bubbles: true}));
        // A message sent from a frame's callback arrives when that frame has been painted.
        const {port1, port2} = new MessageChannel();
        port1.onmessage = () => resolve(times.push(performance.now() - before));
        port2.postMessage(0);
      }));
    }
  }
  return JSON.stringify(times);
}
"""


def main():
    if not (HTML / "index.html").exists():
        raise SystemExit("the text fields need the built pages: run `make book` first")
    print(
        f"\nA letter typed, to the picture painted; processor slowed {SLOWED} times; milliseconds"
    )
    print(f"{'page':32}{'letters':>8}{'median':>8}{'p95':>8}{'longest':>8}")
    with serve() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=CHROMIUM_ARGUMENTS
        )
        for stem in PAGES:
            page = browser.new_page(viewport={"width": 390, "height": 840})
            page.goto(f"{address}/{stem}.html")
            widget = page.locator(".static-widget").first
            widget.scroll_into_view_if_needed()
            widget.locator("[data-picture] > *").first.wait_for()
            page.context.new_cdp_session(page).send(
                "Emulation.setCPUThrottlingRate", {"rate": SLOWED}
            )
            times = json.loads(page.evaluate(TYPE, [widget.element_handle(), SENTENCES]))
            p95 = statistics.quantiles(times, n=20)[-1]
            row = f"{stem:32}{len(times):8}{statistics.median(times):8.1f}{p95:8.1f}"
            print(f"{row}{max(times):8.1f}", flush=True)
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
