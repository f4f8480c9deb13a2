/* A small host for saved Jupyter widgets.
 *
 * Every `.static-widget` of a page names one saved widget, and `data-saved` of this script the file
 * that holds them all (written by the Sphinx extension beside this file). When a widget comes near
 * the window, its models are made, tied together by their links, and shown: core controls as native
 * elements, anywidgets by running their own ES module. Nothing is loaded from elsewhere.
 *
 * A classic script, and the file another, so that both also work from file://.
 */
(() => {
  "use strict";

  /**
   * One saved model: what the Anywidget Front-End Module contract asks of `model`, and nothing
   * else.
   */
  class Model {
    constructor({ type, state, buffers = [] }) {
      this.type = type;
      this.state = state;
      this.listeners = new Map();
      for (const { path, data } of buffers) placeBuffer(state, path, data);
    }

    get(name) {
      return this.state[name];
    }

    set(name, value) {
      if (typeof name === "object") {
        for (const [key, each] of Object.entries(name)) this.set(key, each);
        return;
      }
      if (this.state[name] === value) return;
      this.state[name] = value;
      this.emit(`change:${name}`);
      this.emit("change");
    }

    on(names, listener) {
      for (const name of names.split(/\s+/)) {
        if (!this.listeners.has(name)) this.listeners.set(name, new Set());
        this.listeners.get(name).add(listener);
      }
    }

    off(names, listener) {
      if (!names) return this.listeners.clear();
      for (const name of names.split(/\s+/)) {
        if (listener) this.listeners.get(name)?.delete(listener);
        else this.listeners.delete(name);
      }
    }

    emit(name) {
      for (const listener of [...(this.listeners.get(name) ?? [])]) listener();
    }

    save_changes() {} // there is no kernel to save to: links react to set()

    send() {} // and none that could answer a message
  }

  /**
   * Put a binary buffer at its path in the state, as a DataView, which is what Jupyter's own
   * manager gives.
   */
  function placeBuffer(state, path, base64) {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const last = path[path.length - 1];
    let target = state;
    for (const key of path.slice(0, -1)) target = target[key];
    target[last] = new DataView(bytes.buffer);
  }

  const modelId = (reference) => reference.replace(/^IPY_MODEL_/, "");

  /** jslink ties two traits both ways; the source's value counts at the start. */
  function tie(link, models) {
    const [source, target] = ["source", "target"].map((end) => {
      const [reference, name] = link.get(end);
      return { model: models.get(modelId(reference)), name };
    });
    const copy = (from, to) => () => to.model.set(to.name, from.model.get(from.name));
    copy(source, target)();
    source.model.on(`change:${source.name}`, copy(source, target));
    target.model.on(`change:${target.name}`, copy(target, source));
  }

  // -------------------------------------------------------------------------------------- controls

  let controls = 0; // numbers the controls of a page, to tie each label to its input

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  /**
   * A labelled row. `refresh` writes the model into the elements: now, and whenever the model
   * changes.
   */
  function control(kind, model, input, extra, refresh) {
    input.id = `static-widget-control-${++controls}`;
    const label = element("label", { for: input.id });
    const write = () => {
      label.textContent = model.get("description") ?? "";
      input.disabled = Boolean(model.get("disabled"));
      if (model.get("tooltip")) input.title = model.get("tooltip");
      refresh();
    };
    model.on("change", write);
    write();
    return element("div", { class: `sw-control ${kind}` }, label, input, ...extra);
  }

  /**
   * A range input over the places of the options, with the chosen option said in words and shown
   * beside it.
   */
  function selectionSlider(model) {
    const labels = () => model.get("_options_labels");
    const input = element("input", { type: "range", min: 0, step: 1 });
    // A range already speaks its value; without this the output would say it a second time.
    const output = element("output", { "aria-live": "off" });
    input.addEventListener(model.get("continuous_update") === false ? "change" : "input", () => {
      model.set("index", Number(input.value));
      model.save_changes();
    });
    const row = control("sw-slider", model, input, [output], () => {
      input.max = labels().length - 1;
      input.value = model.get("index");
      output.value = labels()[model.get("index")];
      output.hidden = model.get("readout") === false;
      input.setAttribute("aria-valuetext", output.value);
    });
    output.htmlFor = input.id;
    return row;
  }

  function dropdown(model) {
    const input = element("select");
    input.addEventListener("change", () => {
      model.set("index", input.selectedIndex);
      model.save_changes();
    });
    return control("sw-dropdown", model, input, [], () => {
      input.replaceChildren(
        ...model.get("_options_labels").map((label) => element("option", {}, label)),
      );
      input.selectedIndex = model.get("index") ?? -1;
    });
  }

  function checkbox(model) {
    const input = element("input", { type: "checkbox" });
    input.addEventListener("change", () => {
      model.set("value", input.checked);
      model.save_changes();
    });
    return control("sw-checkbox", model, input, [], () => {
      input.checked = Boolean(model.get("value"));
    });
  }

  const box = (direction) => (model, page) =>
    element(
      "div",
      { class: `sw-box ${direction}` },
      ...model.get("children").map((reference) => show(modelId(reference), page)),
    );

  const VIEWS = {
    SelectionSliderModel: selectionSlider,
    DropdownModel: dropdown,
    CheckboxModel: checkbox,
    BoxModel: box("sw-row"),
    VBoxModel: box("sw-column"),
    AnyModel: anywidget,
  };

  function show(id, page) {
    const model = page.models.get(id);
    const shown = VIEWS[model.type](model, page);
    shown.classList.add(...(model.get("_dom_classes") ?? []));
    return shown;
  }

  // -------------------------------------------------------------------------------- what was saved

  const { dataset, src } = document.currentScript;
  let arriving;

  /** The page's {sources, widgets}: asked for once, when the text stands or a widget is needed. */
  function saved() {
    arriving ??= new Promise((resolve, reject) => {
      globalThis.savedWidgets = resolve;
      const script = element("script", { src: new URL(dataset.saved, src).href });
      script.addEventListener(
        "error",
        () => reject(new Error("what it shows could not be loaded")),
      );
      document.head.append(script);
    });
    return arriving;
  }

  // ------------------------------------------------------------------------------------ anywidgets

  // Text of a module -> promise of it: shared by all widgets of the page.
  const modules = new Map();
  const styled = new Set(); // the stylesheets that the page has

  // A view's text was cut where others have the same, and lies in places of `sources`.
  const textOf = (places, { sources }) => places.map((place) => sources[place]).join("\n");

  function loadModule(text) {
    if (!modules.has(text)) {
      const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
      modules.set(text, import(url).finally(() => URL.revokeObjectURL(url)));
    }
    return modules.get(text);
  }

  function addStyle(text) {
    if (styled.has(text)) return;
    styled.add(text);
    document.head.append(element("style", {}, text));
  }

  function anywidget(model, page) {
    const el = element("div", { class: "sw-anywidget" });
    page.pending.push(startAnywidget(model, el, page));
    return el;
  }

  /**
   * The Anywidget Front-End Module contract: a default export with initialize and render, or a
   * function that makes it.
   */
  async function startAnywidget(model, el, page) {
    addStyle(textOf(model.get("_css") ?? [], page));
    const exported = (await loadModule(textOf(model.get("_esm"), page))).default;
    const widget = typeof exported === "function" ? await exported() : exported;
    const experimental = {
      invoke: () => Promise.reject(new Error("no kernel on a published page")),
    };
    const signal = page.abort.signal;
    model.widget_manager = {
      get_model: (reference) => Promise.resolve(page.models.get(modelId(reference))),
    };
    page.cleanups.push(await widget.initialize?.({ model, signal, experimental }));
    page.cleanups.push(await widget.render?.({ model, el, signal, experimental }));
  }

  // -------------------------------------------------------------------------------------- mounting

  // Root -> the models of a widget: shown in two places, it is one widget with two views.
  const made = new Map();

  function modelsOf(root, widgets) {
    if (!made.has(root)) {
      const models = new Map();
      for (const [id, each] of Object.entries(widgets[root])) models.set(id, new Model(each));
      for (const model of models.values()) if (model.type === "LinkModel") tie(model, models);
      made.set(root, models);
    }
    return made.get(root);
  }

  async function mount(container) {
    const page = { pending: [], cleanups: [], abort: new AbortController() };
    const stage = element("div", { class: "static-widget-stage" });
    container.append(stage);
    try {
      const { sources, widgets } = await saved();
      page.sources = sources;
      const root = container.dataset.widget;
      page.models = modelsOf(root, widgets);
      stage.append(show(root, page));
      await Promise.all(page.pending);
      container.dataset.mounted = "true";
    } catch (error) {
      console.error("static widget:", error);
      page.abort.abort();
      for (const cleanup of page.cleanups) cleanup?.();
      stage.replaceChildren(
        element(
          "p",
          { class: "static-widget-error", role: "alert" },
          `This figure could not start: ${error.message}`,
        ),
      );
      container.dataset.mounted = "failed";
    }
  }

  function start() {
    const containers = document.querySelectorAll(".static-widget");
    const near = new IntersectionObserver(
      (entries) => {
        for (const { isIntersecting, target } of entries) {
          if (!isIntersecting) continue;
          near.unobserve(target);
          target.tabIndex = -1;
          mount(target);
        }
      },
      { rootMargin: "400px 0px" },
    );
    // Before a reader scrolls to a widget, but not before the text: a failure is told in the
    // widget's place.
    addEventListener("load", () => saved().catch(() => {}));
    for (const container of containers) {
      container.setAttribute("role", "group");
      const { title } = container.dataset;
      container.setAttribute("aria-label", `Interactive figure${title ? `: ${title}` : ""}`);
      // Until it is mounted it has nothing to tab to: the Tab key stops at the figure itself, which
      // brings it into view.
      container.tabIndex = 0;
      near.observe(container);
    }
  }

  // `?alone#name` shows one widget by itself, as a puzzle that is sent to somebody, and the way to
  // its chapter.
  function showAlone() {
    const [name] = decodeURI(location.hash).slice(1).split("?");
    const widget = document.getElementById(name);
    if (!widget || !new URLSearchParams(location.search).has("alone")) return;
    const back = element("a", { href: `${location.pathname}#${name}` }, document.title);
    const parts = [
      element("h1", {}, widget.dataset.title),
      widget.closest("figure") ?? widget,
      element("p", {}, "From: ", back),
    ];
    document.documentElement.classList.add("alone");
    document.body.prepend(element("main", { class: "widget-alone bd-article" }, ...parts));
    addEventListener("load", () => scrollTo(0, 0)); // the address would scroll to the widget
  }

  showAlone();
  start();
})();
