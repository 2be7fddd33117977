import type { StepAddress, StepKind } from "../kernel/index.ts";

/** Which steps that were recorded when a replay began it has not come by yet, counted for every scope. */
export class RecordedSteps {
  readonly #left = new Map<string, number>();

  constructor(addresses: Iterable<StepAddress>) {
    for (const address of addresses) {
      for (const scope of scopesOf(address)) this.#left.set(scope, (this.#left.get(scope) ?? 0) + 1);
    }
  }

  /** Also in scopes below. */
  remainIn(scope: string): boolean {
    return (this.#left.get(scope) ?? 0) > 0;
  }

  /** The record was used: nothing inside the step will run (J7). What is below a model call are its tools, and they come after it. */
  visit(address: StepAddress, kind: StepKind): void {
    const left = this.#left.get(address) ?? 0;
    if (left === 0) return;
    const passed = kind === "llm" ? 1 : left;
    for (const scope of scopesOf(address)) this.#left.set(scope, (this.#left.get(scope) ?? 0) - passed);
  }
}

/** The task's own, every scope on the way down, and the address itself. */
function* scopesOf(address: StepAddress): Iterable<string> {
  yield "";
  for (let end = address.indexOf("/"); end !== -1; end = address.indexOf("/", end + 1)) {
    yield address.slice(0, end);
  }
  yield address;
}
