import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";
import { env } from "./model-server.ts";
import { main } from "./reeve-process.ts";

/** A running command that serves, such as `reeve serve`. */
interface Serving {
  /** The line on stdout: the address, with the page's link. */
  readonly link: URL;
  readonly said: () => string;
  /** Resolves once the process has said a text. */
  readonly saying: (text: string) => Promise<void>;
  readonly signal: (signal: NodeJS.Signals) => void;
  /** Sends a signal and resolves with the exit code. */
  readonly stop: (signal: NodeJS.Signals) => Promise<number | null>;
}

/** Starts `reeve serve` on a free port, with the models of a server if there is one, and waits for its address. */
export function serve(
  cwd: string,
  models: string | Readonly<Record<string, string>> | undefined,
  ...args: string[]
): Promise<Serving> {
  return startServing(cwd, models, "serve", "--port", "0", ...args);
}

/** Starts a command that serves, and waits for its address. */
export async function startServing(
  cwd: string,
  models: string | Readonly<Record<string, string>> | undefined,
  ...args: string[]
): Promise<Serving> {
  const child = spawn(process.execPath, [main, ...args], {
    cwd,
    env: { ...process.env, ...(typeof models === "string" ? env(models) : models) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`reeve ${args[0]} ended with ${code}: ${said}`);
  });
  const lines = createInterface({ input: child.stdout });
  const [line] = (await Promise.race([once(lines, "line"), ended])) as [string];
  return {
    link: new URL(line),
    said: () => said,
    saying: async (text) => {
      while (!said.includes(text)) await once(child.stderr, "data");
    },
    signal: (signal) => void child.kill(signal),
    stop: async (signal) => {
      ended.catch(() => undefined);
      const exit = once(child, "exit") as Promise<[number | null]>;
      child.kill(signal);
      return (await exit)[0];
    },
  };
}
