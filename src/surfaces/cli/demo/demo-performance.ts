import { join, relative } from "node:path";
import type { DemoDesk } from "./demo-desk.ts";
import type { StoryLine, Tone } from "./demo-story.ts";
import { type Event, Fault, type RunHandle, type Runtime } from "../../../kernel/index.ts";
import type { ExitKind } from "../terminal/exit-code.ts";
import { type Paint, paintFor } from "../terminal/paint.ts";
import { type Terminal, printable } from "../terminal/terminal.ts";
import { packageRoot } from "../../../assembly/package-root.ts";
import { companyTask } from "./demo-company.ts";
import { compareBooks, ledgerLines, ledgerOf } from "./demo-ledger.ts";
import type { WorkerProcess } from "./demo-processes.ts";
import type { Stage } from "./demo-stage.ts";
import { runAddress, tell } from "./demo-telling.ts";

const person = { userId: "ada", streaming: true } as const;

/**
 * Starts the other runs that the page shows: a finished run, a run that has used up its budget, a schedule, and a
 * conversation with two branches, one of which waits for a person. Resolves when none of these runs is active any
 * more.
 */
async function playScene(runtime: Runtime, { support, bookkeeper, upkeep }: DemoDesk): Promise<void> {
  await runtime.schedules.create({
    name: "weekly-report",
    agent: bookkeeper,
    input: "Report on the orders of the week",
    cron: "0 9 * * 1",
    userId: person.userId,
  });
  const report = await runtime.submit(bookkeeper, "Report on the orders of the week", person);
  const search = await runtime.submit(upkeep, "How long is our checklist?", person);
  await Promise.all([report.result(), search.result(), converse(runtime, support)]);
}

async function converse(runtime: Runtime, support: DemoDesk["support"]): Promise<void> {
  const sessionId = "order-8841";
  const ask = (text: string) => runtime.submit(support, text, { ...person, sessionId });
  await (await ask("What is the state of order 8841?")).result();
  await runtime.sessions.name(sessionId, "Order 8841");
  const answer = (await runtime.sessions.path(sessionId)).at(-1);
  if (answer === undefined) throw new Fault("internal", `session ${sessionId} has no answer`);
  await runtime.sessions.label(sessionId, answer.id, "one item arrived damaged");
  await (await ask("Which orders are on their way?")).result();
  await runtime.sessions.move(sessionId, answer.id);
  await (await ask("Which items arrived damaged?")).result();
  await (await ask("Please refund order 8841.")).untilPersonIsNeeded();
}

/** How lines of the story are shown. */
interface LineStyle {
  readonly paint: Paint;
  /** Number of columns of the terminal. Longer lines are cut. `Infinity` if the output is not a terminal. */
  readonly width: number;
}

const nameWidth = 13;

/** Formats a line of the story: the time, the agent or process, and the text. */
export function storyLine({ at, who, text, tone }: StoryLine, { paint, width }: LineStyle): string {
  const time = clock(at).padStart(6);
  const name = cut(printable(who), nameWidth).padEnd(nameWidth);
  const shown = cut(printable(text), width - time.length - nameWidth - 4);
  const style = styleOf(tone, paint);
  const named = tone === "quiet" ? paint.dim(name) : paint.bold(name);
  return `${paint.dim(time)}  ${named}  ${style(shown)}`;
}

function styleOf(tone: Tone, paint: Paint): (text: string) => string {
  const styles: Readonly<Record<Tone, (text: string) => string>> = {
    plain: (text) => text,
    quiet: paint.dim,
    waits: paint.yellow,
    yields: paint.magenta,
    lost: paint.red,
    money: paint.green,
  };
  return styles[tone];
}

/** Formats a duration as minutes and seconds, such as 0:43. */
function clock(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

function cut(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, Math.max(0, width - 1)).trimEnd()}…` : text;
}

/** Breaks a text into lines of at most `width` characters. */
export function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

export interface PerformanceOptions {
  readonly stage: Stage;
  readonly workers: readonly WorkerProcess[];
  readonly terminal: Terminal;
  readonly paceMs: number;
  readonly stays: boolean;
  readonly keeps: boolean;
}

/** Shows the demo in the terminal: an introduction, the story, the ledger, and commands to try next. */
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

  /** Plays the demo. If the server continues to run afterwards, the promise never resolves. */
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
      [relative(process.cwd(), join(packageRoot, "docs/start/getting-started.md")), "a first program"],
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

/** The events of a run so far. */
export async function* eventsOf(run: RunHandle): AsyncIterable<Event> {
  for await (const event of run.events({ follow: false })) if ("seq" in event) yield event;
}
