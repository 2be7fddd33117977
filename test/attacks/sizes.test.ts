import { describe, expect, test } from "vitest";
import { Agent, openRuntime, tool, type Runtime } from "../../src/entries/index.ts";
import {
  formatAgentId,
  type HostedAgent,
  type JsonValue,
  type RunContext,
  type RunHandle,
} from "../../src/kernel/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { removeStoresAfterEach, twoStores } from "../runtime/two-stores.ts";

removeStoresAfterEach();

/** The limit in these attacks. The default limit has rows of its own. */
const limit = 2_000;

/** A text whose JSON has this number of bytes. */
const textOf = (bytes: number): string => "x".repeat(bytes - 2);

const sizes = [
  ["one byte below the limit", limit - 1, true],
  ["exactly the limit", limit, true],
  ["one byte above the limit", limit + 1, false],
  ["ten times the limit", limit * 10, false],
] as const;

const hosted = (name: string, run: (ctx: RunContext) => Promise<JsonValue>): HostedAgent => ({
  id: formatAgentId({ name }),
  run,
});
const waits = hosted("waits", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
const quiet = hosted("quiet", async () => "quiet");

const tooLarge = {
  code: "too_large",
  message: expect.stringContaining(`and maxValueBytes is ${limit}`) as string,
};

/** Returns the fault of a run, or of the call that was refused; `undefined` if the attack was accepted. */
type Attack = (runtime: Runtime, value: string) => Promise<unknown>;

async function refusalOf(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
    return undefined;
  } catch (error) {
    return error;
  }
}

async function faultOf(runtime: Runtime, agent: HostedAgent, input: JsonValue = null): Promise<unknown> {
  const { error } = await (await runtime.submit(agent, input)).result();
  return error ?? undefined;
}

/** Sends the command to a run that waits, then lets the run end. */
async function sendTo(runtime: Runtime, command: (run: RunHandle) => Promise<unknown>): Promise<unknown> {
  const run = await runtime.submit(waits, null);
  const refusal = await refusalOf(command(run));
  await run.cancel("done");
  await run.result();
  return refusal;
}

const showsCall = { callId: "call_1", toolName: "shows", input: {} };
const asJson = (value: unknown): JsonValue => value as JsonValue;

