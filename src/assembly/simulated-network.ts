import { Fault, type StoreChange } from "../kernel/index.ts";
import {
  LostConnection,
  type DatabaseAnswer,
  type DatabaseLink,
  type DatabaseRequest,
  type SimulatedDatabase,
  type SimulatedStore,
} from "../runtime/simulation.ts";
import type { FaultPlan, Scheduler, SimulatedProcess } from "../testing/index.ts";

export interface NetworkOptions {
  readonly scheduler: Scheduler;
  readonly plan: FaultPlan;
  readonly database: SimulatedDatabase;
  /** Called when the database has performed a request for the first time. */
  readonly onPerformed: (request: DatabaseRequest, answer: DatabaseAnswer) => void;
}

/** Time after which an unanswered request is considered lost. */
const timeoutMs = 1_000;

type Ends = Pick<SimulatedStore, "noticed" | "tailNoticed">;

interface Connection extends Ends {
  readonly process: SimulatedProcess;
}

/** Errors of a store that refuses a request. */
const refusals = ["store_unavailable", "store_lost", "store_full", "store_read_only"] as const;

/** Whether a request only reads. A full database refuses only requests that write. */
const isRead =
  /^(?:journal\.(?:find|summary|list|count|changes|approvals|read|commits)|events\.|workers\.|leases\.(?:nextWakeAt|countReady|findReady|haveEnded|check)|sessions\.(?:find|read|readPath|list)|records\.(?:get|list|due|nextDueAt))/u;

/** The connection between the processes and the database: latency, and faults of messages. */
export class Network {
  readonly #options: NetworkOptions;
  readonly #connections = new Map<string, Connection>();
  /** Names of processes that are disconnected from the database. */
  readonly #cut = new Set<string>();
  /** Processes that do not reach the database. A partition may cut one direction only. */
  readonly #mute = new Set<string>();
  /** Number of restarts of the database. Requests that arrived before the last restart are lost. */
  #boots = 0;
  #isDown = false;
  isFull = false;

  constructor(options: NetworkOptions) {
    this.#options = options;
  }

  /** The link of a process to the database. */
  connect(process: SimulatedProcess): DatabaseLink {
    return { client: process.name, send: (request) => this.#send(process, request) };
  }

  listen(process: SimulatedProcess, ends: Ends): void {
    this.#connections.set(process.name, { ...ends, process });
  }

  disconnect({ name }: SimulatedProcess): void {
    this.#connections.delete(name);
  }

  /** Separates a process from the database. If only the answers are cut, its requests still take effect. */
  cut(name: string, onlyAnswers: boolean): void {
    this.#cut.add(name);
    if (!onlyAnswers) this.#mute.add(name);
  }

  /** Joins a process and the database again. */
  join(name: string): void {
    this.#cut.delete(name);
    this.#mute.delete(name);
  }

  /** Stops the database. Requests that it has not executed are lost. */
  stop(): void {
    this.#boots++;
    this.#isDown = true;
    this.#options.database.restart();
  }

  start(): void {
    this.#isDown = false;
  }

  heal(): void {
    this.#cut.clear();
    this.#mute.clear();
    this.#isDown = false;
    this.isFull = false;
  }

  #send(process: SimulatedProcess, request: DatabaseRequest): Promise<DatabaseAnswer> {
    const { scheduler, plan } = this.#options;
    return new Promise((resolve, reject) => {
      // Nothing of a dead process continues.
      if (!process.mayCall(request.method)) return;
      const cancel = process.after(timeoutMs, () => reject(new LostConnection(request.method)));
      const answered = (answer: DatabaseAnswer): void => {
        cancel();
        resolve(answer);
      };
      const what = `${request.method} of ${process.name}`;
      const times = plan.happens("repeat", what) === undefined ? 1 : 2;
      for (let count = 0; count < times; count++) {
        if (plan.happens("loss", what) !== undefined) continue;
        scheduler.after(this.#latency(what), () => this.#arrive(process, request, answered));
      }
    });
  }

  /** Lets a request arrive at the database, and sends its answer. */
  #arrive(
    process: SimulatedProcess,
    request: DatabaseRequest,
    answered: (answer: DatabaseAnswer) => void,
  ): void {
    const { scheduler, plan } = this.#options;
    const what = `${request.method} of ${process.name}`;
    if (this.#isDown || this.#mute.has(process.name)) return;
    const boot = this.#boots;
    const slow = plan.happens("slow", what);
    scheduler.after(slow === undefined ? 0 : slow.between(10, 3_000), () => {
      if (this.#boots !== boot) return;
      void this.#answer(process, request, answered);
    });
  }

  /** Executes a request, and sends its answer. */
  async #answer(
    process: SimulatedProcess,
    request: DatabaseRequest,
    answered: (answer: DatabaseAnswer) => void,
  ): Promise<void> {
    const { scheduler, plan } = this.#options;
    const what = `${request.method} of ${process.name}`;
    const boot = this.#boots;
    const answer = await this.#perform(request, what);
    if (plan.happens("lostAnswer", what) !== undefined) return;
    scheduler.after(this.#latency(`the answer to ${what}`), () => {
      if (this.#boots !== boot || this.#cut.has(process.name)) return;
      process.after(0, () => answered(answer));
    });
  }

  async #perform(request: DatabaseRequest, what: string): Promise<DatabaseAnswer> {
    const { database, plan, onPerformed } = this.#options;
    const isNew = !database.hasPerformed(request.id);
    const isClient = request.client === "client";
    if (isNew && !isClient && this.isFull && !isRead.test(request.method)) return refusal("store_full");
    const refused = isNew && !isClient ? plan.happens("storeError", what) : undefined;
    // A read neither needs space nor writes.
    const codes = isRead.test(request.method) ? refusals.slice(0, 2) : refusals;
    if (refused !== undefined) return refusal(codes[refused.below(codes.length)] ?? "store_unavailable");
    const answer = await database.perform(request);
    if (isNew) onPerformed(request, answer);
    return answer;
  }

  /**
   * Informs all processes about a change, except the process that made it, which is informed by the answer to its
   * request.
   */
  announce(client: string, change: StoreChange): void {
    for (const [name, connection] of this.#connections)
      if (name !== client)
        this.#notify(connection, `notice ${change.kind}`, () => connection.noticed(change));
  }

  announceTail(client: string, tail: string): void {
    const connection = this.#connections.get(client);
    if (connection !== undefined)
      this.#notify(connection, "notice of a tail", () => connection.tailNoticed(tail));
  }

  #notify({ process }: Connection, text: string, tell: () => void): void {
    const { scheduler, plan } = this.#options;
    const what = `${text} to ${process.name}`;
    const times = plan.happens("wake", what) === undefined ? 1 : 2;
    for (let count = 0; count < times; count++) {
      if (plan.happens("loss", what) !== undefined) continue;
      scheduler.after(this.#latency(what), () => {
        if (!this.#isDown && !this.#cut.has(process.name)) process.after(0, tell);
      });
    }
  }

  #latency(what: string): number {
    const { scheduler, plan } = this.#options;
    const late = plan.happens("delay", what);
    return scheduler.random.between(0.1, 2) + (late === undefined ? 0 : late.between(5, 2_000));
  }
}

function refusal(code: (typeof refusals)[number]): DatabaseAnswer {
  const failure = new Fault(code, "the simulated database refuses the request").toJSON();
  return { body: JSON.stringify({ failure }), changes: [] };
}
