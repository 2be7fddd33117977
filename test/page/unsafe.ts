import { casesOf } from "../effort.ts";

/**
 * Markup, a character that turns the direction of a text, a terminal code, and a line of 150,000 characters, which is longer than
 * every limit of the page. With `npm run test:full` the line has a megabyte.
 */
export const hostile = `<img src=x onerror="alert(1)"> \u202Eevil \u001B[31mred ${"x".repeat(casesOf(1_000_000, 150_000))}`;

/** The beginning of a hostile text, for fields with a maximum length. */
export const shortHostile = hostile.slice(0, 200);

/** Hidden characters that a page shows outside of the prose of a model, elements that its texts made, and its overflow. */
export const unsafe = String.raw`(() => {
  const hidden = /[\u202a-\u202e\u2066-\u2069\u001b\u200b]/u;
  const found = [...document.querySelectorAll("main img, main script")].map(({ outerHTML }) => outerHTML);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const text = node.nodeType === 3 ? node.data : [...node.attributes].map(({ value }) => value).join(" ");
    const element = node.nodeType === 3 ? node.parentElement : node;
    if (hidden.test(text) && element.closest(".prose") === null) found.push(element.outerHTML.slice(0, 120));
  }
  const wider = document.documentElement.scrollWidth - innerWidth;
  return wider > 0 ? [...found, "wider by " + wider] : found;
})()`;
