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

/**
 * Options of `Client.start` with a workflow. It has no live `context`, because only this process would know it, and
 * this process executes no runs.
 */
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

/**
 * The outcome of one item of `Client.startMany`. `started` includes a run that an earlier, equal start has created.
 */
export type StartOutcome<Output = JsonValue> =
  | { readonly status: "started"; readonly run: RunHandle<WorkflowResult<Output>> }
  | { readonly status: "refused"; readonly error: Fault };

/**
 * Starts and controls runs without executing any. `openClient` creates one. It registers no worker, claims no run,
 * takes no message from an inbox and fires no schedule.
 *
 * - S6 The view of a tenant behaves as if the runs and promises of other tenants did not exist.
 */
export interface Client extends Pick<
  Runtime,
  "find" | "list" | "count" | "promise" | "object" | "objectStates"
> {
  /**
   * Starts a run of a workflow. Works like `Runtime.start`, but the workflow need not be registered in this
   * process.
   */
  start<Input, Output>(
    workflow: HostedWorkflow<Input, Output>,
    input: NoInfer<Input>,
    options?: ClientStartOptions,
  ): Promise<RunHandle<WorkflowResult<Output>>>;
  /** Starts a run of a workflow by its name. Works like `Runtime.start` with a name. */
  start(
    workflow: string,
    input: JsonValue,
    options?: NamedStartOptions,
  ): Promise<RunHandle<WorkflowResult<JsonValue>>>;
  /**
   * Starts many runs, in as few transactions as the store allows. The outcomes are in the order of the items. An
   * item that the store refuses does not affect the other items: its input is wrong, or its id belongs to a run
   * with another input (`already_exists`). An item whose id and input are those of an existing run starts nothing,
   * so the call can be repeated after a crash.
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
  /**
   * Returns a run, whichever worker executes it. Rejects with `not_found` if there is no such run; `find` returns
   * `undefined` instead.
   */
  run(runId: string): Promise<RunHandle>;
  /** Returns a view of this client for one tenant, or for one user of the tenant, as `Runtime.forTenant` does. */
  forTenant(scope: TenantScope): Client;
  /** Closes the store. Calls that still wait fail with `closed`. On a view of a tenant, `close` does nothing. */
  close(): Promise<void>;
  /** Calls `close` at the end of the block that declares the client with `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
