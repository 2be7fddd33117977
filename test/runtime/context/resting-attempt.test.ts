import { expect, test } from "vitest";
import type { AttemptContext, MeteredResult } from "../../../src/kernel/index.ts";
import { agent, setUp } from "../runtime-setup.ts";

const request = { provider: "mock", model: "m", inputTokens: 1, maxOutputTokens: 1 };
const used: MeteredResult<null> = { value: null, usage: { inputTokens: 1, outputTokens: 1 } };

/** An agent whose attempt waits for requests that the test sends. */
function waiting(name: string) {
  const attempt = Promise.withResolvers<AttemptContext>();
  const over = Promise.withResolvers<string>();
  const hosted = agent(name, (ctx) =>
    ctx.attempt(
      "requests",
      (opened) => {
        attempt.resolve(opened);
        return over.promise;
      },
      { holdsSlot: false },
    ),
  );
  return { hosted, attempt: attempt.promise, end: over.resolve };
}

test("an attempt with holdsSlot false takes the slot of its worker only while one of its calls is open", async () => {
  const { runtime } = await setUp({ concurrency: 1 });
  const idle = [waiting("one"), waiting("two"), waiting("three")];
  const runs = await Promise.all(idle.map(({ hosted }) => runtime.submit(hosted, null)));
  const attempts = await Promise.all(idle.map(({ attempt }) => attempt));
  // Each of them works, although there is one slot.
  await attempts[0]?.metered(request, async () => used);
  const other = agent("other", async () => "done");
  expect((await (await runtime.submit(other, null)).result()).output).toBe("done");
  const busy = Promise.withResolvers<void>();
  const began = Promise.withResolvers<void>();
  const call = attempts[1]?.metered(request, async () => {
    began.resolve();
    await busy.promise;
    return used;
  });
  await began.promise;
  const blocked = await runtime.submit(other, null);
  const second = attempts[2]?.metered(request, async () => used);
  await new Promise(setImmediate);
  expect((await blocked.summary()).status).toBe("pending");
  busy.resolve();
  await Promise.all([call, second]);
  expect((await blocked.result()).output).toBe("done");
  for (const { end } of idle) end("over");
  for (const run of runs) expect((await run.result()).output).toBe("over");
});

test("the code after an attempt with holdsSlot false continues with its next step", async () => {
  const { runtime } = await setUp({ concurrency: 1 });
  const opened = Promise.withResolvers<AttemptContext>();
  const over = Promise.withResolvers<string>();
  const later = agent("later", async (ctx) => {
    const body = (attempt: AttemptContext): Promise<string> => {
      opened.resolve(attempt);
      return over.promise;
    };
    const value = await ctx.attempt("requests", body, { holdsSlot: false });
    return `${value}, ${await ctx.step("after", async () => "stepped")}`;
  });
  const run = await runtime.submit(later, null);
  await (await opened.promise).metered(request, async () => used);
  over.resolve("over");
  expect((await run.result()).output).toBe("over, stepped");
});
