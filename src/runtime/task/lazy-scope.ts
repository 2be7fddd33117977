import type { EventDraft, RunContext } from "../../kernel/index.ts";

/** A context whose events somebody else tells. */
export type NestedContext = RunContext & { takeEvents(): readonly EventDraft[] };

const nothing: readonly EventDraft[] = [];

/** The scope inside a call, made when it is first asked for: most never are (F1). */
export abstract class LazyScope {
  #ctx: NestedContext | undefined;

  protected abstract make(): NestedContext;

  get ctx(): RunContext {
    this.#ctx ??= this.make();
    return this.#ctx;
  }

  takeEvents(): readonly EventDraft[] {
    return this.#ctx?.takeEvents() ?? nothing;
  }
}
