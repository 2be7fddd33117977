import { describe, expect, test } from "vitest";
import { Agent } from "../../../../src/assembly/agent.ts";
import { tool as createTool } from "../../../../src/capabilities/index.ts";
import { MiddlewarePipeline, type Layer } from "../../../../src/agents/interception/middleware/index.ts";
import {
  userMessage,
  type ChatContext,
  type ChatMiddleware,
  type MiddlewareFunction,
} from "../../../../src/kernel/index.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";
import {
  answerText,
  chatScene,
  httpError,
  onceMore,
  rejection,
  runScene,
  shownText,
  toolScene,
} from "./contexts.ts";

function noting(log: string[], name: string): Layer {
  const note = async (_context: object, next: () => Promise<void>): Promise<void> => {
    log.push(`${name} in`);
    await next();
    log.push(`${name} out`);
  };
  return { name, agent: note, chat: note, function: note };
}

describe("the order of middleware", () => {
  test("M1: the first middleware is outermost, for agent runs, model calls and tool calls", async () => {
    const log: string[] = [];
    const layers = [noting(log, "a"), noting(log, "b"), noting(log, "c")];
    const order = ["a in", "b in", "c in", "c out", "b out", "a out"];
    await chatScene(["hi"]).call(layers);
    expect(log.splice(0)).toEqual(order);
    await toolScene(["hi"]).call(layers);
    expect(log.splice(0)).toEqual(order);
    const { context } = runScene();
    await new MiddlewarePipeline(layers).agent?.process(context, async () => {
      context.result = { output: "done", status: "completed", interruptionReason: null };
    });
    expect(log).toEqual(order);
  });

  test("a middleware pipeline accepts objects with a process method and bare functions", async () => {
    class Counting implements ChatMiddleware {
      calls = 0;
      async process(_context: ChatContext, next: () => Promise<void>): Promise<void> {
        this.calls++;
        await next();
      }
    }
    const counting = new Counting();
    const bare: MiddlewareFunction<ChatContext> = async (context, next) => {
      await next();
      context.metadata["seen"] = true;
    };
    const scene = chatScene(["hi"]);
    await scene.call([{ chat: counting }, { chat: bare }]);
    expect([counting.calls, scene.context.metadata["seen"]]).toEqual([1, true]);
  });

  test("M1: the model is not called when middleware sets the result itself", async () => {
    const scene = chatScene(["the model's"]);
    const other = await chatScene(["the layer's"]).call([]);
    const answering: Layer = {
      chat: async (context) => {
        if (other !== undefined) context.result = other;
      },
    };
    expect(answerText(await scene.call([answering]))).toBe("the layer's");
    expect(scene.model.calls).toHaveLength(0);
  });

  test("M3: an error thrown by middleware reaches the caller unchanged", async () => {
    const error = new Error("mine");
    const throwing: Layer = { chat: () => Promise.reject(error) };
    await expect(chatScene(["hi"]).call([noting([], "a"), throwing])).rejects.toBe(error);
  });
});

describe("F1: the composition of middleware", () => {
  test("F1: an empty middleware pipeline has no handler, and an agent without middleware has no call path", () => {
    const pipeline = new MiddlewarePipeline([]);
    expect([pipeline.agent, pipeline.chat, pipeline.function]).toEqual([undefined, undefined, undefined]);
    expect(pipeline.callPath()).toBeUndefined();
    expect(new Agent({ name: "scout", model: scriptedModel([]) }).callPath).toBeUndefined();
  });

  test("F1: a call passes only the middleware of its own level: agent, model or tool", async () => {
    const log: string[] = [];
    const note = noting(log, "chat only").chat;
    const pipeline = new MiddlewarePipeline([{ ...(note && { chat: note }) }, noting(log, "all"), {}]);
    expect(pipeline.depth).toEqual({ agent: 1, chat: 2, function: 1 });
    await toolScene(["hi"]).call([{ ...(note && { chat: note }) }]);
    expect(log).toEqual([]);
    expect(Object.keys(new MiddlewarePipeline([{ ...(note && { chat: note }) }]).callPath() ?? {})).toEqual([
      "model",
    ]);
  });

  test("F1: a middleware pipeline reads the handlers of its middleware once, when it is created", async () => {
    let reads = 0;
    const layer: Layer = {
      get chat() {
        reads++;
        return (_context: ChatContext, next: () => Promise<void>) => next();
      },
    };
    const { chat } = new MiddlewarePipeline([layer]);
    for (let call = 0; call < 3; call++) {
      const { context, model } = chatScene(["hi"]);
      await chat?.process(context, async () => {
        context.result = await model.generate(context.request);
      });
    }
    expect(reads).toBe(1);
  });
});

