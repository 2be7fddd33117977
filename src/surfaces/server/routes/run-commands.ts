import {
  formatRunId,
  parseAgentId,
  assertAllowed,
  type ApprovalDecision,
  type ForkOptions,
  type RunHandle,
  type Signal,
  type TopUp,
  type WantedChanges,
  offeredAmount,
  rootTaskId,
} from "../../../kernel/index.ts";
import { reply, route, type Route, type RouteRequest, type TypedRoute } from "../../http/route.ts";
import { hasScope, type Access } from "../../http/access/access.ts";
import {
  approval,
  changeMembers,
  priority,
  runParams,
  runSummary,
  taskId,
} from "../../http/schema/run-schemas.ts";
import {
  anyJson,
  choice,
  flag,
  integer,
  list,
  nullable,
  number,
  object,
  optional,
  text,
  type Schema,
  type ValueOf,
} from "../../http/schema/schema.ts";
import { isStoppedAtLimit, lackOf, topUpNames } from "../../view/top-up-offer.ts";
import { findRun } from "./find-run.ts";

const accepted = {
  status: 202,
  description:
    "The command is stored. The owner of the run applies it; the events of the run show its effect.",
  schema: runSummary,
};

/** What a command knows besides its run. */
interface Sender {
  readonly access: Access;
  /** Returns the signal with a name that the run's workflow declares. */
  readonly signal: (name: string) => Signal<never, unknown> | undefined;
}

/** A route that sends a command to a run. */
function command<const Name extends string, Body extends Schema>(
  name: Name,
  summary: string,
  body: Body,
  send: (run: RunHandle, body: ValueOf<Body>, sender: Sender) => Promise<void>,
  facts: Pick<Route, "isBodyOptional" | "carriesInput"> = {},
): TypedRoute<
  "POST",
  `/api/runs/{runId}/${Name}`,
  ValueOf<typeof runParams>,
  Readonly<Record<string, never>>,
  ValueOf<Body>,
  ValueOf<typeof runSummary>
> {
  return route({
    id: `runs.${name}`,
    method: "POST",
    path: `/api/runs/{runId}/${name}` as const,
    summary,
    scope: "run",
    params: runParams,
    body,
    ...facts,
    responses: [accepted],
    handle: async (request: RouteRequest<{ readonly runId: string }, unknown, ValueOf<Body>>) => {
      const run = await findRun(request);
      const { agents } = request.server;
      const { name: agent } = parseAgentId(run.agentId);
      await send(run, request.body, {
        access: request.access,
        signal: (named) => agents.signal(agent, named),
      });
      return reply(accepted, await run.summary());
    },
  });
}

const nothing = object({});
const decision = object({
  approvalId: text({ minLength: 1, maxLength: 2_048 }),
  decision: choice(["approved", "denied", "skipped"]),
  input: optional(
    anyJson({
      description:
        "With approved: replaces the arguments. Of a question of the kind top_up: the amounts to add, such as { maxCostUsd: 0.25 }.",
    }),
  ),
  remember: optional(
    flag({ description: "With approved: also approves later calls of the tool for this user." }),
  ),
  reason: optional(text({ description: "With denied: the text that the model receives." })),
});

const asked = {
  status: 200,
  description: "The open questions.",
  schema: object({ approvals: list(approval) }),
};

const listOpen = route({
  id: "runs.approvals",
  method: "GET",
  path: "/api/runs/{runId}/approvals",
  summary: "List what a run asks a person.",
  scope: "read",
  params: runParams,
  responses: [asked],
  handle: async (request) => {
    const { runId } = await findRun(request);
    const { approvals } = await request.runtime.approvals({ runId, limit: 500 });
    return reply(asked, { approvals });
  },
});

const addable = {
  status: 200,
  description: "What the caller may add, and what the run lacks.",
  schema: object({
    maxCostUsd: nullable(
      number({ description: "Dollars that the caller may still add to the budget. null: any amount." }),
    ),
    maxTokens: nullable(number({ description: "Tokens, in the same way." })),
    maxTurns: nullable(number({ description: "Turns, in the same way." })),
    deadlineMs: nullable(number({ description: "Milliseconds of time, in the same way." })),
    lacks: nullable(
      object(
        {
          taskId,
          name: choice(topUpNames, {
            description: "The limit that was reached, as the command top-up names it.",
          }),
          limit: nullable(number({ description: "The limit. null if the run does not say it." })),
          amount: number({
            description:
              "An amount with which the run can continue, at most what the caller may add. 0: the caller may add nothing.",
          }),
        },
        {
          description:
            "What the run needs to continue. null if it did not stop at a limit that a top-up raises.",
        },
      ),
    ),
  }),
};

