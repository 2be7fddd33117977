import type { InboxOwner } from "../../../kernel/index.ts";
import type { Access } from "../../http/access/access.ts";
import { inboxKinds, InboxReader, inboxViews } from "../../http/inbox-reader.ts";
import { reply, route } from "../../http/route.ts";
import { approval, deadLetter, runId, runSummary, time } from "../../http/schema/run-schemas.ts";
import {
  choice,
  flag,
  integer,
  list,
  named,
  nullable,
  object,
  optional,
  text,
} from "../../http/schema/schema.ts";

const itemId = text({
  minLength: 1,
  maxLength: 2_400,
  description: "The id of a run or of a message, or `RUN:QUESTION`.",
});
const change = text({
  maxLength: 200,
  description: "The state of the item that the person saw. An item with another one is shown.",
});
const isMore = flag({ description: "Whether there are more than the limit." });
const hidden = list(object({ id: itemId, change, until: nullable(time), at: time }));

const inbox = {
  status: 200,
  description: "What waits for a person.",
  schema: named(
    "Inbox",
    object({
      questions: object(
        { items: list(approval), isMore },
        { description: "The one that has waited longest first." },
      ),
      runs: object(
        { items: list(runSummary), isMore },
        {
          description: "Runs that stopped at a limit or are paused as crash loops, the newest of each first.",
        },
      ),
      letters: object(
        { items: list(deadLetter), isMore },
        { description: "Messages that could not be delivered." },
      ),
      hidden,
      away: integer({ description: "How many items that fit the caller has closed or snoozed." }),
      waiting: integer({
        description: "How many questions of the whole inbox the caller has neither closed nor snoozed.",
      }),
      asking: list(text(), { description: "The runs that ask these questions." }),
      setAside: list(text(), {
        description: "The runs of which the caller has closed or snoozed every open question.",
      }),
    }),
  ),
};

const listInbox = route({
  id: "inbox.list",
  method: "GET",
  path: "/api/inbox",
  summary:
    "List what waits for the caller: questions, runs that stopped at a limit, crash loops and dead letters, without what the caller has closed or snoozed. Costs O(open questions, paused runs, listed and hidden items).",
  scope: "read",
  query: object({
    view: optional(
      choice(inboxViews, { description: "`away`: what the caller has closed or snoozed. Default: open." }),
    ),
    kind: optional(choice(inboxKinds)),
    agent: optional(
      text({
        minLength: 1,
        maxLength: 256,
        description:
          "Name of the agent that asks, stopped or was written to, or of a program of the gateway.",
      }),
    ),
    runId: optional(runId),
    limit: optional(
      integer({ minimum: 1, maximum: 1_000, description: "Maximum number of each kind. Default: 100." }),
    ),
  }),
  responses: [inbox],
  handle: async ({ runtime, access, query }) => {
    const put = await runtime.inbox.hidden(inboxOf(access));
    return reply(inbox, await new InboxReader(runtime, put, query).read());
  },
});

const hiddenItems = {
  status: 200,
  description: "What the caller has taken off their inbox.",
  schema: object({ hidden }),
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

/** Number of items per request. */
const mostItems = 1_000;

const hideItems = route({
  id: "inbox.hide",
  method: "POST",
  path: "/api/inbox/hidden",
  summary: "Take items off the caller's inbox until they change, or until a time.",
  scope: "run",
  body: object({
    items: list(object({ id: itemId, change }), { minItems: 1, maxItems: mostItems }),
    until: optional(nullable(time)),
  }),
  responses: [hiddenItems],
  handle: async ({ runtime, access, body: { items, until = null } }) => {
    const owner = inboxOf(access);
    await runtime.inbox.hide(
      items.map((item) => ({ ...item, until })),
      owner,
    );
    return reply(hiddenItems, { hidden: await runtime.inbox.hidden(owner) });
  },
});
const restoreItems = route({
  id: "inbox.restore",
  method: "POST",
  path: "/api/inbox/restore",
  summary: "Put items back on the caller's inbox.",
  scope: "run",
  body: object({ ids: list(itemId, { minItems: 1, maxItems: mostItems }) }),
  responses: [hiddenItems],
  handle: async ({ runtime, access, body: { ids } }) => {
    const owner = inboxOf(access);
    for (const id of ids) await runtime.inbox.restore(id, owner);
    return reply(hiddenItems, { hidden: await runtime.inbox.hidden(owner) });
  },
});

/** Returns the owner of an inbox. Each token without a user has its own inbox. */
function inboxOf({ tenantId, userId, name }: Access): InboxOwner {
  return { tenantId, userId: userId ?? name };
}

export const inboxRoutes = [listInbox, listHidden, hideItems, restoreItems] as const;
