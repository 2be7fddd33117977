import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Fault, type EventType, type JsonValue, type RunId, type Store } from "../kernel/index.ts";
import { CountingServer, type Answering, type CallBook } from "./counting-server.ts";
import { checkCase, type Broken, type CaseTrace, type Life } from "./crash-promises.ts";
import type { Death } from "./dying-store.ts";
import { traceRun, type RunTrace } from "./run-trace.ts";
import { doDuty, type DutyWork, type WorkerOrders } from "./worker-duty.ts";
import { WorkerProcess, type WorkerEnd } from "./worker-process.ts";

/**
 * Acts on the runs from outside the worker, such as a person who approves a tool call. It uses a separately opened
 * store.
 */
export type Visitor = (visit: { readonly store: Store; readonly signal: AbortSignal }) => Promise<void>;

/** Options of `runCrashes`. */
export interface CrashOptions {
  /**
   * URL of the worker process's script, which must call `runWorkerDuty`. Node runs the script directly, so it may be
   * TypeScript if this version of Node strips types.
   */
  readonly worker: URL;
  /**
   * The function that the worker's script passes to `runWorkerDuty`. If given, the work of a worker that is not
   * killed is done in this process. This avoids the start of a process for half of the workers. The function must
   * close the store. Default: every worker is a separate process.
   */
  readonly inProcess?: DutyWork;
  /** Name of the workload, passed to the worker together with `data`. */
  readonly workload: string;
  readonly data?: JsonValue;
  /** Opens the store on a file for this process, which inspects it. The worker opens the file separately. */
  readonly open: (file: string) => Promise<Store>;
  /** Computes the answers of the simulated models and tools to the worker's calls. */
  readonly answering: Answering;
  readonly visitor?: Visitor;
  /**
   * Maximum number of calls that the work has in flight at the same time, so the maximum number repeated after a crash.
   * Default: 1.
   */
  readonly branches?: number;
  /** Types of events that depend on timing and are not compared. */
  readonly ignore?: readonly EventType[];
  /** `true` if branches of one task run concurrently, so that their events have no fixed order. Default: `false`. */
  readonly sideBySide?: boolean;
  /**
   * `true` if unreported calls may use up the budget. Then only the promises that apply to a run that stops early
   * are checked.
   */
  readonly mayExhaust?: boolean;
  /** Whether the worker dies before or after the write. Default: both, one after the other. */
  readonly when?: readonly Death["when"][];
  /**
   * Returns whether the worker is killed before or after write number `at`, counted from 1. `kinds` are the kinds
   * of the writes in a case without a crash; a worker that is killed may make additional writes. Default: it is
   * killed at every write.
   */
  readonly kills?: (at: number, when: Death["when"], kinds: readonly string[]) => boolean;
  /**
   * If this function returns a number, the worker after the death at write `at` is killed too, at the write with
   * this number.
   */
  readonly again?: (at: number, when: Death["when"]) => number | undefined;
  /**
   * Maximum number of kills before or after a write. If the work is still not finished, the harness reports a failure.
   * Default: 200.
   */
  readonly maxKills?: number;
  /** Number of cases that run concurrently. Default: 3. */
  readonly lanes?: number;
  /** Maximum duration of one worker process, in milliseconds. Default: 120_000. */
  readonly boundMs?: number;
}

/** A promise that did not hold in a case of the crash harness. */
export interface BrokenPromise extends Broken {
  /** Descriptions of the writes at which the worker was killed. Empty for the case without a crash. */
  readonly kills: readonly string[];
}

/** The result of `runCrashes`. */
export interface CrashReport {
  /** Promises that did not hold. Empty if all of them held. */
  readonly broken: readonly BrokenPromise[];
  /** Number of cases in which the worker was killed. */
  readonly cases: number;
  readonly kills: number;
  /** Number of writes of the case without a crash. */
  readonly writes: number;
  readonly calls: number;
  /** Outputs of the runs of the case without a crash, in the order in which the worker reported the runs. */
  readonly outputs: readonly JsonValue[];
}

interface CaseResult {
  readonly trace: CaseTrace;
  readonly kills: readonly string[];
  readonly failures: readonly Broken[];
  /** The kinds of the writes of the last worker. */
  readonly kinds: readonly string[];
}

