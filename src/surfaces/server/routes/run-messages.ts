import { CancellationError, Fault } from "../../../kernel/index.ts";
import { reply, route } from "../../http/route.ts";
import { runParams, runSummary } from "../../http/schema/run-schemas.ts";
import { anyJson, flag, integer, list, nullable, object, optional, text } from "../../http/schema/schema.ts";
import { findRun } from "./find-run.ts";

const messageName = text({ minLength: 1, maxLength: 1_024 });
const messageId = optional(
  text({ minLength: 1, maxLength: 256, description: "Names the message, so that repeating it is harmless." }),
);

const replied = {
  status: 200,
  description: "The reply of the run.",
  schema: object({ id: text(), reply: anyJson() }),
};
const unanswered = {
  status: 202,
  description:
    "The update is stored, and the run has not replied within the time. Repeat the request with this id to wait again.",
  schema: object({ id: text(), run: runSummary }),
};
const longestWaitMs = 60_000;

const sendUpdate = route({
  id: "runs.update",
  method: "POST",
  path: "/api/runs/{runId}/update",
  summary:
    "Send an update to a workflow, and wait for its reply. An update that the workflow refuses by its own check gets 409, one that does not match its schema 400. The same id returns the same reply.",
  scope: "run",
  params: runParams,
  body: object({
    name: messageName,
    value: optional(anyJson()),
    id: messageId,
    waitMs: optional(
      integer({ minimum: 0, maximum: longestWaitMs, description: "How long to wait. Default: 30000." }),
    ),
  }),
  carriesInput: true,
  responses: [replied, unanswered],
  handle: async (request) => {
    const run = await findRun(request);
    const { name, value = null, id = crypto.randomUUID(), waitMs = 30_000 } = request.body;
    const signal = AbortSignal.any([
      request.request.signal,
      request.server.draining,
      AbortSignal.timeout(waitMs),
    ]);
    try {
      return reply(replied, { id, reply: await run.update(name, value, { id, signal }) });
    } catch (error) {
      if (!signal.aborted || !(error instanceof CancellationError)) throw error;
      return reply(unanswered, { id, run: await run.summary() });
    }
  },
});

const published = {
  status: 200,
  description: "The last committed value.",
  schema: object({ name: text(), value: anyJson() }),
};

const readValue = route({
  id: "runs.value",
  method: "GET",
  path: "/api/runs/{runId}/values/{name}",
  summary:
    "Read the last value that a workflow has published under a name. Does not wake the run. 404 if it has published none.",
  scope: "read",
  params: object({ runId: text({ minLength: 1, maxLength: 256 }), name: messageName }),
  responses: [published],
  handle: async (request) => {
    const run = await findRun(request);
    const { name } = request.params;
    const value = await run.read(name);
    if (value === undefined)
      throw new Fault(
        "not_found",
        `${run.runId} has published no value under the name ${JSON.stringify(name)}`,
      );
    return reply(published, { name, value });
  },
});

const settled = {
  status: 200,
  description: "The promise is settled.",
  schema: object({
    isFirst: flag({
      description: "Whether this call settled it. The first call counts; a later one has no effect.",
    }),
  }),
};
const promiseParams = object({ id: text({ minLength: 1, maxLength: 4_096 }) });

const resolvePromise = route({
  id: "promises.resolve",
  method: "POST",
  path: "/api/promises/{id}/resolve",
  summary: "Resolve a promise of a workflow. 404 if its run has ended, or belongs to another tenant.",
  scope: "run",
  params: promiseParams,
  body: object({ value: optional(anyJson()) }),
  isBodyOptional: true,
  carriesInput: true,
  responses: [settled],
  handle: async ({ runtime, params, body }) =>
    reply(settled, { isFirst: await runtime.promise(params.id).resolve(body.value ?? null) }),
});

const rejectPromise = route({
  id: "promises.reject",
  method: "POST",
  path: "/api/promises/{id}/reject",
  summary: "Reject a promise of a workflow, which receives the message as an error.",
  scope: "run",
  params: promiseParams,
  body: object({ message: text({ minLength: 1, maxLength: 10_000 }) }),
  responses: [settled],
  handle: async ({ runtime, params, body }) =>
    reply(settled, { isFirst: await runtime.promise(params.id).reject(new Error(body.message)) }),
});

const objectName = text({ minLength: 1, maxLength: 1_280 });
const stateQuery = {
  tenantId: optional(text({ minLength: 1, description: "Only for tokens without a tenant." })),
};
const objectState = object({ key: text(), state: anyJson() });
const foundState = { status: 200, description: "The last committed state.", schema: objectState };

const readState = route({
  id: "objects.state",
  method: "GET",
  path: "/api/objects/{name}/{key}",
  summary:
    "Read the last committed state of a key of an object. Waits for no call. 404 if the key has no state. States belong to a tenant: tokens of one user get 403.",
  scope: "read",
  params: object({ name: objectName, key: text({ minLength: 1, maxLength: 1_024 }) }),
  query: object(stateQuery),
  responses: [foundState],
  handle: async ({ runtime, params, query }) => {
    const { name, key } = params;
    const { states } = await runtime.objectStates(name, { key, ...query });
    const [found] = states;
    if (found !== undefined) return reply(foundState, found);
    throw new Fault("not_found", `key ${JSON.stringify(key)} of object ${name} has no state`);
  },
});

const foundStates = {
  status: 200,
  description: "The states.",
  schema: object({
    states: list(objectState),
    next: nullable(text({ description: "The `after` of the next page. null: this is the last page." })),
  }),
};

const listStates = route({
  id: "objects.states",
  method: "GET",
  path: "/api/objects/{name}",
  summary: "List the keys of an object that have a state, with their last committed states.",
  scope: "read",
  params: object({ name: objectName }),
  query: object({
    ...stateQuery,
    key: optional(
      text({
        minLength: 1,
        maxLength: 1_024,
        description: "Only this key. Use it for the keys . and .., which a path cannot contain.",
      }),
    ),
    after: optional(text({ minLength: 1 })),
    limit: optional(integer({ minimum: 1, maximum: 1_000, description: "Default: 100." })),
  }),
  responses: [foundStates],
  handle: async ({ runtime, params, query }) =>
    reply(foundStates, await runtime.objectStates(params.name, query)),
});

/**
 * Routes for the messages of workflows and the states of objects: updates, published values and promises. The
 * command `signal` is not included, because it is available for every run.
 */
export const runMessageRoutes = [
  sendUpdate,
  readValue,
  resolvePromise,
  rejectPromise,
  readState,
  listStates,
] as const;
