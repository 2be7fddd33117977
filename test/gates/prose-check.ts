// Finds phrases that make readers stumble, in comments, documentation, error texts and test titles.
// Usage: npm run prose [-- --changed BASE]
// A hit is a sentence to rewrite in plain technical English, not a word to replace.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repository } from "./run-node.ts";

interface Phrase {
  readonly name: string;
  readonly pattern: RegExp;
  /** What to write instead. */
  readonly advice: string;
}

interface Line {
  readonly file: string;
  readonly number: number;
  readonly text: string;
}

export interface Hit extends Line {
  readonly phrase: string;
  readonly advice: string;
}

// The names and patterns below would find themselves, so each line opts out.
const phrases: readonly Phrase[] = [
  phrase("unless told", /\bunless (?:told|it is told|they are told)\b/i, "Default: 10_000."), // prose-check: ignore
  phrase("is none", /\b(?:that|which|what) (?:is|are) none\b|\bis none:/i, "say what is invalid"), // prose-check: ignore
  phrase("whoever", /\bwho(?:so)?ever\b/i, "name the actor: caller, owner, worker, parent, client"), // prose-check: ignore
  phrase("nobody", /\bnobody\b/i, "name the actor, or use the passive"), // prose-check: ignore
  phrase("breath", /\bbreath\b/i, "synchronously / in the same commit / in the same tick"), // prose-check: ignore
  phrase(
    "came to",
    /\bwhat (?:it|they|he|she|a run|the run|a task) (?:came|comes|come) to\b/i,
    "result / outcome",
  ), // prose-check: ignore
  phrase("go on with", /\bgo(?:es|ne|ing)? on with\b/i, "resume / continue"), // prose-check: ignore
  phrase("let go of", /\blet(?:s|ting)? go of\b/i, "release / drop / discard"), // prose-check: ignore
  phrase(
    "told",
    /\b(?:is|are|was|were|be|been|being) told\b(?! apart)/i,
    "emitted / reported / notified / cancelled",
  ), // prose-check: ignore
  phrase("given up", /\b(?:is|are|was|were|be|been|being) given up\b/i, "abandon / time out / release"), // prose-check: ignore
  phrase("as good as", /\bas good as\b/i, "equivalent to"), // prose-check: ignore
  phrase("has a say", /\bha(?:s|ve) a say\b/i, "can block or change"), // prose-check: ignore
  phrase("in its stead", /\bin (?:its|their|his) stead\b/i, "instead"), // prose-check: ignore
  phrase(
    "what stands", // prose-check: ignore
    /\bwhat stands\b|\bstands (?:for|there|behind|below|beside) (?:as|it|them)\b/i,
    "what is stored / recorded",
  ), // prose-check: ignore
  phrase("mended", /\bmend(?:s|ed|ing)?\b/i, "fix / fixed / correct"), // prose-check: ignore
  phrase(
    "namesake, asker, newcomer", // prose-check: ignore
    /\bnamesakes?\b|\baskers?\b|\bnewcomers?\b/i,
    "agents with the same name / caller",
  ), // prose-check: ignore
  phrase(
    "fragment",
    /\/\*\* (?:(?:Of|By|Among|Whose) [^.]{1,60}|(?:For|From|With|In|At|To|Where|Also|Not) [^.,]{1,60})\. \*\//,
    "a full sentence with a subject",
  ),
  phrase(
    "bare promise number",
    /\/\*\* [A-Z]{1,2}\d+[.:]? \*\//,
    "number and words: 'B1: reserves the upper bound.'",
  ),
];

const globs = ["*.md", "src/*.ts", "web/*.ts", "web/*.tsx", "test/*.ts", "examples/*.ts", "bench/*.ts"];

/** Comments and string literals of a line of TypeScript. */
const proseParts = /\/\/.*$|^\s*\/?\*.*$|\/\*.*$|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`/g;

/** Hits in all files, or, with a base commit, in the lines added since then. */
export function findPhrases(base?: string): readonly Hit[] {
  return [...(base === undefined ? allLines() : addedLines(base))].flatMap(hitsIn);
}

/** The phrases in one line. */
export function hitsIn(line: Line): readonly Hit[] {
  const prose = proseOf(line);
  return phrases
    .filter(({ pattern }) => pattern.test(prose))
    .map(({ name, advice }) => ({ ...line, phrase: name, advice }));
}

function phrase(name: string, pattern: RegExp, advice: string): Phrase {
  return { name, pattern, advice };
}

function* allLines(): Iterable<Line> {
  for (const file of git("ls-files", "--", ...globs)
    .trim()
    .split("\n")) {
    const lines = readFileSync(join(repository, file), "utf8").split("\n");
    for (const [index, text] of lines.entries()) yield { file, number: index + 1, text };
  }
}

function* addedLines(base: string): Iterable<Line> {
  let file = "";
  let number = 0;
  for (const line of git("diff", "-U0", "--no-color", base, "--", ...globs).split("\n")) {
    if (line.startsWith("+++ b/")) file = line.slice(6);
    else if (line.startsWith("@@")) number = Number(/\+(\d+)/.exec(line)?.[1]);
    else if (line.startsWith("+") && !line.startsWith("+++"))
      yield { file, number: number++, text: line.slice(1) };
  }
}

/** Markdown without code spans; otherwise comments and those strings that contain a space. */
function proseOf({ file, text }: Line): string {
  if (text.includes("prose-check: ignore")) return "";
  if (file.endsWith(".md")) return text.replaceAll(/`[^`]*`/g, "``");
  return (text.match(proseParts) ?? []).filter((part) => part.includes(" ")).join("\n");
}

function git(...args: readonly string[]): string {
  return execFileSync("git", args, { cwd: repository, encoding: "utf8", maxBuffer: 1 << 29 });
}

if (import.meta.main) {
  const at = process.argv.indexOf("--changed");
  const hits = findPhrases(at < 0 ? undefined : process.argv[at + 1]);
  const lines = hits.map(
    (hit) => `${hit.file}:${hit.number}: "${hit.phrase}" -> ${hit.advice}\n    ${hit.text.trim()}\n`,
  );
  process.stdout.write(`${lines.join("")}${hits.length} hits\n`);
  process.exitCode = hits.length > 0 ? 1 : 0;
}
