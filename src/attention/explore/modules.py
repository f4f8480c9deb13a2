"""A view's ES modules as the one text that a widget holds.

A bundler could do this, but a notebook resolves the modules where its reader runs it, in Colab too,
and there a bundler would be another 40 MB to install. The code here handles the few forms of ES
modules that the views use, and refuses the rest.
"""

import re
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parent

IMPORT = re.compile(r'^import \{(\s*\w+(?:,\s*\w+)*,?\s*)\} from "\./(\w+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?:function|class|const) (\w+)", re.MULTILINE)
# The imports and exports that are left, in any other form.
OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
COMMENT = re.compile(r"^ *//.*\n", re.MULTILINE)


def bundle(view: str, modules: Mapping[str, str] | None = None) -> str:
    """The modules that a view needs, each after those that it imports, as one module.

    Each becomes a function that returns its exports, so that modules may have equal names at their
    top level; the view comes last, as it is. Modules come in the order in which their imports name
    them, so equal modules make equal text. Comments are left out.

    Args:
        view: name of the module whose ``export default`` the text has.
        modules: the text of each module by its name; unless given, ``<name>.js`` in this folder.

    Raises:
        ValueError: a module does not exist, does not export a name that is imported, imports
            itself over others, or has an import or an export in another form.

    """
    if modules is None:
        modules = {path.stem: path.read_text("utf-8") for path in HERE.glob("*.js")}
    done: dict[str, str] = {}
    add(view, modules, done, ())
    return "\n".join(done.values())


def add(name: str, modules: Mapping[str, str], done: dict[str, str], above: tuple) -> None:
    """Put a module into ``done`` after what it imports; ``above`` names those that import it."""
    if name in above:
        circle = " → ".join([*above[above.index(name) :], name])
        raise ValueError(f"modules import one another: {circle}; move what they share into another")
    if name in done:
        return
    if name not in modules:
        by = f" that {above[-1]}.js imports" if above else ""
        raise ValueError(
            f"there is no module {name}.js{by}; there are {', '.join(sorted(modules))}"
        )
    text = COMMENT.sub("", modules[name])
    for names, source in IMPORT.findall(text):
        add(source, modules, done, (*above, name))
        exported = EXPORT.findall(modules[source])
        for imported in re.findall(r"\w+", names):
            if imported not in exported:
                raise ValueError(
                    f"{name}.js imports {imported} from {source}.js, which exports "
                    f"{', '.join(exported) or 'nothing'}"
                )
    code = IMPORT.sub(lambda found: f"const {{{found[1]}}} = {found[2]}_js;\n", text).strip()
    exported = EXPORT.findall(code)
    code = EXPORT.sub(lambda found: found[0].removeprefix("export "), code)
    for line in OTHER.findall(code):
        if line.startswith("export default ") and not above:
            continue
        raise ValueError(
            f'{name}.js has {line!r}; write `import {{ a, b }} from "./other.js";`, and put '
            "export before a function, a class or a const"
        )
    if above:
        code = f"const {name}_js = (() => {{\n{code}\nreturn {{ {', '.join(exported)} }};\n}})();"
    done[name] = code + "\n"
