import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";

/** One line of the log of `reeve worker`. */
interface LogLine {
  readonly at: string;
  readonly level: string;
  readonly event: string;
  readonly message: string;
  readonly runId?: string;
  readonly url?: string;
  readonly [fact: string]: unknown;
}

/** A running `reeve worker`. */
export interface RunningWorker {
  /** The address of its probes. */
  readonly url: string;
  readonly lines: readonly LogLine[];
  /** Resolves with the first line that matches, also if it was written already. */
  readonly logged: (matches: (line: LogLine) => boolean) => Promise<LogLine>;
  readonly signal: (signal: NodeJS.Signals) => void;
  /** Resolves with the exit code, or the signal that ended the process. */
  readonly ended: Promise<number | NodeJS.Signals>;
}

interface WorkerProcessOptions {
  /** Program and arguments of the command line, such as `main.js`. */
  readonly main: string;
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
}

/** Starts `reeve worker` on a free port and waits until it claims runs. It is killed after the current test. */
export async function startWorker({
  main,
  cwd,
  env = {},
  args = [],
}: WorkerProcessOptions): Promise<RunningWorker> {
  const child = spawn(process.execPath, [main, "worker", "--port", "0", ...args], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => void (said += text));
  const lines: LogLine[] = [];
  const waiting = new Set<() => void>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(JSON.parse(line) as LogLine);
    for (const look of waiting) look();
  });
  const ended = (once(child, "close") as Promise<[number | null, NodeJS.Signals]>).then(
    ([code, signal]) => code ?? signal,
  );
  const logged = (matches: (line: LogLine) => boolean): Promise<LogLine> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = lines.find(matches);
        if (found === undefined) return;
        waiting.delete(look);
        resolve(found);
      };
      waiting.add(look);
      look();
      void ended.then((how) => reject(new Error(`reeve worker ended with ${how}: ${said}`)));
    });
  const { url = "" } = await logged(({ event }) => event === "worker_started");
  return { url, lines, logged, ended, signal: (signal) => void child.kill(signal) };
}
