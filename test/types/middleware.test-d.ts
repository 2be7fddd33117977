/** Type tests, checked by the compiler and never run. Each `@ts-expect-error` precedes a line that must not compile. */
import { Agent } from "../../src/entries/index.ts";
import type { ChatMiddleware, Model, ModelResponse, ToolResult } from "../../src/kernel/index.ts";
import {
  cache,
  humanApproval,
  rateLimiter,
  retry,
  schemaValidator,
  type Layer,
} from "../../src/assembly/middleware.ts";

declare const model: Model;
declare const response: ModelResponse;
declare const result: ToolResult;

/** The context of an inline middleware function is inferred from its level. */
export const scout = new Agent({
  name: "scout",
  model,
  middleware: [
    {
      chat: async (context, next) => {
        const id: string = context.model.modelId;
        context.request = { ...context.request, temperature: id.length };
        await next();
        context.result = response;
      },
      function: async (context, next) => {
        context.arguments = { ...context.arguments, more: true };
        await next();
        context.result = result;
      },
      agent: async (context, next) => {
        await next();
        if (context.result !== undefined) context.result = { ...context.result, output: "done" };
      },
    },
    cache(),
  ],
});

declare class Counting implements ChatMiddleware {
  process: ChatMiddleware["process"];
}
export const stateful: Layer = { chat: new Counting() };

export const wrong: readonly Layer[] = [
  {
    chat: async (context, next) => {
      await next();
      // @ts-expect-error: the result of a tool is not the result of a model call
      context.result = result;
    },
  },
  // @ts-expect-error: a layer for model calls cannot wrap tools
  { function: new Counting() },
  // @ts-expect-error: a bare function does not state its level
  async (_context: object, next: () => Promise<void>) => next(),
  // @ts-expect-error: permissions belong to the gate
  humanApproval(),
  // @ts-expect-error: rateLimiter needs a rate
  rateLimiter({ burst: 1 }),
  // @ts-expect-error: "sometimes" is not an error kind
  retry({ kinds: ["sometimes"] }),
  // @ts-expect-error: schemaValidator needs a schema
  schemaValidator({}),
];
