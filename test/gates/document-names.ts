import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { fences } from "../package/code-blocks.ts";
import { repository } from "./run-node.ts";

/** Code of a document: the text between backticks, or a line of a block that is neither TypeScript nor JSON. */
interface Code {
  readonly text: string;
  readonly line: number;
  /** Number of the section of the page. A heading starts a section. */
  readonly section: number;
  /** Number of the sentence, the cell of a table, or the line of a block. */
  readonly sentence: number;
}

/** Something that a document names and that does not exist. */
export interface Missing {
  readonly line: number;
  readonly problem: string;
}

/** Returns the paths of this repository in a page, in the order of the page. A path may have a `*`. */
export function pathsIn(markdown: string): readonly string[] {
  const folders = /(?<![\w./-])(?:src|web|test|docs|build|bench|examples|deploy)\/[\w./*-]*/gu;
  return [...markdown.matchAll(folders)].map(([path]) => path.replace(/\.$/u, ""));
}

/** Whether a path of this repository exists. A path with `*` exists if a file matches it. */
export function pathExists(path: string): boolean {
  return path.includes("*")
    ? globSync(path, { cwd: repository }).length > 0
    : existsSync(join(repository, path));
}

/** Returns the npm scripts that a page names: `npm test`, `npm run lint`, and each of `npm run test:unit|gates`. */
export function scriptsIn(markdown: string): readonly string[] {
  const text = markdown.replaceAll("\\|", "|");
  return [...text.matchAll(/\bnpm (?:(?:-s )?run (?:-s )?([\w:|-]+)|(test|start)\b)/gu)].flatMap(
    ([, names = "", short]) => {
      const [first = "", ...others] = names.split("|");
      const [group] = first.split(":");
      // A name in capitals stands for any script.
      const scripts = [first, ...others.map((name) => `${group}:${name}`)].filter(
        (name) => !/[A-Z]/u.test(name),
      );
      return short === undefined ? scripts : [short];
    },
  );
}

/** Returns the entries of the package that a page names in code, such as `reeve/testing`. */
export function entriesIn(markdown: string): readonly string[] {
  return [...markdown.matchAll(/[`"']reeve\/([a-z/-]+)[`"']/gu)].map(([, path = ""]) => `./${path}`);
}

/**
 * Returns the commands and options of the command line that a page names and that `program` does not declare. An option without a
 * command, such as `--port`, must belong to a command of its sentence, or to one named before it in its section. If there is none, it
 * must belong to any command of the page; a page that names no command describes options of other programs.
 */
export function missingCommands(markdown: string, program: Command): readonly Missing[] {
  const codes = codeOf(markdown);
  const named = codes.flatMap(({ text, ...place }) =>
    commandsIn(text).map((command) => ({ ...place, ...readCommand(command, program) })),
  );
  const missing: Missing[] = named.flatMap(({ line, problems }) =>
    problems.map((problem) => ({ line, problem })),
  );
  for (const { text, line, section, sentence } of codes) {
    const [option] = /^(?:--[a-z][\w-]*|-[a-zA-Z]\b)/u.exec(text) ?? [];
    if (option === undefined) continue;
    const near = named.filter((other) => {
      return other.sentence === sentence || (other.section === section && other.line < line);
    });
    const owners = (near.length > 0 ? near : named).flatMap(({ commands }) => commands);
    if (owners.length > 0 && !owners.some((owner) => optionsOf(owner).has(option)))
      missing.push({ line, problem: `${option} is no option of ${namesOf(owners)}` });
  }
  return missing;
}

function codeOf(markdown: string): readonly Code[] {
  const languages = new Map<number, string>();
  for (const { line, language, code } of fences(markdown))
    for (const [at] of code.split("\n").entries()) languages.set(line + at, language);
  const found: Code[] = [];
  let [section, sentence] = [0, 0];
  for (const [at, text] of markdown.split(/\r?\n/u).entries()) {
    const language = languages.get(at);
    const place = (): Omit<Code, "text"> => ({ line: at + 1, section, sentence });
    if (language !== undefined) {
      sentence += 1;
      if (language !== "ts" && language !== "json") found.push({ text, ...place() });
      continue;
    }
    if (/^#+ /u.test(text)) section += 1;
    if (text.trim() === "" || /^(?:[-*|#]|\d+\.)/u.test(text)) sentence += 1;
    // A mark that ends a sentence, and the border of a cell, separate.
    for (const [part] of text.matchAll(/`[^`]+`|\||[.;] (?=[A-Z`(*[])|[.:;]$/gu)) {
      if (part.startsWith("`")) found.push({ text: part.slice(1, -1).replaceAll("\\|", "|"), ...place() });
      else sentence += 1;
    }
  }
  return found;
}

/** Returns the calls of `reeve` in a text, each up to the end of the command. */
function commandsIn(text: string): readonly string[] {
  const calls = text.matchAll(/(?<=^\s*(?:\$ )?|[|;] |&& |npx |exec )reeve .*?(?=\s(?:#|\||&&|>|;|<<)|$)/gmu);
  return [...calls].map(([call]) => call.trimEnd());
}

/** Reads a call such as `reeve token create --name x` or `reeve schedule add|list`. Words in capitals stand for values. */
function readCommand(
  call: string,
  program: Command,
): { readonly commands: readonly Command[]; readonly problems: readonly string[] } {
  const words = call
    .replaceAll(/"[^"]*"|'[^']*'/gu, "TEXT")
    .replace(/ -- .*$/u, "")
    .replaceAll(/[[\](),]|\.\.\.|…/gu, " ")
    .trim()
    .split(/\s+/u)
    .slice(1);
  let commands: readonly Command[] = [program];
  while (/^[a-z][a-z|-]*$/u.test(words[0] ?? "") && commands.some((each) => each.commands.length > 0)) {
    const names = (words.shift() ?? "").split("|");
    const below = commands.flatMap((each) => each.commands);
    const unknown = names.filter((name) => !below.some((each) => each.name() === name));
    if (unknown.length > 0)
      return { commands: [], problems: unknown.map((name) => `${call}: there is no command ${name}`) };
    commands = below.filter((each) => names.includes(each.name()));
  }
  const options = words.flatMap((word) => word.split("|")).filter((word) => /^--?[a-zA-Z]/u.test(word));
  const problems = options
    .map((option) => option.replace(/=.*$/u, ""))
    .filter((option) => !commands.some((each) => optionsOf(each).has(option)))
    .map((option) => `${call}: ${option} is no option of ${namesOf(commands)}`);
  return { commands, problems };
}

/** Returns the options of a command and of the commands below it, without those that its help hides. */
function optionsOf(command: Command): ReadonlySet<string> {
  const own = command.options.filter(({ hidden }) => !hidden);
  return new Set([
    ...own.flatMap(({ short, long }) => [short, long].filter((name) => typeof name === "string")),
    ...command.commands.flatMap((below) => [...optionsOf(below)]),
    "--help",
  ]);
}

function namesOf(commands: readonly Command[]): string {
  return [...new Set(commands.map((command) => command.name()))].join(", ");
}
