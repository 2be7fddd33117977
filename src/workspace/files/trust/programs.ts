import { realpath, stat } from "node:fs/promises";
import { basename, delimiter, join, resolve } from "node:path";
import { isBelow } from "../text/bounded-file.ts";
import { languageOf, languageOfFile, shellCommands, type Language } from "./code-texts.ts";
import type { Coverage } from "./coverage.ts";
import { addUnlessUnderstood, findProgram, type ProgramLine } from "./understood.ts";

/** Programs that fetch code, or run code on another machine, each with the files of the folder that say from where. */
const fetchers: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^(?:npx|npm|pnpm|pnpx|yarn|bunx|corepack)$/u, [".npmrc", ".yarnrc.yml", "bunfig.toml"]],
  [/^(?:uv|uvx|pipx|pip|poetry|hatch|pdm)$/u, ["uv.toml", "pyproject.toml", ".python-version"]],
  [/^(?:docker|podman|nerdctl|docker-compose)$/u, [".env"]],
  [/^(?:nix|nix-shell|mise|asdf|direnv|ssh)$/u, []],
];

/** Matches programs that run code which files of the folder name. This module does not read these files. */
const runners =
  /^(?:make|gmake|just|task|rake|bundle|cargo|go|dotnet|gradle|gradlew|mvn|ant|bazel|cmake|ninja)$/u;

/** Files of the folder that tell a JavaScript runtime other than Node which code to load. */
const runtimeFiles: Readonly<Record<string, readonly string[]>> = {
  bun: ["bunfig.toml"],
  deno: ["deno.json", "deno.jsonc"],
  tsx: ["tsconfig.json"],
  "ts-node": ["tsconfig.json"],
  nodemon: ["nodemon.json"],
};

/** Options of interpreters that are followed by code. */
const evaluation: Readonly<Record<Language, RegExp>> = {
  javascript: /^(?:-[a-z]*[ep]|--eval|--print|eval)$/u,
  python: /^-[a-zA-Z]*c$/u,
  shell: /^-[a-z]*c$/u,
};

/** Options of interpreters that are followed by a value in the next argument. */
const valued =
  /^(?:-r|--require|--import|--loader|--experimental-loader|--env-file|--env-file-if-exists|-C|--conditions|--input-type|-W|-X|-o|-O|--config|--project|--tsconfig)$/u;

/**
 * Adds the files that really run when a program is started. They are the program itself if it belongs to the
 * project, every file that an argument or a variable names relative to the program's working folder, and all code
 * that these load. Code that the program fetches is listed as fetched. A program line that has no known form is
 * unresolved. `path` is the search path of this process.
 */
export async function addProgram(coverage: Coverage, line: ProgramLine, path: string): Promise<void> {
  await addUnlessUnderstood(coverage, line, path);
  await addParts(coverage, line, path, false);
}

/** Adds the files that can be found for a program line, even if the line has no known form. */
async function addParts(
  coverage: Coverage,
  line: ProgramLine,
  path: string,
  isNested: boolean,
): Promise<void> {
  const { command, args, env, cwd } = line;
  const name = basename(command).replace(/\.(?:exe|cmd)$/iu, "");
  await addCommand(coverage, line, env["PATH"] ?? path);
  const folders = [cwd, ...(await foldersIn(args, coverage.root, cwd))];
  for (const folder of folders) {
    await addLauncher(coverage, name, { ...line, cwd: folder });
    await addInterpreted(coverage, name, { ...line, cwd: folder }, path);
    for (const arg of args) await addWords(coverage, arg, folder);
  }
  for (const [variable, value] of Object.entries(env)) {
    await addWords(coverage, value, cwd);
    // Each of these variables is a list of options of an interpreter.
    if (variable === "NODE_OPTIONS" || variable === "BUN_OPTIONS")
      for (const option of value.split(/\s+/u)) await addOption(coverage, option, cwd);
    // A folder of a search path contains code, whatever the names in it are.
    if (variable.endsWith("PATH"))
      for (const folder of value.split(delimiter)) await addSearched(coverage, resolve(cwd, folder));
  }
  for (const [index, arg] of args.entries()) {
    const called = basename(arg);
    // A wrapper, such as env or timeout, starts another program. Each rest of the arguments is examined once.
    if (!isNested && (languageOf(called) !== undefined || isLauncher(called)))
      await addParts(coverage, { ...line, command: arg, args: args.slice(index + 1), env: {} }, path, true);
  }
}

/**
 * Returns the folders of the project that arguments name, such as that of `--directory`, because the program may
 * work in one of them.
 */
async function foldersIn(args: readonly string[], root: string, cwd: string): Promise<readonly string[]> {
  const found = new Set<string>();
  for (const arg of args) {
    const path = resolve(cwd, arg.replace(/^--?[\w-]+=/u, ""));
    const isInside = path !== cwd && path !== root && isBelow(path, root);
    if (isInside && (await stat(path).catch(() => undefined))?.isDirectory() === true) found.add(path);
    if (found.size === maxFolders) break;
  }
  return [...found];
}

const maxFolders = 8;

/**
 * Adds the program itself, unless it is found by the search path: such a program belongs to the system of the user.
 */
