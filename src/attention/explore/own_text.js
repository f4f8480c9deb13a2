// The field in which a reader writes a text of their own, and the examples beside it.

// What a reader wrote goes along from view to view and from page to page, in this tab and nowhere
// else: sentences to where sentences are read, dates to where dates are.
const STORED = "attention-head-by-head.";

// Ties a form's field and a group of buttons to the text of this kind; `changed` is called after
// every change of it, in whichever view. Returns the text, a way to change it, and the end.
export function ownText(kind, form, examples, changed) {
  const field = form.querySelector("input");
  const event = STORED + kind;

  function follow({ detail }) {
    if (field.value !== detail) field.value = detail;
    changed();
  }

  field.value = stored(event);
  const carried = field.value; // from another page
  field.addEventListener("input", () => store(event, field.value));
  // A notebook has shortcuts of one letter.
  field.addEventListener("keydown", (key) => key.stopPropagation());
  form.addEventListener("submit", (submitted) => submitted.preventDefault());
  form.addEventListener("reset", (reset) => {
    reset.preventDefault();
    store(event, "");
    field.focus();
  });
  examples.addEventListener("click", ({ target }) => {
    if (target.matches("button")) store(event, target.textContent);
  });
  window.addEventListener(event, follow);

  return {
    field,
    isCarried: () => carried && field.value === carried,
    write: (text) => field.value !== text && store(event, text),
    clear: () => field.value && store(event, ""),
    disconnect: () => window.removeEventListener(event, follow),
  };
}

function stored(name) {
  try {
    return sessionStorage.getItem(name) ?? "";
  } catch {
    return ""; // a notebook's output may not have storage
  }
}

function store(name, text) {
  try {
    sessionStorage.setItem(name, text);
  } catch {
    // the views of this page still hear of it
  }
  window.dispatchEvent(new CustomEvent(name, { detail: text }));
}
