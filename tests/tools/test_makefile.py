"""What make refuses before it does anything."""

import subprocess

from assignments.course import ROOT


def test_the_environment_of_another_checkout_is_refused(tmp_path):
    packages = tmp_path / "lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    editable = packages / "__editable__.attention-0.1.0.pth"

    def run():
        return subprocess.run(
            ["make", "--dry-run", "help", f"VENV={tmp_path}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )

    editable.write_text(f"{ROOT}/src\n")
    assert run().returncode == 0
    editable.write_text("/elsewhere/book/src\n")
    refused = run()
    assert refused.returncode != 0
    assert "is that of /elsewhere/book, and this is " in refused.stderr
    assert "Leave VENV out" in refused.stderr
