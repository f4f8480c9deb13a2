// What a model answers, as words with their probabilities.

import { UNK } from "./attention.js";
import { number } from "./format.js";
import { element, escapeHtml } from "./markup.js";

// The answers to one word, in a line.
export function answers(asked, parts, attributes = { "aria-live": "polite" }) {
  const word = element("span", { class: "asked" }, `“${escapeHtml(asked)}”`);
  return element("p", { class: "answers", ...attributes }, `${word} ${parts.join(" ")}`);
}

export function answer(question, word, share, attributes = {}) {
  return element(
    "span",
    { class: "answer", ...attributes },
    question && `${element("span", { class: "asked" }, `${question}?`)} `,
    `${element("strong", {}, escapeHtml(word))} `,
    element("span", { class: "sure" }, number(share)),
  );
}

// The model's <unk> is the word that it did not know, where there is one such word.
export function knownAs(word, tokens, vocabulary) {
  const unknown = new Set(tokens.filter((token) => !vocabulary.includes(token)));
  return word === UNK && unknown.size === 1 ? [...unknown][0] : word;
}
