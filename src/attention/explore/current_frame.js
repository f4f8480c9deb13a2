// The frame that is to be drawn: a stored one, or of what the reader wrote.

import { tokenize, UNK, UNK_ID } from "./attention.js";
import { listed } from "./format.js";
import { difference, halves, singles, unpacked } from "./frames.js";

const CLOSE = 1e-4; // frames are stored in float32

const sizesOf = (at) => `${at.d_model},${at.n_heads ?? 2}`;

// Controls that no stored frame is chosen by may enter the computation: then a stored frame says in
// `setting` for which values of them it was computed, and the page computes every frame that it
// shows.
//
// Returns a function of the reader's text and of what the view's buttons left in `memory`. It gives
// the frame, where the controls stand (`at`), and what is to be said of the text (`notes`).
export function currentFrame(model, view) {
  const { compute, act, note, model: modelOf = sizesOf } = view;
  const { split = tokenize, prepare = (tokens) => tokens } = view;
  const controls = model.get("controls");
  const frames = model.get("frames");
  const models = model.get("models");
  const { kind, vocabulary, longest, read_as: readAs } = model.get("reads") ?? {};
  const numbers = singles(model.get("numbers"));
  const weights = halves(model.get("weights"));
  const trained = new Map(); // the weights that were used, by their name
  const proven = new Set(); // the settings of which torch's own frame was computed again, the same

  const idOf = (token) => (vocabulary.includes(token) ? vocabulary.indexOf(token) : UNK_ID);
  const read = (tokens) => tokens.map(idOf);

  function weightsOf(name) {
    if (!trained.has(name)) trained.set(name, unpacked(models[name], weights));
    return trained.get(name);
  }

  // What torch computed for the controls as they stand, of the first sentence or of the chosen one.
  function storedFrame(first = false) {
    const choosing = controls.filter(({ frame }) => frame);
    const places = choosing.map(({ name }) =>
      first && name === "sentence" ? 0 : Number(model.get(name)) // a Checkbox links a boolean
    );
    return frames[places.join(",")];
  }

  // The frame of the reader's own tokens.
  function ownFrame(tokens, at, memory) {
    const stored = unpacked(storedFrame(true), numbers);
    const weights = weightsOf(modelOf(at));
    const make = (tokens, memory, at) =>
      compute({ tokens, ids: read(tokens) }, at, weights, { stored, read, memory });
    const choosing = controls.filter(({ name, frame }) => frame && name !== "sentence");
    const setting = choosing.map(({ name }) => at[name]).join();
    if (!proven.has(setting)) {
      const off = difference(
        make(stored.keys ?? stored.tokens, {}, { ...at, ...stored.setting }),
        stored,
      );
      if (!(off < CLOSE)) return { problem: differs(off) };
      proven.add(setting);
    }
    return make(tokens, memory, at);
  }

  return (text, memory) => {
    const at = Object.fromEntries(
      controls.map(({ name, options }) => [name, options[Number(model.get(name))]]),
    );
    const named = modelOf(at);
    if (memory.model !== named) { // heads that were switched off are those of one model
      if (memory.model !== undefined) delete memory.off;
      memory.model = named;
    }
    const stored = storedFrame();
    const written = kind ? split(text) : [];
    const tokens = written.map((token) => readAs?.[token] ?? token);
    const unknown = [...new Set(tokens)].filter((token) => !vocabulary.includes(token));
    if (stored.error || !compute || (!tokens.length && !act && !stored.setting)) {
      return { frame: unpacked(stored, numbers), at, notes: "" };
    }
    if (tokens.length > longest) {
      return { frame: { problem: tooLong(longest, kind, tokens.length) }, at, notes: "" };
    }
    if (unknown.length && !vocabulary.includes(UNK)) {
      return { frame: { problem: `The model does not know ${listed(unknown)}.` }, at, notes: "" };
    }
    // What Python stored is prepared already.
    const frame = ownFrame(tokens.length ? prepare(tokens) : stored.tokens, at, memory);
    const others = [...new Set(written)].filter((token) => readAs?.[token]);
    const notes = frame.problem ? [] : [
      unknownWords(unknown),
      ...others.map((word) => `It reads “${word}” as “${readAs[word]}”.`),
      note?.(frame, at),
    ];
    return { frame, at, notes: notes.filter(Boolean).join(" ") };
  };
}

function differs(off) {
  return `This page computes torch's own example differently than torch does (by ${off}), ` +
    "so it does not show yours.";
}

function tooLong(longest, kind, length) {
  return `The model reads at most ${longest} tokens; this ${kind} has ${length}.`;
}

function unknownWords(words) {
  if (!words.length) return "";
  const each = words.length > 1 ? " for each" : "";
  return `The model does not know ${listed(words)}; it reads ${UNK}${each}.`;
}
