// The two questions at a verb, and what the model answers to them.

import { answer, answers } from "./answers.js";
import { linear, maskedSoftmax } from "./attention.js";
import { Tensor } from "./tensor.js";

export const QUESTIONS = ["who", "whom"];

// What each question's read-out gives every word, for rows of the output: logits (row, word).
export function readOut(rows, model) {
  return QUESTIONS.map((question) => linear(rows, model[`w_${question}`], model[`b_${question}`]));
}

// The same as probabilities: each row sums to 1.
export function probabilities(logits) {
  return maskedSoftmax(new Tensor([1, ...logits.shape], logits.data)).at(0);
}

// Both answers at the nth verb that asks, in a line.
export function answersOfVerb({ tokens, asking, answers: words, shares }, nth) {
  const parts = QUESTIONS.map((question, i) => {
    const word = words[2 * nth + i];
    const names = { "data-question": question, "data-verb": asking[nth], "data-answer": word };
    return answer(question, word, shares.at(nth).data[i], names);
  });
  return answers(tokens[asking[nth]], parts);
}
