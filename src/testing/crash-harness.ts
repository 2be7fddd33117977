import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Fault, type EventType, type JsonValue, type RunId, type Store } from "../kernel/index.ts";
import { CountingServer, type Answering, type CallBook } from "./counting-server.ts";
import { checkCase, type Broken, type CaseTrace, type Life } from "./crash-promises.ts";
import type { Death } from "./dying-store.ts";
import { traceRun, type RunTrace } from "./run-trace.ts";
import { WorkerProcess } from "./worker-process.ts";

/** Someone who acts on the runs from outside, such as a person who approves; sees them through a store of their own. */
export type Visitor = (visit: { readonly store: Store; readonly signal: AbortSignal }) => Promise<void>;

export interface CrashOptions {
  /** The script of the worker process: it calls `workAsTold`. Node runs it as it is, so TypeScript will do where Node strips types. */
  readonly worker: URL;
  /** Told to the worker, with `data`. */
  readonly workload: string;
  readonly data?: JsonValue;
  /** The store on a file, opened by this process to see what is there. The worker opens its own. */
  readonly open: (file: string) => Promise<Store>;
  /** What the world outside says to the worker's calls. */
  readonly answering: Answering;
  readonly visitor?: Visitor;
  /** How many calls the work has open at once, at most: so many may be made again after a crash. 1 unless told. */
  readonly branches?: number;
  /** Events that depend on the moment and not on the work. */
  readonly ignore?: readonly EventType[];
  /** Branches of one task go side by side, so that what they tell has no order. */
  readonly sideBySide?: boolean;
  /** Lost calls may use up the money; then only what must hold for a run that stops early is checked. */
  readonly mayExhaust?: boolean;
  /** Both unless told. */
  readonly when?: readonly Death["when"][];
  /** Of the writes, from 1: at which it is killed. At all unless told. */
  readonly kills?: (at: number) => boolean;
  /** After the death at write `at`, the next life dies too, at this write of its own. */
  readonly again?: (at: number) => number | undefined;
  /** Gives up after so many kills of one kind: the work does not end. 200 unless told. */
  readonly maxKills?: number;
  /** Cases side by side. 3 unless told. */
  readonly lanes?: number;
  /** How long one life may take. 20,000 unless told. */
  readonly boundMs?: number;
}

export interface BrokenPromise extends Broken {
  /** The writes at which the worker was killed, in its own words; none for the case without a crash. */
  readonly kills: readonly string[];
}

export interface CrashReport {
  /** Empty: all held. */
  readonly broken: readonly BrokenPromise[];
  /** Cases in which the worker was killed. */
  readonly cases: number;
  readonly kills: number;
  /** Without a crash. */
  readonly writes: number;
  readonly calls: number;
  /** Of the runs, in the order in which the worker reported them, without a crash. */
  readonly outputs: readonly JsonValue[];
}

interface CaseResult {
  readonly trace: CaseTrace;
  readonly kills: readonly string[];
  readonly failures: readonly Broken[];
  readonly writes: number;
}

/**
 * Kills a worker at its n-th write to the store, for every n, starts another until the work is done, and reports which promises did not
 * hold. First the work is done once without a crash, which says what is to come out and how many writes there are; then, for n from
 * 1 on, a worker dies at write n and the next goes on from the file, until n is beyond the last write. The file is the store's own; calls
 * go to a server in this process, which counts and bills them.
 *
 * Nothing is thrown for a promise that did not hold; the report lists each with the write it died at. Needs no test runner.
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
    const { trace, writes } = uncrashed;
    const broken = this.#judge(uncrashed, trace);
    const results: CaseResult[] = [];
    // What does not hold without a crash says nothing about crashes.
    for (const when of broken.length > 0 ? [] : (this.#options.when ?? (["before", "after"] as const))) {
      const { cases, endless } = await this.#everyWrite(when, trace);
      results.push(...cases);
      broken.push(...cases.flatMap((each) => this.#judge(each, trace)), ...endless);
    }
    const crashed = results.filter(({ kills }) => kills.length > 0);
    return {
      broken,
      cases: crashed.length,
      kills: crashed.reduce((sum, { kills }) => sum + kills.length, 0),
      writes,
      calls: trace.calls.length,
      outputs: trace.runs.map(({ output }) => output),
    };
  }

  /** Of a case that failed nothing more is asked. */
  #judge({ trace, failures, kills }: CaseResult, uncrashed: CaseTrace): BrokenPromise[] {
    const { branches = 1, ignore = [], mayExhaust = false, sideBySide = false } = this.#options;
    const options = { branches, ignore, mayExhaust, sideBySide };
    const found = failures.length > 0 ? failures : checkCase(trace, uncrashed, options);
    return found.map((each) => ({ ...each, kills }));
  }

  /** Until a worker lives through it all. */
  async #everyWrite(
    when: Death["when"],
    uncrashed: CaseTrace,
  ): Promise<{ readonly cases: readonly CaseResult[]; readonly endless: readonly BrokenPromise[] }> {
    const { maxKills = 200, lanes = 3, kills = () => true, again } = this.#options;
    const runIds = uncrashed.runs.map(({ runId }) => runId);
    const cases: CaseResult[] = [];
    let next = 1;
    let through = false;
    const lane = async (): Promise<void> => {
      while (!through && next <= maxKills) {
        const at = next++;
        if (!kills(at)) continue;
        const second = again?.(at);
        const deaths: Death[] = [{ at, when }, ...(second === undefined ? [] : [{ at: second, when }])];
        const result = await this.#doCase(deaths, runIds);
        if (result.kills.length === 0) through = true;
        cases.push(result);
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane));
    const detail = `after ${maxKills} kills ${when} a write the work had still not been done in one life`;
    return { cases, endless: through ? [] : [{ ...unfinished(detail), kills: [] }] };
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
    let writes = 0;
    for (let over = false; !over;) {
      const caller = `${name} life ${lives.length + 1}`;
      const end = await this.#live(file, book, caller, deaths[lives.length] ?? null);
      over = end.kind !== "killed";
      if (end.kind === "finished") ({ writes } = end);
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
    return { trace: { lives, calls: book.calls, runs }, kills, failures, writes };
  }

  async #live(
    file: string,
    book: CallBook,
    caller: string,
    death: Death | null,
  ): ReturnType<WorkerProcess["endWithin"]> {
    const { worker, workload, data = null, boundMs = 20_000 } = this.#options;
    const orders = { file, workload, data, death, server: { url: book.url, caller } };
    const child = WorkerProcess.start(worker, orders, join(this.#folder, "compiled"));
    try {
      return await child.endWithin(boundMs);
    } finally {
      child.signal("SIGKILL");
    }
  }

  /** Opened for the look and closed again, so that a dead worker's file is found as it left it. */
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

  /** Lets the visitor in; the function returned shows them out and says what went wrong. */
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

function receiptsOf(traces: readonly RunTrace[]): ReadonlySet<string> {
  return new Set(traces.flatMap(({ receipts }) => [...receipts]));
}

function unfinished(detail: string): Broken {
  return { promise: "finished", detail };
}
