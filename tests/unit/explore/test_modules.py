"""A view's modules as one text: in the order of their imports, or refused with the way out."""

import re

import pytest

import attention.explore
from attention.explore.modules import HERE, bundle

VIEWS = [
    path.stem for path in sorted(HERE.glob("*.js")) if "export default" in path.read_text("utf-8")
]


def test_every_view_is_found():
    makers = [name.removesuffix("_explorer") for name in attention.explore.__all__]
    assert sorted(makers) == VIEWS


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_becomes_one_module(view):
    text = bundle(view)
    assert text == bundle(view)
    assert not re.findall("^import|^ *//", text, re.MULTILINE)
    (made_by,) = re.findall("^export .*", text, re.MULTILINE)
    assert made_by in ("export default explorer({", "export default painting({")
    made = re.findall(r"^const (\w+)_js = ", text, re.MULTILINE)
    assert len(made) == len(set(made))
    for name in made:  # after what it uses
        used = text.index(f"= {name}_js;") if f"= {name}_js;" in text else None
        assert used is None or text.index(f"const {name}_js = ") < used


def test_modules_come_in_the_order_of_their_imports_and_once():
    modules = {
        "view": 'import { b } from "./b.js";\nimport { a } from "./a.js";\nexport default a + b;\n',
        "a": 'import { c } from "./c.js";\n\n// A comment.\nexport const a = c;\n',
        "b": 'import { c } from "./c.js";\n\nexport function b() {\n  return c; // kept\n}\n',
        "c": "export const c = 1;\n",
        "unused": "export const d = 1;\n",
    }
    assert bundle("view", modules) == (
        "const c_js = (() => {\nexport const c = 1;\nreturn { c };\n})();\n\n".replace(
            "export ", ""
        )
        + "const b_js = (() => {\nconst { c } = c_js;\n\nfunction b() {\n  return c; // kept\n}\n"
        "return { b };\n})();\n\n"
        "const a_js = (() => {\nconst { c } = c_js;\n\nconst a = c;\nreturn { a };\n})();\n\n"
        "const { b } = b_js;\nconst { a } = a_js;\nexport default a + b;\n"
    )
    assert bundle("view", dict(reversed(modules.items()))) == bundle("view", modules)


def test_two_modules_may_have_the_same_name_at_their_top():
    modules = {
        "view": 'import { a } from "./a.js";\nconst SAME = 1;\nexport default a + SAME;\n',
        "a": "const SAME = 2;\nexport const a = SAME;\n",
    }
    before, after = bundle("view", modules).split("})();")
    assert "const SAME = 2;" in before and "const SAME = 1;" in after


REFUSED = {
    "a module that does not exist": (
        {"view": 'import { a } from "./b.js";\n', "a": ""},
        r"there is no module b\.js that view\.js imports; there are a, view",
    ),
    "a name that is not exported": (
        {"view": 'import { a, b } from "./a.js";\n', "a": "export const a = 1;\nconst b = 2;\n"},
        r"view\.js imports b from a\.js, which exports a$",
    ),
    "modules in a circle": (
        {
            "view": 'import { a } from "./a.js";\n',
            "a": 'import { b } from "./b.js";\nexport const a = 1;\n',
            "b": 'import { a } from "./a.js";\nexport const b = 1;\n',
        },
        "modules import one another: a → b → a; move what they share",
    ),
    "an import of everything": (
        {"view": 'import * as a from "./a.js";\n', "a": ""},
        r"view\.js has 'import \* as a from \"\./a\.js\";'; write `import \{ a, b \}",
    ),
    "an import under another name": (
        {"view": 'import { a as b } from "./a.js";\n', "a": "export const a = 1;\n"},
        r"view\.js has 'import \{ a as b \}",
    ),
    "an import from elsewhere": (
        {"view": 'import { a } from "https://example.org/a.js";\n'},
        r"view\.js has 'import",
    ),
    "a name that may change": (
        {"view": 'import { a } from "./a.js";\n', "a": "export let a = 1;\n"},
        r"a\.js has 'export let a = 1;'",
    ),
    "an export at the end": (
        {"view": "const a = 1;\nexport { a };\n"},
        r"view\.js has 'export \{ a \};'",
    ),
    "a view among what a view imports": (
        {
            "view": 'import { a } from "./a.js";\nexport default a;\n',
            "a": "export const a = 1;\nexport default a;\n",
        },
        r"a\.js has 'export default a;'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_it_does_not_read_is_refused(case):
    modules, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        bundle("view", modules)
