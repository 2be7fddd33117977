import { thinkingLevels, type SessionEntry } from "../../../kernel/index.ts";
import { failure, next, runSummary, sessionId, time } from "./run-schemas.ts";
import {
  anyJson,
  choice,
  flag,
  integer,
  list,
  named,
  nullable,
  number,
  object,
  schemaOf,
  text,
} from "./schema.ts";

export const sessionParams = object({ sessionId });
export const entryId = text({ minLength: 1, maxLength: 512, description: "Id of an entry." });

export const session = named(
  "Session",
  object({
    sessionId: text(),
    agentId: text(),
    tenantId: nullable(text()),
    userId: nullable(text()),
    name: nullable(text()),
    title: nullable(text()),
    leafId: nullable(text()),
    entries: integer(),
    updatedAt: time,
  }),
);

export const sessionPage = named("SessionPage", object({ sessions: list(session), next }));

export const entry = named(
  "SessionEntry",
  schemaOf<SessionEntry>({
    type: "object",
    description: "One node of a session's tree. Further fields depend on `type`.",
    properties: {
      id: { type: "string" },
      parentId: { type: ["string", "null"] },
      at: { type: "integer" },
      runId: { type: ["string", "null"] },
      taskId: { type: ["string", "null"] },
      type: { type: "string" },
    },
    required: ["id", "parentId", "at", "runId", "taskId", "type"],
  }),
);

export const entryPage = named("SessionEntryPage", object({ entries: list(entry), next }));

const node = object({
  entry,
  label: nullable(text()),
  isOnPath: flag(),
  children: list(text()),
});

export const tree = named(
  "SessionTree",
  object({ leafId: nullable(text()), roots: list(text()), nodes: list(node) }),
);

const hit = object({
  sessionId: text(),
  entryId: text(),
  at: time,
  excerpt: text(),
});

export const searchPage = named("SearchPage", object({ hits: list(hit), next }));

export const contextUsage = named(
  "SessionUsage",
  object({
    tokens: integer(),
    reported: integer(),
    estimated: integer(),
    model: nullable(text()),
    contextWindow: nullable(integer()),
    share: nullable(number()),
  }),
);

export const unsentInput = object({ run: runSummary, input: anyJson(), error: nullable(failure) });
export const thinkingLevel = choice(thinkingLevels);
