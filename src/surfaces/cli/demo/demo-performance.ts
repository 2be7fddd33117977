import type { Event, RunHandle } from "../../../kernel/index.ts";
import type { ExitKind } from "../terminal/exit-code.ts";
import { paintFor, type Paint } from "../terminal/paint.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { companyTask } from "./demo-company.ts";
import { compareBooks, ledgerLines, ledgerOf } from "./demo-ledger.ts";
import { storyLine, wrapped } from "./demo-print.ts";
import type { WorkerProcess } from "./demo-processes.ts";
import { playScene } from "./demo-scene.ts";
import type { Stage } from "./demo-stage.ts";
import { runAddress, tell } from "./demo-telling.ts";

export interface PerformanceOptions {
  readonly stage: Stage;
  readonly workers: readonly WorkerProcess[];
  readonly terminal: Terminal;
  readonly paceMs: number;
  readonly stays: boolean;
  readonly keeps: boolean;
}

/** The demo in the terminal: what it is, the story, the ledger, and what to type next. */
export class Performance {
  readonly #options: PerformanceOptions;
  readonly #paint: Paint;
  /** Columns of the terminal. */
  readonly #width: number;

  constructor(options: PerformanceOptions) {
    const { terminal } = options;
    this.#options = options;
    this.#paint = paintFor(terminal.isWatched, terminal.env);
    this.#width = terminal.columns ?? Number.POSITIVE_INFINITY;
  }

  /** Plays the demo. If it stays, the promise never resolves. */
  async play(): Promise<ExitKind> {
    const { stage, workers, paceMs, stays } = this.#options;
    await this.#introduce();
    const style = { paint: this.#paint, width: this.#width };
    const story = tell({
      stage,
      workers,
      decisionMs: 2 * paceMs,
      print: (line) => this.#out(storyLine(line, style)),
    });
    const [run] = await Promise.all([story, playScene(stage.runtime, stage.agents)]);
    const kind = await this.#settle(run);
    await this.#next();
    return stays ? new Promise<never>(() => undefined) : kind;
  }

  async #introduce(): Promise<void> {
    const { workers, stage } = this.#options;
    const pids = workers.map(({ name, pid }) => `${name} (${pid})`).join(" and ");
    await this.#out("");
    await this.#out(this.#paint.bold(companyTask));
    await this.#text(
      `${pids} share one SQLite file; one of them will be killed. The models are scripted, the files in ${stage.root} are real, and nothing leaves this machine.`,
    );
    await this.#out("");
  }

  /** Prints the ledger, and compares it with the event log and the provider's book. */
  async #settle(run: RunHandle): Promise<ExitKind> {
    const { stage } = this.#options;
    const ledger = await ledgerOf(eventsOf(run));
    const { isRight, words } = compareBooks(stage.book.read(run.runId), ledger);
    const verdict = await stage.records.events.verify(run.runId);
    await this.#out("");
    await this.#out(this.#paint.bold("The ledger, from the event log"));
    for (const line of ledgerLines(ledger)) await this.#out(line);
    await this.#out("");
    for (const line of words) await this.#text(line, isRight ? this.#paint.green : this.#paint.red);
    await this.#text(
      verdict.ok
        ? `The hash chain of the log verifies: ${verdict.events} events.`
        : `The log does not verify: ${verdict.problem}`,
      verdict.ok ? this.#paint.green : this.#paint.red,
    );
    const { status } = await run.summary();
    const isRecovered = ledger.view.recoveries.some(({ isCrash }) => isCrash);
    return isRight && verdict.ok && status === "completed" && isRecovered ? "ok" : "internal";
  }

  async #next(): Promise<void> {
    const { stays, keeps, stage } = this.#options;
    await this.#out("");
    await this.#out(this.#paint.bold("Next"));
    const store = `--store ${stage.store}`;
    const commands: (readonly [string, string])[] = stays
      ? [
          [runAddress(stage), "the run on the page"],
          [`${stage.url}inbox`, "a question waits for you"],
          [`npx reeve ps --all ${store}`, "the runs"],
          [`npx reeve approve ${store}`, "answers the question here"],
          ["Ctrl+C", "stops the server and the worker"],
        ]
      : [
          ["npx reeve demo --stay", "the same, with the page until Ctrl+C"],
          ...(keeps ? [[`npx reeve ps --all ${store}`, "the runs"] as const] : []),
        ];
    const all = [
      ...commands,
      ["npx reeve init", "a workspace for agents of your own"],
      ["docs/getting-started.md", "a first program"],
    ] as const;
    for (const [command, what] of all) {
      await this.#out(`  ${command}`);
      await this.#out(this.#paint.dim(`      ${what}`));
    }
  }

  async #text(text: string, style: (line: string) => string = this.#paint.dim): Promise<void> {
    for (const line of wrapped(text, Math.min(this.#width, 100) - 4)) await this.#out(`  ${style(line)}`);
  }

  #out(line: string): Promise<void> {
    return this.#options.terminal.out(line);
  }
}

async function* eventsOf(run: RunHandle): AsyncIterable<Event> {
  for await (const event of run.events({ follow: false })) if ("seq" in event) yield event;
}
