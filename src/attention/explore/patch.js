// Changing only what differs in a page, so that the browser need not style, lay out and paint the
// rest again.

const template = document.createElement("template");

// The nodes of a text of HTML: to be used before the next text is parsed.
export function parse(html) {
  template.innerHTML = html;
  return template.content;
}

// A text that stays the same is left alone: a screen reader would read it again.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Makes the children of `old` what those of `wanted` are, but for what panels hold.
export function patch(old, wanted) {
  let one = old.firstChild;
  for (const node of [...wanted.childNodes]) {
    const next = one?.nextSibling;
    if (!one) old.append(node);
    else if (one.nodeName !== node.nodeName || node.nodeType !== Node.ELEMENT_NODE) {
      if (!one.isEqualNode(node)) one.replaceWith(node);
    } else if (!one.isEqualNode(node)) {
      patchAttributes(one, node);
      if (!("panel" in node.dataset)) patch(one, node);
    }
    one = next;
  }
  while (one) {
    const next = one.nextSibling;
    one.remove();
    one = next;
  }
}

function patchAttributes(old, wanted) {
  for (const { name } of [...old.attributes]) {
    if (!wanted.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}
