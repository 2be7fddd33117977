import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Fault, toNanoUsd, type JsonValue, type RunId, type Store } from "../../src/kernel/index.ts";
import {
  CountingServer,
  traceRun,
  WorkerProcess,
  type CallBook,
  type RunTrace,
  type ServedCall,
} from "../../src/testing/index.ts";
import type { SiteAddress } from "../crash/site-engine.ts";
import { isFull } from "../effort.ts";
import { branches, fleetAnswer, fleetRun, seats } from "./fleet-agents.ts";
import type { LinkFault } from "./faulty-proxy.ts";

/** Orders for a worker on a PostgreSQL store. */
export interface FleetWorkerData {
  readonly url: string;
  readonly schema: string;
  readonly leaseMs: number;
  /** By how many milliseconds the clock of the worker is wrong. Default: 0. */
  readonly skewMs?: number;
  /** If given, the worker uses the Restate engine. */
  readonly site?: SiteAddress;
}

/** What the harness needs of an engine and its store. Everything else is the same for all engines. */
export interface FleetWorld {
  /** Script of the worker process, which hosts `fleetAgents` until SIGTERM. */
  readonly script: URL;
  readonly leaseMs: number;
  /** Orders for the worker in a place of the fleet, counted from 0. */
  readonly orders: (place: number) => JsonValue;
  /** Store through which the harness submits and reads. It is not disturbed. */
  readonly store: Store;
  /** Submits a run of `fleet-clerk` with this id. */
  readonly submit: (runId: RunId) => Promise<unknown>;
  /** Reads which worker owns a run. */
  readonly approveAll: () => Promise<unknown>;
  /** Asks which worker owns a run. */
  readonly ownerOf: (runId: RunId) => Promise<Ownership>;
  /** Disturbs connections of the worker in a place. */
  readonly disturb: (place: number, fault: LinkFault) => Disturbance;
  /** Number of connections of workers that were cut. */
  readonly cuts: () => number;
  /** Functions that kill a server of the store or the engine and start it again, by the name of the server. */
  readonly restart: Readonly<Record<string, () => Promise<void>>>;
}

interface Disturbance {
  /** Whether the worker still reaches the store, so that it keeps its runs. */
  readonly keepsLease: boolean;
  /** Ends the disturbance. */
  readonly heal: () => void;
}

export interface Ownership {
  /** Name of the worker. `null` if the run has no owner at the moment. */
  readonly owner: string | null;
  readonly epoch: number;
}

interface FleetOptions {
  readonly seed: number;
  /** Number of runs. It must exceed the number of faults, because at least one run is submitted before each fault. */
  readonly runs: number;
  readonly workers: number;
  /** Number of faults. Each kind occurs at least once if there are enough, and each server restarts. */
  readonly faults: number;
  /** Time after which the fleet counts as hanging. The error then describes the runs that have not ended. */
  readonly hangsAfterMs: number;
}

interface FleetReport {
  /** Broken promises, in words. Empty if all hold. */
  readonly broken: readonly string[];
  readonly faults: readonly string[];
  /**
   * Number of faults in which a worker lost its lease. Each fault hit a worker during a call, which another worker then
   * repeated.
   */
  readonly hits: number;
  /** Number of faults of workers that kept their lease. None of them made another worker repeat a call. */
  readonly kept: number;
  /** Number of calls that workers repeated because their answer was not recorded. */
  readonly repeated: number;
  /** Number of calls that arrived from a worker that no longer owned the run. */
  readonly late: number;
  /** Number of times that a worker took over a run from another one. */
  readonly takeOvers: number;
  readonly cuts: number;
}

type FaultKind = "kill" | "stop" | LinkFault | { readonly restart: string };

const kindsOfWorkers: readonly FaultKind[] = ["kill", "stop", "cut", "delay", "half-close"];

/** A call that is not answered, so that its worker owns an unfinished run. */
interface CaughtCall {
  readonly call: Call;
  /** Place of the worker. */
  readonly place: number;
  /**
   * How often other workers had made the call when it was caught. On a busy machine the worker may lose the run before
   * the fault.
   */
  readonly repeats: number;
  readonly answer: () => void;
  readonly answered: Promise<void>;
}

type Call = Omit<ServedCall, "billed">;

/**
 * Lets workers execute runs while workers are killed, stopped and disconnected and their servers restart. Checks that
 * all runs complete, no recorded call repeats, seats and money are exact and events have no gap.
 */
