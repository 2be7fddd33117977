import { constants } from "node:fs";
import { access, readFile, realpath, stat } from "node:fs/promises";
import { basename, delimiter, dirname, join, resolve } from "node:path";
import { isAbsent, isBelow } from "../text/bounded-file.ts";
import { isProgramFile, manifestOf, type Coverage } from "./coverage.ts";

/** A program as it is started. */
export interface ProgramLine {
  readonly command: string;
  readonly args: readonly string[];
  /** Variables that are set for the program. */
  readonly env: Readonly<Record<string, string>>;
  /** Working folder of the program. */
  readonly cwd: string;
}

/**
 * Matches programs that run code from files, or start other programs. A line with one of them must have a known
 * form.
 */
const starters = new RegExp(
  String.raw`^(?:${[
    "node|nodejs|bun|deno|tsx|ts-node|ts-node-esm|vite-node|jiti|babel-node|swc-node|esno|nodemon|zx|electron",
    "python|pythonw|py|pypy|ipython|jython|ruby|irb|jruby|perl|php|lua|luajit|r|rscript|julia|java|jbang|kotlin|kotlinc",
    "scala|groovy|clojure|clj|lein|bb|mono|erl|escript|elixir|mix|iex|runghc|ghci|stack|cabal|racket|guile|sbcl|swift",
    "tclsh|wish|osascript|awk|gawk|mawk|nawk|sed|gdb|lldb|vi|vim|nvim|emacs|ed|psql|sqlite|duckdb|wasmtime|wasmer",
    "sh|bash|rbash|zsh|dash|ash|ksh|mksh|fish|csh|tcsh|nu|pwsh|powershell|cmd|xonsh|elvish|busybox|toybox",
    "make|gmake|bmake|just|task|go-task|rake|bundle|bundler|cargo|go|dotnet|gradle|gradlew|mvn|mvnw|ant|sbt|bazel|bazelisk",
    "buck|cmake|ctest|ninja|meson|scons|tox|nox|invoke|inv|fab|grunt|gulp|turbo|nx|lerna|rush|moon|wireit|vite|vitest|jest",
    "mocha|ava|eslint|webpack|rollup|esbuild|tsc|pytest|flask|uvicorn|gunicorn|hypercorn|fastapi|fastmcp|mcp|streamlit",
    "env|timeout|gtimeout|nice|nohup|stdbuf|setsid|ionice|chrt|taskset|time|xargs|parallel|find|watch|watchexec|entr|script",
    "expect|unbuffer|sudo|doas|su|runuser|chroot|unshare|nsenter|bwrap|firejail|systemd-run|flock|strace|ltrace|valgrind",
    "ld|ld-linux.*|dotenv|dotenvx|env-cmd|cross-env|direnv|mise|rtx|asdf|volta|volta-shim|fnm|nvm|n|nodenv|pyenv|rbenv",
    "nix|nix-.*|devbox|devenv|flox|pkgx|conda|mamba|micromamba|pixi|poetry|pipenv|hatch|pdm|rye|uv|uvx|pipx|pip|npm|npx",
    "pnpm|pnpx|yarn|yarnpkg|bunx|corepack|docker|docker-compose|podman|podman-compose|nerdctl|kubectl|helm|vagrant|ssh",
    "tmux|screen|git|gh|terraform|tofu|ansible.*|pulumi|foreman|overmind|honcho|pm2|forever|concurrently|op|doppler",
    "infisical|chamber|aws-vault|supergateway|mcp-proxy|mcpo",
  ].join("|")})[\d.]*$`,
  "u",
);

