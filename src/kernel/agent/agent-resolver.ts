import type { MaybePromise } from "../base/maybe-promise.ts";
import type { RunRecord } from "../run/run-record.ts";
import type { HostedAgent } from "./hosted-agent.ts";

/**
 * Makes the agents of runs that are not known when a worker starts, from what is stored with each run. `Runtime.register`
 * takes it in place of an agent.
 *
 * @example
 * ```ts
 * import { Agent, openRuntime } from "reeve";
 * import { scriptedModel } from "reeve/testing";
 *
 * const runtime = await openRuntime({ store: "memory:" });
 * runtime.register({
 *   name: "clerk",
 *   resolve: ({ metadata }) =>
 *     typeof metadata["language"] === "string"
 *       ? new Agent({ name: "clerk", model: scriptedModel(["Hi"]), instructions: `Answer in ${metadata["language"]}.` })
 *       : undefined, // another worker drives this run
 * });
 * await runtime.close();
 * ```
 */
export interface AgentResolver<Context = unknown> {
  /** Name of the root agents whose runs the worker takes, with any key. An agent that is registered itself takes precedence. */
  readonly name: string;
  /**
   * Returns the root agent of a run, with its sub-agents. Its id must be the `agentId` of the run. `undefined` leaves the
   * run to other workers; this worker asks about it again only after another call of `register`. If it throws, the
   * error goes to `onError` and the worker asks again later; the same if it takes longer than 30 seconds. Called each time the worker loads a run of this name.
   */
  resolve(run: RunRecord): MaybePromise<HostedAgent<Context> | undefined>;
}
