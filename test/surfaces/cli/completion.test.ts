import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { reeve } from "./reeve-process.ts";

/** What bash offers after these words. The last one is the word that is typed. */
async function offered(script: string, ...words: string[]): Promise<readonly string[]> {
  const ask = `${script}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _reeve_complete; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await promisify(execFile)("bash", ["-c", ask, "bash", ...words]);
  return stdout.split("\n").filter((line) => line !== "");
}

test("reeve completion bash completes commands, their commands and options", async () => {
  const { code, out } = await reeve(["completion", "bash"]);
  expect(code).toBe(0);
  const script = out.join("\n");
  expect(await offered(script, "reeve", "se")).toEqual(["sessions", "serve"]);
  expect(await offered(script, "reeve", "do")).toEqual(["doctor"]);
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