describe("the level of middleware", () => {
  const process = async (_context: unknown, next: () => Promise<void>): Promise<void> => next();

  test.each(["agent", "chat", "function"] as const)(
    "a middleware object with the level %s and process() takes part in that level only",
    async (level) => {
      const { depth } = new MiddlewarePipeline([{ name: "timed", level, process }]);
      expect(depth).toEqual({ agent: 0, chat: 0, function: 0, [level]: 1 });
    },
  );

  test("a middleware instance of a class with a level is called with its state", async () => {
    class Counting {
      readonly name = "counting";
      readonly level = "chat" as const;
      calls = 0;
      async process(_context: ChatContext, next: () => Promise<void>): Promise<void> {
        this.calls++;
        await next();
      }
    }
    const counting = new Counting();
    await chatScene(["hi"]).call([counting]);
    expect(counting.calls).toBe(1);
  });

  test("a middleware instance may have methods that the language calls, such as toString()", async () => {
    class Closing {
      readonly level = "chat" as const;
      readonly [Symbol.toStringTag] = "Closing";
      async process(_context: ChatContext, next: () => Promise<void>): Promise<void> {
        await next();
      }
      [Symbol.dispose](): void {}
      async [Symbol.asyncDispose](): Promise<void> {}
    }
    expect(new MiddlewarePipeline([new Closing()]).depth.chat).toBe(1);
  });

  test("a method of a middleware instance with levels is called with its state, and may use private helpers and data", async () => {
    class Counting {
      readonly name = "counting";
      readonly limits = { calls: 10 };
      calls = 0;
      async chat(_context: ChatContext, next: () => Promise<void>): Promise<void> {
        this.#note();
        await next();
      }
      #note(): void {
        this.calls++;
      }
    }
    const counting = new Counting();
    await chatScene(["hi"]).call([counting]);
    expect(counting.calls).toBe(1);
  });

  test.each([
    [
      "process() without a level",
      { name: "timed", process },
      'invalid middleware timed: it has process(), but no level; add level: "chat", or use { chat: middleware }, with one of agent, chat, function',
    ],
    [
      "a level in another case",
      { name: "timed", level: "Chat", process },
      'invalid level "Chat" of middleware timed: expected one of agent, chat, function; use "chat"',
    ],
    [
      "an unknown level",
      { level: "tool", process },
      'invalid level "tool" of middleware 1: expected one of agent, chat, function',
    ],
    [
      "a level in capitals",
      { name: "timed", Chat: process },
      'invalid middleware timed: it has no level; use "chat"',
    ],
    [
      "an unknown method",
      { name: "timed", onRequest: process },
      "invalid middleware timed: it has no level; expected some of agent, chat, function",
    ],
    ["an instance without a level", new Date(0), "invalid middleware 1: it has no level"],
    ["a bare function", process, "invalid middleware 1: a function has no level; use { chat: ... }"],
    ["nothing", undefined, "invalid middleware 1: undefined has no level"],
    ["a level that is no middleware", { chat: {} }, "invalid chat of middleware 1: it has no method process"],
    [
      "a level without process()",
      { level: "chat", process: 1 },
      "invalid middleware 1: it has no method process",
    ],
    [
      "a level beside the word of another framework",
      { name: "timed", chat: process, tool: process },
      'invalid middleware timed: "tool" is no level, so that no call would pass it; use "function"',
    ],
    [
      "a level beside an object with process()",
      { name: "timed", chat: process, tool: { process } },
      'invalid middleware timed: "tool" is no level, so that no call would pass it; use "function"',
    ],
    [
      "a level beside a list of functions",
      { name: "timed", chat: process, tools: [process] },
      'invalid middleware timed: "tools" is no level, so that no call would pass it; use "function"',
    ],
    [
      "a level beside one in another case",
      { chat: process, Function: process },
      'invalid middleware 1: "Function" is no level, so that no call would pass it; use "function"',
    ],
    [
      "a level beside process()",
      { chat: process, process },
      'invalid middleware 1: "process" is no level, so that no call would pass it; it is called only beside level',
    ],
    [
      "an own level beside another one",
      { level: "chat", process, function: process },
      'invalid middleware 1: "function" is no level, so that no call would pass it; beside level, only process() is called; add an entry { function: ... }',
    ],
    [
      "an own level beside the same one",
      { level: "chat", process, chat: process },
      'invalid middleware 1: "chat" is no level, so that no call would pass it',
    ],
    [
      "an instance with a level and the word of another framework",
      new (class {
        chat = process;
        tool(): Promise<void> {
          return Promise.resolve();
        }
      })(),
      'invalid middleware 1: "tool" is no level, so that no call would pass it; use "function"',
    ],
    [
      "an instance whose class inherits a further method",
      new (class extends class {
        log(): void {}
      } {
        readonly level = "chat" as const;
        process = process;
      })(),
      'invalid middleware 1: "log" is no level, so that no call would pass it; beside level, only process() is called; make a helper a private member (#log)',
    ],
    [
      "a level beside a function under a symbol",
      { name: "timed", chat: process, [Symbol("onTool")]: process },
      "invalid middleware timed: Symbol(onTool) is no level, so that no call would pass it; expected some of agent, chat, function",
    ],
    [
      "a level beside a function that is not enumerable",
      Object.defineProperty({ chat: process }, "Function", { value: process, enumerable: false }),
      'invalid middleware 1: "Function" is no level, so that no call would pass it; use "function"',
    ],
    [
      "a level within an object at another level",
      { name: "timed", chat: { process, function: process } },
      'invalid chat of middleware timed: only process() of it is called, so that no call would pass "function"; write it beside the level: { function: ... }',
    ],
    [
      "an object without a prototype with a further function",
      Object.assign(Object.create(null) as object, { chat: process, onTool: process }),
      'invalid middleware 1: "onTool" is no level',
    ],
  ])("middleware that is %s is refused at construction with a hint", (_what, entry, message) => {
    expect(() => new MiddlewarePipeline([entry as unknown as Layer])).toThrow(
      expect.objectContaining({ code: "invalid_argument", message: expect.stringContaining(message) }),
    );
    expect(() => new Agent({ name: "a", model: scriptedModel([]), middleware: [entry as Layer] })).toThrow(
      message,
    );
  });
});

