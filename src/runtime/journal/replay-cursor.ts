import type { StepAddress, StepKind } from "../../kernel/index.ts";
import type { TaskState } from "./run-state.ts";

/** What an earlier owner has begun and recorded, as far as a replay has not come by it yet. */
export class ReplayCursor {
  readonly #task: Pick<TaskState, "steps" | "opened">;
  /** Whether there was an earlier owner. */
  readonly #isReplay: boolean;
  #remaining = 0;
  /** Of those that remain, how many are in a scope or further down; for scopes in which there were some. */
  #inside: Map<string, number> | undefined;
  /** The last index that was begun in a scope; made when somebody first asks. */
  #last: Map<string, number> | undefined;

  constructor(task: Pick<TaskState, "steps" | "opened">) {
    this.#task = task;
    this.#isReplay = task.steps.size > 0 || task.opened.size > 0;
    for (const address of task.steps.keys()) {
      this.#remaining++;
      this.#count(address, 1);
    }
  }

  get remain(): boolean {
    return this.#remaining > 0;
  }

  /** Also in scopes below. */
  remainIn(scope: string): boolean {
    return scope === "" ? this.remain : (this.#inside?.get(scope) ?? 0) > 0;
  }

  /** Whether a step that comes after this one was begun: then this one was over by then. */
  wentPast(address: StepAddress): boolean {
    if (!this.#isReplay) return false;
    const end = address.lastIndexOf("/");
    const last = this.#begun().get(end === -1 ? "" : address.slice(0, end));
    return last !== undefined && last > Number(address.slice(end + 1));
  }

  /** The record was used: nothing inside the step will run (J7). What is below a model call are its tools, and they come after it. */
  visit(address: StepAddress, kind: StepKind): void {
    const inside = kind === "llm" ? 0 : (this.#inside?.get(address) ?? 0);
    if (inside > 0) this.#inside?.set(address, 0);
    this.#remaining -= 1 + inside;
    this.#count(address, -1 - inside);
  }

  /** For every scope around the address but the task's own. */
  #count(address: StepAddress, by: number): void {
    for (let end = address.indexOf("/"); end !== -1; end = address.indexOf("/", end + 1)) {
      const scope = address.slice(0, end);
      const inside = (this.#inside ??= new Map<string, number>());
      inside.set(scope, (inside.get(scope) ?? 0) + by);
    }
  }

  /** What was begun here since is behind whoever asks, so it changes nothing. */
  #begun(): ReadonlyMap<string, number> {
    if (this.#last !== undefined) return this.#last;
    const { steps, opened } = this.#task;
    const last = (this.#last = new Map<string, number>());
    for (const address of steps.keys()) pass(last, address);
    for (const address of opened.keys()) pass(last, address);
    return last;
  }
}

/** In the scope of the address and in every one around it. Names of branches are no numbers. */
function pass(last: Map<string, number>, address: StepAddress): void {
  for (let start = 0; start <= address.length;) {
    const found = address.indexOf("/", start);
    const end = found === -1 ? address.length : found;
    const index = Number(address.slice(start, end));
    const scope = start === 0 ? "" : address.slice(0, start - 1);
    if (index > (last.get(scope) ?? -1)) last.set(scope, index);
    start = end + 1;
  }
}