/** Variables that make programs load code, or look for code in other places. */
const loaders =
  /^(?:node_(?!env$|no_warnings$|extra_ca_certs$|tls_reject_unauthorized$)|npm_|yarn_|pnpm_|bun_|deno_|tsx_|ts_node|python(?!unbuffered$|dontwritebytecode$|ioencoding$|utf8$)|pyenv|virtual_env|conda|uv_|pip_|pipx|ld_|dyld_|gconv_path|glibc|bash|env$|ps4$|shell|ifs$|zdotdir|path$|pathext|home$|userprofile|appdata|localappdata|xdg_|tmpdir$|perl|ruby|gem_|bundle_|lua_|php|java_|_java_|jdk_|classpath|dotnet_|corehost|coreclr|cor_|git_|docker_|compose|container|podman|buildah|editor$|visual$|pager$|browser$|electron_|openssl_conf|openssl_modules|ssl_cert)/iu;

/** Options of Node that load nothing. */
const harmlessOptions: ReadonlySet<string> = new Set([
  "--no-warnings",
  "--no-deprecation",
  "--trace-warnings",
  "--enable-source-maps",
  "--experimental-strip-types",
]);

/** Matches the name of an npm package, with its version or tag. Paths, archives, URLs and aliases do not match. */
const npmName = /^((?:@[a-z\d][\w.-]*\/)?[a-z\d][\w.-]*)(?:@[\w.^~+-]+)?$/iu;
const pythonName = /^([a-z][\w.-]*)(?:\[[\w,.-]+\])?(?:(?:@|==)[\w.+-]+)?$/iu;
const imageName = /^[a-z\d][\w./:@-]*$/iu;
const archive = /\.(?:tgz|tar|tar\.gz|zip|whl)$/iu;