test("callPath() refuses middleware that has only the level agent, because no call would pass it", () => {
  const note = async (_context: object, next: () => Promise<void>): Promise<void> => next();
  const path = (layer: Layer) => new MiddlewarePipeline([layer]).callPath();
  expect(() => path({ name: "once", agent: note })).toThrow(
    "middleware once has only the level agent, so that no call would pass it",
  );
  expect(Object.keys(path({ name: "both", agent: note, chat: note }) ?? {})).toEqual(["model"]);
});

test("callPath() refuses the option around beside middleware of its level, because one of the two would be lost", () => {
  const note = async (_context: object, next: () => Promise<void>): Promise<void> => next();
  const around = { process: note };
  const chat = new MiddlewarePipeline([{ chat: note }]);
  const tool = new MiddlewarePipeline([{ function: note }]);
  expect(() => chat.callPath({ model: { around } })).toThrow(
    "invalid model.around of callPath(): the middleware of the level chat would replace it",
  );
  expect(() => tool.callPath({ tool: { around } })).toThrow(
    "invalid tool.around of callPath(): the middleware of the level function would replace it",
  );
  expect(chat.callPath({ tool: { around } })?.tool?.around).toBe(around);
  expect(tool.callPath({ model: { around } })?.model?.around).toBe(around);
});

test.each<[string, Layer]>([
  ["around t", { function: async (context) => void (context.result = { output: "red" } as never) }],
  ["around t", { function: async (context) => void (context.result = "red" as never) }],
  ["around a model call", { chat: async (context) => void (context.result = "red" as never) }],
  [
    "around a model call",
    {
      chat: async (context, next) => {
        await next();
        context.result = { ...context.result, message: "red" } as never;
      },
    },
  ],
])("a result that the middleware %s cannot set fails the run with its cause", async (place, layer) => {
  const model = scriptedModel([{ toolCalls: [{ name: "t", input: {} }] }, "end"]);
  const inputSchema = { type: "object", properties: {} } as const;
  const t = createTool({ name: "t", description: "A tool", inputSchema, execute: () => "secret" });
  const { error } = await new Agent({ name: "scout", model, tools: [t], middleware: [layer] }).invoke("go");
  expect(error).toMatchObject({
    code: "middleware_misuse",
    message: expect.stringContaining(`the middleware ${place} set an invalid context.result: expected {`),
  });
});

