/** File extensions of the modules that a workspace loads. */
export const codeEndings: readonly string[] = [".ts", ".mts", ".js", ".mjs"];

/** The languages in whose files the trust check looks for code that they load. */
export type Language = "javascript" | "python" | "shell";

const endings: readonly (readonly [RegExp, Language])[] = [
  [/\.[cm]?[jt]sx?$/u, "javascript"],
  [/\.pyw?$/u, "python"],
  [/\.(?:sh|bash|zsh|ksh)$/u, "shell"],
];

/** Patterns of the names of programs that run a file of a language. */
const interpreters: readonly (readonly [RegExp, Language])[] = [
  [/^(?:node|nodejs|bun|deno|tsx|ts-node|nodemon)$/u, "javascript"],
  [/^(?:python|pypy)[\d.]*$/u, "python"],
  [/^(?:sh|bash|zsh|dash|ash|ksh)$/u, "shell"],
];

/** Returns the language that a program runs. `undefined` for a program that is not a known interpreter. */
export function languageOf(program: string): Language | undefined {
  return interpreters.find(([name]) => name.test(program))?.[1];
}

/** Returns the language of a file, by its extension or else by its first line, such as `#!/usr/bin/env node`. */
export function languageOfFile(path: string, text: string): Language | undefined {
  const byEnding = endings.find(([ending]) => ending.test(path))?.[1];
  const words = /^#!([^\n]*)/u.exec(text)?.[1]?.split(/[\s/]+/u) ?? [];
  return byEnding ?? words.map(languageOf).find((each) => each !== undefined);
}

/** Longest literal that can name a file. */
const maxLiteral = 1_024;

/**
 * Returns all literal texts of code, with their escapes decoded. Every quotation mark may start a literal, whether
 * it is in a comment, in a regular expression or in another literal, so that the result may contain too many texts,
 * but misses none. The cost grows with the length of the text.
 */
export function literalsIn(text: string): ReadonlySet<string> {
  const found = new Set<string>();
  const last = new Map<string, number>();
  for (let at = 0; at < text.length; at++) {
    const mark = text.charAt(at);
    // A backslash and the character after it are never the end of a literal.
    if (mark === "\\") at++;
    else if (mark === '"' || mark === "'" || mark === "`") {
      const start = last.get(mark);
      last.set(mark, at);
      if (start !== undefined && at - start <= maxLiteral) found.add(decoded(text.slice(start + 1, at)));
    }
  }
  return found;
}

const escapes = /\\(?:u\{([0-9a-f]{1,6})\}|u([0-9a-f]{4})|x([0-9a-f]{2})|([0-7]{1,3})|(\r\n|[\s\S]))/giu;
const named: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" };

function decoded(literal: string): string {
  if (!literal.includes("\\")) return literal;
  return literal.replaceAll(
    escapes,
    (_whole, long?: string, short?: string, byte?: string, octal?: string, other = "") => {
      const digits = long ?? short ?? byte;
      if (digits !== undefined) return character(Number.parseInt(digits, 16));
      if (octal !== undefined) return character(Number.parseInt(octal, 8));
      // A backslash at the end of a line continues the literal.
      return /^[\r\n\u2028\u2029]/u.test(other) ? "" : (named[other] ?? other);
    },
  );
}

function character(code: number): string {
  return code > 0x10_ff_ff ? "" : String.fromCodePoint(code);
}

const gap = String.raw`(?:\s|/\*[\s\S]*?\*/|//[^\n]*\n)*`;
const calls = new RegExp(String.raw`\b(?:import|require(?:\.resolve)?)${gap}\(`, "gu");
const literalArgument = new RegExp(
  `${gap}(?:"(?:\\\\.|[^"\\\\\\n])*"|'(?:\\\\.|[^'\\\\\\n])*'|\`(?:\\\\.|[^\`\\\\$])*\`)${gap}[,)]`,
  "uy",
);

