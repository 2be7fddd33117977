import { shareIn, withoutThoughts } from "./json-answer.ts";

export interface RouteChoice {
  /** `undefined`: none that there is. */
  readonly route: string | undefined;
  /** Who does not say is not sure at all: 0. */
  readonly confidence: number;
}

/** A name as it is written behind the word: in bold, in quotes, in the brackets that it was asked for with. */
const named = `route["'*\`_]*\\s*[:=](?:["'*\`<([{\\s]|__?\\s)*([A-Za-z0-9_-]+)`;
const onItsLine = new RegExp(`^[ \\t>#"'*\`{_-]*${named}`, "gimu");
const anywhere = new RegExp(`(?<![A-Za-z0-9])${named}`, "giu");
const alone = /^[\s"'*`<([{]*([A-Za-z0-9_-]+)[\s"'*`>)\]}.!]*$/u;
const sure = /(?<![A-Za-z0-9])confidence["'*`_]*\s*[:=]\s*["'*`<([_]*([^\n]{0,40})/giu;

/**
 * The route a model chose among those there are: its last word on it, for what stands before may be its way there; but one in a line of its own, as
 * it was asked for, before one among other words. A reply may also be a name and nothing else.
 */
export function routeChoiceIn(text: string, names: readonly string[]): RouteChoice {
  const said = withoutThoughts(text);
  const choice = [...said.matchAll(onItsLine)].at(-1) ?? [...said.matchAll(anywhere)].at(-1);
  const wanted = (choice ?? alone.exec(said))?.[1] ?? "";
  const route =
    names.find((name) => name === wanted) ??
    names.find((name) => name.toLowerCase() === wanted.toLowerCase());
  return { route, confidence: confidenceIn(said, choice?.index ?? 0) };
}

/** What is said of it after the choice, or else at all. */
function confidenceIn(said: string, from: number): number {
  const all = [...said.matchAll(sure)];
  const written = all.find(({ index }) => index >= from) ?? all.at(-1);
  return shareIn(written?.[1] ?? "") ?? 0;
}
