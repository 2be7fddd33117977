import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { inject, onTestFinished, test } from "vitest";
import { checkReplay } from "../../src/entries/workflow.ts";
import {
  Fault,
  formatRunId,
  unfinishedStatuses,
  type EngineFactory,
  type RunHandle,
  type RunId,
  type Runtime,
  type Store,
} from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { idleEngine } from "../../src/surfaces/cli/setup/idle-engine.ts";
import { CountingServer, WorkerProcess, type CallBook, type ServedCall } from "../../src/testing/index.ts";
import { isFull } from "../effort.ts";
import { openCrashStore } from "../crash/crash-store.ts";
import type { SiteAddress } from "../crash/site-engine.ts";
import { programWorkflows } from "./program-workflows.ts";
import { predict, programInput, randomProgram, type Predicted } from "./random-programs.ts";

/** What the programs need of an engine. Absent for the local engine. */
export interface ProgramEngine {
  /** Returns how a worker in this place reaches the engine. */
  readonly addressOf: (place: number) => SiteAddress;
  /** An engine that starts runs and executes none. */
  readonly caller: EngineFactory;
}

const workers = 2;
/** Number of programs that are in progress at the same time. */
const batch = 40;
/** Time without any call and without the end of a run after which the programs count as hanging. */
const boundMs = 90_000;
/**
 * A worker is killed about once per so many requests. The number is lower for few programs, so that some workers are
 * killed among them, too.
 */
const killEvery = isFull ? 20 : 8;

/** Number of workers that may end because the store was locked for too long. */
const maxLockedOut = 10;

/** The seed of the only program to run, for example one that has failed, or the first and the last seed: `121-160`. */
const onlySeed = process.env["REEVE_PROGRAM_SEED"];

