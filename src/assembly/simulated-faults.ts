import type { SimulatedDatabase } from "../runtime/simulation.ts";
import type { FaultKind, FaultPlan, Scheduler, SeededRandom, SimulatedProcess } from "../testing/index.ts";
import type { Network } from "./simulated-network.ts";

export interface WorkerFaultsOptions {
  readonly scheduler: Scheduler;
  readonly plan: FaultPlan;
  readonly network: Network;
  readonly database: SimulatedDatabase;
  readonly leaseMs: number;
  readonly processes: () => readonly {
    readonly name: string;
    readonly process: SimulatedProcess | undefined;
  }[];
}

/** What hits a living process. */
type Hit = (process: SimulatedProcess, random: SeededRandom) => void;

/** The faults that happen independently of calls: pauses, wrong clocks, partitions, and restarts of the database. */
export class WorkerFaults {
  readonly #options: WorkerFaultsOptions;
  readonly #drifted = new Set<SimulatedProcess>();

  constructor(options: WorkerFaultsOptions) {
    this.#options = options;
  }

  start(): void {
    const { network, scheduler, leaseMs } = this.#options;
    this.#each("pause", (process, random) => {
      process.stoppedUntil = scheduler.now + leaseMs * random.between(0.5, 4);
    });
    this.#each("drift", (process, random) => {
      this.#drifted.add(process);
      process.drift(random.between(0.7, 1.5));
    });
    this.#each("jump", (process, random) => {
      this.#drifted.add(process);
      process.jump(random.between(-20_000, 20_000));
    });
    this.#each("partition", (process, random) => {
      const lastsMs = leaseMs * random.between(0.1, 4);
      network.cut(process.name, random.next() < 0.5);
      scheduler.after(lastsMs, () => network.join(process.name));
    });
    this.#often("restart", (random) => {
      network.stop();
      scheduler.after(random.between(50, 5_000), () => network.start());
    });
    this.#often("full", (random) => {
      network.isFull = true;
      scheduler.after(random.between(50, 10_000), () => {
        network.isFull = false;
      });
    });
  }

  /** Ends all faults that last. */
  heal(): void {
    this.#options.network.heal();
    for (const process of this.#drifted) process.setRight();
    for (const { process } of this.#options.processes())
      if (process !== undefined) {
        process.stoppedUntil = 0;
      }
  }

  #each(kind: FaultKind, hit: Hit): void {
    const { processes } = this.#options;
    for (const { name } of processes())
      this.#often(
        kind,
        (random) => {
          const process = processes().find((each) => each.name === name)?.process;
          if (process?.isAlive === true) hit(process, random);
        },
        name,
      );
  }

  #often(kind: FaultKind, hit: (random: SeededRandom) => void, target = "the database"): void {
    const { scheduler, plan } = this.#options;
    const next = plan.next(kind);
    if (next === undefined) return;
    scheduler.after(next.inMs, () => {
      if (plan.takesPlace(next.id, kind, target)) hit(next.random);
      if (!plan.isOver) this.#often(kind, hit, target);
    });
  }
}
