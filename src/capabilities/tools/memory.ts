import type { Memory, MemoryScope, RunFacts, Tool } from "../../kernel/index.ts";
import { textResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

const rememberInput = {
  type: "object",
  properties: {
    text: { type: "string", minLength: 1, maxLength: 10_000, description: "What happened or was said" },
    fact: {
      type: "object",
      description: "A fact that holds until another one replaces it",
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

const recallInput = {
  type: "object",
  properties: {
    query: { type: "string", minLength: 1 },
    limit: { type: "integer", minimum: 1, maximum: 50 },
  },
  required: ["query"],
  additionalProperties: false,
} as const;

const forgetInput = {
  type: "object",
  properties: { ids: { type: "array", items: { type: "string" }, minItems: 1 } },
  required: ["ids"],
  additionalProperties: false,
} as const;

/**
 * Creates the tools `recall`, `remember` and `forget` for a memory. The scope is always the user of the run; the model cannot choose it.
 * J6: a remembered item is stored under the call's idempotency key, so that a repeated call stores it once.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { openMemory } from "reeve/memory";
 * import { memoryTools } from "reeve/tools";
 *
 * const memory = await openMemory({ path: "./memory.db" });
 * const agent = new Agent({
 *   name: "assistant",
 *   model: "anthropic/claude-sonnet-5",
 *   tools: [...memoryTools(memory)],
 * });
 * ```
 */
export function memoryTools(memory: Memory): readonly Tool[] {
  return [
    tool({
      name: "recall",
      description: "Search what is remembered about this user.",
      inputSchema: recallInput,
      inChildren: "listed",
      execute: async ({ query, limit = 10 }, { facts }) => {
        const found = await memory.recall(scopeOf(facts), { text: query, limit });
        const lines = [
          ...found.facts.map(
            ({ id, subject, predicate, object }) => `${id}: ${subject} ${predicate} ${object}`,
          ),
          ...found.episodes.map(({ id, text }) => `${id}: ${text}`),
        ];
        return textResult(lines.join("\n") || "[nothing found]", {
          facts: found.facts.map(({ id }) => id),
          episodes: found.episodes.map(({ id }) => id),
        });
      },
    }),
    tool({
      name: "remember",
      description:
        "Remember something about this user for later conversations: an episode as text, or a fact.",
      inputSchema: rememberInput,
      inChildren: "listed",
      execute: async ({ text, fact }, { facts, idempotencyKey }) => {
        const scope = scopeOf(facts);
        const ids: string[] = [];
        if (fact !== undefined)
          ids.push(await memory.remember(scope, { type: "fact", fact, id: `${idempotencyKey}/fact` }));
        if (text !== undefined)
          ids.push(await memory.remember(scope, { type: "episode", text, id: `${idempotencyKey}/text` }));
        return textResult("remembered", { ids });
      },
    }),
    tool({
      name: "forget",
      description: "Delete remembered items of this user, by the ids that recall returns.",
      inputSchema: forgetInput,
      inChildren: "listed",
      risk: "high",
      execute: async ({ ids }, { facts }) => {
        const count = await memory.forget(scopeOf(facts), { ids });
        return textResult(`deleted ${count}`, { ids, count });
      },
    }),
  ];
}

function scopeOf({ tenantId, userId }: RunFacts): MemoryScope {
  return { tenantId, userId };
}
