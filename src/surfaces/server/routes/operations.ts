import { type InboxOwner, type Message } from "../../../kernel/index.ts";
import { reply, route } from "../../http/route.ts";
import { after, agentId, approvalPage, limit, runId, time } from "../../http/schema/run-schemas.ts";
import {
  choice,
  integer,
  list,
  named,
  nullable,
  object,
  optional,
  schemaOf,
  text,
} from "../../http/schema/schema.ts";
import { scopes, type Access } from "../../http/access/access.ts";

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

const itemId = text({
  minLength: 1,
  maxLength: 2_400,
  description: "Names the item, such as the id of a run.",
});
const change = text({
  maxLength: 200,
  description: "The state of the item that the person saw. An item with another one is shown.",
});
const hiddenItems = {
  status: 200,
  description: "What the caller has taken off their inbox.",
  schema: object({
    hidden: list(object({ id: itemId, change, until: nullable(time), at: time })),
  }),
};
const listHidden = route({
  id: "inbox.hidden",
  method: "GET",
  path: "/api/inbox/hidden",
  summary: "List what the caller has closed or snoozed. It decides nothing, and others still see it.",
  scope: "read",
  responses: [hiddenItems],
  handle: async ({ runtime, access }) =>
    reply(hiddenItems, { hidden: await runtime.inbox.hidden(inboxOf(access)) }),
});
const hideItem = route({
  id: "inbox.hide",
  method: "POST",
  path: "/api/inbox/hidden",
  summary: "Take an item off the caller's inbox until it changes, or until a time.",
  scope: "run",
  body: object({ id: itemId, change, until: optional(nullable(time)) }),
  responses: [hiddenItems],
  handle: async ({ runtime, access, body: { id, change: seen, until = null } }) => {
    await runtime.inbox.hide({ id, change: seen, until }, inboxOf(access));
    return reply(hiddenItems, { hidden: await runtime.inbox.hidden(inboxOf(access)) });
  },
});
const restoreItem = route({
  id: "inbox.restore",
  method: "POST",
  path: "/api/inbox/restore",
  summary: "Put an item back on the caller's inbox.",
  scope: "run",
  body: object({ id: itemId }),
  responses: [hiddenItems],
  handle: async ({ runtime, access, body: { id } }) => {
    await runtime.inbox.restore(id, inboxOf(access));
    return reply(hiddenItems, { hidden: await runtime.inbox.hidden(inboxOf(access)) });
  },
});

/** Tokens without a user have an inbox each. */
function inboxOf({ tenantId, userId, name }: Access): InboxOwner {
  return { tenantId, userId: userId ?? name };
}

const letter = named(
  "DeadLetter",
  object({
    message: schemaOf<Message>({
      type: "object",
      properties: {
        id: { type: "string" },
        from: { type: ["string", "null"] },
        to: { type: "string" },
        body: {},
        sentAt: { type: "integer" },
      },
      required: ["id", "from", "to", "body", "sentAt"],
    }),
    deliveries: integer(),
    notBefore: optional(integer()),
    runId: optional(text()),
    redelivered: optional(integer()),
  }),
);
const letters = {
  status: 200,
  description: "The dead letters.",
  schema: object({ deadLetters: list(letter) }),
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

export const operationRoutes = [
  listApprovals,
  listHidden,
  hideItem,
  restoreItem,
  listDeadLetters,
  redeliver,
  getAccess,
] as const;
