"""One stylesheet for all pages: the rules of every stylesheet that can match something on some
page.
"""

from __future__ import annotations

import itertools
import re
from functools import partial
from pathlib import Path

import tinycss2
from sphinx.application import Sphinx

from book._ext.font_subset import write_subset

CLASSES_AND_IDS = re.compile(r"""\b(?:class|id|for|href)=["']([^"']*)["']""")
IMPORT = re.compile(r"""@import\s+(?:url\()?["']?([^"')]+)["']?\)?\s*;""")
WORD = re.compile(r"[A-Za-z_][\w-]*")
ICON_FONT = re.compile(r'url\("?(?:\.\./)*vendor/fontawesome/webfonts/(fa-[\w-]+)\.woff2"?\)[^;}]*')
PRIVATE_USE = re.compile("[\ue000-\uf8ff]")
VARIABLE = re.compile(r"--[\w-]+")
DECLARED = re.compile(
    r"""(?<=[{;])\s*(--[\w-]+)\s*:((?:"[^"]*"|'[^']*'|\([^)]*\)|[^;{}"'(])*)(?:;|(?=\}))"""
)


def write_styles(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or not hasattr(app, "page_styles"):  # no page was written
        return
    static = Path(app.outdir) / "_static"
    used = used_names(Path(app.outdir))
    kept = []
    for name in app.page_styles:
        style = with_imports(static / name)
        rules = tinycss2.parse_stylesheet(style, skip_comments=True, skip_whitespace=True)
        kept.append(rebase(keep_used(rules, used), Path(name).parent))
    sheet = without_unread_variables("\n".join(kept), Path(app.outdir))
    sheet = write_icon_fonts(static, sheet)
    (static / "page.css").write_text(sheet, encoding="utf-8")


def with_imports(path: Path) -> str:
    """A stylesheet with those it imports in their place."""
    return IMPORT.sub(
        lambda match: with_imports(path.parent / match[1]), path.read_text(encoding="utf-8")
    )


def used_names(outdir: Path) -> set[str]:
    """Every class and id of a page, and every word of a script, since scripts set classes too."""
    used = set()
    for page in outdir.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        for value in CLASSES_AND_IDS.findall(text):
            used |= set(WORD.findall(value))
        used |= {
            word
            for source in re.findall(r"<script.*?</script>", text, re.DOTALL)
            for word in WORD.findall(source)
        }
    for script in (outdir / "_static").glob("**/*.js"):
        if script.name not in ("fontawesome.js", "bootstrap.js"):  # on no page
            used |= set(WORD.findall(script.read_text(encoding="utf-8")))
    return used


def keep_used(rules: list, used: set[str]) -> str:
    kept = []
    for rule in rules:
        if rule.type == "qualified-rule":
            selectors = [each for each in split_at_commas(rule.prelude) if names(each) <= used]
            if selectors:
                prelude = ",".join(tinycss2.serialize(each).strip() for each in selectors)
                kept.append(f"{prelude}{{{minified(rule.content)}}}")
        elif (
            rule.type == "at-rule"
            and rule.at_keyword in ("media", "supports", "layer")
            and rule.content
        ):
            inner = keep_used(
                tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True),
                used,
            )
            if inner:
                kept.append(f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude)}{{{inner}}}")
        elif rule.type == "at-rule" and rule.at_keyword != "charset":
            kept.append(rule.serialize())
    return "\n".join(kept)


def without_unread_variables(sheet: str, outdir: Path) -> str:
    """The themes declare hundreds of custom properties that nothing reads.

    A script may put a name together: of `--sym-${name}` all that begin so are kept.
    """
    sources = [*outdir.glob("*.html"), *(outdir / "_static").glob("**/*.js")]
    elsewhere = {
        name for path in sources for name in VARIABLE.findall(path.read_text(encoding="utf-8"))
    }
    beginnings = tuple(name for name in elsewhere if name.endswith("-") and name.strip("-"))
    before = ""
    while sheet != before:  # what unread ones alone read is unread, too
        before, read = sheet, elsewhere | set(re.findall(r"var\(\s*(--[\w-]+)", sheet))
        sheet = DECLARED.sub(partial(if_read, read, beginnings), before)
    return sheet


def if_read(read: set[str], beginnings: tuple[str, ...], declaration: re.Match) -> str:
    name = declaration[1]
    return declaration[0] if name in read or name.startswith(beginnings) else ""


def split_at_commas(prelude: list) -> list[list]:
    selectors: list[list] = [[]]
    for token in prelude:
        if token == ",":
            selectors.append([])
        elif token.type != "comment":
            selectors[-1].append(token)
    return selectors


def names(selector: list) -> set[str]:
    """The classes and ids that an element needs, so that the selector can match. What stands inside
    :not(…), :is(…) or [attribute] is not looked at.
    """
    found = {token.value for token in selector if token.type == "hash"}
    for first, second in itertools.pairwise(selector):
        if first == "." and second.type == "ident":
            found.add(second.value)
    return found


def minified(content: list) -> str:
    return tinycss2.serialize([token for token in content if token.type != "comment"]).strip()


def rebase(sheet: str, folder: Path) -> str:
    """Addresses of the stylesheet's own folder, seen from `_static`."""
    if folder == Path("."):
        return sheet
    return re.sub(
        r'url\("?(?!data:|\.\./|https?:|#)([^")]+)"?\)', rf'url("{folder.as_posix()}/\1")', sheet
    )


def write_icon_fonts(static: Path, sheet: str) -> str:
    """Cut the theme's icon fonts down to the icons that the stylesheet still names."""
    icons = set(PRIVATE_USE.findall(sheet)) | {
        chr(int(code, 16)) for code in re.findall(r"\\([ef][0-9a-f]{3})\b", sheet)
    }

    def cut_down(match: re.Match) -> str:
        font = match[1]
        source = static / "vendor" / "fontawesome" / "webfonts" / f"{font}.woff2"
        write_subset(source, icons, static / "icons" / f"{font}.woff2")
        return f'url("icons/{font}.woff2") format("woff2")'

    return ICON_FONT.sub(cut_down, sheet)
