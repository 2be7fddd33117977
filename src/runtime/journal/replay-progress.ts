import type { StepAddress, StepKind } from "../../kernel/index.ts";
import type { TaskState } from "./task-state.ts";
import { isCall } from "./wait-names.ts";

const none: readonly never[] = [];

/** Tracks which records of earlier owners the replay of a task has not reached yet. */
export class ReplayProgress {
  readonly #task: Pick<TaskState, "steps" | "opened">;
  /** Whether an earlier owner has begun or recorded a step of this journal. */
  readonly #isReplay: boolean;
  /** Steps that an earlier owner had begun and not recorded. Their start events are in the log. */
  readonly #begun: readonly StepAddress[];
  #remaining = 0;
  /**
   * Number of remaining records in each scope with the scopes below it. A scope that never had a record has no
   * entry.
   */
  #inside: Map<string, number> | undefined;
  /** Highest index of a step that earlier owners had begun, by scope. Created when it is first used. */
  #last: Map<string, number> | undefined;

  /** `isOwn` selects the records to track. */
  constructor(task: Pick<TaskState, "steps" | "opened">, isOwn: (address: StepAddress) => boolean) {
    this.#task = task;
    this.#isReplay = task.steps.size > 0 || task.opened.size > 0;
    this.#begun =
      task.opened.size === 0 ? none : [...task.opened.keys()].filter((each) => isCall(each) && isOwn(each));
    for (const address of task.steps.keys()) {
      if (!isOwn(address)) continue;
      this.#remaining++;
      this.#count(address, 1);
    }
  }

  /** Whether the replay has not reached all records yet. */
  get remain(): boolean {
    return this.#remaining > 0;
  }

  /** Whether a step that an earlier owner had begun has no record yet. */
  get hasBegun(): boolean {
    return this.#begun.some((address) => this.#task.opened.has(address));
  }

  /** Whether the replay has not reached all records of one scope and the scopes below it. */
  remainIn(scope: string): boolean {
    return scope === "" ? this.remain : (this.#inside?.get(scope) ?? 0) > 0;
  }

  /** Whether an earlier owner had begun a later step of the same scope. If so, the step at this address had ended. */
  wentPast(address: StepAddress): boolean {
    if (!this.#isReplay) return false;
    const end = address.lastIndexOf("/");
    const last = this.#lastIndexes().get(end === -1 ? "" : address.slice(0, end));
    return last !== undefined && last > Number(address.slice(end + 1));
  }

  /**
   * Records that the replay has used the record at this address. Steps inside that step do not run again (J7), so
   * that their records count as used too. Addresses below a model call are excluded: they belong to its tool calls,
   * which the replay reaches later. A record that was counted before does not count again: branches whose step has
   * a record are executed for their compensations, and may reach their records after that of the step.
   */
  visit(address: StepAddress, kind: StepKind): void {
    if (this.#wasPassed(address)) return;
    const inside = kind === "llm" ? 0 : (this.#inside?.get(address) ?? 0);
    if (inside > 0) this.#inside?.set(address, 0);
    this.#remaining -= 1 + inside;
    this.#count(address, -1 - inside);
  }

  /** Whether the replay has passed a step that contains the address, and with it all records inside that step. */
  #wasPassed(address: StepAddress): boolean {
    const inside = this.#inside;
    if (inside === undefined) return false;
    for (let end = address.indexOf("/"); end !== -1; end = address.indexOf("/", end + 1))
      if (inside.get(address.slice(0, end)) === 0) return true;
    return false;
  }

  /** Adds `by` to the count of every scope that contains the address, except the scope of the task itself. */
  #count(address: StepAddress, by: number): void {
    for (let end = address.indexOf("/"); end !== -1; end = address.indexOf("/", end + 1)) {
      const scope = address.slice(0, end);
      const inside = (this.#inside ??= new Map<string, number>());
      inside.set(scope, (inside.get(scope) ?? 0) + by);
    }
  }

  /**
   * Returns the last indexes. Steps that began in this process later have lower indexes than the requested step, so
   * that the map needs no update.
   */
  #lastIndexes(): ReadonlyMap<string, number> {
    if (this.#last !== undefined) return this.#last;
    const { steps, opened } = this.#task;
    const last = (this.#last = new Map<string, number>());
    for (const address of steps.keys()) raise(last, address);
    for (const address of opened.keys()) raise(last, address);
    return last;
  }
}

/**
 * Raises the highest index of the address's scope and of every scope around it. Names of branches are skipped,
 * because they are not numbers.
 */
function raise(last: Map<string, number>, address: StepAddress): void {
  for (let start = 0; start <= address.length;) {
    const found = address.indexOf("/", start);
    const end = found === -1 ? address.length : found;
    const index = Number(address.slice(start, end));
    const scope = start === 0 ? "" : address.slice(0, start - 1);
    if (index > (last.get(scope) ?? -1)) last.set(scope, index);
    start = end + 1;
  }
}