/** Matches code that is made from a text, and loaders that do not say for which module they load. */
const hidden =
  /\beval\s*\(|\bnew\s+Function\b|\bdlopen\b|\b_load\b|\bregisterHooks\b|\bcreateRequire\s*\((?!\s*import\.meta\.(?:url|filename)\s*\))/u;

/**
 * Matches ways in which a separate program can run code that no import names: other loaders, code from a text,
 * programs and threads.
 */
const unchecked =
  /\b(?:eval|Function|createRequire|loadExtension|getBuiltinModule|dlopen|_compile|_extensions|_resolveFilename|runInThisContext|runInNewContext|runInContext|compileFunction|SourceTextModule|execve)\b|\b(?:child_process|worker_threads|cluster|node:vm|node:module|node:repl|node:test|node:inspector)\b|["'`](?:vm|module|repl|inspector)(?:\/promises)?["'`]|\bnew\s+Worker\b|\bmodule\s*\.\s*(?:constructor|require)\b|\bmainModule\b/u;

/**
 * Matches `require` used as a value, which code may give another name. In a comment, the word is followed by
 * another word.
 */
const aliased = new RegExp(
  String.raw`\brequire\b(?!${gap}\(|\.resolve${gap}\(|\.main\b(?!${gap}[.[?])|[ \t]+(?!in\b|of\b|as\b|instanceof\b|satisfies\b)[a-z])`,
  "u",
);

/**
 * Matches a literal that is too long to be examined and may be the name of a module, because it follows a word that
 * loads modules.
 */
const long = new RegExp(
  String.raw`\b(?:from|import|require(?:\.resolve)?)${gap}\(?${gap}(["'\x60])(?:\\[\s\S]|(?!\1)[^\\]){${maxLiteral - 8},}`,
  "u",
);

/** Matches a load of a file with another extension, which CommonJS reads as JavaScript. */
const otherEnding = /\brequire\s*\(\s*["'`][./][^"'`]*\.(?![cm]?[jt]s["'`]|json["'`]|node["'`])\w+["'`]/u;

/**
 * Whether JavaScript code computes the name of a module that it loads, runs code from a text, or starts other
 * programs.
 */
function computesInJavaScript(text: string): boolean {
  // A name in code may have escapes, too.
  const plain = text.replaceAll(
    /\\u(?:\{([0-9a-f]{1,6})\}|([0-9a-f]{4}))/giu,
    (_all, one?: string, two?: string) => character(Number.parseInt(one ?? two ?? "", 16)),
  );
  return [...new Set([text, plain])].some(
    (each) =>
      [unchecked, aliased, long, otherEnding].some((pattern) => pattern.test(each)) || hasComputedCall(each),
  );
}

function hasComputedCall(text: string): boolean {
  for (const { index, 0: call } of text.matchAll(calls)) {
    literalArgument.lastIndex = index + call.length;
    if (!literalArgument.test(text)) return true;
  }
  return false;
}

const computing: Readonly<Record<Language, (text: string) => boolean>> = {
  javascript: computesInJavaScript,
  python: (text) =>
    /\b(?:importlib|__import__|__builtins__|builtins|exec|eval|runpy|imp|pkgutil|zipimport|ctypes|cffi|addsitedir|addpackage|marshal|c?pickle|shelve|dill|cloudpickle|joblib|codeop|Interactive(?:Interpreter|Console)|fileConfig|subprocess|multiprocessing|popen|pty|create_subprocess_\w+)\b|(?<!\bre\s*\.\s*)\bcompile\b|\bsys\s*\.\s*(?:path|meta_path|path_hooks|modules)\b|\bfrom\s+sys\s+import\b|\bimport\s+sys\s+as\b|\bos\s*\.\s*(?:system|exec\w+|spawn\w+|posix_spawn\w*|startfile)\b|\bfrom\s+os\s+import\b/u.test(
      // Python reads compatible characters in names as one.
      text.normalize("NFKC"),
    ),
  shell: (text) => shellCommands(text) === undefined,
};

/**
 * How code runs: `inside` this process, where each file is checked when it is loaded, or `outside`, as a separate
 * program.
 */
export type Runs = "inside" | "outside";

/**
 * Whether code decides at run time which code it loads, in a way that is not checked. Its text then does not say
 * which code runs.
 */
export function computesNames(text: string, language: Language, runs: Runs): boolean {
  return runs === "outside" ? computing[language](text) : language === "javascript" && hidden.test(text);
}

/**
 * Returns how the files run that JavaScript code names. If the code starts threads or programs, these files may run
 * outside of this process.
 */
export function runsOf(text: string, runs: Runs): Runs {
  return /\bworker_threads\b|\bchild_process\b|\bnew\s+Worker\b/u.test(text) ? "outside" : runs;
}

/** Returns the modules that a Python text imports, with their leading dots, such as `.helper` and `package.module`. */
export function pythonImports(text: string): ReadonlySet<string> {
  const found = new Set<string>();
  // A statement may be continued on the next line.
  const joined = text.replaceAll(/\\\r?\n/gu, " ");
  for (const [, from, list, names] of joined.matchAll(
    /\bfrom\s+([.\w]+)\s+import\s+(\([^)]*\)|[^\n;#]+)|\bimport\s+([^\n;#]+)/gu,
  )) {
    if (from !== undefined) found.add(from);
    for (const each of (list ?? names ?? "").split(/[(),\s]+/u)) {
      if (each === "" || each === "as") continue;
      found.add(from === undefined ? each : from.endsWith(".") ? from + each : `${from}.${each}`);
    }
  }
  return found;
}

/** A command of a shell text: words without expansions, and the variables that the text sets for the command. */
export interface ShellCommand {
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Returns the commands of a shell text that consists of plain words, joined by `&&`, `||`, `|`, `;` and line ends.
 * `undefined` for all other texts, because expansions, redirections and functions are not evaluated.
 */
export function shellCommands(text: string): readonly ShellCommand[] | undefined {
  const plain = text.replaceAll(/^\s*#[^\n]*$/gmu, "");
  const commands: { words: string[]; env: Record<string, string> }[] = [];
  for (const part of plain.split(/&&|\|\||[|;\n]/u)) {
    const words = part.match(/(?:"[^"]*"|'[^']*'|[^\s"'])+/gu) ?? [];
    // Quotation marks that do not match, or enclose a separator, leave a mark in what remains.
    const bare = words.map((word) => word.replaceAll(/^(["'])([^"']*)\1$/gu, "$2"));
    if (bare.some((word) => !/^[\w./:=@,+%-]+$/u.test(word))) return undefined;
    const first = bare.findIndex((word) => !/^\w+=/u.test(word));
    const env = bare.slice(0, first === -1 ? bare.length : first).map((word) => word.split(/=(.*)/su, 2));
    const called =
      first === -1 ? [] : bare.slice(first).filter((word, index) => index > 0 || word !== "exec");
    if (called.some((word) => unclear.has(word))) return undefined;
    if (bare.length > 0)
      commands.push({ words: called, env: Object.fromEntries(env) as Record<string, string> });
  }
  return commands;
}

/** Words of a shell after which the text does not say which code runs. */
const unclear: ReadonlySet<string> = new Set(
  "cd pushd popd eval alias set shopt function if then else elif fi for while until do done case esac trap".split(
    " ",
  ),
);
