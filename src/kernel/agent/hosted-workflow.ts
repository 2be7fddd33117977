import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import type { JsonValue } from "../base/json-value.ts";
import { readProperty } from "../base/read-property.ts";
import type { JsonSchema } from "../base/schema.ts";
import { reviveFault } from "../errors/revive-fault.ts";
import type { RunResult, RunStatus } from "../run/run-result.ts";
import type { HostedAgent } from "./hosted-agent.ts";

/**
 * A durable function as a worker hosts it and `Runtime.start` starts it. `workflow()` of `reeve/workflow` creates one.
 * `Input` is the type of the values that a caller may pass, `Output` the type of the result.
 */
export interface HostedWorkflow<
  Input = unknown,
  Output = unknown,
  Context = unknown,
> extends HostedAgent<Context> {
  readonly runKind: "workflow";
  /** Name of the workflow. */
  readonly name: string;
  /** What the workflow does, for people and models. */
  readonly description?: string;
  /** The schema of the input as JSON Schema. `undefined` if every JSON value is an input. */
  readonly inputSchema?: JsonSchema | undefined;
  /** The types of input and output. Used by the compiler only; no workflow object has this property. */
  readonly types?: { readonly input: (input: Input) => void; readonly output: Output };
}

/**
 * Throws `invalid_argument` unless the value is a workflow. `owner` is the name of the call in the error text, such
 * as `start()`.
 */
export function requireWorkflow(owner: string, value: unknown): void {
  if (readProperty(value, "runKind") === "workflow" && typeof readProperty(value, "run") === "function")
    return;
  const advice =
    typeof readProperty(value, "run") === "function"
      ? "use submit() for an agent"
      : 'use workflow("name", async (ctx, input) => ...) of reeve/workflow';
  throw new Fault(
    "invalid_argument",
    `invalid workflow ${describeValue(value)} of ${owner}: expected a workflow; ${advice}`,
  );
}

/**
 * The result of a workflow, which has no session. `output` has the type of the workflow only if the run completed.
 */
export type WorkflowResult<Output> =
  | (Omit<RunResult<Output>, "status" | "sessionId"> & { readonly status: "completed" })
  | (Omit<RunResult<JsonValue>, "status" | "sessionId"> & {
      readonly status: Exclude<RunStatus, "completed">;
    });

/**
 * Returns the output of a completed workflow. If the workflow did not complete, it throws the error that ended it.
 * `name` names the workflow in the error, such as `workflow order`.
 */
export function workflowOutput<Output>(name: string, result: WorkflowResult<Output>): Output {
  if (result.status === "completed") return result.output;
  const { error, status, interruptionReason, runId } = result;
  if (error !== null) throw reviveFault(error);
  throw new Fault(
    "child_failed",
    `${name} ended with status ${status}: ${interruptionReason ?? "no reason is known"}`,
    { details: { runId, status } },
  );
}