const entryPoints: Readonly<Record<string, Attack>> = {
  "the input of submit()": (runtime, value) => refusalOf(runtime.submit(quiet, value)),
  "the metadata of submit()": (runtime, value) =>
    refusalOf(runtime.submit(quiet, null, { metadata: { text: value.slice(9) } })),
  "the input of invoke()": (runtime, value) =>
    refusalOf(new Agent({ name: "scout", model: scriptedModel(["ok"]) }).invoke(value, { runtime })),
  "the input of a message that continues a session": async (runtime, value) => {
    const agent = new Agent({ name: "scout", model: scriptedModel(["one", "two"]) });
    const { sessionId } = await agent.invoke("first", { runtime });
    return refusalOf(agent.invoke(value, { runtime, sessionId }));
  },
  "the input of stream()": (runtime, value) =>
    refusalOf(new Agent({ name: "scout", model: scriptedModel(["ok"]) }).stream(value, { runtime }).result()),
  "a signal": (runtime, value) => sendTo(runtime, (run) => run.signal("other", value)),
  "the name of a signal": (runtime, value) => sendTo(runtime, (run) => run.signal(value.slice(7), null)),
  "an event of ctx.emitEvent": (runtime, value) =>
    faultOf(
      runtime,
      hosted("emits", async (ctx) => {
        const around = JSON.stringify({ architecture: "own", name: "note", data: { text: "" } }).length - 2;
        const data = { text: value.slice(around) };
        ctx.emitEvent({ type: "architecture_event", data: { architecture: "own", name: "note", data } });
        return ctx.now();
      }),
    ),
  "a progress update of a tool": async (runtime, value) => {
    const shows = tool({
      name: "shows",
      description: "Shows its progress",
      inputSchema: { type: "object" },
      execute: async (_input, { progress }) => (progress(value), "shown"),
    });
    const caller = { ...hosted("calls", async (ctx) => asJson(await ctx.tool(showsCall))), tools: [shows] };
    const { output } = await (await runtime.submit(caller, null)).result();
    const { isError, output: shown } = output as { isError: boolean; output: { text: string } };
    return isError ? { code: "too_large", message: shown.text } : undefined;
  },
  "the arguments of ctx.tool": (runtime, value) =>
    faultOf(
      runtime,
      hosted("calls", async (ctx) => {
        await ctx.tool({ callId: "call_1", toolName: "absent", input: value });
        return "called";
      }),
    ),
  steering: (runtime, value) => sendTo(runtime, (run) => run.steer(value)),
  "a follow-up": (runtime, value) => sendTo(runtime, (run) => run.followUp(value)),
  "the reason of a cancel": async (runtime, value) => {
    const run = await runtime.submit(waits, null);
    const refusal = await refusalOf(run.cancel(value));
    await run.cancel("done");
    await run.result();
    return refusal;
  },
  "the value of ctx.step": (runtime, value) =>
    faultOf(
      runtime,
      hosted("steps", async (ctx) => (await ctx.step("make", async () => value)).length),
    ),
  "the output of an agent": (runtime, value) =>
    faultOf(
      runtime,
      hosted("returns", async () => value),
    ),
  "the metadata of ctx.report": (runtime, value) =>
    faultOf(
      runtime,
      hosted("reports", async (ctx) => {
        ctx.report({ metadata: { text: value.slice(9) } });
        return "done";
      }),
    ),
  "the input of a child task": (runtime, value) =>
    faultOf(runtime, {
      ...hosted("parent", async (ctx) => {
        const spawned = await ctx.spawn(quiet.id, value);
        if (spawned.kind === "spawned") await ctx.join(spawned.handle);
        return "done";
      }),
      subAgents: [quiet],
    }),
  "a message of ctx.send": (runtime, value) => {
    runtime.register(quiet);
    return faultOf(
      runtime,
      hosted("sender", async (ctx) => (await ctx.send(quiet.id, value), "sent")),
    );
  },
  "a question of ctx.ask": (runtime, value) => {
    const answerer = formatAgentId({ name: "answerer" });
    runtime.register({
      id: answerer,
      run: async (ctx, inbox) => {
        for (const message of inbox.messages) await ctx.reply(message, "answer");
        return "done";
      },
    });
    return faultOf(
      runtime,
      hosted("asker", async (ctx) => (await ctx.ask(answerer, value)).kind),
    );
  },
  "a reply of ctx.reply": async (runtime, value) => {
    const answerer = formatAgentId({ name: "answerer" });
    runtime.register({
      id: answerer,
      run: async (ctx, inbox) => {
        for (const message of inbox.messages) await ctx.reply(message, value);
        return "done";
      },
    });
    const asker = hosted("asker", async (ctx) => {
      const answer = await ctx.ask(answerer, "?");
      return answer.kind === "target_failed" ? (answer.failure as unknown as JsonValue) : null;
    });
    return (await (await runtime.submit(asker, null)).result()).output ?? undefined;
  },
  "the state of ctx.continueAsNew": (runtime, value) =>
    faultOf(
      runtime,
      hosted("continues", async (ctx) => (ctx.input === "start" ? ctx.continueAsNew(value) : "done")),
      "start",
    ),
};

describe.each(Object.entries(entryPoints))("a value that is too large in %s", (_where, attack) => {
  test.each(sizes)(
    "a value is refused above the limit and accepted up to it: %s",
    async (_size, bytes, isAccepted) => {
      const runtime = await openRuntime({ maxValueBytes: limit, runRetry: { maxRetries: 0 } });
      const fault = await attack(runtime, textOf(bytes));
      expect({ fault }).toMatchObject({ fault: isAccepted ? undefined : tooLarge });
      expect((await (await runtime.submit(quiet, "after the attack")).result()).output).toBe("quiet");
      await runtime.close();
    },
  );
});

describe("a tool result that is too large", () => {
  const results: Readonly<Record<string, (bytes: number) => unknown>> = {
    "a text": textOf,
    "a JSON value": (bytes) => ({ text: textOf(bytes) }),
    "an error": (bytes) => {
      throw new Error(textOf(bytes));
    },
  };
  const rows = Object.entries(results).flatMap(([what, make]) =>
    [limit - 500, limit * 2, limit * 100].map((bytes) => [what, bytes, make] as const),
  );

  test.each(rows)(
    "a tool result that is too large becomes an error result that the model sees: %s of %i bytes",
    async (_what, bytes, make) => {
      const runtime = await openRuntime({ maxValueBytes: limit, unknownPrice: "ignore" });
      const dump = tool({
        name: "dump",
        description: "Returns much",
        inputSchema: { type: "object" },
        execute: async () => make(bytes) as JsonValue,
      });
      const model = scriptedModel([{ toolCalls: [{ name: "dump", input: {} }] }, "Done."]);
      const { status, output } = await new Agent({ name: "scout", model, tools: [dump] }).invoke("Dump.", {
        runtime,
      });
      expect([status, output]).toEqual(["completed", "Done."]);
      const message = JSON.stringify(model.calls[1]?.messages.at(-1));
      const isRefused =
        /the (?:result|error) of tool dump is too large/u.test(message) && message.includes('"isError":true');
      expect(isRefused).toBe(bytes > limit);
      expect(message.length).toBeLessThan(limit * 10);
      await runtime.close();
    },
  );
});

