import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Fault, type JsonValue, type RunId, type Store } from "../../src/kernel/index.ts";
import {
  CountingServer,
  traceRun,
  WorkerProcess,
  type CallBook,
  type RunTrace,
  type ServedCall,
} from "../../src/testing/index.ts";
import type { SiteAddress } from "../crash/site-engine.ts";
import { branches, fleetAnswer, fleetRun, seats } from "./fleet-agents.ts";
import type { LinkFault } from "./faulty-proxy.ts";

/** Orders for a worker on a PostgreSQL store. */
export interface FleetWorkerData {
  readonly url: string;
  readonly schema: string;
  readonly leaseMs: number;
  /** How much the clock of the worker is wrong. Default: 0. */
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
  /** Approves all open questions. */
  readonly approveAll: () => Promise<unknown>;
  /** The worker that owns a run at the moment. `null` if none does. */
  readonly ownerOf: (runId: RunId) => Promise<string | null>;
  /** Disturbs the connection of the worker in a place. The returned function ends it. */
  readonly disturb: (place: number, fault: LinkFault) => () => void;
  /** Number of connections of workers that were cut. */
  readonly cuts: () => number;
  /** Functions that kill a server of the store or the engine and start it again, by the name of the server. */
  readonly restart: Readonly<Record<string, () => Promise<void>>>;
}

interface FleetOptions {
  readonly seed: number;
  readonly runs: number;
  readonly workers: number;
  /** Number of faults. Each kind occurs at least once if there are enough, and each server restarts. */
  readonly faults: number;
}

interface FleetReport {
  /** Broken promises, in words. Empty if all hold. */
  readonly broken: readonly string[];
  readonly faults: readonly string[];
  /** Number of calls that workers repeated because their answer was not recorded. */
  readonly repeated: number;
  /** Number of calls that a worker started although another one had taken over its run. */
  readonly late: number;
  /** Number of times that a worker took over a run from another one. */
  readonly takeOvers: number;
  readonly cuts: number;
}

type FaultKind = "kill" | "stop" | LinkFault | { readonly restart: string };

const kindsOfWorkers: readonly FaultKind[] = ["kill", "stop", "cut", "delay", "half-close"];

/**
 * Lets workers drive runs while they are killed, stopped and disconnected and their servers restart, and checks that all runs
 * complete, no recorded call repeats, seats and money are exact and events have no gap.
 */
export async function runFleet(world: FleetWorld, options: FleetOptions): Promise<FleetReport> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-fleet-"));
  const server = await CountingServer.open();
  const fleet = new Fleet(world, options, folder, server);
  try {
    return await fleet.run();
  } finally {
    await fleet.end();
    await server.close();
    await rm(folder, { recursive: true, force: true });
  }
}

