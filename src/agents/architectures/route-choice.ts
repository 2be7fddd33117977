import { withoutThinking } from "../base/json-in-text.ts";
import { parseFraction } from "./json-parsing.ts";

/** The classifier's decision. */
export interface RouteChoice {
  /** Name of an existing route; `undefined` if the reply names none. */
  readonly route: string | undefined;
  /** Confidence from 0 to 1. A reply without a readable confidence counts as 0. */
  readonly confidence: number;
}

const quotes = `"'*\`\u201C\u201D\u2018\u2019\u201E\u00AB\u00BB`;
const separator = `[${quotes}_]*\\s*[:=\uFF1A]`;
/**
 * Matches a whole name. The lookahead prevents backtracking into parts of a name, which takes quadratic time on long
 * replies.
 */
const name = `([A-Za-z0-9_-]+)(?![A-Za-z0-9_-])`;
/** Matches a name after the word "route", also in bold, in quotes or in the angle brackets of the requested format. */
const named = `route${separator}(?:[${quotes}<([{\\s]|__?\\s)*${name}`;
const lineStart = `^[ \\t>#{_${quotes}-]*(?:\\d{1,3}[.)][ \\t${quotes}_]*)?`;
const confidenceLabel = `confidence${separator}`;
const requestedFormat = new RegExp(
  `${lineStart}${named}[^\\p{L}\\p{N}]{0,40}(?:\\d{1,3}[.)]\\W{0,8})?${confidenceLabel}`,
  "gimu",
);
const aloneOnLine = new RegExp(`${lineStart}${named}[ \\t>)\\]},;.!${quotes}]*$`, "gimu");
const beginsLine = new RegExp(`${lineStart}${named}`, "gimu");
const anywhere = new RegExp(`(?<![A-Za-z0-9])${named}`, "giu");
const alone = new RegExp(
  `^[\\s<([{${quotes}]*${name}[\\s<>()[\\]{},;.!${quotes}-]*(?:$|(?<![A-Za-z0-9])_*${confidenceLabel})`,
  "iu",
);
const confidenceValue = new RegExp(
  `(?<![A-Za-z0-9])${confidenceLabel}\\s*[${quotes}<([_]*([^\\n]{0,40})`,
  "giu",
);

/**
 * Parses the route that a model chose. If there are several matches, the last one counts, because earlier ones may
 * be reasoning. It tries the requested format first, then a line that contains only a route; both also count with
 * an unknown name. Then it tries a line that starts with an existing route, an existing route anywhere, a reply
 * that is only a name, and the only route that the sentences of the reply name.
 */
export function parseRouteChoice(text: string, names: readonly string[]): RouteChoice {
  const reply = withoutThinking(text);
  const isRoute = ([, wanted]: RegExpExecArray): boolean => routeOf(wanted, names) !== undefined;
  const choice =
    [...reply.matchAll(requestedFormat)].at(-1) ??
    [...reply.matchAll(aloneOnLine)].at(-1) ??
    [...reply.matchAll(beginsLine)].findLast(isRoute) ??
    [...reply.matchAll(anywhere)].findLast(isRoute) ??
    alone.exec(reply) ??
    onlyRouteNamed(reply, names);
  return { route: routeOf(choice?.[1], names), confidence: confidenceIn(reply, choice?.index ?? 0) };
}

const clause = /[^.,;:!?\n]+/gu;
const word = /[A-Za-z0-9_-]+/gu;
const negation = /^(?:not|never|no|neither|nor|without|except)$/iu;
const contrast = /^(?:but|rather|instead)$/iu;

/**
 * Finds the route that a reply in sentences names, such as "I would send this to billing, not to travel". A name
 * after a negation in the same clause does not count. Returns `undefined` if the reply names no route or several,
 * because a guess would be wrong too often.
 */
function onlyRouteNamed(reply: string, names: readonly string[]): RegExpExecArray | undefined {
  const found = new Map<string, RegExpExecArray>();
  for (const { 0: text, index } of reply.matchAll(clause)) {
    let isNegated = /n['\u2019]t\b/u.test(text);
    for (const match of text.matchAll(word)) {
      if (negation.test(match[0])) isNegated = true;
      if (contrast.test(match[0])) isNegated = false;
      const route = isNegated ? undefined : routeOf(match[0], names);
      if (route === undefined || found.has(route)) continue;
      found.set(route, Object.assign(match, { 1: match[0], index: index + match.index }));
    }
  }
  return found.size === 1 ? found.values().next().value : undefined;
}

/**
 * Finds a route by its exact name, then without regard to case, then without leading and trailing underscores (Markdown
 * emphasis).
 */
function routeOf(wanted: string | undefined, names: readonly string[]): string | undefined {
  if (wanted === undefined) return undefined;
  const bare = wanted.replace(/^_+/u, "").replace(/(?<!_)_+$/u, "");
  return (
    names.find((each) => each === wanted) ??
    names.find((each) => each.toLowerCase() === wanted.toLowerCase()) ??
    names.find((each) => each.toLowerCase() === bare.toLowerCase())
  );
}

/** Returns the first confidence value after the choice. If none follows, returns the last one in the reply. */
function confidenceIn(reply: string, from: number): number {
  const all = [...reply.matchAll(confidenceValue)];
  const written = all.find(({ index }) => index >= from) ?? all.at(-1);
  const confidence = parseFraction(written?.[1] ?? "");
  return typeof confidence === "number" ? confidence : 0;
}