export async function runFleet(world: FleetWorld, options: FleetOptions): Promise<FleetReport> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-fleet-"));
  const server = await CountingServer.open();
  const fleet = new Fleet(world, options, folder, server);
  const began = performance.now();
  const ended = new AbortController();
  try {
    const report = await Promise.race([fleet.run(), fleet.failAfter(options.hangsAfterMs, ended.signal)]);
    const { faults, hits, takeOvers, cuts, repeated, late } = report;
    const seconds = Math.round((performance.now() - began) / 1_000);
    const figures = `${options.runs} runs in ${seconds} s: ${faults.length} faults, ${hits} of them of workers, ${takeOvers} take-overs, ${cuts} cut connections, ${repeated} repeated and ${late} late calls\n`;
    if (isFull) process.stdout.write(figures);
    return report;
  } finally {
    ended.abort();
    await fleet.end();
    await server.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

class Fleet {
  readonly #world: FleetWorld;
  readonly #options: FleetOptions;
  readonly #folder: string;
  readonly #book: CallBook;
  readonly #random: () => number;
  readonly #workers: WorkerProcess[] = [];
  /** Names of the workers that are alive, by place. */
  readonly #callers: string[] = [];
  readonly #seen = new Set<string>();
  readonly #submitted: RunId[] = [];
  readonly #faults: string[] = [];
  readonly #broken: string[] = [];
  /**
   * Calls that a worker has made for a run after it lost the run, by caller and run, with the epoch of the run at the
   * last call.
   */
  readonly #late = new Map<string, { readonly count: number; readonly epoch: number }>();
  /** The function that takes the next call of a worker that owns its run. */
  #trap: ((caught: CaughtCall) => void) | undefined;
  #caught: CaughtCall | undefined;
  #lives = 0;
  #hits = 0;
  #kept = 0;
  #repeated = 0;
  #allLate = 0;

  constructor(world: FleetWorld, options: FleetOptions, folder: string, server: CountingServer) {
    this.#world = world;
    this.#options = options;
    this.#folder = folder;
    this.#random = seeded(options.seed);
    this.#book = server.book("fleet", (call) => ({
      ...fleetAnswer(call.name, call.body),
      hold: () => this.#hold(call),
    }));
  }

  async run(): Promise<FleetReport> {
    const { runs, workers } = this.#options;
    for (let place = 0; place < workers; place++) this.#start(place);
    const runIds = Array.from({ length: runs }, (_, index) => fleetRun(index));
    const [first = fleetRun(0), ...others] = runIds;
    // The first run is not disturbed. The others must end like it.
    await this.#submit([first]);
    await this.#untilEnded([first]);
    const plan = this.#plan();
    const share = others.length / plan.length;
    if (share < 1) throw new Error(`invalid runs ${runs}: expected more than the ${plan.length} faults`);
    for (const [index, kind] of plan.entries()) {
      // Workers may be faster than the caller: a run that already waits for its approval makes no further call.
      const caught = this.#catch();
      await this.#submit(others.slice(Math.floor(index * share), Math.floor((index + 1) * share)));
      await this.#strike(kind, await caught);
    }
    await this.#untilEnded(runIds);
    await this.#judge(runIds);
    const records = await Promise.all(runIds.map((runId) => this.#world.store.journal.find(runId)));
    return {
      broken: this.#broken,
      faults: this.#faults,
      hits: this.#hits,
      kept: this.#kept,
      repeated: this.#repeated,
      late: this.#allLate,
      takeOvers: records.reduce((sum, record) => sum + (record?.recoveries ?? 0), 0),
      cuts: this.#world.cuts(),
    };
  }

  /** Fails when the time has passed and describes the runs that have not ended, with their owners and last events. */
  async failAfter(ms: number, signal: AbortSignal): Promise<never> {
    await pause(ms, undefined, { signal });
    const lines: string[] = [];
    for (const runId of this.#submitted) {
      const summary = await this.#world.store.journal.summary(runId);
      if (summary === undefined || summary.endedAt !== null) continue;
      const trace = await traceRun(this.#world.store, runId);
      const last = trace?.events.slice(-12).map(({ type, data }) => `${type} ${JSON.stringify(data)}`) ?? [];
      lines.push([JSON.stringify([summary, await this.#world.ownerOf(runId)]), ...last].join("\n    "));
    }
    const step = this.#trap === undefined ? "ran" : "waited for a call";
    throw new Error(
      `after ${ms} ms the fleet still ${step}, with the faults ${this.#faults.join(", ")}:\n  ${lines.join("\n  ")}`,
    );
  }

  async end(): Promise<void> {
    for (const worker of this.#workers) {
      worker.signal("SIGKILL");
      await worker.ended;
    }
  }

  #start(place: number): void {
    const caller = `fleet-${place}-life-${this.#lives++}`;
    const orders = {
      file: "",
      workload: "fleet",
      data: this.#world.orders(place),
      death: null,
      server: { url: this.#book.url, caller },
    };
    this.#callers[place] = caller;
    this.#workers[place] = WorkerProcess.start(this.#world.script, orders, join(this.#folder, "compiled"));
  }

  /** Returns every kind of fault once, and then random kinds, in an order that the seed decides. */
  #plan(): readonly FaultKind[] {
    const servers = Object.keys(this.#world.restart).map((name) => ({ restart: name }));
    const kinds = [...kindsOfWorkers, ...servers];
    const more = Array.from({ length: Math.max(0, this.#options.faults - kinds.length) }, () =>
      this.#choose(kinds),
    );
    const plan = [...kinds, ...more].slice(0, this.#options.faults);
    return plan
      .map((kind) => ({ kind, order: this.#random() }))
      .toSorted((one, other) => one.order - other.order)
      .map(({ kind }) => kind);
  }

  /**
   * Applies a fault while a worker waits for an answer. A fault of a worker lasts until another worker has taken over
   * the run and repeated the call. Only then the call is answered, so that a worker that continues tries to record an
   * answer for a run that it has lost.
   */
  async #strike(kind: FaultKind, { call, place, repeats, answer }: CaughtCall): Promise<void> {
    const worker = this.#workers[place];
    if (typeof kind === "object") {
      this.#faults.push(`restart of ${kind.restart}`);
      await this.#world.restart[kind.restart]?.();
    } else {
      this.#faults.push(`${kind} ${place}`);
      if (kind === "kill") {
        this.#hits++;
        worker?.signal("SIGKILL");
        await worker?.ended;
        this.#start(place);
        await this.#untilRepeated(call, repeats);
      } else if (kind === "stop") {
        this.#hits++;
        worker?.signal("SIGSTOP");
        await this.#untilRepeated(call, repeats);
        worker?.signal("SIGCONT");
      } else {
        const { keepsLease, heal } = this.#world.disturb(place, kind);
        if (keepsLease) await this.#expectKept(call);
        else {
          this.#hits++;
          await this.#untilRepeated(call, repeats);
        }
        heal();
      }
    }
    answer();
  }

  /** Resolves with the next call of a worker that owns its run. The call waits for `answer`. */
  #catch(): Promise<CaughtCall> {
    return new Promise((resolve) => {
      this.#trap = resolve;
    });
  }

  /** Resolves when twice the lease has passed and other workers have made the call more often than before. */
  async #untilRepeated(call: Call, before: number): Promise<void> {
    const end = Date.now() + this.#world.leaseMs * 2;
    while (Date.now() < end || this.#repeatsOf(call) === before) await this.#answerAndPause();
  }

  /** L15: while a worker has its lease, no other worker repeats its call. */
  async #expectKept(call: Call): Promise<void> {
    this.#kept++;
    const before = this.#repeatsOf(call);
    const end = Date.now() + this.#world.leaseMs * 2;
    while (Date.now() < end) await this.#answerAndPause();
    if (this.#repeatsOf(call) > before)
      this.#broken.push(`the call ${call.name} ${call.key} of a worker with a lease was repeated`);
  }

  /** Number of times that other workers have made the call. */
  #repeatsOf({ name, key, caller }: Call): number {
    const isRepeat = (call: Call): boolean =>
      call.key === key && call.name === name && call.caller !== caller;
    return this.#book.calls.filter(isRepeat).length;
  }

  async #submit(runIds: readonly RunId[]): Promise<void> {
    for (const runId of runIds) {
      this.#submitted.push(runId);
      await this.#world.submit(runId);
    }
  }

  async #untilEnded(runIds: readonly RunId[]): Promise<void> {
    const open = new Set(runIds);
    while (open.size > 0) {
      for (const runId of open) {
        const summary = await tolerant(() => this.#world.store.journal.summary(runId));
        if (summary?.endedAt !== null && summary !== undefined) open.delete(runId);
      }
      await this.#answerAndPause();
    }
  }

  async #answerAndPause(): Promise<void> {
    await tolerant(this.#world.approveAll);
    await pause(150);
  }

  /** Called before a call is answered. */
  async #hold(call: Call): Promise<void> {
    const { name, key, caller } = call;
    const id = `${name} ${key}`;
    const isRepeated = this.#seen.has(id);
    this.#seen.add(id);
    const runId = /^run_fleet-\d+/u.exec(key)?.[0] as RunId | undefined;
    if (runId === undefined) throw new Error(`the key ${key} names no run`);
    const trace = isRepeated ? await tolerant(() => traceRun(this.#world.store, runId)) : undefined;
    const isRecorded = trace?.receipts.has(call.receipt) === true;
    if (trace !== undefined && !isRecorded) this.#repeated++;
    const { owner, epoch } = (await tolerant(() => this.#world.ownerOf(runId))) ?? {};
    if (owner === caller) {
      this.#late.delete(`${caller} ${runId}`);
      if (isRecorded) this.#broken.push(`${caller} repeated the recorded call ${id}`);
      await this.#waitInTrap(call);
    } else if (epoch !== undefined) this.#noteLate(caller, runId, epoch);
    // Calls take some time, so that faults hit them.
    await pause(10 + this.#random() * 30);
  }

  async #waitInTrap(call: Call): Promise<void> {
    const place = this.#callers.indexOf(call.caller);
    if (this.#trap !== undefined && place !== -1) {
      const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
      this.#caught = { call, place, repeats: this.#repeatsOf(call), answer, answered };
      this.#trap(this.#caught);
      this.#trap = undefined;
    }
    const { key, caller } = this.#caught?.call ?? {};
    // A worker that lost the run and got it back makes the call again. Its answer would end the wait for another worker.
    if (key === call.key && caller === call.caller) await this.#caught?.answered;
  }

  /**
   * J3: a worker that has lost a run makes only calls whose check passed before the loss, at most one call per branch.
   */
  #noteLate(caller: string, runId: RunId, epoch: number): void {
    this.#allLate++;
    const last = this.#late.get(`${caller} ${runId}`);
    // The worker may have had the run again in an epoch between.
    const count = last === undefined || epoch > last.epoch + 1 ? 1 : last.count + 1;
    this.#late.set(`${caller} ${runId}`, { count, epoch });
    if (count > branches) this.#broken.push(`${caller} started ${count} calls of ${runId} after it lost it`);
  }

  async #judge(runIds: readonly RunId[]): Promise<void> {
    const traces = await Promise.all(runIds.map((runId) => traceRun(this.#world.store, runId)));
    const [model] = traces;
    for (const [index, trace] of traces.entries())
      for (const problem of trace === undefined || model === undefined
        ? ["the run does not exist"]
        : problemsOf(trace, model, this.#billedTo(trace.runId)))
        this.#broken.push(`${runIds[index]}: ${problem}`);
  }

  #billedTo(runId: RunId): number {
    return this.#book.calls
      .filter(({ key }) => key.startsWith(`${runId} `) || key.startsWith(`${runId}/`))
      .reduce((sum, { billed }) => sum + billed.tokens, 0);
  }

  #choose<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#random() * items.length)] as Item;
  }
}

/** Yields the differences between a run and the same run without faults. */
function* problemsOf(trace: RunTrace, model: RunTrace, billed: number): Generator<string> {
  if (trace.status !== "completed") yield `ended as ${trace.status}: ${JSON.stringify(endOf(trace))}`;
  if (JSON.stringify(trace.output) !== JSON.stringify(model.output)) yield "has another output";
  if (trace.open.length > 0) yield `has open tasks: ${trace.open.join(", ")}`;
  if (!trace.chain.ok) yield "has a broken hash chain";
  if (trace.events.some(({ seq }, index) => seq !== index)) yield "has a gap in its events";
  const { spent, lost, reserved, totalled } = trace.money;
  const late = correctedIn(trace);
  if (spent.tokens - lost.tokens - late.tokens !== model.money.spent.tokens)
    yield `spent ${spent.tokens} tokens with ${lost.tokens} lost and ${late.tokens} corrected, instead of ${model.money.spent.tokens}`;
  if (spent.nanoUsd - lost.nanoUsd - late.nanoUsd !== model.money.spent.nanoUsd)
    yield "spent another amount of dollars";
  if (reserved.tokens !== 0 || reserved.nanoUsd !== 0) yield "has an open reservation";
  if (totalled.tokens !== spent.tokens || totalled.nanoUsd !== spent.nanoUsd)
    yield "added another amount to the totals than it spent";
  if (billed > spent.tokens) yield `was billed ${billed} tokens and recorded ${spent.tokens}`;
  if (trace.seats.most > seats || trace.seats.left.length > 0)
    yield `had ${trace.seats.most} seats, and ${trace.seats.left.length} at its end`;
}

/** Returns the cost of unreported calls whose usage became known later (B3). */
function correctedIn({ events }: RunTrace): { readonly tokens: number; readonly nanoUsd: number } {
  const usages = events.flatMap((event) => (event.type === "usage_corrected" ? [event.data.usage] : []));
  return {
    tokens: usages.reduce((sum, { inputTokens, outputTokens }) => sum + inputTokens + outputTokens, 0),
    nanoUsd: usages.reduce((sum, { costUsd }) => sum + toNanoUsd(costUsd ?? 0), 0),
  };
}

/** How the last task ended. */
function endOf({ events }: RunTrace): unknown {
  return events.findLast(({ type }) => type === "task_end")?.data;
}

/** Returns `undefined` while the store is away, for callers that ask again. */
async function tolerant<Value>(ask: () => Promise<Value>): Promise<Value | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (Fault.from(error).code === "store_unavailable") return undefined;
    throw error;
  }
}

/** A generator of numbers from 0 to 1 that returns the same sequence for the same seed (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
