import {
  CancellationError,
  parseAgentId,
  type InputOptions,
  type JsonValue,
  type RunHandle,
} from "../../../kernel/index.ts";
import { maxCommandValues } from "../../http/request-body.ts";
import { inputIdOf } from "../../http/start-run.ts";
import { reply, route, type RouteRequest } from "../../http/route.ts";
import { runParams, runSummary, runWithInput, taskId } from "../../http/schema/run-schemas.ts";
import { anyJson, choice, flag, integer, list, object, optional, text } from "../../http/schema/schema.ts";
import { findRun } from "./find-run.ts";

const accepted = {
  status: 202,
  description:
    "The input is stored. The owner of the run queues it; the events of the run show when the agent reads it.",
  schema: runWithInput,
};

const given = object({
  input: anyJson({ description: "A text, or what the agent accepts." }),
  taskId: optional(taskId),
});

/** Sends an input to the run. As for every input of the agent, templates and skills that it names are expanded. */
async function send(
  request: RouteRequest<
    { readonly runId: string },
    unknown,
    { readonly input: JsonValue; readonly taskId?: string }
  >,
  queue: (run: RunHandle, input: JsonValue, options: InputOptions) => Promise<string>,
) {
  const run = await findRun(request);
  const { input, taskId: task } = request.body;
  const { name } = parseAgentId(run.agentId);
  const id = inputIdOf(request);
  const options = { ...(task !== undefined && { taskId: task }), ...(id !== undefined && { id }) };
  const inputId = await queue(run, await request.server.agents.expand(name, input, run.sessionId), options);
  return reply(accepted, { ...(await run.summary()), inputId });
}

const steer = route({
  id: "runs.steer",
  method: "POST",
  path: "/api/runs/{runId}/steer",
  summary:
    "Send input that a task reads before its next turn. Default task: the root. With the header `Idempotency-Key`, a repeated request has no further effect.",
  scope: "run",
  params: runParams,
  body: given,
  carriesInput: true,
  maxValues: maxCommandValues,
  responses: [accepted],
  handle: (request) => send(request, (run, input, options) => run.steer(input, options)),
});

const followUp = route({
  id: "runs.follow-up",
  method: "POST",
  path: "/api/runs/{runId}/follow-up",
  summary:
    "Send input that a task reads when it would otherwise end. Default task: the root. With the header `Idempotency-Key`, a repeated request has no further effect.",
  scope: "run",
  params: runParams,
  body: given,
  carriesInput: true,
  maxValues: maxCommandValues,
  responses: [accepted],
  handle: (request) => send(request, (run, input, options) => run.followUp(input, options)),
});

const queued = {
  status: 200,
  description: "The inputs that no task has read.",
  schema: object({
    inputs: list(
      object({
        inputId: text(),
        kind: choice(["steer", "follow_up"]),
        taskId,
        input: anyJson(),
      }),
    ),
  }),
};

const listQueued = route({
  id: "runs.queued-input",
  method: "GET",
  path: "/api/runs/{runId}/queued-input",
  summary: "List the steering and follow-ups that the tasks of a run have not read.",
  scope: "read",
  params: runParams,
  responses: [queued],
  handle: async (request) => reply(queued, { inputs: await (await findRun(request)).queuedInput() }),
});

const decided = {
  status: 200,
  description: "The answer of the run.",
  schema: object({
    isWithdrawn: flag({
      description:
        "Whether the withdrawal came in time. false: a task has read the input, or the run has ended.",
    }),
  }),
};
const undecided = {
  status: 202,
  description:
    "The withdrawal is stored, and no worker has answered within the time. Repeat the request to wait again.",
  schema: object({ run: runSummary }),
};
const longestWaitMs = 60_000;

const withdraw = route({
  id: "runs.withdraw-input",
  method: "POST",
  path: "/api/runs/{runId}/withdraw-input",
  summary:
    "Take back an input that no task has read, and say whether that came in time. Repeating the request returns the same answer. 404 if the run has received no such input.",
  scope: "run",
  params: runParams,
  body: object({
    inputId: text({
      minLength: 1,
      maxLength: 2_048,
      description: "As `steer` or `queued-input` returned it.",
    }),
    waitMs: optional(
      integer({ minimum: 0, maximum: longestWaitMs, description: "How long to wait. Default: 30000." }),
    ),
  }),
  responses: [decided, undecided],
  handle: async (request) => {
    const run = await findRun(request);
    const { inputId, waitMs = 30_000 } = request.body;
    const signal = AbortSignal.any([
      request.request.signal,
      request.server.draining,
      AbortSignal.timeout(waitMs),
    ]);
    try {
      return reply(decided, { isWithdrawn: await run.withdrawInput(inputId, { signal }) });
    } catch (error) {
      if (!signal.aborted || !(error instanceof CancellationError)) throw error;
      return reply(undecided, { run: await run.summary() });
    }
  },
});

export const runInputRoutes = [steer, followUp, listQueued, withdraw] as const;
