"""From a slider's event to the new picture on the built page, beside one step of `interact`.

    python -m benchmarks.slider

Needs the built pages (`make book`) and Chromium, which draws on the processor alone.

Every slider of every page goes through all its places and back, with the other controls where they
start and where they end. Three times are taken:

- handler: what the explorer's own code does for one `input` event;
- painted: from an event at the start of a frame, where browsers deliver what a drag does, until the
  new picture is styled, laid out and painted. This is what has to fit between two frames;
- anytime: from an event at a random moment until the same. It adds the wait for the next frame.

One step of `interact` is the usual way to the same picture: `ipywidgets.interactive` calls a
function that draws the same matrices with matplotlib, as PNG. Its time is the kernel's part alone;
the messages to the kernel and back, and the browser showing the PNG, would come on top.
"""

import contextlib
import functools
import http.server
import io
import json
import statistics
import threading
import time
from pathlib import Path

import numpy as np
from ipywidgets import IntSlider, interactive
from matplotlib.figure import Figure
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
  const frame = () => new Promise(resolve => requestAnimationFrame(resolve));
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
  const picture = widget.querySelector("[data-picture]");
  const matrices = () => picture.querySelector(".error")
    ? []
    : picture.matrices.map(({tensor}) => [tensor.shape, [...tensor.data]]);

  const inputs = [...widget.querySelectorAll(".sw-control :is(input, select)")];
  const start = inputs.map(at);
  const measured = [];
  for (const input of inputs.filter(each => each.type === "range")) {
    const up = Array.from({length: end(input) + 1}, (_, place) => place);
    const tour = [...up, ...up.toReversed().slice(1)];
    const result = {name: input.labels[0].textContent, handler: [], painted: [], anytime: [],
                    pictures: []};
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
            result.handler.push(performance.now() - began);
            painted().then(done => resolve(result.painted.push(done - began)));
          }));
        }
        for (const place of tour.slice(1)) {
          await wait(20 * Math.random());
          const began = performance.now();
          put(input, place);
          await frame();
          result.anytime.push(await painted() - began);
        }
      }
      for (const place of up) {
        put(input, place);
        result.pictures.push(matrices());
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
            for nth, widget in enumerate(page.locator(".static-widget").all()):
                widget.scroll_into_view_if_needed()
                widget.locator("[data-picture] > *").first.wait_for()
                yield path.stem, nth, json.loads(widget.evaluate(MEASURE))
            page.close()
        browser.close()


def interact_steps(pictures):
    """Milliseconds of each step of `interactive` that draws these pictures with matplotlib."""
    pictures = [matrices for matrices in pictures if matrices]  # a refusal draws nothing
    # −∞ has no JSON and comes as None.
    arrays = [
        [np.array(numbers, float).reshape(shape) for shape, numbers in matrices]
        for matrices in pictures
    ]

    def draw(place):
        figure = Figure(figsize=(8, 6))
        across = min(4, len(arrays[place]))
        axes = figure.subplots(-(-len(arrays[place]) // across), across, squeeze=False)
        for panel, array in zip(axes.flat, arrays[place], strict=False):
            panel.imshow(array, cmap="RdBu")
        figure.savefig(io.BytesIO(), format="png")

    slider = IntSlider(min=-1, max=len(arrays) - 1, value=-1)
    steps = []

    def timed(place):
        if place >= 0:
            draw(place)

    with contextlib.redirect_stdout(io.StringIO()):  # it clears its output, here the terminal
        interactive(timed, place=slider).update()
        for place in range(len(arrays)):
            began = time.perf_counter()
            slider.value = place
            steps.append(1000 * (time.perf_counter() - began))
    return steps


def main():
    if not (HTML / "index.html").exists():
        raise SystemExit("the sliders need the built pages: run `make book` first")
    print(
        "\nSliders of the built pages, milliseconds. Chromium, headless, drawing on the processor."
    )
    print(
        "interact: one step of ipywidgets.interactive with matplotlib, the kernel's part alone.\n"
    )
    print(
        f"{'':44}{'handler':^16}{'painted':^16}{'anytime':^16}{'interact':^16}\n"
        f"{'page, explorer, slider':44}" + f"{'median':>8}{'p95':>8}" * 4
    )
    steps = {"handler": [], "painted": [], "anytime": [], "interact": []}
    for page, nth, sliders in measure_pages():
        for slider in sliders:
            slider["interact"] = interact_steps(slider.pop("pictures"))
            row = f"{page} {nth + 1} {slider['name']}"
            print(f"{row:44}" + "".join(summary(slider[kind]) for kind in steps), flush=True)
            for kind in steps:
                steps[kind] += slider[kind]
    print(f"{'all':44}" + "".join(summary(each) for each in steps.values()))
    late = sum(step > FRAME for step in steps["painted"])
    ratio = statistics.median(steps["interact"]) / statistics.median(steps["painted"])
    print(
        f"\n{late} of {len(steps['painted'])} steps took longer than a frame of {FRAME:.1f} ms. "
        f"A step of interact takes {ratio:.0f} times as long, in the kernel alone."
    )


def summary(steps):
    return f"{statistics.median(steps):8.1f}{np.percentile(steps, 95):8.1f}"


if __name__ == "__main__":
    main()
