import { ReviewLoop } from "../team/reviewers/review-loop.ts";
import type { InvocationPlan } from "./invocation-plan.ts";

/**
 * The plan of a child that shares its parent's prompt. It has the model, tools, middleware, guardrails and permissions of
 * the agent. What would change the request or drive the parent's loop is left out: the architecture, live state,
 * compaction, memory, history, extensions and the control of turns.
 */
export function childPlan(plan: InvocationPlan): InvocationPlan {
  return {
    ...plan,
    architecture: plan.childArchitecture,
    ephemeral: [],
    stopHooks: [],
    prepareStep: null,
    stopWhen: null,
    compaction: null,
    window: null,
    history: undefined,
    memory: null,
    extensions: undefined,
    reviewers: [],
  };
}

/** The plan of a review, which clears the cached system prompt of the agent if it has executed a tool. */
export function reviewPlan(plan: InvocationPlan): InvocationPlan {
  const { instructions } = plan;
  const shared = childPlan(plan);
  if (typeof instructions !== "object" || instructions.reload === undefined) return shared;
  const reload = instructions.reload.bind(instructions);
  return { ...shared, architecture: new ReviewLoop(shared.architecture, reload) };
}
