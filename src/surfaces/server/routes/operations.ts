import { reply, route } from "../../http/route.ts";
import { after, agentId, approvalPage, deadLetter, limit, runId } from "../../http/schema/run-schemas.ts";
import { choice, integer, list, nullable, object, optional, text } from "../../http/schema/schema.ts";
import { scopes } from "../../http/access/access.ts";

const tenant = {
  tenantId: optional(text({ minLength: 1, description: "Only for tokens without a tenant." })),
  userId: optional(text({ minLength: 1 })),
};

const open = {
  status: 200,
  description: "One page of questions, the one that has waited longest first.",
  schema: approvalPage,
};
const listApprovals = route({
  id: "approvals.list",
  method: "GET",
  path: "/api/approvals",
  summary: "List everything that waits for a person. POST /api/runs/{runId}/decide and /tool-result answer.",
  scope: "read",
  query: object({ runId: optional(runId), agentId: optional(agentId), ...tenant, limit, after }),
  responses: [open],
  handle: async ({ runtime, query }) => reply(open, await runtime.approvals(query)),
});

const letters = {
  status: 200,
  description: "The dead letters.",
  schema: object({ deadLetters: list(deadLetter) }),
};
const listDeadLetters = route({
  id: "dead-letters.list",
  method: "GET",
  path: "/api/dead-letters",
  summary: "List the messages whose delivery failed too often.",
  scope: "read",
  query: object({ agentId: optional(agentId) }),
  responses: [letters],
  handle: async ({ runtime, query }) =>
    reply(letters, { deadLetters: await runtime.deadLetters(query.agentId) }),
});

const redelivered = {
  status: 200,
  description: "How many are delivered again.",
  schema: object({ redelivered: integer() }),
};
const redeliver = route({
  id: "dead-letters.redeliver",
  method: "POST",
  path: "/api/dead-letters/redeliver",
  summary: "Deliver dead letters of an agent again.",
  scope: "admin",
  body: object({ agentId, messageIds: optional(list(text({ minLength: 1 }), { maxItems: 1_000 })) }),
  responses: [redelivered],
  handle: async ({ runtime, body: { agentId: id, messageIds } }) =>
    reply(redelivered, { redelivered: await runtime.redeliver(id, messageIds) }),
});

const self = {
  status: 200,
  description: "The access of the token.",
  schema: object({
    name: text(),
    scope: choice(scopes),
    tenantId: nullable(text()),
    userId: nullable(text()),
  }),
};
const getAccess = route({
  id: "access.get",
  method: "GET",
  path: "/api/access",
  summary: "Read for whom the token acts and what it may do.",
  scope: "read",
  responses: [self],
  handle: ({ access: { name, scope, tenantId, userId } }) => reply(self, { name, scope, tenantId, userId }),
});

export const operationRoutes = [listApprovals, listDeadLetters, redeliver, getAccess] as const;