describe("M2: next() of middleware", () => {
  test("M2: middleware may call next again after the earlier call has settled", async () => {
    const scene = chatScene([{ error: httpError(500) }, "second"]);
    expect(answerText(await scene.call([onceMore]))).toBe("second");
  });

  test("M2: a second call of next starts without the result of the first call", async () => {
    const scene = chatScene(["first", "second"]);
    let inner = 0;
    const twice: Layer = {
      name: "twice",
      chat: async (_context, next) => {
        await next();
        await next();
      },
    };
    const silent: Layer = {
      name: "silent",
      chat: (_context, next) => (inner++ === 0 ? next() : Promise.resolve()),
    };
    await expect(scene.call([twice, silent])).rejects.toMatchObject({
      code: "middleware_misuse",
      message: "middleware silent neither called next nor set context.result",
    });
  });

  test.for<[string, Layer["chat"] & {}, RegExp]>([
    [
      "twice concurrently",
      async (_c, next) => void (await Promise.all([next(), next()])),
      /again while the earlier call was in flight/,
    ],
    [
      "twice concurrently and catches the error",
      async (_c, next) => void (await Promise.allSettled([next(), next()])),
      /again while the earlier call was in flight/,
    ],
    ["without awaiting it", async (_c, next) => void next(), /returned before its call of next had settled/],
    ["never and sets no result", async () => {}, /neither called next nor set context.result/],
  ])("M2: middleware that calls next %s fails with middleware_misuse", async ([, chat, message]) => {
    const scene = chatScene(["one", "two"]);
    await expect(scene.call([noting([], "outer"), { name: "bad", chat }])).rejects.toMatchObject({
      code: "middleware_misuse",
      message: expect.stringMatching(message),
      details: { middleware: "bad" },
    });
    expect(scene.model.calls.length).toBeLessThanOrEqual(1);
  });

  test("M2: calling next after process returned fails with middleware_misuse and makes no call", async () => {
    let kept: (() => Promise<void>) | undefined;
    const keeping: Layer = {
      chat: async (_context, next) => {
        kept = next;
        await next();
      },
    };
    const scene = chatScene(["one", "two"]);
    await scene.call([keeping]);
    await expect(kept?.()).rejects.toMatchObject({ code: "middleware_misuse" });
    expect(scene.model.calls).toHaveLength(1);
  });

  test("M2: a middleware pipeline waits for a pending next when its middleware throws, so that no call outlives it", async () => {
    const open = Promise.withResolvers<void>();
    const leaving: Layer = {
      chat: async (_context, next) => {
        void next().catch(() => {});
        throw new Error("mine");
      },
    };
    const { context } = chatScene([]);
    const { chat } = new MiddlewarePipeline([leaving]);
    let settled = false;
    const call = chat?.process(context, () => open.promise).finally(() => (settled = true));
    const failed = rejection(call);
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
    expect(settled).toBe(false);
    open.resolve();
    expect(await failed).toMatchObject({ code: "middleware_misuse" });
  });
});

describe("M4: requests and arguments replaced by middleware", () => {
  const marking: Layer = {
    name: "marking",
    chat: async (context, next) => {
      const { request, filters } = context;
      context.request = { ...request, messages: [...request.messages, userMessage("marked")] };
      filters.push({ push: (delta) => [{ ...delta, text: `<${delta.text}>` }], flush: () => [] });
      await next();
    },
    function: async (context, next) => {
      context.arguments = { ...context.arguments, marked: true };
      await next();
    },
  };

  test("M4: a request or argument that middleware replaces applies to inner middleware only; outer middleware sees the original", async () => {
    const scene = chatScene(["hi"]);
    const { request } = scene.context;
    const seen: unknown[] = [];
    const around: Layer = {
      chat: async (context, next) => {
        await next();
        seen.push(context.request);
      },
    };
    await scene.call([around, marking]);
    expect(scene.model.calls[0]?.messages).toHaveLength(2);
    expect(seen).toEqual([request]);
    const tool = toolScene(["hi"]);
    await tool.call([{ function: (_context, next) => next() }, marking]);
    expect([tool.calls, tool.context.arguments]).toEqual([
      [{ town: "Sens", marked: true }],
      { town: "Sens" },
    ]);
  });

  test("M4: a repeated call applies a replacement and a stream filter of middleware once, not twice", async () => {
    const scene = chatScene([{ error: httpError(500) }, "hi"], { streaming: true });
    await scene.call([onceMore, marking]);
    expect(scene.model.calls.map(({ messages }) => messages.length)).toEqual([2, 2]);
    expect(shownText(scene.shown)).toBe("<hi>");
  });
});
