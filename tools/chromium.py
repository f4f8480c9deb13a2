"""Find a Chromium that runs, or install one, and how the tests and benchmarks start it."""

import os
import shutil
import subprocess
import sys
from functools import cache

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# Names are resolved for the loopback address only, so a request to another host fails as it would
# offline. Rendering stays on the processor, as on the plainest reader's machine.
CHROMIUM_ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    # The popups of an address bar that nobody sees: Chromium 156 makes them for every page, at half
    # of its processor time. Then some of what Playwright turns off: the last list holds.
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,"
    "HttpsUpgrades,PaintHolding,LensOverlay,MediaRouter,DestroyProfileOnBrowserClose",
]

HOW_TO_GET_IT = (
    "No Chromium was found and none could be installed. Do one of these:\n"
    "  .venv/bin/python -m playwright install --with-deps chromium\n"
    "  sudo apt-get install chromium\n"
    "  make test CHROMIUM=/path/to/chromium"
)


@cache
def find_chromium() -> str:
    """Path of a Chromium that starts.

    Looks at the variable CHROMIUM, the system's usual names and Playwright's own download, in this
    order; then installs one, by Playwright or, as root on Debian or Ubuntu, by apt-get. Raises
    RuntimeError with the ways to get one where all of that fails.
    """
    chosen = os.environ.get("CHROMIUM")
    if chosen:
        if not _starts(chosen):
            raise RuntimeError(f"CHROMIUM is {chosen}, which does not start.")
        return chosen
    return _present() or _installed() or _give_up()


def _present() -> str | None:
    # Each is started once: Ubuntu's `chromium-browser`, for one, can be an empty shell.
    known = [path for name in NAMES if (path := shutil.which(name))] + [_playwright_path()]
    return next((path for path in known if _starts(path)), None)


def _installed() -> str | None:
    attempts = [[[sys.executable, "-m", "playwright", "install", "chromium"]]]
    if os.geteuid() == 0 and shutil.which("apt-get"):
        attempts.append([["apt-get", "update"], ["apt-get", "install", "-y", "chromium"]])
    for commands in attempts:
        print("Installing Chromium:", " && ".join(map(" ".join, commands)), file=sys.stderr)
        if all(_runs(command, timeout=900, stdout=sys.stderr) for command in commands):
            path = _present()
            if path:
                return path
    return None


def _give_up() -> str:
    raise RuntimeError(HOW_TO_GET_IT)


def _playwright_path() -> str:
    # Asked in a process of its own: Playwright's synchronous interface refuses an event loop.
    ask = (
        "from playwright.sync_api import sync_playwright as start\n"
        "with start() as p: print(p.chromium.executable_path)"
    )
    answer = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)
    return answer.stdout.strip()


def _starts(path: str) -> bool:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return bool(path) and _runs([path, "--version"], timeout=60, **quiet)


def _runs(command: list[str], **options) -> bool:
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, **options).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


if __name__ == "__main__":
    print(find_chromium())
