"""From a slider's event to the new picture on the built page, which has to fit into one frame.

    python -m benchmarks.slider

Needs the built pages (`make book`) and Chromium, which draws on the processor alone.

Every slider of every page goes through all its places and back, with the other controls where they
start and where they end. Each time is taken from an event at the start of a frame, where browsers
deliver what a drag does, until the new picture is styled, laid out and painted.
"""

import contextlib
import functools
import http.server
import json
import statistics
import threading
from pathlib import Path

from playwright.sync_api import sync_playwright

from tools.chromium import CHROMIUM_ARGUMENTS, find_chromium

HTML = Path(__file__).parents[1] / "_build" / "html"
FRAME = 1000 / 60  # milliseconds

MEASURE = """
async widget => {
  const wait = ms => new Promise(resolve => setTimeout(resolve, ms));
  // A message sent from a frame's callback arrives when that frame has been painted.
  const painted = () => new Promise(resolve => {
    const {port1, port2} = new MessageChannel();
    port1.onmessage = () => resolve(performance.now());
    port2.postMessage(0);
  });
  const put = (input, place) => {
    if (input.type === "range") {
      input.value = place;
      input.dispatchEvent(new Event("input", {bubbles: true}));
    } else if (input.type === "checkbox") {
      if (input.checked !== Boolean(place)) input.click();
    } else {
      input.selectedIndex = place;
      input.dispatchEvent(new Event("change", {bubbles: true}));
    }
  };
  const at = input =>
    input.type === "checkbox" ? +input.checked : input.selectedIndex ?? +input.value;
  const end = input => input.type === "checkbox" ? 1 : input.max ? +input.max : input.length - 1;

  const inputs = [...widget.querySelectorAll(".sw-control :is(input, select)")];
  const start = inputs.map(at);
  const measured = [];
  for (const input of inputs.filter(each => each.type === "range")) {
    const up = Array.from({length: end(input) + 1}, (_, place) => place);
    const tour = [...up, ...up.toReversed().slice(1)];
    const result = {name: input.labels[0].textContent, painted: []};
    for (const others of ["start", "end"]) {
      inputs.forEach((each, i) => put(each, others === "start" ? start[i] : end(each)));
      put(input, 0);
      await wait(100);
      while (result.painted.length < (others === "start" ? 40 : 80)) {
        for (const place of tour.slice(1)) {
          await wait(5);
          await new Promise(resolve => requestAnimationFrame(() => {
            const began = performance.now();
            put(input, place);
            painted().then(done => resolve(result.painted.push(done - began)));
          }));
        }
      }
    }
    measured.push(result);
    inputs.forEach((each, i) => put(each, start[i]));
  }
  return JSON.stringify(measured);
}
"""


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextlib.contextmanager
def serve():
    """Serve the built pages; yields the address."""
    handler = functools.partial(QuietHandler, directory=str(HTML))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


def measure_pages():
    """(page, place of the explorer on it, its sliders as MEASURE returns them), one by one."""
    with serve() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=CHROMIUM_ARGUMENTS
        )
        for path in sorted(HTML.glob("*.html"), key=lambda p: (p.stem != "index", p.stem)):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(f"{address}/{path.name}")
            for nth, widget in enumerate(page.locator(".static-widget[id]").all()):
                widget.evaluate("widget => widget.scrollIntoView()")
                widget.locator("[data-picture] > *").first.wait_for()
                yield path.stem, nth, json.loads(widget.evaluate(MEASURE))
            page.close()
        browser.close()


def main():
    if not (HTML / "index.html").exists():
        raise SystemExit("the sliders need the built pages: run `make book` first")
    print("\nSliders of the built pages, milliseconds; Chromium draws on the processor\n")
    print(f"{'page, explorer, slider':44}{'median':>8}{'p95':>8}")
    steps = []
    for page, nth, sliders in measure_pages():
        for slider in sliders:
            row = f"{page} {nth + 1} {slider['name']}"
            print(f"{row:44}{summary(slider['painted'])}", flush=True)
            steps += slider["painted"]
    print(f"{'all':44}{summary(steps)}")
    late = sum(step > FRAME for step in steps)
    print(f"\n{late} of {len(steps)} steps took longer than a frame of {FRAME:.1f} ms.")


def summary(steps):
    p95 = statistics.quantiles(steps, n=20)[-1]
    return f"{statistics.median(steps):8.1f}{p95:8.1f}"


if __name__ == "__main__":
    main()
