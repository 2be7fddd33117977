import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, inject, onTestFinished } from "vitest";
import { main } from "../surfaces/cli/reeve-process.ts";

const execute = promisify(execFile);

/** Whether the machine lacks tmux, so that tests in a terminal are skipped. */
export const lacksTmux = inject("lackOfTmux") !== null;

interface TerminalOptions {
  readonly size: `${number}x${number}`;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** What a picture of the screen must show, or what it must not show. */
type Expected = RegExp | string | { readonly lacks: RegExp };

function inWords(expected: Expected): string {
  if (typeof expected === "string") return JSON.stringify(expected);
  return "lacks" in expected ? `no ${expected.lacks}` : String(expected);
}

function isIn(picture: string, expected: Expected): boolean {
  if (typeof expected === "string") return picture.includes(expected);
  return "lacks" in expected ? !expected.lacks.test(picture) : expected.test(picture);
}

/** A terminal in which a person types, and what the person sees. */
export interface TerminalPane {
  /** Starts `reeve` with these arguments. When it ends, the shell says `ended CODE`. */
  readonly reeve: (...args: readonly string[]) => Promise<void>;
  readonly type: (text: string) => Promise<void>;
  /** Types a text and presses Enter once the composer shows it. */
  readonly submit: (text: string) => Promise<void>;
  /** Presses keys by their tmux names, such as `Enter`. */
  readonly press: (...keys: readonly string[]) => Promise<void>;
  /** Pastes a text as a terminal does. */
  readonly paste: (text: string) => Promise<void>;
  /** The lines on the screen. With `colours`, as they are painted. */
  readonly screen: (options?: { readonly colours?: boolean }) => Promise<string>;
  /**
   * Resolves when one picture of the screen has everything that is expected, with that picture. A terminal paints in pieces, so
   * that a picture with one expected part may lack the others.
   */
  readonly shows: (...expected: readonly Expected[]) => Promise<string>;
  readonly lacks: (pattern: RegExp) => Promise<string>;
  readonly resize: (columns: number, rows: number) => Promise<void>;
  /** The id of the process that the shell has started. */
  readonly processId: () => Promise<number>;
  /** Closes the terminal, as a person closes its window. */
  readonly close: () => Promise<void>;
}

/** Opens a terminal with a shell. It is closed when the test ends. */
export async function openTerminal({ size, cwd, env }: TerminalOptions): Promise<TerminalPane> {
  const socket = `reeve-${randomUUID().slice(0, 8)}`;
  const tmux = async (...args: readonly string[]): Promise<string> => {
    const { stdout } = await execute("tmux", ["-L", socket, "-f", "/dev/null", ...args]);
    return stdout;
  };
  const [columns = "80", rows = "24"] = size.split("x");
  const variables = Object.entries({ PS1: "$ ", HISTFILE: "/dev/null", ...env });
  await tmux(
    "new-session",
    "-d",
    "-x",
    columns,
    "-y",
    rows,
    "-c",
    cwd,
    ...variables.flatMap(([name, value]) => ["-e", `${name}=${value}`]),
    "sh",
  );
  const close = async (): Promise<void> => {
    // A test may have closed the terminal already.
    await tmux("kill-server").catch(() => "");
  };
  onTestFinished(close);
  const screen: TerminalPane["screen"] = ({ colours = false } = {}) =>
    tmux("capture-pane", "-p", ...(colours ? ["-e"] : []));
  const press: TerminalPane["press"] = async (...keys) => void (await tmux("send-keys", ...keys));
  const type: TerminalPane["type"] = async (text) => void (await tmux("send-keys", "-l", text));
  const shows: TerminalPane["shows"] = async (...expected) => {
    let picture = "";
    const lack = async (): Promise<string> => {
      picture = await screen();
      const missing = expected.filter((each) => !isIn(picture, each));
      return missing.length === 0 ? "" : `${missing.map(inWords).join("\n")}\nin\n${picture}`;
    };
    await expect.poll(lack, { interval: 50 }).toBe("");
    return picture;
  };
  return {
    submit: async (text) => {
      await type(text);
      await shows(`\n ${text}`);
      await press("Enter");
    },
    reeve: async (...args) => {
      // Nothing on the screen is of an earlier program.
      await tmux("send-keys", "-R");
      const words = [process.execPath, main, ...args].map((word) => `'${word}'`).join(" ");
      await type(`clear; ${words}; echo ended $?`);
      await press("Enter");
    },
    type,
    press,
    paste: async (text) => {
      const file = join(cwd, "pasted.txt");
      await writeFile(file, text);
      await tmux("load-buffer", file);
      await tmux("paste-buffer", "-p");
    },
    screen,
    shows,
    lacks: async (pattern) => shows({ lacks: pattern }),
    resize: async (width, height) => {
      await tmux("resize-window", "-x", String(width), "-y", String(height));
    },
    processId: async () => {
      const shell = (await tmux("display-message", "-p", "#{pane_pid}")).trim();
      const { stdout } = await execute("ps", ["--ppid", shell, "-o", "pid="]);
      return Number(stdout.trim().split("\n")[0]);
    },
    close,
  };
}
