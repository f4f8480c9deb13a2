"""The reference, as Sphinx writes it from the docstrings."""

import pytest

PAGE = "api-family.html"
# The text of a signature, without the link to itself.
SIGNATURE = """
id => {
  const signature = document.getElementById(id).cloneNode(true);
  for (const link of signature.querySelectorAll(".headerlink")) link.remove();
  return signature.textContent.replace(/\\s+/g, " ").trim();
}
"""


def test_signatures_read_as_the_code_does(visit, site):
    with visit(f"{site}/api-multi-head.html") as v:
        text = v.page.evaluate(SIGNATURE, "attention.MultiHeadAttention.forward")
    assert 'query: Float[Tensor, "batch query d_model"],' in text
    assert "cache: KeyValueCache | RollingCache | None = None," in text
    assert text.endswith('Float[Tensor, "batch heads query _"] | None]')


def test_a_parameter_has_a_line_of_its_own_and_wraps_on_a_phone(visit, site):
    lines = "[...document.querySelectorAll('.sig-line')].map(line => line.getBoundingClientRect())"
    for width in (1280, 360):
        with visit(f"{site}/{PAGE}", width=width) as v:
            boxes = v.page.evaluate(lines)
        assert len(boxes) > 50
        assert all(box["left"] >= 0 and box["right"] <= width for box in boxes)
        tops = [box["top"] for box in boxes]
        assert len(set(tops)) == len(tops)


def test_only_what_a_reader_calls_is_shown(html_folder):
    for page in html_folder.glob("api-*.html"):
        text = page.read_text("utf-8")
        assert "extra_repr" not in text and 'id="attention._' not in text
        assert " object at 0x" not in text and "&lt;function" not in text


def test_a_name_in_the_text_leads_to_its_place(visit, site):
    with visit(f"{site}/{PAGE}") as v:
        v.page.get_by_role("link", name="MultiHeadAttention", exact=True).first.click()
        v.page.wait_for_url("**/api-multi-head.html#attention.MultiHeadAttention")


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("pool_kv_heads", "api-family.html"),
        ("sparse_attention", "api-sparse-and-linear.html"),
        ("from_torch", "api-multi-head.html"),
    ],
)
def test_the_search_finds_names(visit, site, query, page):
    with visit(f"{site}/search.html?q={query}") as v:
        v.page.wait_for_selector("#search-results li a")
        found = v.page.evaluate(
            "[...document.querySelectorAll('#search-results li a')].map(a => a.pathname.slice(1))"
        )
    assert page in found[:2]


def test_copying_an_example_takes_its_code_alone(visit, site):
    with visit(f"{site}/{PAGE}", permissions=["clipboard-read", "clipboard-write"]) as v:
        example = v.page.locator("div.highlight:has(.gp)").first
        example.scroll_into_view_if_needed()
        example.hover()
        example.locator("button.copybtn").click()
        copied = v.page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("import torch\nfrom attention import AdditiveAttention\n")
    assert ">>>" not in copied and "torch.Size" not in copied
