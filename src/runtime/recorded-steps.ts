import type { StepAddress, StepKind } from "../kernel/index.ts";

/** What an earlier owner has begun and recorded, as far as a replay has not come by it yet, counted for every scope. */
export class RecordedSteps {
  /** Made with the first of them: most tasks are begun here. */
  #left: Map<string, number> | undefined;
  /** The last index that was begun in a scope. */
  #last: Map<string, number> | undefined;
  #remaining = 0;

  /** `opened`: those that were begun and not recorded. */
  constructor(recorded: Iterable<StepAddress>, opened: Iterable<StepAddress>) {
    for (const address of recorded) {
      this.#count(address, 1);
      this.#pass(address);
    }
    for (const address of opened) this.#pass(address);
  }

  get remain(): boolean {
    return this.#remaining > 0;
  }

  /** Also in scopes below. */
  remainIn(scope: string): boolean {
    return (this.#left?.get(scope) ?? 0) > 0;
  }

  /** Whether a step that comes after this one was begun: then this one was over by then. */
  wentPast(address: StepAddress): boolean {
    if (this.#last === undefined) return false;
    const end = address.lastIndexOf("/");
    const last = this.#last.get(end === -1 ? "" : address.slice(0, end));
    return last !== undefined && last > Number(address.slice(end + 1));
  }

  /** The record was used: nothing inside the step will run (J7). What is below a model call are its tools, and they come after it. */
  visit(address: StepAddress, kind: StepKind): void {
    const left = this.#left?.get(address) ?? 0;
    if (left > 0) this.#count(address, kind === "llm" ? -1 : -left);
  }

  /** For the task's own scope, every one on the way down, and the address itself. */
  #count(address: StepAddress, by: number): void {
    this.#remaining += by;
    this.#add("", by);
    for (let end = address.indexOf("/"); end !== -1; end = address.indexOf("/", end + 1)) {
      this.#add(address.slice(0, end), by);
    }
    this.#add(address, by);
  }

  /** In the scope of the address and in every one around it. Names of branches are no numbers. */
  #pass(address: StepAddress): void {
    const passed = (this.#last ??= new Map<string, number>());
    for (let start = 0; start <= address.length;) {
      const found = address.indexOf("/", start);
      const end = found === -1 ? address.length : found;
      const index = Number(address.slice(start, end));
      const scope = start === 0 ? "" : address.slice(0, start - 1);
      if (index > (passed.get(scope) ?? -1)) passed.set(scope, index);
      start = end + 1;
    }
  }

  #add(scope: string, by: number): void {
    this.#left ??= new Map();
    this.#left.set(scope, (this.#left.get(scope) ?? 0) + by);
  }
}
