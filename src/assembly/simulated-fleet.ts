import { findNamedModel, priceCatalog } from "../capabilities/index.ts";
import { cronReader } from "../capabilities/schedules/cron-reader.ts";
import {
  agentNameOf,
  Fault,
  inboxSettings,
  unfinishedStatuses,
  type AgentResolver,
  type EngineFactory,
  type Event,
  type HostedAgent,
  type Runtime,
  type Store,
} from "../kernel/index.ts";
import { createRuntime, sha256, SimulatedDatabase, simulatedStore } from "../runtime/simulation.ts";
import {
  Outside,
  replaceAmbient,
  Scheduler,
  SeededRandom,
  SimulatedProcess,
  FaultPlan,
  swarm,
  type FaultRates,
} from "../testing/index.ts";
import { schemaProblems } from "./answer-shape.ts";
import type {
  SeenCommit,
  SimulatedRun,
  SimulateOptions,
  SimulationReport,
  SimulationSite,
} from "./simulate.ts";
import { LogModel } from "./simulated-log-model.ts";
import { Network } from "./simulated-network.ts";
import { WorkerFaults } from "./simulated-faults.ts";

/** Time at which a simulation begins, in epoch milliseconds. */
const startAt = 1_700_000_000_000;

/** Fault codes that no simulated fault can cause. If they occur, the runtime or its store has a bug. */
const neverExpected: readonly string[] = ["internal", "journal_mismatch", "journal_ambiguous", "not_json"];

/** Maximum time between a call of a port and the crash of the process, if it is to crash after the call. */
const diesWithinMs = 12;

/** Interval at which the simulation checks whether all runs have ended. */
const lookEveryMs = 200;

const prices = priceCatalog();

/** An engine that executes no runs, for a process that only starts and reads runs. */
const idleEngine: EngineFactory = () => ({
  kind: null,
  start: async () => undefined,
  wake: () => undefined,
  agentsChanged: () => undefined,
  stop: async () => undefined,
});

export async function simulateFleet<World>(options: SimulateOptions<World>): Promise<SimulationReport> {
  replaceAmbient();
  const fleet = new Fleet(options);
  await fleet.run();
  return fleet.report();
}

/** A worker of the fleet: its processes run one after another. */
interface WorkerPlace {
  readonly name: string;
  lives: number;
  version: number;
  process: SimulatedProcess | undefined;
}

class Fleet<World> {
  readonly #options: SimulateOptions<World>;
  readonly #random: SeededRandom;
  readonly #scheduler: Scheduler;
  readonly #plan: FaultPlan;
  readonly #outside: Outside;
  readonly #database: SimulatedDatabase;
  readonly #network: Network;
  readonly #world: World;
  readonly #places: WorkerPlace[] = [];
  readonly #violations: string[] = [];
  readonly #logModel = new LogModel((text) => this.#violate(text));
  readonly #timeline: { readonly atMs: number; readonly text: string }[] = [];
  readonly #leaseMs: number;
  /** Whether workers keep their names after a restart. */
  readonly #keepsNames: boolean;
  #deaths = 0;
  #isLoaded = false;
  #isQuiet = false;
  #runs: readonly SimulatedRun[] = [];