const getTopUp = route({
  id: "runs.top-up-left",
  method: "GET",
  path: "/api/runs/{runId}/top-up",
  summary: "Read how much the caller may add to the budget of a run, and what a stopped run lacks.",
  scope: "read",
  params: runParams,
  responses: [addable],
  handle: async (request) => {
    const run = await findRun(request);
    const { access, runtime, server } = request;
    const none = { maxCostUsd: 0, maxTokens: 0, maxTurns: 0, deadlineMs: 0 };
    const unlimited = { maxCostUsd: null, maxTokens: null, maxTurns: null, deadlineMs: null };
    const left = hasScope(access, "admin")
      ? unlimited
      : hasScope(access, "run")
        ? await run.topUpLeft()
        : none;
    const { status } = await run.summary();
    const figures = isStoppedAtLimit(status) ? await server.figures.of(runtime, run.runId) : undefined;
    const lack = figures && lackOf({ status, failure: figures.failure, budget: figures });
    if (lack === undefined || lack === null) return reply(addable, { ...left, lacks: null });
    const { short: _short, ...lacks } = lack;
    const amount = offeredAmount(lack, left[lack.name] ?? Infinity);
    return reply(addable, { ...left, lacks: { ...lacks, amount } });
  },
});

const forked = { status: 201, description: "The fork.", schema: object({ run: runSummary }) };

const fork = route({
  id: "runs.fork",
  method: "POST",
  path: "/api/runs/{runId}/fork",
  summary:
    "Start a run that shares the events up to and including `at` with this run, with another message, model, instructions, tools or tool results. A token with the scope run may change only what the option `allowedChanges` of the agent names, and otherwise gets 403.",
  scope: "run",
  params: runParams,
  body: object({
    at: integer({ minimum: 0, description: "Seq of the last shared event." }),
    keepsCommit: optional(
      flag({
        description:
          "Whether the commit that contains `at` is shared although it extends beyond. Use it with the seq of a message_start, so that no tool runs again. Default: false.",
      }),
    ),
    input: optional(
      anyJson({
        description:
          "A user message that follows the shared events: a text, or a list of text, image and file parts.",
      }),
    ),
    replacesInput: optional(
      flag({
        description:
          "Whether `input` takes the place of the input with which the run began. `at` must be before the first model call. Default: false.",
      }),
    ),
    ...changeMembers,
    toolResults: optional(
      list(
        object({
          callId: text({ minLength: 1, maxLength: 2_048 }),
          output: anyJson({ description: "What the model sees." }),
          isError: optional(flag()),
        }),
        {
          maxItems: 100,
          description: "Results in place of recorded ones, of the last model call before `at`.",
        },
      ),
    ),
    budget: optional(
      object(
        {
          maxTokens: optional(integer({ minimum: 0 })),
          maxCostUsd: optional(number({ minimum: 0 })),
          maxTurns: optional(integer({ minimum: 0 })),
        },
        { description: "Limits of the fork. They tighten the budget of the run." },
      ),
    ),
    taskId: optional(taskId),
  }),
  carriesInput: true,
  responses: [forked],
  handle: async (request) => {
    request.server.refuseIfDraining();
    const run = await findRun(request);
    const { input: message, ...changes } = request.body;
    refuseChanges(request, run, changes);
    const copy = await run.fork({
      ...(changes as Omit<ForkOptions, "input">),
      runId: formatRunId(crypto.randomUUID()),
      // `fork` checks the message, because its form is that of a user's message.
      ...(message !== undefined && { input: message as unknown as string }),
    });
    return reply(forked, { run: await copy.summary() });
  },
});

/**
 * Throws `permission_denied` if a caller without the scope `admin` may not make these changes. The changes that the
 * run's agent allows do not apply to a child, because the child is another agent.
 */