function seedsFor(count: number): readonly number[] {
  const [from = 1, to = onlySeed === undefined ? count : from] = (onlySeed ?? "1").split("-").map(Number);
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

/**
 * Random programs under SIGKILL: one of two workers is killed from time to time in a step, or shortly after a step. Each
 * program must end as predicted, and each counter of the outside server must have counted as predicted.
 */
export function programCases(count: number, engine?: () => Promise<ProgramEngine>): void {
  test(`J1, J6: ${count} random programs end and count as their model predicts, although workers are killed`, async ({
    expect,
  }) => {
    const seeds = seedsFor(count);
    const site = await ProgramSite.open(await engine?.());
    for (let from = 0; from < seeds.length; from += batch) {
      const some = seeds.slice(from, from + batch);
      await site.run(some);
      const wrong = await site.wrong(some);
      expect(wrong.join("\n"), "run one of them again with REEVE_PROGRAM_SEED=SEED").toBe("");
      if (isFull) process.stdout.write(`${from + some.length} programs: ${site.kills} kills\n`);
    }
    if (onlySeed === undefined) expect(site.kills).toBeGreaterThan(count / 20);
  });
}

class ProgramSite {
  readonly #folder: string;
  readonly #store: Store;
  /** The workflows, for a process that executes none of their steps. */
  readonly #workflows = programWorkflows(() => Promise.reject(new Error("the harness executes no step")));
  readonly #runtime: Runtime;
  readonly #server: CountingServer;
  readonly #book: CallBook;
  readonly #engine: ProgramEngine | undefined;
  readonly #workers = new Map<string, WorkerProcess>();
  /** The keys that each counter has counted. */
  readonly #counted = new Map<string, Set<string>>();
  readonly #requestsOf = new Map<string, number>();
  /** Runs to cancel, by the counter after which they wait for it. */
  readonly #cancels = new Map<string, RunId>();
  /** Ends of what the server has started: restarts of workers and cancels. */
  readonly #pending = new Set<Promise<void>>();
  /** The replies to updates, by name. */
  readonly #replies = new Map<string, Promise<number | string>>();
  #failure: unknown;
  #lives = 0;
  /** Number of workers that ended because the store was locked for too long, as on a machine with too much work. */
  #lockedOut = 0;
  /** When the programs in progress were started. */
  #began = 0;
  kills = 0;

  private constructor(
    folder: string,
    store: Store,
    runtime: Runtime,
    server: CountingServer,
    engine: ProgramEngine | undefined,
  ) {
    this.#folder = folder;
    this.#store = store;
    this.#runtime = runtime;
    this.#server = server;
    this.#engine = engine;
    this.#book = server.book("programs", (call) => this.#answer(call));
  }

  static async open(engine: ProgramEngine | undefined): Promise<ProgramSite> {
    const folder = await mkdtemp(join(tmpdir(), "reeve-programs-"));
    const store = await openCrashStore(join(folder, "store.db"));
    const runtime = await createRuntime({ store, engine: engine?.caller ?? idleEngine, keepAlive: false });
    const site = new ProgramSite(folder, store, runtime, await CountingServer.open(), engine);
    onTestFinished(() => site.close());
    for (let place = 0; place < workers; place++) site.#start(place);
    return site;
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#pending);
    for (const worker of this.#workers.values()) worker.signal("SIGKILL");
    await Promise.all([...this.#workers.values()].map(({ ended }) => ended));
    await this.#runtime.close();
    await this.#server.close();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 10 });
  }

  /** Runs the programs of these seeds to their ends. */
  async run(seeds: readonly number[]): Promise<void> {
    const [program] = this.#workflows;
    this.#began = Date.now();
    for (const seed of seeds) {
      const commands = randomProgram(seed);
      const last = commands.at(-1);
      const runId = runOf(seed);
      if (last?.op === "cancelled") this.#cancels.set(last.name, runId);
      const run = await this.#runtime.start(program, programInput(commands), { runId });
      const { signals, updates } = predict(commands);
      for (const [name, value] of signals) await run.signal(name, value, { id: name });
      for (const [name, { value }] of updates) this.#replies.set(name, replyOf(run, name, value));
    }
    await this.#untilEnded();
  }

  /** What differs from the model, in words. */
  async wrong(seeds: readonly number[]): Promise<readonly string[]> {
    const wrong: string[] = [];
    for (const seed of seeds) {
      const expected = predict(randomProgram(seed));
      const actual = await this.#actual(seed);
      for (const [what, model, found] of [
        ["ends as", endOf(expected), actual.end],
        ["counts", expected.counted.toSorted().join(" "), actual.counted],
        ...(await this.#answers(expected)),
      ] as const)
        if (model !== found) wrong.push(`seed ${seed} ${what} ${found}\n  the model: ${model}`);
    }
    // The code that recorded the journals matches them.
    const runs = { createdAfter: this.#began - 1 };
    const check = { store: this.#store, workflows: this.#workflows, runs, limit: 100_000 };
    for (const { runId, position, message } of (await checkReplay(check)).differences)
      wrong.push(`${runId} ${position}: ${message}`);
    return wrong;
  }

  async #actual(seed: number): Promise<{ readonly end: string; readonly counted: string }> {
    const run = await this.#runtime.find(runOf(seed));
    if (run === undefined) return { end: "missing", counted: "" };
    const { status, output, error } = await run.result();
    const end = status === "completed" ? `completed ${JSON.stringify(output)}` : status;
    const own = [...this.#counted].filter(([name]) => name.startsWith(`p${seed}.`));
    const counted = own.flatMap(([name, keys]) => [...keys].map(() => name)).toSorted();
    const lost = (error?.details?.["compensations"] ?? []) as unknown[];
    return {
      end: lost.length === 0 ? end : `${end}, compensations failed: ${JSON.stringify(lost)}`,
      counted: counted.join(" "),
    };
  }

  /** What the states of objects and the replies to updates must be, and what they are. */
  async #answers({ states, updates }: Predicted): Promise<readonly (readonly [string, string, string])[]> {
    const [, tally] = this.#workflows;
    const found: [string, string, string][] = [];
    for (const [key, state] of states)
      found.push([
        `has the state of ${key}`,
        String(state),
        String(await this.#runtime.object(tally, key).state()),
      ]);
    for (const [name, { reply }] of updates)
      found.push([`replies to ${name}`, String(reply), String(await this.#replies.get(name))]);
    return found;
  }

  #answer(call: Omit<ServedCall, "billed">): ReturnType<CallBook["answering"]> {
    const { name, key, body, caller } = call;
    const { fails = 0 } = body as { readonly fails?: number };
    const request = (this.#requestsOf.get(key) ?? 0) + 1;
    this.#requestsOf.set(key, request);
    const chosen = request === 1 ? hashOf(key) % (killEvery * 2) : -1;
    if (chosen === 0) return { body: null, hold: () => this.#kill(caller) };
    if (request <= fails) return { body: null, fail: 503 };
    const keys = this.#counted.get(name) ?? new Set<string>();
    this.#counted.set(name, keys.add(key));
    const cancelled = this.#cancels.get(name);
    if (cancelled !== undefined) this.#track(this.#cancel(cancelled));
    // The answer arrives, and perhaps its record is written.
    if (chosen === 1) this.#track(pause(hashOf(name) % 10).then(() => this.#kill(caller)));
    return { body: null };
  }

  /** Kills a worker and starts another one in its place. */
  async #kill(caller: string): Promise<void> {
    const worker = this.#workers.get(caller);
    if (worker === undefined) return;
    this.kills++;
    this.#workers.delete(caller);
    worker.signal("SIGKILL");
    await worker.ended;
    this.#start(placeOf(caller));
  }

  /** Starts another worker in the place of one that has ended by itself, as its operator would. */
  async #replace(caller: string, worker: WorkerProcess): Promise<void> {
    const end = await worker.ended;
    const isLockedOut = end.kind === "failed" && end.reason.includes("store_unavailable");
    if (!isLockedOut || ++this.#lockedOut > maxLockedOut)
      throw new Error(`${caller} has ended: ${JSON.stringify(end)}`);
    this.#workers.delete(caller);
    this.#start(placeOf(caller));
  }

  #start(place: number): void {
    const caller = `life-${++this.#lives}@${place}`;
    const site = this.#engine?.addressOf(place);
    const orders = {
      file: join(this.#folder, "store.db"),
      workload: "programs",
      data: site === undefined ? {} : { site: { ...site } },
      death: null,
      server: { url: this.#book.url, caller },
    };
    const script = new URL("program-worker.mjs", inject("crashWorkers"));
    this.#workers.set(caller, WorkerProcess.start(script, orders, join(this.#folder, "compiled")));
  }

  async #cancel(runId: RunId): Promise<void> {
    await (await this.#runtime.find(runId))?.cancel("the harness cancels it");
  }

  #track(work: Promise<void>): void {
    const tracked = work.catch((error: unknown) => {
      this.#failure ??= error;
    });
    this.#pending.add(tracked);
    void tracked.then(() => this.#pending.delete(tracked));
  }

  /** The last events of a run, for a report. */
  async #lastEvents(runId: RunId): Promise<readonly string[]> {
    const lines: string[] = [];
    for await (const { seq, at, taskId, type, data } of this.#store.events.read(runId, 0))
      lines.push(`${seq} ${at} ${taskId} ${type} ${JSON.stringify(data).slice(0, 300)}`);
    return lines.slice(-40);
  }

  async #untilEnded(): Promise<void> {
    for (let seen = "", since = performance.now(); ;) {
      if (this.#failure !== undefined) throw this.#failure;
      const { runs } = await this.#store.journal.list({ status: unfinishedStatuses, limit: 500 });
      if (runs.length === 0) return;
      const now = `${runs.length} ${this.#book.calls.length}`;
      if (now !== seen) [seen, since] = [now, performance.now()];
      if (performance.now() - since > boundMs) {
        const left = runs.map(({ runId, status, waitsFor }) => `${runId} ${status} ${waitsFor.join(",")}`);
        const [first] = runs;
        const events = first === undefined ? [] : await this.#lastEvents(first.runId);
        throw new Error(`these runs do not end: ${left.join("; ")}\n${events.join("\n")}`);
      }
      for (const [caller, worker] of this.#workers) if (worker.isOver) await this.#replace(caller, worker);
      await pause(20);
    }
  }
}

/** Sends an update twice, beside one that its schema refuses. Returns the reply. */
async function replyOf(run: RunHandle<unknown>, name: string, value: number): Promise<number | string> {
  const sent = [
    run.update(name, "wrong", { id: `${name} wrong` }),
    run.update(name, value, { id: name }),
    run.update(name, value, { id: name }),
  ];
  const [wrong, ...replies] = (await Promise.allSettled(sent)).map((each) =>
    each.status === "fulfilled" ? (each.value as number) : codeOf(each.reason),
  );
  // A wrong update that arrives after the right one has no reply.
  if (wrong !== "invalid_argument" && wrong !== "not_found") return `${wrong} to a wrong value`;
  const [reply = "nothing", again] = replies;
  if (reply !== again) return `${reply} and then ${again}`;
  // The error of a step of the handler, or of a run that it has called.
  return reply === "fatal" || reply === "child_failed" ? "failed" : reply;
}

function codeOf(error: unknown): string {
  if (!(error instanceof Fault)) throw error;
  return error.code;
}

function placeOf(caller: string): number {
  return Number(caller.slice(caller.indexOf("@") + 1));
}

function runOf(seed: number): RunId {
  return formatRunId(`program-${seed}`);
}

function endOf({ status, value }: Predicted): string {
  return status === "completed" ? `completed ${value}` : status;
}

function hashOf(text: string): number {
  return createHash("sha256").update(text).digest().readUInt32BE();
}