describe("the metadata of a run", () => {
  test.each([
    ["65,536 bytes", { text: "x".repeat(65_536 - 11) }, true],
    ["65,537 bytes", { text: "x".repeat(65_536 - 10) }, false],
    ["1,000 values", Object.fromEntries(Array.from({ length: 999 }, (_, at) => [`k${at}`, at])), true],
    ["1,001 values", { list: Array.from({ length: 999 }, () => 0) }, false],
  ])(
    "the metadata of a run is accepted up to 64 KiB and 1,000 values: %s",
    async (_what, metadata, isAccepted) => {
      await using runtime = await openRuntime();
      const refusals = [await refusalOf(runtime.submit(quiet, null, { metadata }))];
      const run = await runtime.submit(waits, null, { sessionId: "desk" });
      refusals.push(
        await refusalOf(runtime.submit(waits, null, { sessionId: "desk", whenBusy: "steer", metadata })),
      );
      await run.cancel("done");
      const message = expect.stringContaining(
        "may have 65536 bytes of JSON and 1000 values; put the data into the input",
      ) as string;
      const expected = isAccepted ? undefined : { code: "too_large", message };
      expect({ refusals }).toMatchObject({ refusals: [expected, expected] });
    },
  );
});

test("the providerMetadata of an input part may have 1,000 values, whichever way the input enters", async () => {
  await using runtime = await openRuntime({ unknownPrice: "ignore" });
  const talker = new Agent({ name: "talker", model: scriptedModel(["hello"]) });
  const { sessionId } = await talker.invoke("hello", { runtime });
  const parts = (count: number): JsonValue => {
    const metadata = Object.fromEntries(Array.from({ length: count - 1 }, (_, at) => [`k${at}`, at]));
    return [{ type: "text", text: "hello", providerMetadata: metadata }];
  };
  const run = await runtime.submit(waits, null);
  for (const count of [1_000, 1_001]) {
    const input = parts(count);
    const spawns = hosted(`spawns-${count}`, async (ctx) => asJson(await ctx.spawn(quiet.id, input)));
    const message = { role: "user", content: input } as never;
    const refusals = await Promise.all(
      [
        runtime.submit(quiet, input),
        run.steer(input),
        run.followUp(input),
        runtime.sessions.append(sessionId, { customType: "note", message }),
      ].map(refusalOf),
    );
    refusals.push(await faultOf(runtime, { ...spawns, subAgents: [quiet] }));
    const expected = count > 1_000 ? { code: "too_large" } : undefined;
    expect({ refusals }).toMatchObject({ refusals: Array(refusals.length).fill(expected) });
  }
  await run.cancel("done");
});

describe("a value of more than 100,000 values", () => {
  const numbers = (count: number): readonly number[] => Array.from({ length: count }, () => 0);
  const tooMany = "has more than 100000 JSON values; send fewer at once, or put the data into a file";

  test("a tool result with more than 100,000 values becomes an error result that the model sees", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const dump = tool({
      name: "dump",
      description: "Returns much",
      inputSchema: { type: "object" },
      execute: async () => ({ rows: numbers(100_000) }),
    });
    const model = scriptedModel([{ toolCalls: [{ name: "dump", input: {} }] }, "Done."]);
    const scout = new Agent({ name: "scout", model, tools: [dump] });
    expect((await scout.invoke("Dump.", { runtime })).output).toBe("Done.");
    const message = JSON.stringify(model.calls[1]?.messages.at(-1));
    expect([
      message.includes(`the result of tool dump ${tooMany}`),
      message.includes('"isError":true'),
    ]).toEqual([true, true]);
  });

  test("a model reply with more than 100,000 values fails the run with too_large", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const model = scriptedModel([{ toolCalls: [{ name: "dump", input: { rows: numbers(100_000) } }] }]);
    const scout = new Agent({ name: "scout", model, retry: false });
    const { status, error } = await scout.invoke("Dump.", { runtime });
    expect([status, error?.code]).toEqual(["failed", "too_large"]);
    expect(error?.message).toContain(`the reply of the model ${tooMany}`);
  });

  test("more than 100,000 values are refused in an input, a signal and a client's result, but not in a result of ctx.step", async () => {
    await using runtime = await openRuntime();
    const many = numbers(100_000) as unknown as JsonValue;
    await expect(runtime.submit(quiet, many)).rejects.toMatchObject({ code: "too_large" });
    expect(await sendTo(runtime, (run) => run.signal("go", many))).toMatchObject({ code: "too_large" });
    const computes = hosted("computes", async (ctx) => (await ctx.step("embed", async () => many)) && "done");
    expect((await (await runtime.submit(computes, null)).result()).output).toBe("done");
  });
});

