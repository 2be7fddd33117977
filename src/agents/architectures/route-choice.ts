import { parseFraction, withoutThinking } from "./json-parsing.ts";

export interface RouteChoice {
  /** `undefined`: none that there is. */
  readonly route: string | undefined;
  /** Who does not say is not sure at all: 0. */
  readonly confidence: number;
}

const quotes = `"'*\`\u201C\u201D\u2018\u2019\u201E\u00AB\u00BB`;
const separator = `[${quotes}_]*\\s*[:=\uFF1A]`;
/** Whole, so that no part of it is tried: what is searched is as long as a model makes it. */
const name = `([A-Za-z0-9_-]+)(?![A-Za-z0-9_-])`;
/** A name as it is written behind the word: in bold, in quotes, in the brackets that it was asked for with. */
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
 * The route a model chose among those there are. As it was asked for, with its confidence behind it, before a line that says nothing else,
 * and of these the last word counts, also where it is no route: what stands before may be the way there. Among other words, which may not
 * be of the choice at all, only routes there are count. A reply may also be a name and nothing else.
 */
export function parseRouteChoice(text: string, names: readonly string[]): RouteChoice {
  const reply = withoutThinking(text);
  const isRoute = ([, wanted]: RegExpExecArray): boolean => routeOf(wanted, names) !== undefined;
  const choice =
    [...reply.matchAll(requestedFormat)].at(-1) ??
    [...reply.matchAll(aloneOnLine)].at(-1) ??
    [...reply.matchAll(beginsLine)].findLast(isRoute) ??
    [...reply.matchAll(anywhere)].findLast(isRoute) ??
    alone.exec(reply);
  return { route: routeOf(choice?.[1], names), confidence: confidenceIn(reply, choice?.index ?? 0) };
}

/** By its name, or that without its case or the marks that a name may itself begin or end with. */
function routeOf(wanted: string | undefined, names: readonly string[]): string | undefined {
  if (wanted === undefined) return undefined;
  const bare = wanted.replace(/^_+/u, "").replace(/(?<!_)_+$/u, "");
  return (
    names.find((each) => each === wanted) ??
    names.find((each) => each.toLowerCase() === wanted.toLowerCase()) ??
    names.find((each) => each.toLowerCase() === bare.toLowerCase())
  );
}

/** What is said of it after the choice, or else at all. */
function confidenceIn(reply: string, from: number): number {
  const all = [...reply.matchAll(confidenceValue)];
  const written = all.find(({ index }) => index >= from) ?? all.at(-1);
  return parseFraction(written?.[1] ?? "") ?? 0;
}