  constructor(options: SimulateOptions<World>) {
    const { seed, faults = "swarm", only, leaseMs = 3_000 } = options;
    this.#options = options;
    this.#leaseMs = leaseMs;
    this.#random = new SeededRandom(`simulation ${seed}`);
    this.#scheduler = new Scheduler(this.#random, startAt);
    const elapsed = (): number => this.#elapsed();
    const rates = ratesOf(faults, this.#random.named("swarm"));
    this.#plan = new FaultPlan(this.#random, { rates, only, elapsed });
    this.#outside = new Outside({
      scheduler: this.#scheduler,
      faults: this.#plan,
      elapsed,
      onCall: (call) => this.#logModel.call(call),
      onAnswer: (call) => this.#logModel.answer(call),
    });
    this.#world = (options.world?.() ?? undefined) as World;
    this.#keepsNames = this.#random.named("names").next() < 0.5;
    this.#database = new SimulatedDatabase({
      clock: { now: () => this.#scheduler.now },
      hash: sha256,
      onChange: (client, change) => this.#network.announce(client, change),
      onTail: (client, tail) => this.#network.announceTail(client, tail),
    });
    this.#network = new Network({
      scheduler: this.#scheduler,
      plan: this.#plan,
      database: this.#database,
      onPerformed: (request, answer) => {
        const seen = this.#logModel.note(request, answer, this.#elapsed());
        if (seen !== undefined) this.#seeCommit(seen);
      },
    });
  }

  async run(): Promise<void> {
    const { workers = 2, faultsForMs = 60_000, settleMs = 900_000 } = this.#options;
    this.#startClient();
    for (let index = 1; index <= workers; index++) {
      const place: WorkerPlace = { name: `w${index}`, lives: 0, version: 1, process: undefined };
      this.#places.push(place);
      this.#startWorker(place);
    }
    const faults = new WorkerFaults({
      scheduler: this.#scheduler,
      plan: this.#plan,
      network: this.#network,
      database: this.#database,
      leaseMs: this.#leaseMs,
      processes: () => this.#places.map(({ name, process }) => ({ name, process })),
    });
    faults.start();
    this.#look();
    const isOver = (): boolean => this.#isLoaded && this.#isQuiet;
    await this.#scheduler.run(() => isOver() || this.#elapsed() > faultsForMs);
    this.#plan.isOver = true;
    faults.heal();
    await this.#scheduler.run(() => isOver() || this.#elapsed() > faultsForMs + settleMs);
    if (!isOver()) await this.#noteStuck();
    await this.#close();
    await this.#judge();
  }

  report(): SimulationReport {
    const { injected } = this.#plan;
    const faultCounts: Partial<Record<string, number>> = {};
    for (const { kind } of injected) faultCounts[kind] = (faultCounts[kind] ?? 0) + 1;
    const happened = [
      ...injected.map(({ atMs, id, text }) => ({ atMs, text: `FAULT ${id}: ${text}` })),
      ...this.#outside.calls.map(({ atMs, process, name, key }) => ({
        atMs,
        text: `call ${name}${key === null ? "" : ` (${key})`} of ${process}`,
      })),
      ...this.#timeline,
    ].toSorted((one, other) => one.atMs - other.atMs);
    return {
      seed: this.#options.seed,
      violations: this.#violations,
      faults: injected,
      faultCounts,
      log: this.#log(),
      timeline: happened.map(({ atMs, text }) => `${(atMs / 1_000).toFixed(3).padStart(10)} s  ${text}`),
      simulatedMs: Math.round(this.#elapsed()),
      happenings: this.#scheduler.happenings,
      deaths: this.#deaths,
    };
  }

  #elapsed(): number {
    return this.#scheduler.now - startAt;
  }

  #startClient(): void {
    const process = new SimulatedProcess(this.#scheduler, "client", this.#random);
    void process.enter(async () => {
      try {
        const store = this.#connect(process);
        const runtime = await this.#open(process, store, { engine: idleEngine });
        const site = this.#site(process, 1);
        const agents = this.#options.agents(site);
        await this.#options.load({
          ...site,
          runtime,
          store,
          submit: async (name, input, options) => runtime.submit(named(agents, name), input, options),
        });
      } catch (error) {
        this.#violate(`load failed: ${describe(error)}`);
      }
      // Work may have come since the last look.
      this.#isQuiet = false;
      this.#isLoaded = true;
    });
  }

  #startWorker(place: WorkerPlace): void {
    const process = new SimulatedProcess(this.#scheduler, `${place.name}-${++place.lives}`, this.#random);
    place.process = process;
    process.onPort = (what) => this.#mayDie(place, process, what);
    this.#note(`${process.name} starts${place.version === 1 ? "" : ` with version ${place.version}`}`);
    void process.enter(async () => {
      try {
        const workerId = this.#keepsNames ? place.name : process.name;
        const runtime = await this.#open(process, this.#connect(process), { workerId });
        for (const agent of this.#options.agents(this.#site(process, place.version))) runtime.register(agent);
      } catch (error) {
        this.#noteError(process, Fault.from(error));
        this.#end(place, process, `cannot start: ${describe(error)}`);
      }
    });
  }

  /** The store of a process, behind the network. */
  #connect(process: SimulatedProcess): Store {
    const { clock, eventLoop, random } = process;
    const link = this.#network.connect(process);
    const { store, noticed, tailNoticed } = simulatedStore({
      link,
      clock,
      eventLoop,
      random,
      hash: sha256,
      inbox: inboxSettings(),
      every: (ms, call) => process.every(ms, call),
      leaseMs: this.#leaseMs,
      pollMs: 1_000,
      // A client has nothing else to do, and tries again until the faults are over.
      retryForMs: process.name === "client" ? Infinity : 2_000,
    });
    this.#network.listen(process, { noticed, tailNoticed });
    return store;
  }

  #open(
    process: SimulatedProcess,
    store: Store,
    more: { readonly engine?: EngineFactory; readonly workerId?: string },
  ): Promise<Runtime> {
    const { clock, eventLoop, random, ids } = process;
    return createRuntime({
      prices,
      resolveModel: findNamedModel,
      cron: async () => cronReader,
      checkSchema: schemaProblems,
      crashLoopLimit: 1_000_000,
      ...this.#options.runtime,
      ...more,
      store,
      clock,
      eventLoop,
      ids,
      random,
      keepAlive: false,
      host: "simulated",
      onError: (error) => this.#noteError(process, error),
    });
  }

  #site(process: SimulatedProcess, version: number): SimulationSite<World> {
    return {
      name: process.name,
      world: this.#world,
      clock: process.clock,
      random: process.random,
      version,
      call: (name, effect, given) => this.#outside.call(process, name, effect, given),
      model: (reply, name) => this.#outside.model(process, reply, name),
      sleep: (ms) => new Promise((resolve) => void process.after(ms, resolve)),
    };
  }

  /** Decides whether a process crashes before a call of a port, or soon after it. */
  #mayDie(place: WorkerPlace, process: SimulatedProcess, what: string): void {
    const random = this.#plan.happens("kill", `${process.name} at ${what}`);
    if (random === undefined) return;
    if (random.next() < 0.3) this.#end(place, process, "dies");
    else process.after(random.between(0, diesWithinMs), () => this.#end(place, process, "dies"));
  }

  #end(place: WorkerPlace, process: SimulatedProcess, how: string): void {
    if (!process.isAlive) return;
    process.isAlive = false;
    this.#deaths++;
    this.#note(`${process.name} ${how}`);
    this.#network.disconnect(process);
    place.process = undefined;
    this.#scheduler.after(this.#random.between(1, 2_000), () => {
      const isFirst = place === this.#places[0];
      if (!isFirst && this.#plan.happens("upgrade", place.name) !== undefined) place.version = 2;
      this.#startWorker(place);
    });
  }

  #noteError(process: SimulatedProcess, { code, message }: Fault): void {
    if (!process.isAlive) return;
    this.#note(`${process.name} reports ${code}: ${message.slice(0, 160)}`);
    if (neverExpected.includes(code)) this.#violate(`${process.name} reports ${code}: ${message}`);
    if (code !== "store_lost" && code !== "already_exists") return;
    const place = this.#places.find((each) => each.process === process);
    if (place !== undefined) this.#end(place, process, `ends with ${code}`);
  }

  #seeCommit(seen: SeenCommit): void {
    const { runId, commit } = seen;
    const types = (commit.events ?? []).map(({ type }) => type);
    this.#note(`commit ${commit.number} of ${runId}${types.length === 0 ? "" : `: ${types.join(", ")}`}`);
    for (const each of listOf(this.#options.watch?.(seen))) this.#violate(each);
  }

  /** Looks whether all runs have ended. */
  #look(): void {
    this.#scheduler.after(lookEveryMs, () => {
      void this.#lookNow();
      this.#look();
    });
  }

  async #lookNow(): Promise<void> {
    this.#isQuiet = (await this.#database.tables.journal.count({ status: unfinishedStatuses })) === 0;
  }

  async #noteStuck(): Promise<void> {
    const { runs } = await this.#database.tables.journal.list({ status: unfinishedStatuses, limit: 20 });
    const left = runs.map(({ runId, status, waitsFor }) => `${runId} is ${status} (${waitsFor.join(", ")})`);
    if (!this.#isLoaded) left.push("load has not resolved");
    this.#violate(`no progress without faults: ${left.join("; ")}`);
  }

  /** Ends all processes. */
  async #close(): Promise<void> {
    for (const { process } of this.#places) if (process !== undefined) process.isAlive = false;
    this.#database.restart();
    await this.#scheduler.run(() => true);
  }

  async #judge(): Promise<void> {
    const { journal, events } = this.#database.tables;
    const found: SimulatedRun[] = [];
    for (let after: string | undefined; ;) {
      const page = await journal.list({ limit: 200, ...(after !== undefined && { after }) });
      for (const run of page.runs) {
        const log: Event[] = [];
        for await (const event of events.read(run.runId, 0)) log.push(event);
        found.push({ run, events: log });
        const verdict = await events.verify(run.runId);
        if (!verdict.ok) this.#violate(`E1: the log of ${run.runId} is broken: ${verdict.problem}`);
      }
      if (page.next === null) break;
      after = page.next;
    }
    this.#runs = found.toReversed();
    this.#logModel.compare(this.#runs.map(({ run, events: log }) => ({ runId: run.runId, events: log })));
    const end = {
      world: this.#world,
      calls: this.#outside.calls,
      runs: this.#runs,
      deaths: this.#deaths,
    };
    try {
      for (const each of listOf(await this.#options.check?.(end))) this.#violate(each);
    } catch (error) {
      this.#violate(`check failed: ${describe(error)}`);
    }
  }

  #log(): string {
    const lines: string[] = [];
    for (const { run, events } of this.#runs) {
      lines.push(JSON.stringify(run));
      for (const event of events) lines.push(JSON.stringify(event));
    }
    for (const call of this.#outside.calls) lines.push(JSON.stringify(call));
    return `${lines.join("\n")}\n`;
  }

  #note(text: string): void {
    this.#timeline.push({ atMs: this.#elapsed(), text });
  }

  #violate(text: string): void {
    this.#note(`VIOLATION ${text}`);
    this.#violations.push(text);
  }
}

/** Returns the agent with this name. Throws `not_found` if it does not exist. */
function named(agents: readonly (HostedAgent | AgentResolver)[], name: string): HostedAgent {
  for (const agent of agents) if ("id" in agent && agentNameOf(agent.id) === name) return agent;
  throw new Fault("not_found", `no agent of the simulation is named ${JSON.stringify(name)}`);
}

function ratesOf(faults: "swarm" | "none" | FaultRates, random: SeededRandom): FaultRates {
  if (faults === "none") return {};
  return faults === "swarm" ? swarm(random) : faults;
}

function listOf(given: string | readonly string[] | undefined | void): readonly string[] {
  if (given === undefined) return [];
  return typeof given === "string" ? [given] : given;
}

function describe(error: unknown): string {
  const { code, message } = Fault.from(error);
  return `${code}: ${message}`;
}
