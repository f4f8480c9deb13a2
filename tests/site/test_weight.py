"""What a page loads: so many bytes, from nowhere else, and nothing that holds its text up."""

import gzip

import pytest

WITH_EXPLORERS, WITHOUT = 300_000, 200_000  # bytes of a page and of everything it loads, compressed

BLOCKING = """
() => performance.getEntriesByType("resource")
  .filter(resource => resource.renderBlockingStatus === "blocking")
  .map(resource => new URL(resource.name).pathname)
"""


@pytest.mark.one_in(4)
def test_weight(visit, site, page_name, record_property):
    with visit(f"{site}/{page_name}") as v:
        budget = WITH_EXPLORERS if v.mount_all() else WITHOUT
        v.page.wait_for_load_state("networkidle")
        bodies = {
            r.url: r.body() for r in v.responses if r.url.startswith("http") and r.status == 200
        }
        weights = {url: len(gzip.compress(body, 6)) for url, body in bodies.items()}
        total = sum(weights.values())
        record_property(
            "weight", f"{total / 1000:6.1f} kB in {len(weights):2} requests  {page_name}"
        )
        assert v.page.evaluate(BLOCKING) == ["/_static/page.css"]
        heaviest = sorted(weights.items(), key=lambda item: -item[1])[:6]
        assert total <= budget, "\n".join(f"{weight:9} {url}" for url, weight in heaviest)
        v.assert_no_trouble()  # a request to another host would be