describe("an error with a message of 1 MB", () => {
  const huge = "x".repeat(1_000_000);
  const throwers: Readonly<Record<string, (ctx: RunContext) => Promise<JsonValue>>> = {
    "an Error of the agent's code": async () => {
      throw new TypeError(huge);
    },
    "a text that the agent's code throws": async () => {
      await Promise.reject(huge);
      return null;
    },
    "an Error of a step": (ctx) => ctx.step("throw", () => Promise.reject(new TypeError(huge))),
    "a cause of an Error": async () => {
      throw new TypeError("short", { cause: new Error(huge) });
    },
  };

  test.each(Object.entries(throwers))(
    "an error with a message of 1 MB is stored with its first 65,536 characters: %s",
    async (_what, run) => {
      const runtime = await openRuntime({ runRetry: { maxRetries: 0 } });
      const { status, error } = await (await runtime.submit(hosted("throws", run), null)).result();
      expect(status).toBe("failed");
      expect(JSON.stringify(error)).toContain("[cut]");
      expect(JSON.stringify(error).length).toBeLessThan(200_000);
      await runtime.close();
    },
  );
});

describe("a model reply that is too large", () => {
  const schema = { type: "object", properties: { text: { type: "string" } }, required: ["text"] } as const;
  const long = "x".repeat(limit * 3);
  const deltas = Array.from({ length: 300 }, () => "x".repeat(100));
  const replies: Readonly<Record<string, (runtime: Runtime) => Promise<{ status: string; error: unknown }>>> =
    {
      "as text": (runtime) =>
        new Agent({ name: "scout", model: scriptedModel([long]) }).invoke("Go.", { runtime }),
      "as structured output": (runtime) =>
        new Agent({ name: "scout", model: scriptedModel([JSON.stringify({ text: long })]) }).invoke("Go.", {
          runtime,
          output: schema,
        }),
      "as arguments of a tool call": (runtime) =>
        new Agent({
          name: "scout",
          model: scriptedModel([{ toolCalls: [{ name: "any", input: { text: long } }] }, "Done."]),
        }).invoke("Go.", { runtime }),
      "as reasoning": (runtime) =>
        new Agent({ name: "scout", model: scriptedModel([{ reasoning: long, text: "ok" }]) }).invoke("Go.", {
          runtime,
        }),
      "as a stream that ends": (runtime) =>
        new Agent({ name: "scout", model: scriptedModel([{ deltas, text: deltas.join("") }]) })
          .stream("Go.", { runtime })
          .result(),
      "as a stream that never ends": (runtime) => {
        const model = Object.assign(scriptedModel([]), {
          async *stream() {
            for (;;) yield { type: "text_delta" as const, text: "x".repeat(100) };
          },
        });
        return new Agent({ name: "scout", model }).stream("Go.", { runtime }).result();
      },
    };

  test.each(Object.entries(replies))(
    "a model reply that is too large fails the run with too_large and no other: %s",
    async (_how, invoke) => {
      const runtime = await openRuntime({ maxValueBytes: limit, unknownPrice: "ignore" });
      expect(await invoke(runtime)).toMatchObject({ status: "failed", error: tooLarge });
      expect((await (await runtime.submit(quiet, null)).result()).status).toBe("completed");
      await runtime.close();
    },
  );
});

