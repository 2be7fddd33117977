import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Fault, type Event } from "../../../kernel/index.ts";
import { openStore } from "../../../runtime/index.ts";
import type { ExitKind } from "../exit-code.ts";
import { packageRoot } from "../package-root.ts";
import { paintFor } from "../paint.ts";
import type { Terminal } from "../terminal.ts";
import { demoAct, demoBook, demoRun, demoStore } from "./demo-act.ts";
import { demoTask } from "./demo-company.ts";
import { compareBooks, ledgerLines, ledgerOf } from "./demo-ledger.ts";
import { DemoTimeline } from "./demo-timeline.ts";

export interface DemoOptions {
  /** Duration of one model call in milliseconds. */
  readonly pace: string;
  /** Whether the store is kept. */
  readonly keep?: boolean;
  /** The folder of the run, for processes that the demo starts. */
  readonly act?: string;
}

/**
 * The demo: a lead spawns agents, a HIGH task preempts a LOW one, the process is killed in the middle, and another one
 * resumes from the file. Then the provider's book and the event log are compared. It needs no API key.
 */
export async function demoCommand(options: DemoOptions, terminal: Terminal): Promise<ExitKind> {
  const paceMs = Number(options.pace);
  if (!Number.isFinite(paceMs) || paceMs < 0)
    throw new Fault("invalid_argument", `invalid --pace ${options.pace}: expected milliseconds from 0`);
  if (options.act !== undefined) return demoAct({ folder: options.act, root: packageRoot, paceMs }, terminal);
  const folder = await mkdtemp(join(tmpdir(), "reeve-demo-"));
  try {
    return await perform(folder, paceMs, options, terminal);
  } finally {
    if (options.keep !== true) await rm(folder, { recursive: true, force: true });
  }
}

async function perform(
  folder: string,
  paceMs: number,
  { keep = false }: DemoOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const paint = paintFor(terminal.isWatched, terminal.env);
  const timeline = new DemoTimeline(paint);
  const show = async (event: Event): Promise<void> => {
    const line = timeline.line(event);
    if (line !== undefined) await terminal.out(line);
  };
  await terminal.out(paint.bold("Reeve: a lead, three researchers, three seats, one SQLite file"));
  await terminal.out(`The task: ${demoTask}\n`);
  const first = actIn(folder, paceMs);
  let isRecalled = false;
  for await (const event of eventsOf(first)) {
    await show(event);
    isRecalled ||= event.type === "seat_recall";
    // The call is in flight at this moment and will never be answered.
    if (isRecalled && event.type === "message_start") {
      first.kill("SIGKILL");
      break;
    }
  }
  const signal = await ended(first);
  if (signal === "SIGKILL")
    await terminal.out(
      `\n${paint.red(`      kill -9 ${first.pid}: the process is gone, in the middle of a model call`)}\n`,
    );
  const second = actIn(folder, paceMs);
  for await (const event of eventsOf(second)) await show(event);
  await ended(second);
  return closing(folder, keep, terminal);
}

async function closing(folder: string, keep: boolean, terminal: Terminal): Promise<ExitKind> {
  const paint = paintFor(terminal.isWatched, terminal.env);
  const store = await openStore(demoStore(folder));
  try {
    let answer = "";
    for await (const event of store.events.read(demoRun))
      if (event.type === "agent_end" && event.parentId === null) answer = event.data.output;
    const ledger = await ledgerOf(store, demoRun);
    const verdict = await store.events.verify(demoRun);
    const { isRight, words } = compareBooks(demoBook(folder).read(), ledger);
    await terminal.out(`\n${paint.bold("The answer")}\n${answer}\n`);
    await terminal.out(paint.bold("The ledger, from the event log"));
    for (const line of ledgerLines(ledger)) await terminal.out(line);
    await terminal.out(`\n${isRight ? paint.green(words) : paint.red(words)}`);
    await terminal.out(
      verdict.ok
        ? `The log's chain verifies: ${verdict.events} events.`
        : paint.red(`The log does not verify: ${verdict.problem}`),
    );
    if (keep) terminal.say(`Kept: reeve audit log ${demoRun} --store ${demoStore(folder)}`);
    return isRight && verdict.ok && answer !== "" ? "ok" : "internal";
  } finally {
    await store.close();
  }
}

function actIn(folder: string, paceMs: number): ChildProcess {
  const file = import.meta.url.endsWith(".ts") ? "src/surfaces/cli/main.ts" : "dist/surfaces/cli/main.js";
  const main = join(packageRoot, file);
  const args = [main, "demo", "--act", folder, "--pace", String(paceMs)];
  return spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
}

async function* eventsOf({ stdout }: ChildProcess): AsyncIterable<Event> {
  if (stdout === null) return;
  for await (const line of createInterface({ input: stdout })) yield JSON.parse(line) as Event;
}

async function ended(child: ChildProcess): Promise<NodeJS.Signals | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  if (child.exitCode !== null && child.exitCode !== 0)
    throw new Fault("internal", `a process of the demo ended with code ${child.exitCode}`);
  return child.signalCode;
}
