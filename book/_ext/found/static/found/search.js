/* Sphinx's search, for this book: in the order of the chapters, a term of the glossary by its name, the text around a
   word from the text alone. It changes members of `Search` that searchtools.js defines. */

"use strict";

/* Pages that match alike come in the order of the book, the landing page and the reference after the chapters, rather
   than by the alphabet. A page whose title holds what was searched for comes before one with such a section. */
Scorer.score = ([page, title, anchor, , score]) => {
  const query = new URLSearchParams(location.search).get("q").trim().toLowerCase();
  const named = !anchor && title.toLowerCase().includes(query);
  return score + (named ? 1 : 0) - Search._index.docnames.indexOf(page) / 100;
};

const found = Search._performSearch;
Search._performSearch = (...query) => {
  const terms = new Map();
  for (const [entry, places] of Object.entries(Search._index.indexentries)) {
    for (const [file, id] of places) terms.set(`${Search._index.docnames[file]}#${id}`, entry);
  }
  return found(...query).map(([page, title, anchor, ...rest]) => {
    const term = terms.get(page + anchor);
    return [page, term ? `${title} > ${term}` : title, anchor, ...rest];
  });
};

/* What a result shows of its page: neither its menus nor its table of contents, and of a term its definition. */
Search.htmlToText = (html, anchor) => {
  const article = new DOMParser().parseFromString(html, "text/html").querySelector("article");
  for (const extra of article.querySelectorAll(".headerlink, script, style, svg, h1")) extra.remove();
  const place = anchor ? article.querySelector(anchor) : article;
  const text = place.matches("dt") ? place.nextElementSibling : place;
  return text.textContent.replace(/\s+/g, " ").trim();
};

/* A page from a file may not read the pages it found: show their titles alone. */
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
