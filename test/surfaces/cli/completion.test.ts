import { execFile, spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { reeve } from "./reeve-process.ts";

/** What bash offers after these words. The last one is the word that is typed. */
async function offered(script: string, ...words: string[]): Promise<readonly string[]> {
  const ask = `${script}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _reeve_complete; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await promisify(execFile)("bash", ["-c", ask, "bash", ...words]);
  return stdout.split("\n").filter((line) => line !== "");
}

test("reeve completion bash prints a script that completes commands, subcommands and options", async () => {
  const { code, out } = await reeve(["completion", "bash"]);
  expect(code).toBe(0);
  const script = out.join("\n");
  expect(await offered(script, "reeve", "se")).toEqual(["sessions", "serve"]);
  expect(await offered(script, "reeve", "do")).toEqual(["docs", "doctor"]);
  expect(await offered(script, "reeve", "mcp", "l")).toEqual(["list"]);
  expect(await offered(script, "reeve", "doctor", "--f")).toEqual(["--full"]);
  expect(await offered(script, "reeve", "sessions", "s")).toEqual(["show", "search"]);
  expect(await offered(script, "reeve", "sessions", "show", "ses_1", "--t")).toEqual(["--tree"]);
  expect(await offered(script, "reeve", "top-up", "run_7f", "--tu")).toEqual(["--turns"]);
});

test("reeve completion prints scripts for zsh and fish, and refuses another shell", async () => {
  const zsh = await reeve(["completion", "zsh"]);
  expect(zsh.out.slice(0, 2)).toEqual(["#compdef reeve", "autoload -U +X bashcompinit && bashcompinit"]);
  const fish = (await reeve(["completion", "fish"])).out;
  expect(fish).toContain(
    `complete -c reeve -f -n "__fish_seen_subcommand_from sessions; and not __fish_seen_subcommand_from list show rename delete search export import" -a show -d 'print a conversation, or all its branches'`,
  );
  expect(fish).toContain(
    `complete -c reeve -n "__fish_seen_subcommand_from sessions; and __fish_seen_subcommand_from show" -l tree -d 'print the entries of all branches'`,
  );
  const refused = await reeve(["completion", "tcsh"]);
  expect([refused.code, refused.talk]).toEqual([
    2,
    expect.stringContaining("Allowed choices are bash, zsh, fish"),
  ]);
});

/** Whether a shell is missing. If so, prints which tests are skipped. */
function lacks(shell: string): boolean {
  const isMissing = spawnSync(shell, ["--version"]).status !== 0;
  if (isMissing)
    process.stderr.write(`\nTHE COMPLETION OF ${shell} IS NOT EXECUTED: ${shell} cannot be started\n\n`);
  return isMissing;
}

/** The script of a shell, in a file. */
async function scriptFile(shell: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-completion-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, "script");
  await writeFile(path, `${(await reeve(["completion", shell])).out.join("\n")}\n`);
  return path;
}

test.skipIf(lacks("zsh"))("zsh reads the script of reeve completion zsh without a syntax error", async () => {
  const { stderr } = await promisify(execFile)("zsh", ["-f", "-n", await scriptFile("zsh")]);
  expect(stderr).toBe("");
});

test.skipIf(lacks("fish"))(
  "fish offers commands, subcommands and options with the script of reeve completion fish",
  async () => {
    const path = await scriptFile("fish");
    const offer = async (line: string): Promise<readonly string[]> => {
      const ask = `source ${path}; complete -C ${JSON.stringify(line)}`;
      const { stdout } = await promisify(execFile)("fish", ["--no-config", "-c", ask]);
      return stdout.split("\n").flatMap((each) => (each === "" ? [] : (each.split("\t")[0] ?? "")));
    };
    expect((await offer("reeve se")).toSorted()).toEqual(["serve", "sessions"]);
    expect((await offer("reeve sessions s")).toSorted()).toEqual(["search", "show"]);
    expect(await offer("reeve doctor --f")).toEqual(["--full"]);
  },
);

/** A line of the script for fish: the commands before the word that are needed and excluded, and the word. */
interface FishLine {
  readonly needs: readonly string[];
  readonly excludes: readonly string[];
  readonly word: string;
}

/** Reads a line as fish does: words, texts in double quotes without variables, and texts in single quotes. */
function fishLine(line: string): FishLine {
  const {
    condition = "",
    command,
    option,
  } = /^complete -c reeve(?: -f)?(?: -n "(?<condition>[^"$\\()]*)")?(?: -a (?<command>[\w-]+)| -l (?<option>[\w-]+)) -d '(?:[^'\\]|\\['\\])*'$/u.exec(
    line,
  )?.groups ?? {};
  const word = command ?? (option === undefined ? undefined : `--${option}`);
  if (word === undefined) throw new Error(`fish cannot read ${line}`);
  const [needs, excludes]: string[][] = [[], []];
  for (const each of condition === "" ? [] : condition.split("; and ")) {
    const { not, names = "" } =
      /^(?<not>not )?__fish_seen_subcommand_from (?<names>[\w -]+)$/u.exec(each)?.groups ?? {};
    if (names === "") throw new Error(`fish cannot read the condition ${each}`);
    (not === undefined ? needs : excludes)?.push(...names.split(" "));
  }
  return { needs: needs ?? [], excludes: excludes ?? [], word };
}

test("the completion script for fish offers the same as the script for bash, in every command", async () => {
  const lines = (await reeve(["completion", "fish"])).out.map(fishLine);
  const bash = (await reeve(["completion", "bash"])).out.join("\n");
  const groups = lines.filter(({ needs, word }) => needs.length === 1 && !word.startsWith("-"));
  const places = [
    [],
    ...lines.flatMap(({ needs, word }) => (needs.length === 0 && !word.startsWith("-") ? [[word]] : [])),
    ...groups.map(({ needs, word }) => [...needs, word]),
  ];
  expect(places.length).toBeGreaterThan(60);
  // One process asks about all places.
  const ask = places.map((words) => {
    const all = ["reeve", ...words, ""].map((word) => `"${word}"`).join(" ");
    return `COMP_WORDS=(${all}); COMP_CWORD=${words.length + 1}; _reeve_complete; echo "\${COMPREPLY[*]}"`;
  });
  const { stdout } = await promisify(execFile)("bash", ["-c", `${bash}\n${ask.join("\n")}`]);
  const offeredByBash = stdout.trimEnd().split("\n");
  for (const [index, words] of places.entries()) {
    const seen = new Set(words);
    const fish = lines.flatMap(({ needs, excludes, word }) =>
      needs.every((each) => seen.has(each)) && !excludes.some((each) => seen.has(each)) ? [word] : [],
    );
    expect([words, [...new Set(fish)].toSorted()]).toEqual([
      words,
      offeredByBash[index]?.split(" ").toSorted(),
    ]);
  }
});
