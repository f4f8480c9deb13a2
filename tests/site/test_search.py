"""What a reader types into the search field, and the page that they mean."""

from urllib.parse import quote_plus

import pytest

MEANT = {
    "mask": "05-masking",
    "masking": "05-masking",
    "padding mask": "05-masking",
    "causal": "05-masking",
    "causal_mask": "05-masking",
    "d_model": "01-from-tokens-to-vectors",
    "positional encoding": "01-from-tokens-to-vectors",
    "queries": "02-projecting-to-q-k-v",
    "heads": "03-splitting-heads",
    "split_heads": "03-splitting-heads",
    "softmax": "04-scores-scaling-softmax",
    "√d_key": "04-scores-scaling-softmax",
    "scaled_dot_product_attention": "04-scores-scaling-softmax",
    "multi-head": "07-the-whole-module",
    "einsum": "07-the-whole-module",
    # What stands in code and in formulas.
    "d_key": "04-scores-scaling-softmax",
    "W_o": "06-weighted-sums-and-merging",
    "need_weights": "07-the-whole-module",
    "nn.MultiheadAttention": "07-the-whole-module",
    "-inf": "05-masking",
    "masked_fill": "05-masking",
    "is_causal": "claims",
    "kv_heads": "15-fewer-keys-and-values",
    "softmax over the wrong axis": "04-scores-scaling-softmax",
    "how to cite": "bibliography",
    "choosing a mechanism": "20-claims-tested",
    # As people ask.
    "how do I run this": "index",
    "what does this cost me": "14-what-a-layer-costs",
}
RESULTS = """
() => [...document.querySelectorAll("#search-results li")].map(found => ({
  page: new URL(found.querySelector("a").href).pathname.split("/").pop(),
  anchor: new URL(found.querySelector("a").href).hash,
  title: found.querySelector("a").textContent,
  summary: (found.querySelector(".context") ?? found.children[1])?.textContent,
}))
"""


def results(v):
    """What the search page shows, when every result has its summary."""
    v.page.wait_for_function("document.querySelector('.search-summary')?.textContent")
    v.page.wait_for_function(
        "[...document.querySelectorAll('#search-results li')].every(found => found.children[1])"
    )
    return v.page.evaluate(RESULTS)


def test_the_page_that_is_meant_is_among_the_first(visit, site):
    missed = {}
    with visit(f"{site}/search.html") as v:
        for query, meant in MEANT.items():
            v.page.goto(f"{site}/search.html?q={quote_plus(query)}")
            first = [one for one in results(v) if not one["title"].startswith("Glossary")][:2]
            if f"{meant}.html" not in [one["page"] for one in first]:
                missed[query] = [one["title"] for one in first]
        v.assert_no_trouble()
    assert not missed


LEADS_TO = {
    "head split wrong": "03-splitting-heads.html#what-goes-wrong",
    "fully masked row": "05-masking.html#a-query-with-nothing-to-attend-to",
    "need_weights": "07-the-whole-module.html#held-against-torch",
    "GQA": "15-fewer-keys-and-values.html#shared-keys-grouped-query-attention",
    "masking": "05-masking.html",  # the page, where it is called so
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("query", LEADS_TO)
def test_a_result_leads_to_the_section_that_says_it(visit, site, html_folder, query):
    for address in (site, html_folder.as_uri()):  # from a folder too
        with visit(f"{address}/search.html?q={quote_plus(query)}") as v:
            v.page.wait_for_function("document.querySelector('.search-summary')?.textContent")
            places = [one["page"] + one["anchor"] for one in v.page.evaluate(RESULTS)]
            assert LEADS_TO[query] in places[:5]
            v.assert_no_trouble()


def test_a_term_of_the_glossary_comes_first_with_its_definition(visit, site):
    with visit(f"{site}/search.html?q=causal+mask") as v:
        first = results(v)[0]
        assert (first["page"], first["anchor"]) == ("glossary.html", "#term-causal-mask")
        assert first["title"] == "Glossary > causal mask"
        assert "earlier" in first["summary"]


def test_results_read_well(visit, site):
    with visit(f"{site}/search.html?q=attention") as v:
        found = results(v)
        titles = [one["title"] for one in found]
        assert len(titles) > 5 and len(set(titles)) == len(titles)
        for one in found:
            if one["title"].startswith("attention."):  # a name of the reference, and what it is
                assert ", in Reference: " in one["summary"]
                continue
            assert "On this page" not in one["summary"] and "application/" not in one["summary"]
            assert len(one["summary"]) > 50, one


def test_results_fit_a_phone(visit, site):
    with visit(f"{site}/search.html?q=mask", width=360) as v:
        assert len(results(v)) > 20
        assert v.page.evaluate("document.scrollingElement.scrollWidth") <= 360


def test_a_search_that_finds_nothing_says_so(visit, site):
    with visit(f"{site}/search.html?q=zebra") as v:
        v.page.wait_for_function("document.querySelector('.search-summary')?.textContent")
        assert "did not match" in v.page.inner_text(".search-summary")
        v.assert_no_trouble()


def test_what_was_searched_is_lit_where_a_result_leads_and_nowhere_else(visit, site):
    with visit(f"{site}/search.html?q=softmax") as v:
        results(v)
        v.page.locator(".bd-links a[href^='04-']").first.evaluate("link => link.click()")
        v.page.wait_for_url("**/04-*")
        v.page.wait_for_timeout(100)  # it is lit after a moment
        assert v.page.locator(".highlighted").count() == 0
        v.page.goto(f"{site}/search.html?q=softmax")
        results(v)
        v.page.locator("#search-results a").first.click()
        v.page.locator(".highlighted").first.wait_for(state="attached")


def test_the_field_of_every_page_leads_to_the_results(visit, site):
    with visit(f"{site}/index.html") as v:
        v.page.keyboard.press("Control+k")
        v.page.keyboard.type("mask")
        v.page.keyboard.press("Enter")
        v.page.wait_for_url("**/search.html?q=mask")
        assert results(v)
        v.assert_no_trouble()
