import type { JsonValue } from "../base/json-value.ts";
import type { WorkflowContext } from "./workflow.ts";

/** The interface through which a shared handler of an object does its work. */
export interface SharedObjectContext<State = JsonValue, Context = unknown> extends Omit<
  WorkflowContext<Context>,
  "continueAsNew"
> {
  /** Key of the object. */
  readonly key: string;
  /**
   * The state of the key: what it was when the handler started, and what the handler has set since. Do not change it in
   * place; use `setState`. Throws `invalid_argument` if the stored state does not match the schema.
   */
  readonly state: State;
}

/** The interface through which a handler of an object does its work. No other handler of the key runs meanwhile, except shared ones. */
export interface ObjectContext<State = JsonValue, Context = unknown> extends SharedObjectContext<
  State,
  Context
> {
  /**
   * Replaces the state of the key. It is stored together with the record of the next step, before the effect of that step
   * begins, or with the end of the handler: after a crash neither or both exist. Only the handler itself may call it, neither a
   * branch nor the body of a step.
   */
  setState(state: State): void;
  /** Removes the state of the key, so that it has the default of the schema. Otherwise like `setState`. */
  clearState(): void;
}
