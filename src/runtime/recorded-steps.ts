import type { StepAddress, StepKind } from "../kernel/index.ts";

/** Which steps that were recorded when a replay began it has not come by yet, counted for every scope. */
export class RecordedSteps {
  readonly #left = new Map<string, number>();
  #remaining = 0;

  constructor(addresses: Iterable<StepAddress>) {
    for (const address of addresses) this.#count(address, 1);
  }

  get remain(): boolean {
    return this.#remaining > 0;
  }

  /** Also in scopes below. */
  remainIn(scope: string): boolean {
    return (this.#left.get(scope) ?? 0) > 0;
  }

  /** The record was used: nothing inside the step will run (J7). What is below a model call are its tools, and they come after it. */
  visit(address: StepAddress, kind: StepKind): void {
    const left = this.#left.get(address) ?? 0;
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

  #add(scope: string, by: number): void {
    this.#left.set(scope, (this.#left.get(scope) ?? 0) + by);
  }
}
