/** Judged by the compiler; nothing here runs. Each `@ts-expect-error` stands above a line that must not compile. */
import { Agent } from "../../src/index.ts";
import type { ChatMiddleware, Model, ModelResponse, ToolResult } from "../../src/kernel/index.ts";
import {
  cache,
  humanApproval,
  rateLimiter,
  retry,
  schemaValidator,
  type Layer,
} from "../../src/middleware.ts";

declare const model: Model;
declare const response: ModelResponse;
declare const result: ToolResult;

/** A function written in place knows its context by the level it stands at. */
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
      // @ts-expect-error: a tool's result is not a model's answer
      context.result = result;
    },
  },
  // @ts-expect-error: a layer for model calls does not stand around tools
  { function: new Counting() },
  // @ts-expect-error: a layer is told its level; a bare function says none
  async (_context: object, next: () => Promise<void>) => next(),
  // @ts-expect-error: permissions belong at the gate
  humanApproval(),
  // @ts-expect-error: without a rate there is nothing to limit
  rateLimiter({ burst: 1 }),
  // @ts-expect-error: kinds of failure are a closed list
  retry({ kinds: ["sometimes"] }),
  // @ts-expect-error: a schema it is checked by
  schemaValidator({}),
];
