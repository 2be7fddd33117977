import type { Memory, MemoryScope, RunFacts, Tool } from "../../kernel/index.ts";
import { textResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

const remembered = {
  type: "object",
  properties: {
    text: { type: "string", minLength: 1, maxLength: 10_000, description: "What happened or was said" },
    fact: {
      type: "object",
      description: "Something that holds until another takes its place",
      properties: {
        subject: { type: "string", minLength: 1 },
        predicate: { type: "string", minLength: 1 },
        object: { type: "string", minLength: 1 },
      },
      required: ["subject", "predicate", "object"],
      additionalProperties: false,
    },
  },
  minProperties: 1,
  additionalProperties: false,
} as const;

const asked = {
  type: "object",
  properties: {
    query: { type: "string", minLength: 1 },
    limit: { type: "integer", minimum: 1, maximum: 50 },
  },
  required: ["query"],
  additionalProperties: false,
} as const;

const forgotten = {
  type: "object",
  properties: { ids: { type: "array", items: { type: "string" }, minItems: 1 } },
  required: ["ids"],
  additionalProperties: false,
} as const;

/**
 * Tools over a memory: recall, remember, forget. The scope is the run's user, never the model's choice. J6: what is kept has the call's
 * key, so that a call that is repeated keeps nothing twice.
 */
export function memoryTools(memory: Memory): readonly Tool[] {
  return [
    tool({
      name: "recall",
      description: "Looks for what is remembered of this user.",
      inputSchema: asked,
      execute: async ({ query, limit = 10 }, { facts }) => {
        const found = await memory.recall(scopeOf(facts), { text: query, limit });
        const lines = [
          ...found.facts.map(
            ({ id, subject, predicate, object }) => `${id}: ${subject} ${predicate} ${object}`,
          ),
          ...found.episodes.map(({ id, text }) => `${id}: ${text}`),
        ];
        return textResult(lines.join("\n") || "[nothing]", {
          facts: found.facts.map(({ id }) => id),
          episodes: found.episodes.map(({ id }) => id),
        });
      },
    }),
    tool({
      name: "remember",
      description: "Keeps something of this user for later conversations: an episode as text, or a fact.",
      inputSchema: remembered,
      execute: async ({ text, fact }, { facts, idempotencyKey }) => {
        const scope = scopeOf(facts);
        const ids: string[] = [];
        if (fact !== undefined)
          ids.push(await memory.remember(scope, { type: "fact", fact, id: `${idempotencyKey}/fact` }));
        if (text !== undefined)
          ids.push(await memory.remember(scope, { type: "episode", text, id: `${idempotencyKey}/text` }));
        return textResult("kept", { ids });
      },
    }),
    tool({
      name: "forget",
      description: "Deletes what is remembered of this user, by the ids that recall gives.",
      inputSchema: forgotten,
      risk: "high",
      execute: async ({ ids }, { facts }) => {
        const count = await memory.forget(scopeOf(facts), { ids });
        return textResult(`${count} deleted`, { ids, count });
      },
    }),
  ];
}

function scopeOf({ userId }: RunFacts): MemoryScope {
  return { userId };
}
