"""The tables and the picture of the reference's section "Measured", from attention.cost's numbers.

    python -m benchmarks.page

`python -m benchmarks.family --page` measures again and ends with this. Every number on the page
comes from that file.
"""

import io
import json
import math
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NUMBERS = ROOT / "src" / "attention" / "cost" / "measured.json"
PAGE, PICTURE = ROOT / "book" / "measured.inc", ROOT / "book" / "measured.png"
# What the picture shows, with the marker and the dashes by which a line is known without colour.
DRAWN = {
    "dense, torch's fused kernel": ("o", "-"),
    "dense under a window's mask": ("s", "-"),
    "tiled": ("D", ":"),
    "LSH, 1 round": ("P", "-."),
    "strided, √n": ("v", "--"),
    "fixed, √n": ("^", "--"),
    "sliding window, 256": ("X", "-"),
    "Performer, 256 features": ("<", ":"),
    "Linformer, 256 mixtures": (">", "-."),
    "linear": ("*", "-"),
}


def draw(numbers):
    """Time over n, both logarithmic; each line ends in its slope. As wide as a phone's screen."""
    # Not needed on a machine that only measures.
    from matplotlib.figure import Figure
    from PIL import Image

    seconds = {name: numbers["seconds"][name] for name in DRAWN}
    seconds = {name: {int(n): s for n, s in each.items()} for name, each in seconds.items()}
    common = max(set.intersection(*(set(each) for each in seconds.values())))
    figure = Figure(figsize=(4.5, 7))
    axes = figure.subplots()
    ends = []
    for name in sorted(seconds, key=lambda name: -seconds[name][common]):
        marker, dashes = DRAWN[name]
        ns = sorted(seconds[name])
        axes.loglog(
            ns, [seconds[name][n] for n in ns], dashes, marker=marker, markersize=5, label=name
        )
        ends.append((seconds[name][ns[-1]], ns[-1], name))
    largest = max(n for _, n, _ in ends)
    axes.set_xlim(right=largest * 1.2)
    low, high = (math.log(y) for y in axes.get_ylim())
    # Slopes stand to the right, in the order of the lines' ends and a line of text apart; that of a
    # line which ends earlier stands above its end.
    gap, place = (high - low) / 19, -math.inf
    for y, n, name in sorted(ends):
        text, options = f"$n^{{{numbers['exponent_of_time'][name]:.2f}}}$", {"va": "center"}
        if n < largest:
            axes.annotate(text, (n, y), (0, 10), textcoords="offset points", ha="center", **options)
            continue
        place = max(math.log(y), place + gap)
        leader = {"arrowstyle": "-", "color": "#888888", "linewidth": 0.6}
        beside = (largest * 1.6, math.exp(place))
        axes.annotate(text, (n, y), beside, annotation_clip=False, arrowprops=leader, **options)
    axes.set_xlabel("n, tokens")
    axes.set_ylabel("seconds, forward")
    ticks = sorted({n for each in seconds.values() for n in each})
    axes.set_xticks(ticks, [f"{n / 1024:g}k" if n >= 1024 else str(n) for n in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", bbox_to_anchor=(-0.15, -0.12), frameon=False, handlelength=3)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=180, bbox_inches="tight", transparent=True)
    # 64 colours are enough for ten lines, at a quarter of the bytes.
    Image.open(drawn).quantize(64).save(PICTURE, optimize=True)


def three_digits(number):
    return f"{number:.{max(0, 2 - math.floor(math.log10(number)))}f}" if number > 0 else "0"


def table(caption, head, rows):
    lines = ["", "| " + " | ".join(head) + " |", "|:--|" + "--:|" * (len(head) - 1)]
    lines += ["| " + " | ".join(cells) + " |" for cells in rows]
    return "\n".join(["", f":::{{table}} {caption}", *lines, "", ":::", ""])


def write(numbers):
    """Write the tables and draw the picture."""
    draw(numbers)
    names, exponents = list(numbers["seconds"]), numbers["exponent_of_time"]
    sizes = sorted({n for each in numbers["seconds"].values() for n in each}, key=int)
    ((compared, ratios),) = numbers["times_as_quick_as_dense"].items()

    def cells(measured, unit):
        return {
            name: [
                three_digits(measured[name][n] * unit)
                if n in measured[name]
                else numbers["skipped"][name][n].replace(" ", "\N{NO-BREAK SPACE}")
                for n in sizes
            ]
            for name in names
        }

    times, peaks = cells(numbers["seconds"], 1e3), cells(numbers["peak_bytes"], 1e-6)
    quicker = {name: three_digits(ratio) for name, ratio in ratios.items()}
    times = [
        [name, *times[name], f"{exponents[name]:.2f}", quicker.get(name, "–")] for name in names
    ]
    slopes = "; ".join(f"{name}: {exponents[name]:.2f}" for name in DRAWN)
    PAGE.write_text(
        "% Written by python -m benchmarks.page from src/attention/cost/measured.json, "
        "not by hand.\n\n"
        f"Measured with {numbers['setting']}.\n\n"
        f":::{{figure}} {PICTURE.name}\n:width: 460px\n:class: no-scaled-link\n"
        f":alt: Seconds over tokens, both axes logarithmic. The lines' slopes: {slopes}.\n\n"
        "Time over n, both axes logarithmic, with the exponent of n at each line's end.\n:::\n"
        + table(
            f"Milliseconds, the exponent of n, and how many times as fast as dense at {compared}",
            ["mechanism", *sizes, "exponent", "quicker"],
            times,
        )
        + table(
            "Peak memory above the inputs, megabytes",
            ["mechanism", *sizes],
            [[name, *peaks[name]] for name in names],
        ),
        "utf-8",
    )


if __name__ == "__main__":
    write(json.loads(NUMBERS.read_text("utf-8")))
