import { randomUUID } from "node:crypto";
import {
  assertAllowed,
  Fault,
  formatAgentId,
  type ChatMessage,
  type CustomEntry,
  type SessionEntry,
  type ThinkingLevel,
} from "../../../kernel/index.ts";
import { parseModelName } from "../../../runtime/index.ts";
import { hasScope } from "../../http/access/access.ts";
import { reply, route, type RouteRequest } from "../../http/route.ts";
import { after, agentId, limit, sessionId } from "../../http/schema/run-schemas.ts";
import {
  contextUsage,
  entry,
  entryId,
  entryPage,
  searchPage,
  session,
  sessionPage,
  sessionParams,
  thinkingLevel,
  tree,
  unsentInput,
} from "../../http/schema/session-schemas.ts";
import {
  anyJson,
  choice,
  integer,
  list,
  nullable,
  object,
  optional,
  schemaOf,
  text,
} from "../../http/schema/schema.ts";

const filter = {
  agentId: optional(agentId),
  tenantId: optional(text({ minLength: 1, description: "Only for tokens without a tenant." })),
  userId: optional(text({ minLength: 1 })),
  limit,
  after,
};
const base = "/api/sessions/{sessionId}";
const label = text({ maxLength: 200 });

const settings = {
  name: optional(label),
  model: optional(text({ pattern: "^[^/]+/.+$", maxLength: 512, description: "provider/id" })),
  thinkingLevel: optional(thinkingLevel),
};

const listed = { status: 200, description: "One page of sessions, newest first.", schema: sessionPage };
const listSessions = route({
  id: "sessions.list",
  method: "GET",
  path: "/api/sessions",
  summary: "List conversations, newest first.",
  scope: "read",
  query: object({
    ...filter,
    text: optional(text({ maxLength: 1_000, description: "Part of the name or title." })),
  }),
  responses: [listed],
  handle: async ({ runtime, query }) => reply(listed, await runtime.sessions.list(query)),
});

const hits = { status: 200, description: "Entries that contain the text.", schema: searchPage };
const search = route({
  id: "sessions.search",
  method: "GET",
  path: "/api/search",
  summary: "Search the entries of conversations.",
  scope: "read",
  query: object({
    ...filter,
    text: text({ minLength: 1, maxLength: 1_000 }),
    sessionId: optional(sessionId),
  }),
  responses: [hits],
  handle: async ({ runtime, query: { text: wanted, ...options } }) =>
    reply(hits, await runtime.sessions.search(wanted, options)),
});

type SessionRequest = Pick<RouteRequest<{ readonly sessionId: string }>, "runtime" | "params">;

async function findSession({ runtime, params: { sessionId: id } }: SessionRequest) {
  const found = await runtime.sessions.get(id);
  if (found === undefined)
    throw new Fault("not_found", `session ${id} does not exist`, { details: { sessionId: id } });
  return found;
}

const found = { status: 200, description: "The session.", schema: session };
const getSession = route({
  id: "sessions.get",
  method: "GET",
  path: base,
  summary: "Read a session.",
  scope: "read",
  params: sessionParams,
  responses: [found],
  handle: async (request) => reply(found, await findSession(request)),
});

const path = {
  status: 200,
  description: "The entries from the root to the current entry.",
  schema: object({ entries: list(entry) }),
};
const getPath = route({
  id: "sessions.path",
  method: "GET",
  path: `${base}/path`,
  summary: "Read the conversation of a session.",
  scope: "read",
  params: sessionParams,
  query: object({
    leafId: optional(entryId),
    from: optional(choice(["root", "compaction"])),
    limit: optional(
      integer({
        minimum: 1,
        description: "The most entries, of which the newest are returned. Not with `from=compaction`.",
      }),
    ),
  }),
  responses: [path],
  handle: async ({ runtime, params, query }) =>
    reply(path, { entries: await runtime.sessions.path(params.sessionId, query) }),
});

const entries = { status: 200, description: "Entries of all branches.", schema: entryPage };
const getEntries = route({
  id: "sessions.entries",
  method: "GET",
  path: `${base}/entries`,
  summary: "Read the entries of all branches of a session.",
  scope: "read",
  params: sessionParams,
  query: object({ limit, after }),
  responses: [entries],
  handle: async ({ runtime, params, query }) =>
    reply(entries, await runtime.sessions.entries(params.sessionId, query)),
});

