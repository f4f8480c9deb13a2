"""The report of what the chapters took."""


def pytest_terminal_summary(terminalreporter):
    """Print what the chapters took, wherever they ran."""
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.getreports(kind)]
    taken = [text for r in reports for name, text in r.user_properties if name == "taken"]
    if taken:
        terminalreporter.section("every chapter, run whole: peak memory and processor time")
        for line in sorted(taken, key=lambda line: line.rsplit(maxsplit=1)[-1]):
            terminalreporter.write_line(line)
