import {
  callSettings,
  executionBudget,
  Fault,
  is,
  ofSettings,
  optionTable,
  submitKinds,
  type OptionKinds,
  type CancelSignal,
  type Runtime,
  type Schema,
  type SpawnChildOptions,
  type SubmitOptions,
} from "../../kernel/index.ts";
import { checkOnApproval, type OnApproval, type OnApprovalHandler } from "./on-approval.ts";
import { agentKinds } from "../definition/agent-settings.ts";

/**
 * Options of `invoke`. `Source` is a Standard Schema that can convert itself to JSON Schema (such as one of zod), or a
 * JSON Schema written `as const`. Without a schema the answer is a text.
 */
export interface InvokeOptions<Source extends Schema = never, Context = unknown> extends Omit<
  SubmitOptions<Context>,
  "streaming"
> {
  /**
   * Maximum time for the whole run, in milliseconds. If the budget has an earlier deadline, that one applies.
   * `null` sets no limit.
   */
  readonly timeoutMs?: number | null;
  /**
   * What happens when the run needs a person's answer. `"wait"`: `invoke` waits until the run has ended. A handler:
   * it answers in this process. With `"return"`, which `invoke` also accepts, it resolves with a `WaitingResult`,
   * and the run waits durably. Default: `"wait"`.
   */
  readonly onApproval?: "wait" | OnApprovalHandler;
  /** The runtime that executes the run. Default: the default runtime of the package. */
  readonly runtime?: Runtime;
  /** The schema of the answer. If an answer does not match, the model is asked again, at most twice. */
  readonly output?: Source | undefined;
  /**
   * What the summary must consider if the session is compacted after this invocation. It is used only by the run
   * that this call starts, not if the input becomes steering.
   */
  readonly compactionInstructions?: string;
  /**
   * Cancels the run when it aborts; the result then has the status `cancelled`. If it is aborted before the call, no run
   * is created and the call fails with `cancelled`. Default: no signal.
   */
  readonly signal?: CancelSignal | undefined;
}

/** Options with which `invoke` returns, or may return, when the run needs a person's answer. */
export interface ReturnOnApproval<Source extends Schema = never, Context = unknown> extends Omit<
  InvokeOptions<Source, Context>,
  "onApproval"
> {
  /** `"return"` resolves with a `WaitingResult` when the run needs a person's answer. The run waits durably. */
  readonly onApproval: OnApproval;
}

/** Options of `continue`: those of `invoke` without `sessionId`. */
export type ContinueOptions<Source extends Schema = never, Context = unknown> = Omit<
  InvokeOptions<Source, Context>,
  "sessionId"
>;

/** Options of `stream`: those of `invoke`, and an option that says whether leaving the loop cancels the run. */
export interface StreamOptions<Source extends Schema = never, Context = unknown> extends InvokeOptions<
  Source,
  Context
> {
  /** C3: whether leaving the loop cancels the run. Default: `false`, so that the run continues. */
  readonly cancelOnBreak?: boolean;
}

/**
 * Options of `submit`. A submitted run does not end with its caller. Use `RunHandle.cancel` instead of a signal,
 * and `RunHandle.untilPersonIsNeeded` and `approve` instead of `onApproval`.
 */
export interface SubmitRunOptions<Source extends Schema = never, Context = unknown> extends Omit<
  InvokeOptions<Source, Context>,
  "signal" | "onApproval"
> {
  readonly streaming?: boolean;
}

/** Options of `spawnChild`. */
export type ChildOfSession<Context = unknown> = SpawnChildOptions<Context> & RuntimeChoice;

const runtimeKind = is.withMethods(
  ["submit", "find"],
  'use runtime: await openRuntime({ store: "sqlite:PATH" })',
);

/** The kinds of the options of `invoke`. */
export const invokeKinds = {
  ...submitKinds,
  // Callers without types may pass `budget: null` for no budget.
  budget: is.checkedBy((budget: Parameters<typeof executionBudget>[0] | null) =>
    executionBudget(budget ?? {}),
  ),
  settings: is.checkedBy((settings, _option, owner) => callSettings(owner, settings)),
  timeoutMs: is.any,
  onApproval: is.any,
  runtime: runtimeKind,
  output: is.any,
  compactionInstructions: is.text({ empty: false, hint: "omit the option" }),
  signal: is.withMethods(["addEventListener", "removeEventListener"], "use the signal of an AbortController"),
} satisfies OptionKinds<InvokeOptions>;

const invokeTable = optionTable(invokeKinds, ofAgent);

/** Returns where an option of the agent or a setting of the model belongs. */
export function ofAgent(name: string): string | undefined {
  return Object.hasOwn(agentKinds, name)
    ? `use \`${name}\` of the agent, or agent.with({ ${name} }).invoke(input)`
    : ofSettings(name);
}

/** Options of `resume` and `signal`. */
export type RuntimeChoice = Pick<InvokeOptions, "runtime">;

const runtimeChoiceTable = optionTable({ runtime: runtimeKind } satisfies OptionKinds<RuntimeChoice>);

export function checkRuntimeChoice(owner: string, options: RuntimeChoice): void {
  runtimeChoiceTable.read(owner, options);
}

/** Throws for unknown options and invalid values before a run is created. */
export function checkInvokeOptions(
  agent: string,
  options: InvokeOptions<Schema> | ReturnOnApproval<Schema>,
): void {
  invokeTable.read(`a run of agent ${agent}`, options);
}

/** Like `checkInvokeOptions`, for `submit`. */
export function checkSubmitOptions(agent: string, options: SubmitRunOptions<Schema>): void {
  if ("signal" in options)
    throw new Fault(
      "invalid_argument",
      `invalid option signal of submit() of agent ${agent}: a submitted run outlives its caller; use cancel() of the run handle, or invoke() or stream() with a signal`,
    );
  const { onApproval }: InvokeOptions<Schema> = options;
  checkOnApproval("submit()", onApproval, ["wait"]);
  checkInvokeOptions(agent, options);
}