/**
 * Kills a worker at its n-th write to the store, for every n, restarts it until the work is finished, and reports the
 * promises that did not hold. The harness first does the work once without a crash, to learn the expected result and
 * the number of writes. Then a worker dies at write n and the next worker resumes from the file, for n = 1, 2, ...
 * until n exceeds the last write. Each case uses a new file. Calls go to a server in this process, which counts and
 * bills them.
 *
 * A broken promise does not throw: the report lists it with the write at which the worker died. The harness needs no
 * test runner.
 */
export async function runCrashes(options: CrashOptions): Promise<CrashReport> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-crash-"));
  const server = await CountingServer.open();
  try {
    return await new CrashLab(options, folder, server).run();
  } finally {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  }
}

class CrashLab {
  readonly #options: CrashOptions;
  readonly #folder: string;
  readonly #server: CountingServer;
  #cases = 0;

  constructor(options: CrashOptions, folder: string, server: CountingServer) {
    this.#options = options;
    this.#folder = folder;
    this.#server = server;
  }

  async run(): Promise<CrashReport> {
    const uncrashed = await this.#doCase([], []);
    const { trace, kinds } = uncrashed;
    const broken = this.#judge(uncrashed, trace);
    const results: CaseResult[] = [];
    // If a guarantee is violated without a crash, the cases with a crash would show nothing, so they are skipped.
    for (const when of broken.length > 0 ? [] : (this.#options.when ?? (["before", "after"] as const))) {
      const { cases, endless } = await this.#everyWrite(when, uncrashed);
      results.push(...cases);
      broken.push(...cases.flatMap((each) => this.#judge(each, trace)), ...endless);
    }
    const crashed = results.filter(({ kills }) => kills.length > 0);
    return {
      broken,
      cases: crashed.length,
      kills: crashed.reduce((sum, { kills }) => sum + kills.length, 0),
      writes: kinds.length,
      calls: trace.calls.length,
      outputs: trace.runs.map(({ output }) => output),
    };
  }

  /** Returns the broken promises of a case. If the case itself failed, only its failures are returned. */
  #judge({ trace, failures, kills }: CaseResult, uncrashed: CaseTrace): BrokenPromise[] {
    const { branches = 1, ignore = [], mayExhaust = false, sideBySide = false } = this.#options;
    const options = { branches, ignore, mayExhaust, sideBySide };
    const found = failures.length > 0 ? failures : checkCase(trace, uncrashed, options);
    return found.map((each) => ({ ...each, kills }));
  }

  /**
   * Repeats the work and kills the worker at write 1, then at write 2, and so on, until a worker makes fewer writes than
   * that and finishes.
   */
  async #everyWrite(
    when: Death["when"],
    { trace, kinds }: CaseResult,
  ): Promise<{ readonly cases: readonly CaseResult[]; readonly endless: readonly BrokenPromise[] }> {
    const { maxKills = 200, lanes = 3, kills = () => true } = this.#options;
    const runIds = trace.runs.map(({ runId }) => runId);
    const isChosen = (at: number): boolean => kills(at, when, kinds);
    const chosen = kinds.map((_, index) => index + 1).filter((at) => at <= maxKills && isChosen(at));
    const cases: CaseResult[] = [];
    const lane = async (): Promise<void> => {
      for (let at = chosen.shift(); at !== undefined; at = chosen.shift())
        cases.push(await this.#doCase(this.#deathsAt(at, when), runIds));
    };
    await Promise.all(Array.from({ length: lanes }, lane));
    // The number of writes depends on timing, so that a later worker may make more of them.
    let through = false;
    let at = kinds.length + 1;
    for (; !through && at <= maxKills && isChosen(at); at++) {
      const result = await this.#doCase(this.#deathsAt(at, when), runIds);
      through = result.kills.length === 0;
      cases.push(result);
    }
    const detail = `after ${maxKills} kills ${when} a write, no worker finished the work without being killed`;
    const isEndless = !through && at > maxKills && isChosen(maxKills);
    return { cases, endless: isEndless ? [{ ...unfinished(detail), kills: [] }] : [] };
  }

  #deathsAt(at: number, when: Death["when"]): readonly Death[] {
    const second = this.#options.again?.(at, when);
    return [{ at, when }, ...(second === undefined ? [] : [{ at: second, when }])];
  }

  async #doCase(deaths: readonly Death[], known: readonly RunId[]): Promise<CaseResult> {
    const name = `case-${this.#cases++}`;
    const file = join(this.#folder, `${name}.db`);
    const book = this.#server.book(name, this.#options.answering);
    const leave = this.#visit(file);
    const lives: Life[] = [];
    const kills: string[] = [];
    const failures: Broken[] = [];
    let runs: readonly RunTrace[] = [];
    let kinds: readonly string[] = [];
    for (let over = false; !over;) {
      const caller = `${name} life ${lives.length + 1}`;
      const end = await this.#live(file, book, caller, deaths[lives.length] ?? null);
      over = end.kind !== "killed";
      if (end.kind === "finished") ({ kinds } = end);
      if (end.kind === "killed") kills.push(end.write);
      if (end.kind === "failed") failures.push(unfinished(`life ${lives.length + 1}: ${end.reason}`));
      try {
        runs = await this.#trace(file, end.kind === "finished" ? end.runs : known);
      } catch (error) {
        failures.push(unfinished(`the store cannot be read: ${Fault.from(error).message}`));
      }
      lives.push({ caller, receipts: receiptsOf(runs) });
    }
    failures.push(...(await leave()));
    return { trace: { lives, calls: book.calls, runs }, kills, failures, kinds };
  }

  async #live(file: string, book: CallBook, caller: string, death: Death | null): Promise<WorkerEnd> {
    const { worker, inProcess, workload, data = null, boundMs = 120_000 } = this.#options;
    const orders = { file, workload, data, death, server: { url: book.url, caller } };
    if (inProcess !== undefined && death === null) return workHere(orders, inProcess, boundMs);
    const child = WorkerProcess.start(worker, orders, join(this.#folder, "compiled"));
    try {
      return await child.endWithin(boundMs);
    } finally {
      child.signal("SIGKILL");
    }
  }

  /**
   * Opens the store only to read it and closes it again, so that the next worker finds the file as the dead worker left
   * it.
   */
  async #trace(file: string, runIds: readonly RunId[]): Promise<readonly RunTrace[]> {
    if (runIds.length === 0) return [];
    const store = await this.#options.open(file);
    try {
      const traces = await Promise.all(runIds.map((runId) => traceRun(store, runId)));
      return traces.filter((trace) => trace !== undefined);
    } finally {
      await store.close();
    }
  }

  /**
   * Starts the visitor. The returned function aborts the visitor's signal, waits for the visitor and returns its
   * failures.
   */
  #visit(file: string): () => Promise<readonly Broken[]> {
    const { visitor, open } = this.#options;
    if (visitor === undefined) return async () => [];
    const controller = new AbortController();
    const visiting = async (): Promise<readonly Broken[]> => {
      const store = await open(file);
      try {
        await visitor({ store, signal: controller.signal });
        return [];
      } catch (error) {
        return [unfinished(`the visitor failed: ${Fault.from(error).message}`)];
      } finally {
        await store.close();
      }
    };
    const visit = visiting();
    return () => {
      controller.abort();
      return visit;
    };
  }
}

/** Does the work in this process. Fails if the work takes longer than `boundMs` milliseconds. */
async function workHere(orders: WorkerOrders, work: DutyWork, boundMs: number): Promise<WorkerEnd> {
  const late = Promise.withResolvers<WorkerEnd>();
  const reason = `the work did not finish within ${boundMs} ms`;
  const bound = setTimeout(() => late.resolve({ kind: "failed", reason }), boundMs);
  const working = doDuty(orders, work).then(
    (report): WorkerEnd => ({ kind: "finished", ...report }),
    (error: unknown): WorkerEnd => ({ kind: "failed", reason: Fault.from(error).message }),
  );
  try {
    return await Promise.race([working, late.promise]);
  } finally {
    clearTimeout(bound);
  }
}

function receiptsOf(traces: readonly RunTrace[]): ReadonlySet<string> {
  return new Set(traces.flatMap(({ receipts }) => [...receipts]));
}

function unfinished(detail: string): Broken {
  return { promise: "finished", detail };
}
