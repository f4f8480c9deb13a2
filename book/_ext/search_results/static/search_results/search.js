/* Sphinx's search, for this book: in the order of the chapters, a term of the glossary by its name,
   the text around a word from the text alone. It changes members of `Search` that searchtools.js
   defines. */

"use strict";

/* What people ask with does not say what they look for. *Who* and *whom* are words of the book. */
stopwords.push(
  ...["how", "do", "does", "did", "i", "me", "my", "we", "us", "you", "your", "can", "could"],
  ...["should", "would", "what", "which", "when", "where", "why", "have", "has", "am", "an"],
);

/* Pages that match alike come in the order in which the index has them: of each word first the
   chapters that say it at length, then the others, in the order of the book, and the landing page
   and the reference after them. A page whose title holds what was searched for comes before one
   with such a section. */
Scorer.score = ([page, title, anchor, , score]) => {
  const query = new URLSearchParams(location.search).get("q");
  const file = Search._index.docnames.indexOf(page);
  const places = [...Search._parseQuery(query)[1]]
    .map((word) => [Search._index.terms[word] ?? []].flat().indexOf(file))
    .filter((place) => place >= 0);
  const place = places.length ? places.reduce((sum, one) => sum + one) / places.length : file;
  const named = !anchor && title.toLowerCase().includes(query.trim().toLowerCase());
  return score + (named ? 1 : 0) - place / 100;
};

/* A name of the reference that holds what was searched for, and more, comes after a page about it.
   So does a title that holds it within a word: "Linformer" is not about inf. */
Object.assign(Scorer, { objPartialMatch: 3, objPrio: { 1: 0 }, partialTitle: 4 });

/* Of each page of each word the section that says it most. The index has a character for each,
   which numbers the page's ids. */
const places = new Map();
const { setIndex } = Search;
Search.setIndex = (index) => {
  const sections = index.docnames.map(() => []);
  for (const [title, found] of Object.entries(index.alltitles)) {
    for (const [file, id] of found) sections[file].push({ id: id ?? "", title });
  }
  for (const ofPage of sections) ofPage.sort((one, other) => (one.id < other.id ? -1 : 1));
  let nth = 0;
  for (const words of [index.terms, index.titleterms]) {
    for (const word of Object.keys(words).sort()) {
      if (!places.has(word)) places.set(word, new Map());
      for (const file of [words[word]].flat()) {
        places.get(word).set(file, sections[file][index.sections.charCodeAt(nth++) - 48]);
      }
    }
  }
  setIndex(index);
};

/* The section that the rarest of the words leads to, and several together before one. What leads to
   the page itself, such as a word of its title, says nothing about where on the page. */
function sectionOf(file, words) {
  const voices = new Map();
  for (const word of words) {
    const pages = places.get(word);
    const section = pages?.get(file);
    if (section?.id) voices.set(section, (voices.get(section) ?? 0) + 1 / pages.size);
  }
  return [...voices].sort(([, one], [, other]) => other - one)[0]?.[0];
}

/* A page leads to its section that says the words. */
const { performTermsSearch } = Search;
Search.performTermsSearch = (words, excluded) =>
  performTermsSearch(words, excluded).map(([page, title, , ...rest]) => {
    const file = Search._index.docnames.indexOf(page);
    const section = sectionOf(file, words);
    return section
      ? [page, `${title} > ${section.title}`, `#${section.id}`, ...rest]
      : [page, title, "", ...rest];
  });

const found = Search._performSearch;
Search._performSearch = (...query) => {
  const terms = new Map();
  for (const [entry, found] of Object.entries(Search._index.indexentries)) {
    for (const [file, id] of found) terms.set(`${Search._index.docnames[file]}#${id}`, entry);
  }
  const results = found(...query).map(([page, title, anchor, ...rest]) => {
    const term = terms.get(page + anchor);
    return [page, term ? `${title} > ${term}` : title, anchor, ...rest];
  });
  // Every name of the reference begins with that of the package: that alone is no match.
  const [searched] = query;
  const own = (name) => name.toLowerCase().replace(/^attention\./, "");
  return results.filter(([, name, , isName]) =>
    !isName || own(name).includes(searched.toLowerCase())
  );
};

/* What a result shows of its page: neither its menus nor its table of contents, and of a term its
   definition. */
Search.htmlToText = (html, anchor) => {
  const article = new DOMParser().parseFromString(html, "text/html").querySelector("article");
  for (const extra of article.querySelectorAll(".headerlink, script, style, svg, h1")) {
    extra.remove();
  }
  const place = anchor ? article.querySelector(`[id="${anchor.slice(1)}"]`) : article;
  const text = place.matches("dt") ? place.nextElementSibling : place;
  return text.textContent.replace(/\s+/g, " ").trim();
};

/* What was searched for is lit on the page that a result leads to, and on no other. */
let chosen = false;
addEventListener("click", ({ target }) => {
  chosen = Boolean(target.closest("#search-results a"));
});
addEventListener("pagehide", () => {
  if (!chosen) localStorage.removeItem("sphinx_highlight_terms");
});

/* A page from a file may not read the pages it found: show their titles alone. */
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