/** Matches lines of `.npmrc` that do not change which code npm installs. */
const plainNpmrc =
  /^\s*(?:[#;].*|(?:@[\w.-]+:)?registry\s*=.*|\/\/\S+:_\w+\s*=.*|(?:save-exact|engine-strict|fund|audit|legacy-peer-deps|package-lock|save-prefix)\s*=.*)?$/u;

/**
 * Decides whether it is known which code a program line runs. Only lines with a known form are accepted; any other
 * line is unresolved. Add a new form here only if everything that it runs is in the coverage, or is not code of the
 * project.
 */
export async function addUnlessUnderstood(
  coverage: Coverage,
  line: ProgramLine,
  path: string,
): Promise<void> {
  const reason = await doubt(coverage, line, path);
  if (reason !== undefined)
    coverage.addUnresolved(`${JSON.stringify([line.command, ...line.args].join(" "))} ${reason}`);
}

/** Returns why it is not known which code a line runs. `undefined` if it is known. */
async function doubt(coverage: Coverage, line: ProgramLine, path: string): Promise<string | undefined> {
  const { command, args, env, cwd } = line;
  const loader = Object.keys(env).find((name) => loaders.test(name));
  if (loader !== undefined) return `sets ${loader}, which can make a program load other code`;
  const isNamed = /[/\\]/u.test(command);
  // A program that is not installed is judged by its name. The answer changes when the project gets a program of this name.
  const found = isNamed ? resolve(cwd, command) : await findProgram(command, path, cwd);
  const real = found === undefined ? command : await realpath(found).catch(() => found);
  if (found !== undefined && [found, real].some((each) => isOwned(each, coverage.root, cwd)))
    return "starts a program of the project, and Reeve does not know what it loads";
  const name = nameOf(command);
  const known = [name, nameOf(real)].filter((each) => starters.test(each)).map(familyOf);
  if (known.length === 0) return outsideDoubt(coverage.root, line);
  const family = familyOf(name);
  if (known.some((each) => each !== family)) return notKnown;
  if (family === "env") {
    const first = args.findIndex((arg) => !/^\w+=/u.test(arg));
    const [called, ...rest] = first === -1 ? [] : args.slice(first);
    if (called === undefined || called.startsWith("-")) return notKnown;
    const set = args.slice(0, first).map((arg) => arg.split(/=(.*)/su, 2));
    const added = Object.fromEntries(set) as Record<string, string>;
    return doubt(coverage, { command: called, args: rest, env: { ...env, ...added }, cwd }, path);
  }
  if (family === "node") return nodeDoubt(line);
  if (family === "python") return pythonDoubt(coverage, line);
  if (family === "npx") return npxDoubt(coverage, line);
  if (family === "uvx") return uvxDoubt(coverage.root, line);
  if (family === "docker") return dockerDoubt(coverage.root, line);
  return notKnown;
}

const notKnown = "may run files that Reeve cannot find";

function nameOf(path: string): string {
  return basename(path)
    .toLowerCase()
    .replace(/\.(?:exe|cmd|bat|ps1)$/u, "");
}

/** The form to which a program belongs. */
function familyOf(name: string): string {
  if (/^node(?:js)?[\d.]*$/u.test(name)) return "node";
  if (/^(?:python|pypy)[\d.]*$/u.test(name)) return "python";
  return name === "podman" ? "docker" : name;
}

/** Whether a path belongs to the project, or to the folder in which its program works. */
function isOwned(path: string, root: string, cwd: string): boolean {
  return isBelow(path, root) || isBelow(path, cwd);
}

/**
 * Returns a doubt if a program of the system names a file of the project, because the file may be code for this
 * program.
 */
async function outsideDoubt(root: string, { args, env, cwd }: ProgramLine): Promise<string | undefined> {
  for (const word of wordsOf([...args, ...Object.values(env)])) {
    const path = resolve(cwd, word);
    const isNear = isOwned(path, root, cwd) || isBelow(root, path);
    if (isNear && (await factsOf(path)) !== undefined)
      return `names ${JSON.stringify(word)}, which the program may run`;
  }
  return undefined;
}

async function nodeDoubt({ args, cwd }: ProgramLine): Promise<string | undefined> {
  const file = args.find((arg) => !harmlessOptions.has(arg));
  if (file === undefined || file.startsWith("-")) return notKnown;
  const real = await realpath(resolve(cwd, file)).catch(() => undefined);
  if (real === undefined || (await factsOf(real))?.isFile() !== true) return "names no file";
  // Node chooses by the ending of the real path how it reads a file.
  const isCode = [file, real].every((each) => /\.[cm]?[jt]s$/u.test(each));
  return isCode ? undefined : "names no file with an ending of JavaScript or TypeScript";
}

/**
 * Returns a doubt if a folder of the project may replace modules for Python, which looks for every module, even
 * those of its library, first in the folder of the script.
 */
async function pythonDoubt(coverage: Coverage, { args, cwd }: ProgramLine): Promise<string | undefined> {
  const file = args.find((arg) => arg !== "-u");
  if (file === undefined || file.startsWith("-")) return notKnown;
  const real = await realpath(resolve(cwd, file)).catch(() => undefined);
  if (real === undefined || (await factsOf(real))?.isFile() !== true) return "names no file";
  if (![file, real].every((each) => each.endsWith(".py"))) return "names no file with the ending .py";
  await coverage.addImportable(dirname(real));
  return undefined;
}

async function npxDoubt(coverage: Coverage, line: ProgramLine): Promise<string | undefined> {
  const { args, cwd } = line;
  const { root } = coverage;
  const [spec = "", ...rest] = args[0] === "-y" || args[0] === "--yes" ? args.slice(1) : args;
  const name = npmName.exec(spec)?.[1];
  if (name === undefined || archive.test(spec) || isStarter(name)) return notKnown;
  for (const folder of foldersUp(cwd, root)) {
    const near = join(folder, "node_modules");
    const { name: own, bin } = await manifestOf(folder);
    const bins = typeof bin === "object" && bin !== null ? Object.keys(bin) : [];
    const names = [name, spec, basename(name)];
    const places = [join(near, name), ...names.map((each) => join(near, ".bin", each))];
    const isLocal = own === name || bins.some((each) => names.includes(each));
    if (isLocal || (await Promise.all(places.map(factsOf))).some((facts) => facts !== undefined))
      return "runs a program of the project, and Reeve does not know what it loads";
    await coverage.addFile(join(folder, ".npmrc"), "outside");
    const settings = (await textOf(join(folder, ".npmrc"))) ?? "";
    if (!settings.split(/\r?\n/u).every((each) => plainNpmrc.test(each)))
      return `depends on ${join(folder, ".npmrc")}, which can make npm load other code`;
  }
  return argumentsDoubt(root, line, rest);
}

async function uvxDoubt(root: string, line: ProgramLine): Promise<string | undefined> {
  const [spec = "", ...rest] = line.args;
  const name = pythonName.exec(spec)?.[1];
  if (name === undefined || archive.test(spec) || isStarter(name)) return notKnown;
  for (const folder of foldersUp(line.cwd, root)) {
    const project = (await textOf(join(folder, "pyproject.toml"))) ?? "";
    const places = ["uv.toml", ".python-version", ".python-versions"].map((each) => join(folder, each));
    const facts = await Promise.all(places.map(factsOf));
    if (/\btool\b[^\n]*\buv\b/u.test(project) || facts.some((each) => each !== undefined))
      return `depends on the settings of uv in ${folder}, which can choose other code`;
  }
  return argumentsDoubt(root, line, rest);
}

/** Returns a doubt if a Docker image is started with files of the project. */
async function dockerDoubt(root: string, line: ProgramLine): Promise<string | undefined> {
  const [run, ...args] = line.args;
  if (run !== "run") return notKnown;
  for (let index = 0; index < args.length; index++) {
    const arg = args[index] ?? "";
    if (/^(?:-[it]{1,2}|--rm|--init|--interactive|--tty|--(?:network|pull|name|env)=.*)$/u.test(arg))
      continue;
    if (/^(?:-e|--env|--network|--name|--pull)$/u.test(arg)) index++;
    else if (imageName.test(arg)) return argumentsDoubt(root, line, args.slice(index + 1));
    else return notKnown;
  }
  return notKnown;
}

/**
 * Returns a doubt if the arguments after a package name a program, or a file that can be run. Other arguments are
 * data for the package.
 */
async function argumentsDoubt(
  root: string,
  { env, cwd }: ProgramLine,
  args: readonly string[],
): Promise<string | undefined> {
  for (const word of wordsOf([...args, ...Object.values(env)])) {
    if (commands.test(nameOf(word))) return `names the program ${JSON.stringify(word)}`;
    const path = resolve(cwd, word);
    const facts = isOwned(path, root, cwd) ? await factsOf(path) : undefined;
    if (facts?.isFile() === true && isProgramFile(path, facts.mode))
      return `names ${JSON.stringify(word)}, which the program may run`;
  }
  return undefined;
}

/** Programs whose name is hardly ever data. */
const commands =
  /^(?:node|nodejs|bun|deno|tsx|python[\d.]*|sh|bash|zsh|npm|npx|pnpm|yarn|bunx|make|uv|uvx|docker|podman|cmd|powershell|pwsh)$/u;

function isStarter(name: string): boolean {
  return starters.test(basename(name).toLowerCase()) || starters.test(basename(name).replace(/-cli$/u, ""));
}

/** Returns the texts, and all parts of them that may be a path. */
function wordsOf(texts: readonly string[]): ReadonlySet<string> {
  const words = texts.flatMap((text) => [
    text,
    text.replace(/^-[a-zA-Z]/u, ""),
    text.replace(/^file:(?:\/\/)?/iu, ""),
    ...text.split(/[\s"'`=;|&()<>,:{}[\]@]+/u),
  ]);
  return new Set(words.filter((word) => word !== "" && !word.includes("\0")));
}

/**
 * Returns the folders from this one up to the root. If it is not below the root, the list goes up to the root of
 * the file system.
 */
function foldersUp(from: string, root: string): readonly string[] {
  const folders = [from];
  for (let at = from; at !== root && dirname(at) !== at; at = dirname(at)) folders.push(dirname(at));
  return folders;
}

async function factsOf(path: string) {
  return stat(path).catch(() => undefined);
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

/** Finds a program by the search path, as the system does. */
export async function findProgram(name: string, path: string, cwd: string): Promise<string | undefined> {
  for (const folder of path.split(delimiter)) {
    const file = resolve(cwd, folder, name);
    const isThere = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return file;
  }
  return undefined;
}