describe("the default limit of 16 MiB", () => {
  const bytes = 16 * 1024 * 1024;
  const rows = [
    ["an input of exactly 16 MiB is accepted", bytes, true],
    ["an input of 16 MiB and one byte is refused", bytes + 1, false],
    ["an input of 64 MiB is refused", bytes * 4, false],
  ] as const;

  test.each(rows)("the default limit of 16 MiB: %s", async (_what, size, isAccepted) => {
    const runtime = await openRuntime();
    const fault = await refusalOf(runtime.submit(quiet, textOf(size)).then((run) => run.result()));
    expect((fault as { readonly code?: string } | undefined)?.code).toBe(
      isAccepted ? undefined : "too_large",
    );
    await runtime.close();
  });
});

/** A list of one list of one list ... with this number of levels. */
function nested(levels: number): JsonValue {
  let value: JsonValue = "core";
  for (let level = 0; level < levels; level++) value = [value];
  return value;
}

describe.each(twoStores)("a hostile JSON value on the %s store", (_store, prepare) => {
  const echo = hosted("echo", async (ctx) => ctx.step("echo", async () => ctx.input));
  const harmless: readonly (readonly [string, JsonValue])[] = [
    ["a nesting of 500 levels", nested(500)],
    ["a key named __proto__", JSON.parse('{"__proto__":{"polluted":true},"a":1}') as JsonValue],
    [
      "keys named constructor and prototype",
      { constructor: { prototype: { polluted: true } }, prototype: 1 },
    ],
    ["keys named toString and hasOwnProperty", { toString: "x", hasOwnProperty: "y", valueOf: 1 }],
    ["a text with a lone high surrogate", "a\ud800b"],
    ["a text with a lone low surrogate", "a\udc00b"],
    ["a key with a lone surrogate", { "\ud83d": "\ude00" }],
    ["a text with NUL and other control characters", "a\u0000b\u001b[2J\u007f\u2028"],
    ["99,999 empty lists", Array.from({ length: 99_999 }, () => [])],
    [
      "an object with 50,000 keys",
      Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`k${index}`, 0])),
    ],
  ];

  test.each(harmless)("a hostile JSON value is stored and returned unchanged: %s", async (_what, value) => {
    const open = await prepare();
    const runtime = await openRuntime({ store: await open() });
    const run = await runtime.submit(echo, value);
    const { output, status } = await run.result();
    await runtime.close();
    expect(status).toBe("completed");
    expect(JSON.stringify(output)).toBe(JSON.stringify(value));
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    const again = await openRuntime({ store: await open() });
    again.register(echo);
    const stored = await (await again.find(run.runId))?.result();
    expect(JSON.stringify(stored?.output)).toBe(JSON.stringify(value));
    await again.close();
  });

  const refused: readonly (readonly [string, () => unknown])[] = [
    ["a nesting of 1,001 levels", () => nested(1_001)],
    ["a nesting of 100,000 levels", () => nested(100_000)],
    [
      "an object that contains itself",
      () => {
        const value: Record<string, unknown> = {};
        value["self"] = value;
        return value;
      },
    ],
    [
      "a getter that throws",
      () => ({
        get trap() {
          throw new Error("trap");
        },
      }),
    ],
    ["an object with toJSON", () => ({ toJSON: () => "other" })],
    ["an instance of a class", () => new Map()],
  ];

  test.each(refused)("a hostile JSON value is refused with not_json: %s", async (_what, make) => {
    const open = await prepare();
    const runtime = await openRuntime({ store: await open() });
    const fault = await refusalOf(runtime.submit(echo, make() as JsonValue));
    expect(fault).toMatchObject({ code: "not_json" });
    expect((fault as Error).message.length).toBeLessThan(1_000);
    const inside = hosted("inside", async (ctx) => ctx.step("make", async () => make() as JsonValue));
    const { status, error } = await (await runtime.submit(inside, null)).result();
    expect([status, error?.code]).toEqual(["failed", "not_json"]);
    expect((await (await runtime.submit(quiet, null)).result()).status).toBe("completed");
    await runtime.close();
  });
});

test.each(["userId", "tenantId", "channel"])(
  "submit() refuses a %s of more than 1,024 characters",
  async (option) => {
    const runtime = await openRuntime();
    const submit = (length: number): Promise<RunHandle> =>
      runtime.submit(quiet, null, { [option]: "x".repeat(length) });
    await expect(submit(1_025)).rejects.toMatchObject({
      code: "invalid_argument",
      message: `invalid ${option} of a run: it has 1025 characters; use at most 1024`,
    });
    expect(await (await submit(1_024)).result()).toMatchObject({ status: "completed" });
    await runtime.close();
  },
);