function refuseChanges(
  { access, server }: Pick<RouteRequest, "access" | "server">,
  { agentId }: RunHandle,
  { instructions, model, tools, toolResults, taskId: task = "t0" }: Partial<ForkOptions>,
): void {
  if (hasScope(access, "admin")) return;
  const wanted: WantedChanges = {
    ...(instructions !== undefined && { instructions }),
    ...(model !== undefined && { model }),
    ...(tools !== undefined && { tools }),
    toolResults: toolResults !== undefined,
  };
  const agent = server.agents.changeable(agentId);
  assertAllowed(task === "t0" ? agent : { name: `of ${task}`, allowed: {}, models: [] }, wanted);
}

const resent = { status: 201, description: "The new run.", schema: object({ run: runSummary }) };

const resend = route({
  id: "runs.resend",
  method: "POST",
  path: "/api/runs/{runId}/resend",
  summary: "Submit the input of a failed run again, in the same session.",
  scope: "run",
  params: runParams,
  responses: [resent],
  handle: async (request) => {
    request.server.refuseIfDraining();
    const { runId } = await findRun(request);
    const run = await request.runtime.sessions.resend(runId);
    return reply(resent, { run: await run.summary() });
  },
});

export const runCommandRoutes = [
  command(
    "cancel",
    "Cancel a run with all its tasks, or one of its tasks with its descendants.",
    object({ reason: optional(text({ maxLength: 1_000 })), taskId: optional(taskId) }),
    (run, { reason, taskId: task }) => run.cancel(reason, task),
    { isBodyOptional: true },
  ),
  command("pause", "Pause a run. Calls in flight finish first.", nothing, (run) => run.pause(), {
    isBodyOptional: true,
  }),
  command(
    "resume",
    "Continue a paused run, or restart one that ended without completing.",
    nothing,
    (run) => run.resume(),
    { isBodyOptional: true },
  ),
  command(
    "top-up",
    "Raise the budget of a run, or of one of its tasks, and continue it if its budget was used up, or if it stopped at its deadline and `deadlineMs` adds time. A token with the scope run adds in all at most what the option `topUp` of the agent allows, and otherwise gets 403.",
    object({
      maxTokens: optional(integer({ minimum: 0 })),
      maxCostUsd: optional(number({ minimum: 0 })),
      maxTurns: optional(integer({ minimum: 0 })),
      deadlineMs: optional(number({ minimum: 0, description: "Milliseconds of time." })),
      taskId: optional(taskId),
    }),
    (run, { taskId: task, ...add }, { access }) =>
      run.topUp(add as Partial<TopUp>, task, { limited: !hasScope(access, "admin") }),
  ),
  command(
    "priority",
    "Change the priority of a task.",
    object({ taskId: optional(taskId), priority }),
    (run, { taskId: task = "t0", priority: weight }) => run.reprioritize(task, weight),
  ),
  command(
    "signal",
    "Resolve a wait of a task. A value that does not match the schema of a signal which the workflow declares gets 400.",
    object({
      name: text({ minLength: 1, maxLength: 1_024 }),
      value: optional(anyJson()),
      taskId: optional(taskId),
      id: optional(text({ minLength: 1, maxLength: 256, description: "A repeated id has no effect." })),
    }),
    async (run, { name, value = null, taskId: task = rootTaskId, id }, { signal }) => {
      // Other tasks have declarations of their own.
      if (task === rootTaskId) await signal(name)?.read(value);
      await run.signal(name, value, { taskId: task, ...(id !== undefined && { id }) });
    },
    { carriesInput: true },
  ),
  command(
    "tool-result",
    "Send the result of a client-side tool.",
    object({
      callId: text({
        minLength: 1,
        maxLength: 2_048,
        description: "The callId, or the approvalId of one of several calls.",
      }),
      value: anyJson(),
      isError: optional(flag()),
    }),
    (run, { callId, value, isError = false }) => run.toolResult(callId, value, { isError }),
    { carriesInput: true },
  ),
  listOpen,
  getTopUp,
  command(
    "decide",
    "Answer a question of a run. The first answer counts; a later one is refused with 409.",
    decision,
    (run, { approvalId, ...answer }, { access }) =>
      run.approve(approvalId, answer as ApprovalDecision, { limited: !hasScope(access, "admin") }),
    { carriesInput: true },
  ),
  fork,
  resend,
] as const;
