// The reader as an attention head: what each verb of a sentence looks at when words are liked for
// being nouns and for their seats, and at how many verbs of many sentences the head is right.

import { answer, answers } from "./answers.js";
import { maskedSoftmax, UNK_ID } from "./attention.js";
import { bars } from "./chart.js";
import { explorer } from "./explorer.js";
import { listed, number, percent, thousands } from "./format.js";
import { element } from "./markup.js";
import { labelWidth } from "./matrix.js";
import { panel, row } from "./panels.js";
import { QUESTIONS } from "./read_out.js";
import { range, Tensor } from "./tensor.js";

const SEATS = ["before_2", "before_1", "after_1", "after_2", "after_3"]; // as controls
const FROM_VERB = [-2, -1, 1, 2, 3]; // and from the start they are the places 0 to 4
const GAP = 20; // between panels
const SHORTEST = 40; // of a bar that fills its line

export default explorer({
  model: () => "head",

  compute({ tokens, ids }, at, { nouns, asks, all_nouns, all_verbs }) {
    const likes = likesOf(at);
    const places = range(tokens.length);
    const asking = places.filter((place) => all_verbs.includes(tokens[place]));
    if (!asking.length) return { problem: `No verb in it asks. Try ${listed(all_verbs)}.` };
    const isNoun = places.map((i) => +(ids[i] === UNK_ID || all_nouns.includes(tokens[i])));
    const scores = asking.map((verb) => places.map((i) => score(isNoun[i], i, verb, likes)));
    const rows = new Tensor([1, asking.length, tokens.length], Float64Array.from(scores.flat()));
    const { right, of } = countRight(nouns, asks, QUESTIONS.indexOf(at.question), likes);
    return {
      tokens,
      asking,
      nouns: new Tensor([tokens.length], Float64Array.from(isNoun)),
      weights: new Tensor([asking.length, tokens.length, 1], maskedSoftmax(rows).data),
      answers: scores.map(mostLiked),
      ...{ right, of, share: new Tensor([1, 1], Float64Array.of(right / of)) },
      setting: Object.fromEntries(["noun", ...SEATS].map((name) => [name, at[name]])),
    };
  },

  note({ tokens, asking }) {
    return asking.length === 1 ? `“${tokens[asking[0]]}” is its only verb.` : "";
  },

  status({ right, of, share }, at) {
    const { noun, seats } = likesOf(at);
    const named = seats.map((like, nth) => [seatName(nth, at), like]);
    const liked = [["nouns", noun], ...named].filter(([, like]) => like);
    const words = liked.map(([name, like]) => `${name} (${like})`).join(", ");
    return `${at.question}? · the head likes ${words || "nothing"}` +
      ` · positions counted from ${countedFrom(at)}` +
      ` · right at ${thousands(right)} of ${thousands(of)} verbs, ${percent(share.data[0])}`;
  },

  draw(frame, at, available) {
    const { tokens, asking, nouns, weights, share, right, of } = frame;
    const labelled = asking.map((verb) =>
      tokens.map((word, i) => `${i === verb ? "▸ " : nouns.data[i] ? "• " : ""}${word}`)
    );
    const least = labelWidth(labelled.flat()) + 46 + SHORTEST;
    const half = Math.floor((available - GAP) / 2);
    const width = Math.min(half >= least ? half : available, 320);
    const looks = asking.map((verb, nth) =>
      panel(
        `from “${tokens[verb]}”`,
        bars({
          ...{ name: `weights ${nth}`, tensor: weights.at(nth), rows: tokens, column: "weight" },
          ...{ labels: labelled[nth], width, largest: 1 },
        }),
        "weights",
      )
    );
    const total = bars({
      ...{ name: "share", tensor: share, rows: ["right"], column: "share of the verbs" },
      ...{ width: Math.min(available, 640), space: 60, pitch: 28, largest: 1, mark: 0.5 },
      format: percent,
    });
    const told = at.question === "whom"
      ? " Verbs with nobody to find (sing, sleep, run) are left out."
      : "";
    return (
      row(
        `Of 500 sentences with two verbs: right at ${thousands(right)} of ${thousands(of)} verbs`,
        [panel("the word with the largest weight is the right one", total)],
        "The dashed line is one half. " +
          `Where words share the largest weight, that is no answer.${told}`,
      ) +
      row(
        `What each verb looks at, positions counted from ${countedFrom(at)}`,
        looks,
        "▸ the verb that asks, • a noun",
      ) +
      asking.map((_, nth) => answered(frame, nth, at)).join("")
    );
  },

  describe({ name, r, value }, { tokens, asking, nouns, right, of }, at) {
    if (name === "share") return `Right at ${thousands(right)} of ${thousands(of)} verbs.`;
    const verb = asking[name.split(" ")[1]];
    const likes = likesOf(at);
    const nth = seat(r, verb, likes);
    const why = [
      nouns.data[r] && `a noun (${likes.noun})`,
      nth in SEATS && `${seatName(nth, at)} (${likes.seats[nth]})`,
    ].filter(Boolean);
    const total = score(nouns.data[r], r, verb, likes);
    return `“${tokens[verb]}” gives “${tokens[r]}” the weight ${number(value)}; its score is ` +
      `${total}${why.length ? `: ${why.join(", ")}` : ""}.`;
  },
});

function countedFrom(at) {
  return at.from_the_verb === "on" ? "the verb that asks" : "the start";
}

// What the n-th seat is called, by the way in which seats are counted.
function seatName(nth, at) {
  return at.from_the_verb === "on" ? SEATS[nth].split("_").reverse().join(" ") : `word ${nth + 1}`;
}

// The controls as numbers.
function likesOf(at) {
  const seats = SEATS.map((name) => Number(at[name]));
  return { noun: Number(at.noun), seats, fromTheVerb: at.from_the_verb === "on" };
}

// Which of the seats a place is; none of them where the number is not below 5, or negative.
function seat(place, verb, { fromTheVerb }) {
  return fromTheVerb ? FROM_VERB.indexOf(place - verb) : place;
}

function score(isNoun, place, verb, likes) {
  return isNoun * likes.noun + (likes.seats[seat(place, verb, likes)] ?? 0);
}

// The place of the largest score, and so of the largest weight; -1 where several share it.
function mostLiked(scores) {
  const largest = Math.max(...scores);
  const place = scores.indexOf(largest);
  return scores.includes(largest, place + 1) ? -1 : place;
}

// At how many verbs the word that is looked at most is the right one, and of how many.
function countRight(nouns, asks, question, likes) {
  let [right, of] = [0, 0];
  for (const s of range(nouns.shape[0])) {
    const isNoun = nouns.at(s).data.filter((noun) => noun >= 0); // the rest is padding
    for (const ask of range(asks.shape[1])) {
      const { [0]: verb, [1 + question]: wanted } = asks.at(s).at(ask).data;
      if (wanted < 0) continue;
      of++;
      if (mostLiked(Array.from(isNoun, (noun, i) => score(noun, i, verb, likes))) === wanted) {
        right++;
      }
    }
  }
  return { right, of };
}

function answered({ tokens, asking, weights, answers: given }, nth, { question }) {
  const [verb, place] = [tokens[asking[nth]], given[nth]];
  const names = { "data-question": question, "data-verb": asking[nth], "data-answer": place };
  if (place >= 0) {
    return answers(verb, [answer(question, tokens[place], weights.at(nth).data[place], names)]);
  }
  const asked = element("span", { class: "asked" }, `${question}?`);
  const none = element("span", { class: "answer", ...names }, `${asked} no answer`);
  return answers(verb, [none]);
}