async function addCommand(coverage: Coverage, { command, cwd }: ProgramLine, path: string): Promise<void> {
  const isNamed = command.includes("/");
  const found = isNamed ? resolve(cwd, command) : await findProgram(command, path, cwd);
  if (found === undefined) return;
  const real = await realpath(found).catch(() => found);
  const isOwn = [found, real].some((each) => isBelow(each, coverage.root));
  if (isOwn || (isNamed && languageOf(basename(real)) === undefined))
    await coverage.addFile(found, "outside");
}

function isLauncher(name: string): boolean {
  return runners.test(name) || fetchers.some(([fetcher]) => fetcher.test(name));
}

/** Lists what a program does that fetches or chooses code, and adds the files that it reads for this. */
async function addLauncher(coverage: Coverage, name: string, { args, cwd }: ProgramLine): Promise<void> {
  const shown = [name, ...args].join(" ");
  const fetcher = fetchers.find(([each]) => each.test(name));
  if (fetcher === undefined) return;
  coverage.addFetched(`the code that ${JSON.stringify(shown)} fetches or mounts is not covered`);
  for (const file of fetcher[1]) await coverage.addFile(join(cwd, file), "outside");
  if (fetcher !== fetchers[0]) return;
  for (const arg of args) {
    // A package of the folder is used in place of one that is fetched.
    const wanted = arg.replace(/^--[\w-]+=/u, "").replace(/(?<=.)@[^/]*$/u, "");
    if (wanted.startsWith("-")) continue;
    await coverage.addReference(wanted, cwd, "outside");
    await coverage.addFile(join(cwd, "node_modules/.bin", basename(wanted)), "outside");
    // What follows the package is data for it.
    if (/^(?:npx|pnpx|bunx)$/u.test(name)) return;
  }
}

/** Adds the script of an interpreter and the code of its options, such as `-c`. */
async function addInterpreted(
  coverage: Coverage,
  name: string,
  line: ProgramLine,
  path: string,
): Promise<void> {
  const { args, cwd } = line;
  const language = languageOf(name);
  if (language === undefined) return;
  for (const file of runtimeFiles[name] ?? []) await coverage.addNaming(join(cwd, file));
  for (const [index, arg] of args.entries()) {
    const [option = "", value] = arg.split(/=(.*)/su, 2);
    if (language === "javascript") await addOption(coverage, arg, cwd);
    if (/^(?:npm:|jsr:|https?:)/u.test(arg))
      coverage.addFetched(`the code of ${JSON.stringify(arg)} is not covered`);
    if (language === "python" && arg === "-m") {
      const code = `import ${args[index + 1] ?? ""}`;
      return coverage.addCode(code, "python", cwd, "outside", "python -m");
    }
    if (evaluation[language].test(option)) {
      const code = value ?? args[index + 1] ?? "";
      return addEvaluated(coverage, language, code, line, path);
    }
    if (arg.startsWith("-") || (index > 0 && valued.test(args[index - 1] ?? ""))) continue;
    if (runtimeFiles[name] !== undefined && /^(?:run|watch|serve)$/u.test(arg)) continue;
    // The first argument that is no option is the script. What follows is for the script.
    return addScript(coverage, language, resolve(cwd, arg));
  }
}

async function addScript(coverage: Coverage, language: Language, path: string): Promise<void> {
  if (language === "javascript") await coverage.addModule(path, "outside");
  else {
    await coverage.addFile(path, "outside");
    if (language === "python") await coverage.addFile(join(path, "__main__.py"), "outside");
  }
}

async function addEvaluated(
  coverage: Coverage,
  language: Language,
  code: string,
  line: ProgramLine,
  path: string,
): Promise<void> {
  const { cwd } = line;
  await coverage.addCode(code, language, cwd, "outside", `the code ${JSON.stringify(code)}`);
  if (language !== "shell") return;
  for (const { words, env } of shellCommands(code) ?? []) {
    const [command, ...args] = words;
    if (command !== undefined) await addParts(coverage, { command, args, env, cwd }, path, true);
  }
}

/** Adds the module that an option of a JavaScript runtime names: `--require=./x`, `-r./x`, or a separate argument. */
async function addOption(coverage: Coverage, option: string, cwd: string): Promise<void> {
  const names = [option, option.replace(/^-[\w-]*=/u, ""), option.replace(/^-[a-zA-Z]/u, "")];
  for (const name of new Set(names))
    if (!name.startsWith("-")) await coverage.addReference(name, cwd, "outside");
}

/**
 * Adds the files that the words of an argument name relative to a folder, if they can be run. Data files are left
 * out, because a server changes its data.
 */
async function addWords(coverage: Coverage, text: string, folder: string): Promise<void> {
  const words = [text, text.replace(/^-[a-zA-Z]/u, ""), ...text.split(/[\s"'`=;|&()<>,:{}[\]]+/u)];
  for (const word of new Set(words)) {
    if (word === "" || word.includes("\0")) continue;
    const path = resolve(folder, word);
    if (isBelow(path, coverage.root)) await coverage.addIfProgram(path, "outside");
    else if (languageOfFile(path, "") !== undefined) await coverage.addFile(path, "outside");
  }
}

async function addSearched(coverage: Coverage, path: string): Promise<void> {
  const facts = await stat(path).catch(() => undefined);
  // The whole project would cover every change of it.
  if (facts?.isDirectory() !== true || !isBelow(path, coverage.root) || path === coverage.root) return;
  await coverage.addFolder(path);
}