const whole = { status: 200, description: "The tree.", schema: tree };
const getTree = route({
  id: "sessions.tree",
  method: "GET",
  path: `${base}/tree`,
  summary: "Read a session as a tree.",
  scope: "read",
  params: sessionParams,
  responses: [whole],
  handle: async ({ runtime, params }) => reply(whole, await runtime.sessions.tree(params.sessionId)),
});

const filled = {
  status: 200,
  description: "How much of the model's window is filled.",
  schema: contextUsage,
};
const getContextUsage = route({
  id: "sessions.context-usage",
  method: "GET",
  path: `${base}/context-usage`,
  summary: "Read how much of the model's window the conversation fills.",
  scope: "read",
  params: sessionParams,
  responses: [filled],
  handle: async ({ runtime, params }) => reply(filled, await runtime.sessions.contextUsage(params.sessionId)),
});

const left = {
  status: 200,
  description: "The inputs, oldest first.",
  schema: object({ inputs: list(unsentInput) }),
};
const getUnsent = route({
  id: "sessions.unsent",
  method: "GET",
  path: `${base}/unsent`,
  summary: "List the inputs of failed runs that were not sent again.",
  scope: "read",
  params: sessionParams,
  responses: [left],
  handle: async ({ runtime, params }) =>
    reply(left, { inputs: await runtime.sessions.unsent(params.sessionId) }),
});

const phase = { status: 200, description: "The phase.", schema: object({ phase: text() }) };
const getPhase = route({
  id: "sessions.phase",
  method: "GET",
  path: `${base}/phase`,
  summary: "Read what an agent is doing in a session: idle, turn or compaction.",
  scope: "read",
  params: sessionParams,
  query: object({ agentId }),
  responses: [phase],
  handle: async ({ runtime, params, query }) =>
    reply(phase, { phase: await runtime.sessions.phase(params.sessionId, query.agentId) }),
});

const createdSession = { status: 201, description: "The new session.", schema: session };
const create = route({
  id: "sessions.create",
  method: "POST",
  path: "/api/sessions",
  summary:
    "Create a session with a name, a model or a thinking level before its first run. A token with the scope run may choose a model as with `PATCH`.",
  scope: "run",
  body: object({
    agent: text({ minLength: 1, maxLength: 256, description: "Name of an agent of this server." }),
    sessionId: optional(sessionId),
    ...settings,
  }),
  responses: [createdSession],
  handle: async (request) => {
    const { runtime, access, body, server } = request;
    const { name } = server.agents.find(body.agent);
    assertModelAllowed(request, name, body.model);
    const chosen = settingEntries(body);
    if (chosen.length === 0)
      throw new Fault(
        "invalid_argument",
        "invalid body: expected a name, a model or a thinkingLevel, because a session without any entry does not exist",
      );
    const { tenantId, userId } = access;
    const created = await runtime.sessions.import({
      agentId: formatAgentId({ name }),
      entries: chosen,
      ...(body.sessionId !== undefined && { sessionId: body.sessionId }),
      ...(tenantId === null && userId !== null && { userId }),
    });
    return reply(createdSession, await findSession({ runtime, params: { sessionId: created } }));
  },
});

interface SessionSettings {
  readonly name?: string | undefined;
  readonly model?: string | undefined;
  readonly thinkingLevel?: ThinkingLevel | undefined;
}

/** Returns the entries that set the initial settings of a new session. Each entry is the child of the previous one. */
function settingEntries({ name, model, thinkingLevel: level }: SessionSettings): readonly SessionEntry[] {
  const chosen: SessionEntry[] = [];
  const common = () => ({
    id: `setting_${randomUUID()}`,
    parentId: chosen.at(-1)?.id ?? null,
    at: Date.now(),
    runId: null,
    taskId: null,
  });
  if (model !== undefined) chosen.push({ ...common(), type: "model_change", ...parseModelName(model) });
  if (level !== undefined) chosen.push({ ...common(), type: "thinking_level_change", level });
  if (name !== undefined) chosen.push({ ...common(), type: "session_info", name });
  return chosen;
}

/** Throws `permission_denied` if the caller may not choose the model for the agent. */
function assertModelAllowed(
  { access, server }: Pick<RouteRequest, "access" | "server">,
  agent: string,
  model: string | undefined,
): void {
  if (model !== undefined && !hasScope(access, "admin"))
    assertAllowed(server.agents.changeable(agent), { model });
}

