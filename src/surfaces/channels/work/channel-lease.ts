import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { Clock, Records } from "../../../kernel/index.ts";
import { namespaces, remove } from "../channel-records.ts";

/** The process that polls and sends for a channel. */
interface Holder {
  /** Unique for each host of a channel. */
  readonly id: string;
  readonly machine: string;
  readonly pid: number;
  /** Time until which the lease is valid, in epoch milliseconds. */
  readonly until: number;
}

/** How long a lease is valid after its last renewal. */
const leaseMs = 30_000;
/** How often a holder renews its lease, and other processes try to take it. */
export const renewMs = 10_000;

/**
 * The ids of the leases that this process took. A lease that names the process id of this process but is not among
 * them belongs to a killed process with the same id, for example in a container.
 */
const ownIds = new Set<string>();

/**
 * N6: lets one process at a time poll and send for a channel. A lease of a process of this machine that is dead can be
 * taken at once, so that a restart needs no wait. A lease of another machine can be taken when it expires.
 */
export class ChannelLease {
  readonly #id = randomUUID();
  readonly #records: Records;
  readonly #clock: Clock;
  /** Time of the last renewal. */
  #heldAt = -Infinity;
  readonly #key: { readonly namespace: string; readonly key: string };

  constructor(records: Records, clock: Clock, channel: string) {
    this.#records = records;
    this.#clock = clock;
    this.#key = { namespace: namespaces.leases, key: channel };
    ownIds.add(this.#id);
  }

  /**
   * Renews the lease like `hold`, for callers that ask often. While the lease is fresh, it returns `true` without
   * reading the store.
   */
  async renew(): Promise<boolean> {
    return this.#clock.now() - this.#heldAt < renewMs || this.hold();
  }

  /** Takes or renews the lease. Returns whether this process holds it. */
  async hold(): Promise<boolean> {
    const current = await this.#records.get(this.#key);
    const holder = current?.value as unknown as Holder | undefined;
    if (holder !== undefined && holder.id !== this.#id && this.#isAlive(holder)) return false;
    const value = {
      id: this.#id,
      machine: hostname(),
      pid: process.pid,
      until: this.#clock.now() + leaseMs,
    } satisfies Holder;
    const written = await this.#records.put({ ...this.#key, value }, current?.version ?? "absent");
    this.#heldAt = written.kind === "stored" ? this.#clock.now() : -Infinity;
    return written.kind === "stored";
  }

  /** Gives the lease up, if this process holds it. */
  async release(): Promise<void> {
    ownIds.delete(this.#id);
    const current = await this.#records.get(this.#key);
    if ((current?.value as unknown as Holder | undefined)?.id === this.#id)
      await remove(this.#records, this.#key);
  }

  #isAlive({ id, machine, pid, until }: Holder): boolean {
    if (until <= this.#clock.now()) return false;
    if (machine !== hostname()) return true;
    return pid === process.pid ? ownIds.has(id) : isRunning(pid);
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Another user's process exists, although it cannot be signalled.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
