"""A view's module run in a page by itself, to hold what it computes against torch."""

import base64
import functools
import re

import numpy as np

import attention.explore
from attention.explore.modules import bundle

# Makes a view's module importable, with its functions instead of the widget around them, and two
# more: the weights of a model out of the text of its bytes, and the bytes of doubles as text.
LOAD = """
async code => {
  const url = URL.createObjectURL(new Blob([code], {type: "text/javascript"}));
  window.view = await import(url);
  window.modelOf = ({weights, model}) => {
    const bytes = Uint8Array.from(atob(weights), c => c.charCodeAt(0));
    return view.unpacked(model, view.halves(new Uint16Array(bytes.buffer)));
  };
  window.asText = numbers => {
    const found = new Uint8Array(Float64Array.from(numbers).buffer);
    let text = "";
    for (let i = 0; i < found.length; i += 9000) {
      text += String.fromCharCode(...found.subarray(i, i + 9000));
    }
    return btoa(text);
  };
}
"""


@functools.cache
def view_of(name):
    """The view of an explorer, made once."""
    return getattr(attention.explore, f"{name}_explorer")().view


@functools.cache
def source_of(name):
    """The module of a view as the page has it, but for the widget around it."""
    code = re.sub(r"export default (explorer|painting)\(", "export default (", bundle(name))
    return code + "\nexport const { halves, unpacked, difference } = frames_js;"


def load_module(page, name, mistake=None):
    """Import a view's module into a page, whole, or with one place of its text exchanged."""
    source = source_of(name)
    if mistake:
        right, wrong = mistake
        assert source.count(right) == 1
        source = source.replace(right, wrong)
    page.evaluate(LOAD, source)


def text_of(data):
    return base64.b64encode(bytes(data)).decode()


def numbers_of(page, function, state):
    """The numbers that a function of a page makes of a state, which it returns by `asText`."""
    return np.frombuffer(base64.b64decode(page.evaluate(function, state)))
