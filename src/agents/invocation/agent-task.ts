import { react } from "../architectures/react.ts";
import { ReviewLoop } from "../team/reviewers/review-loop.ts";
import { rootTaskId, type JsonValue, type RunContext, type TaskInbox } from "../../kernel/index.ts";
import { checkRootInput, mailIn, readInput } from "../base/agent-input.ts";
import { runCompaction } from "../context/compaction/compaction-run.ts";
import { summaryRole } from "../context/compaction/summary-role.ts";
import { refusedInput } from "../base/input-problem.ts";
import type { Place } from "./close-invocation.ts";
import { invokeIn } from "./invocation.ts";
import type { AgentPlan } from "../definition/agent-plan.ts";
import { reviewKey } from "../team/reviewers/review-schedule.ts";

/** The architecture of a child that shares the prompt: a plain loop. */
const childLoop = react();

/**
 * Returns the plan of a child that shares its parent's prompt. It has the model, tools, middleware, guardrails and
 * permissions of the agent. It leaves out everything that would change the request or execute the parent's loop:
 * the architecture, live state, compaction, memory, history, extensions and the control of turns.
 */
function childPlan(plan: AgentPlan): AgentPlan {
  return Object.freeze({
    ...plan,
    architecture: childLoop,
    ephemeral: [],
    stopHooks: [],
    prepareStep: null,
    stopWhen: null,
    compaction: null,
    history: null,
    memory: null,
    extensions: undefined,
    reviewers: [],
  });
}

/**
 * Returns the plan with which an agent reviews its memory. At the end of a review that executed a tool, the agent clears its
 * cached system prompt, because the tool may have changed the memory.
 */
function reviewPlan(plan: AgentPlan): AgentPlan {
  const { instructions } = plan;
  const shared = childPlan(plan);
  if (typeof instructions !== "object" || instructions.reload === undefined) return shared;
  const reload = instructions.reload.bind(instructions);
  return Object.freeze({ ...shared, architecture: new ReviewLoop(shared.architecture, reload) });
}

/** Executes a task of an agent: a compaction, one invocation per group of inbox messages, or one invocation on its input. */
export function runTask(plan: AgentPlan, ctx: RunContext, inbox: TaskInbox): Promise<JsonValue> {
  if (ctx.kind === "compaction" && ctx.taskId === rootTaskId)
    return runCompaction(plan.compaction, ctx, summaryRole);
  const run = (): Promise<JsonValue> =>
    inbox.messages.length > 0 ? answerMail(plan, ctx, inbox) : invoke(plan, ctx);
  const { isolation } = plan;
  // D2: a child that shares the prompt of its parent works on what the parent works on.
  if (isolation === null || (ctx.sharesPrompt && ctx.taskId !== rootTaskId)) return run();
  return isolation.open(ctx).then((folder) => {
    ctx.useFolder(folder);
    return run();
  });
}

async function invoke(plan: AgentPlan, ctx: RunContext): Promise<JsonValue> {
  const { name } = plan;
  const input = readInput(ctx.input);
  if (input === undefined) throw refusedInput(name, ctx.input);
  if (ctx.sharesPrompt) {
    const isReview = ctx.taskId === rootTaskId && ctx.facts.metadata[reviewKey] !== undefined;
    return invokeIn(isReview ? reviewPlan(plan) : childPlan(plan), ctx, input);
  }
  if (ctx.taskId === rootTaskId) checkRootInput(name, input, plan.architecture);
  return invokeIn(plan, ctx, input);
}

async function answerMail(plan: AgentPlan, ctx: RunContext, inbox: TaskInbox): Promise<JsonValue> {
  const kept: Place["kept"] = [];
  let output: JsonValue = "";
  const mail = mailIn(plan.inbox, inbox);
  for (const [number, { input, messages }] of mail.entries()) {
    const isFollowed = number < mail.length - 1;
    output = await invokeIn(plan, ctx, input, { number, kept, isFollowed });
    for (const message of messages) if (message.replyTo !== undefined) await ctx.reply(message, output);
  }
  return output;
}
