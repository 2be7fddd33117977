import {
  checkOptions,
  executionBudget,
  optionNames,
  submitOptionNames,
  type JsonSchema,
  type OptionNames,
  type Runtime,
  type SubmitOptions,
} from "../kernel/index.ts";
import type { OnApprovalHandler } from "./on-approval.ts";

export interface InvokeOptions extends Omit<SubmitOptions, "streaming"> {
  /** Maximum time for the whole run in milliseconds; tightens the deadline of the budget. `null` sets no limit. */
  readonly timeoutMs?: number | null;
  /**
   * What happens when the run needs a person's answer. `"wait"`: `invoke` waits until the run has ended. A handler: it
   * answers in this process. `invoke` also accepts `"return"`: it resolves with a `WaitingResult`, and the run waits
   * durably. Default: `"wait"`.
   */
  readonly onApproval?: "wait" | OnApprovalHandler;
  /** The runtime that executes the run. Default: the default runtime of the package. */
  readonly runtime?: Runtime;
  /** A JSON Schema that the answer must match. */
  readonly output?: JsonSchema | undefined;
}

/** Options of `invoke` that make it return when the run needs a person's answer. */
export interface ReturnOnApproval extends Omit<InvokeOptions, "onApproval"> {
  readonly onApproval: "return";
}

/** The names of the options of `invoke`. */
export const invokeOptionNames: OptionNames = new Set([
  ...submitOptionNames,
  ...optionNames<Omit<InvokeOptions, keyof SubmitOptions>>({
    timeoutMs: true,
    onApproval: true,
    runtime: true,
    output: true,
  }),
]);

/** Options of `resume` and `signal`. */
export type RuntimeChoice = Pick<InvokeOptions, "runtime">;

const runtimeChoiceNames = optionNames<RuntimeChoice>({ runtime: true });

export function checkRuntimeChoice(owner: string, options: RuntimeChoice): void {
  checkOptions(owner, options, runtimeChoiceNames);
}

/** Refuses unknown options and an invalid budget before a run is created. */
export function checkInvokeOptions(agent: string, options: InvokeOptions | ReturnOnApproval): void {
  checkOptions(`a run of agent ${agent}`, options, invokeOptionNames);
  // Callers without types may pass `budget: null` for no budget.
  if (options.budget !== undefined && options.budget !== null) executionBudget(options.budget);
}