const changed = { status: 200, description: "The session after the change.", schema: session };
const change = route({
  id: "sessions.change",
  method: "PATCH",
  path: base,
  summary:
    "Set the name, the model or the thinking level of a session. A token with the scope run may choose a model of the agent, and those of its option `allowedChanges`.",
  scope: "run",
  params: sessionParams,
  body: object(settings, { minProperties: 1 }),
  responses: [changed],
  handle: async (request) => {
    const { runtime, params, body } = request;
    const { sessions } = runtime;
    const before = await findSession(request);
    assertModelAllowed(request, before.agentId, body.model);
    if (body.name !== undefined) await sessions.name(params.sessionId, body.name);
    if (body.model !== undefined) await sessions.setModel(params.sessionId, body.model);
    if (body.thinkingLevel !== undefined)
      await sessions.setThinkingLevel(params.sessionId, body.thinkingLevel);
    return reply(changed, await findSession(request));
  },
});

const done = { status: 204, description: "Done." };
const setLabel = route({
  id: "sessions.label",
  method: "POST",
  path: `${base}/label`,
  summary: "Set or remove the label of an entry.",
  scope: "run",
  params: sessionParams,
  body: object({ entryId, label: nullable(label) }),
  responses: [done],
  handle: async ({ runtime, params, body }) => {
    await runtime.sessions.label(params.sessionId, body.entryId, body.label);
    return undefined;
  },
});

const moved = {
  status: 200,
  description: "The current entry.",
  schema: object({ leafId: nullable(text()) }),
};
const move = route({
  id: "sessions.move",
  method: "POST",
  path: `${base}/move`,
  summary: "Continue the conversation after another entry. null starts a new branch.",
  scope: "run",
  params: sessionParams,
  body: object({ entryId: nullable(entryId), summary: optional(text()) }),
  responses: [moved],
  handle: async ({ runtime, params, body: { entryId: target, ...options } }) =>
    reply(moved, { leafId: await runtime.sessions.move(params.sessionId, target, options) }),
});

const copied = { status: 201, description: "The new session.", schema: object({ sessionId: text() }) };
const fork = route({
  id: "sessions.fork",
  method: "POST",
  path: `${base}/fork`,
  summary: "Copy a path to a new session.",
  scope: "run",
  params: sessionParams,
  body: object({ entryId: optional(entryId), sessionId: optional(sessionId), name: optional(label) }),
  isBodyOptional: true,
  responses: [copied],
  handle: async ({ runtime, params, body }) =>
    reply(copied, { sessionId: await runtime.sessions.fork(params.sessionId, body) }),
});

const appended = { status: 201, description: "The entry.", schema: object({ entryId: text() }) };
const append = route({
  id: "sessions.append",
  method: "POST",
  path: `${base}/entries`,
  summary: "Append an entry of the application: `data`, or a `message` that the model sees.",
  scope: "run",
  params: sessionParams,
  body: object(
    {
      customType: text({ minLength: 1, maxLength: 128 }),
      data: optional(anyJson()),
      message: optional(
        schemaOf<ChatMessage>({
          type: "object",
          properties: { role: { type: "string" } },
          required: ["role"],
        }),
      ),
    },
    { oneOf: [{ required: ["data"] }, { required: ["message"] }] },
  ),
  carriesInput: true,
  responses: [appended],
  handle: async ({ runtime, params, body }) =>
    reply(appended, { entryId: await runtime.sessions.append(params.sessionId, body as CustomEntry) }),
});

const compact = route({
  id: "sessions.compact",
  method: "POST",
  path: `${base}/compact`,
  summary: "Replace the beginning of the conversation by a summary in the model's view.",
  scope: "run",
  params: sessionParams,
  body: object({
    summary: text({ minLength: 1 }),
    firstKeptEntryId: entryId,
    tokensBefore: optional(integer({ minimum: 0 })),
  }),
  responses: [appended],
  handle: async ({ runtime, params, body }) =>
    reply(appended, { entryId: await runtime.sessions.compact(params.sessionId, body) }),
});

const remove = route({
  id: "sessions.delete",
  method: "DELETE",
  path: base,
  summary: "Delete a session. Its runs stay.",
  scope: "run",
  params: sessionParams,
  responses: [done],
  handle: async (request) => {
    await findSession(request);
    await request.runtime.sessions.delete(request.params.sessionId);
    return undefined;
  },
});

export const sessionRoutes = [
  listSessions,
  search,
  getSession,
  getPath,
  getEntries,
  getTree,
  getContextUsage,
  getUnsent,
  getPhase,
  create,
  change,
  setLabel,
  move,
  fork,
  append,
  compact,
  remove,
] as const;
