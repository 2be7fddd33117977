import type { Fault } from "../base/fault.ts";
import type { JsonValue } from "../base/json-value.ts";
import { is, optionTable, type OptionKinds } from "../base/option-table.ts";
import type { TenantScope } from "../run/run-meta.ts";
import type { RunHandle } from "./run-handle.ts";
import {
  clientStartKinds,
  notStored,
  type NamedStartOptions,
  type Runtime,
  type StartOptions,
} from "./runtime.ts";
import type { HostedWorkflow, WorkflowResult } from "./hosted-workflow.ts";

/** Options of `Client.start` with a workflow. A live `context` would be known only to this process, which executes no run. */
export type ClientStartOptions = Omit<StartOptions, "context">;

export const clientStartTable = optionTable(
  clientStartKinds satisfies OptionKinds<ClientStartOptions>,
  notStored,
);

/** One run of `Client.startMany`: its input, and options that take precedence over those of the call. */
export interface StartItem<Input = JsonValue> extends ClientStartOptions {
  readonly input: Input;
}

export const startItemTable = optionTable(
  { ...clientStartKinds, input: is.any } satisfies OptionKinds<StartItem>,
  notStored,
);

/** What became of one item of `Client.startMany`. `started` also means a run that an equal start has created before. */
export type StartOutcome<Output = JsonValue> =
  | { readonly status: "started"; readonly run: RunHandle<WorkflowResult<Output>> }
  | { readonly status: "refused"; readonly error: Fault };

/**
 * Starts and controls runs without executing any. `openClient` creates one. It registers no worker, claims no run, takes no
 * message from an inbox and fires no schedule.
 *
 * - S6 In a view of a tenant, the runs and promises of others do not exist.
 */
export interface Client extends Pick<
  Runtime,
  "find" | "list" | "count" | "promise" | "object" | "objectStates"
> {
  /** Starts a run of a workflow. Like `Runtime.start`, and the workflow is not registered here. */
  start<Input, Output>(
    workflow: HostedWorkflow<Input, Output>,
    input: NoInfer<Input>,
    options?: ClientStartOptions,
  ): Promise<RunHandle<WorkflowResult<Output>>>;
  /** Starts a run of a workflow by its name. Like `Runtime.start` with a name. */
  start(
    workflow: string,
    input: JsonValue,
    options?: NamedStartOptions,
  ): Promise<RunHandle<WorkflowResult<JsonValue>>>;
  /**
   * Starts many runs, in as few transactions as the store allows. The outcomes are in the order of the items. An item that
   * is refused does not affect the others: a wrong input, or an id of a run with another input (`already_exists`). An item
   * with the id and the input of a run that exists starts nothing, so a call may be repeated after a crash.
   */
  startMany<Input, Output>(
    workflow: HostedWorkflow<Input, Output>,
    items: readonly StartItem<NoInfer<Input>>[],
    options?: ClientStartOptions,
  ): Promise<readonly StartOutcome<Output>[]>;
  /** Starts many runs by the name of their workflow. */
  startMany(
    workflow: string,
    items: readonly StartItem[],
    options?: NamedStartOptions,
  ): Promise<readonly StartOutcome[]>;
  /** Returns a run, whichever worker executes it. Rejects with `not_found` if there is none. `find` returns `undefined` instead. */
  run(runId: string): Promise<RunHandle>;
  /** Returns a view of this client for one tenant, or for one user of it, as `Runtime.forTenant` does. */
  forTenant(scope: TenantScope): Client;
  /** Closes the store. Calls that still wait fail with `closed`. Does nothing in a view. */
  close(): Promise<void>;
  /** Calls `close` at the end of the block that declares the client with `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