class Fleet {
  readonly #world: FleetWorld;
  readonly #options: FleetOptions;
  readonly #folder: string;
  readonly #book: CallBook;
  readonly #random: () => number;
  readonly #workers: WorkerProcess[] = [];
  readonly #seen = new Set<string>();
  readonly #faults: string[] = [];
  readonly #broken: string[] = [];
  /** Calls that a worker started for a run of another owner and whose answer was recorded, by caller and run. */
  readonly #late = new Map<string, number>();
  #lives = 0;
  #repeated = 0;

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
    const { runs, workers, faults } = this.#options;
    for (let place = 0; place < workers; place++) this.#start(place);
    const runIds = Array.from({ length: runs }, (_, index) => fleetRun(index));
    const [first = fleetRun(0), ...others] = runIds;
    // The first run is not disturbed. The others must end like it.
    await this.#submit([first]);
    await this.#untilEnded([first]);
    const share = Math.ceil(others.length / Math.max(1, faults));
    for (const [index, kind] of this.#plan().entries()) {
      await this.#submit(others.slice(index * share, (index + 1) * share));
      await this.#strike(kind);
    }
    await this.#untilEnded(runIds);
    await this.#judge(runIds);
    const late = [...this.#late.values()].reduce((sum, count) => sum + count, 0);
    const records = await Promise.all(runIds.map((runId) => this.#world.store.journal.find(runId)));
    const takeOvers = records.reduce((sum, record) => sum + (record?.recoveries ?? 0), 0);
    return {
      broken: this.#broken,
      faults: this.#faults,
      repeated: this.#repeated,
      late,
      takeOvers,
      cuts: this.#world.cuts(),
    };
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
    this.#workers[place] = WorkerProcess.start(this.#world.script, orders, join(this.#folder, "compiled"));
  }

  /** Every kind once, then kinds at random, in an order that the seed decides. */
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

  async #strike(kind: FaultKind): Promise<void> {
    const { leaseMs, restart, disturb } = this.#world;
    if (typeof kind === "object") {
      this.#faults.push(`restart of ${kind.restart}`);
      await restart[kind.restart]?.();
      return;
    }
    const place = Math.floor(this.#random() * this.#workers.length);
    this.#faults.push(`${kind} ${place}`);
    const worker = this.#workers[place];
    if (worker === undefined) return;
    if (kind === "kill") {
      worker.signal("SIGKILL");
      await worker.ended;
      this.#start(place);
      await pause(this.#random() * leaseMs);
    } else if (kind === "stop") {
      worker.signal("SIGSTOP");
      await this.#live(leaseMs * 2);
      worker.signal("SIGCONT");
    } else {
      const heal = disturb(place, kind);
      await this.#live(leaseMs * 2);
      heal();
    }
  }

  /** Lets time pass in which the person still answers. */
  async #live(durationMs: number): Promise<void> {
    const end = Date.now() + durationMs;
    while (Date.now() < end) {
      await tolerant(this.#world.approveAll);
      await pause(50);
    }
  }

  async #submit(runIds: readonly RunId[]): Promise<void> {
    for (const runId of runIds) await this.#world.submit(runId);
  }

  async #untilEnded(runIds: readonly RunId[]): Promise<void> {
    const open = new Set(runIds);
    while (open.size > 0) {
      for (const runId of open) {
        const summary = await tolerant(() => this.#world.store.journal.summary(runId));
        if (summary?.endedAt !== null && summary !== undefined) open.delete(runId);
      }
      await tolerant(this.#world.approveAll);
      await pause(50);
    }
  }

  /**
   * Called before a call is answered. A call that is received again must not have a recorded answer, unless the worker has lost
   * the run and started the call before it could know that.
   */
  async #hold({ name, key, receipt, caller }: Omit<ServedCall, "billed">): Promise<void> {
    const id = `${name} ${key}`;
    const isRepeated = this.#seen.has(id);
    this.#seen.add(id);
    // Calls take some time, so that faults hit them.
    await pause(10 + this.#random() * 30);
    if (!isRepeated) return;
    const runId = /^run_fleet-\d+/u.exec(key)?.[0] as RunId | undefined;
    if (runId === undefined) throw new Error(`the key ${key} names no run`);
    const trace = await tolerant(() => traceRun(this.#world.store, runId));
    if (trace === undefined) return;
    if (!trace.receipts.has(receipt)) {
      this.#repeated++;
      return;
    }
    const owner = await tolerant(() => this.#world.ownerOf(runId));
    if (owner === undefined) return;
    if (owner === caller) this.#broken.push(`${caller} repeated the recorded call ${id}`);
    const count = (this.#late.get(`${caller} ${runId}`) ?? 0) + 1;
    this.#late.set(`${caller} ${runId}`, count);
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

/** Compares a run with the one that was not disturbed. */
function* problemsOf(trace: RunTrace, model: RunTrace, billed: number): Generator<string> {
  if (trace.status !== "completed") yield `ended as ${trace.status}`;
  if (JSON.stringify(trace.output) !== JSON.stringify(model.output)) yield "has another output";
  if (trace.open.length > 0) yield `has open tasks: ${trace.open.join(", ")}`;
  if (!trace.chain.ok) yield "has a broken hash chain";
  if (trace.events.some(({ seq }, index) => seq !== index)) yield "has a gap in its events";
  const { spent, lost, reserved, totalled } = trace.money;
  if (spent.tokens - lost.tokens !== model.money.spent.tokens)
    yield `spent ${spent.tokens} tokens with ${lost.tokens} lost, instead of ${model.money.spent.tokens}`;
  if (spent.nanoUsd - lost.nanoUsd !== model.money.spent.nanoUsd) yield "spent another amount of dollars";
  if (reserved.tokens !== 0 || reserved.nanoUsd !== 0) yield "has an open reservation";
  if (totalled.tokens !== spent.tokens || totalled.nanoUsd !== spent.nanoUsd)
    yield "added another amount to the totals than it spent";
  if (billed > spent.tokens) yield `was billed ${billed} tokens and recorded ${spent.tokens}`;
  if (trace.seats.most > seats || trace.seats.left.length > 0)
    yield `had ${trace.seats.most} seats, and ${trace.seats.left.length} at its end`;
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
