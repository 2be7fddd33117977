import { describe, expect, it } from "vitest";
import {
  assistantMessage,
  Transcript,
  userMessage,
  type Event,
  type HostedAgent,
  type Model,
  type ModelCallOptions,
  type ModelStreamPart,
  type ModelTimeouts,
  type RunContext,
} from "../../../src/kernel/index.ts";
import { agent, setUp, settle } from "../runtime-setup.ts";

const usage = {
  inputTokens: 1,
  outputTokens: 1,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
};
const response = { message: assistantMessage("done"), stopReason: "stop", usage } as const;
const finish: ModelStreamPart = { type: "finish", ...response };

/** A model whose stream waits for `send` after each part. It ignores its signal. */
class SlowModel implements Model {
  readonly provider = "slow";
  readonly modelId = "m1";
  readonly signals: ModelCallOptions["signal"][] = [];
  #arrived: ((part: ModelStreamPart) => void)[] = [];

  /** Sends a part to the stream of this call, counted from 0. */
  send(part: ModelStreamPart, call = this.#arrived.length - 1): void {
    this.#arrived[call]?.(part);
  }

  generate(_request: unknown, { signal }: ModelCallOptions = {}): Promise<typeof response> {
    this.signals.push(signal);
    return new Promise((resolve) => {
      this.#arrived.push(() => resolve(response));
    });
  }

  async *stream(_request: unknown, { signal }: ModelCallOptions = {}): AsyncIterable<ModelStreamPart> {
    const call = this.signals.push(signal) - 1;
    for (;;) {
      const part = await new Promise<ModelStreamPart>((resolve) => {
        this.#arrived[call] = resolve;
      });
      yield part;
      if (part.type === "finish") return;
    }
  }
}

const text = (piece: string): ModelStreamPart => ({ type: "text_delta", text: piece });

function caller(model: Model, modelTimeouts?: Partial<ModelTimeouts>): HostedAgent {
  const code = async (ctx: RunContext) => {
    await ctx.llm({ transcript: Transcript.of([userMessage("hello")]), maxOutputTokens: 10 });
    return "answered";
  };
  return agent("caller", code, { models: { main: model }, ...(modelTimeouts && { modelTimeouts }) });
}

const limits = { firstChunkMs: 1_000, chunkMs: 300, totalMs: 5_000 };
const retry = { maxRetries: 1, baseDelayMs: 10 };

function retries(events: readonly Event[]): readonly string[] {
  return events.flatMap((event) =>
    event.type === "retry_start" ? [`${event.data.kind}: ${event.data.message}`] : [],
  );
}

describe("modelTimeouts", () => {
  it.each([
    ["firstChunkMs", 1_000, "its answer did not begin within 1000 ms"],
    ["chunkMs", 300, "no further chunk of its answer arrived within 300 ms"],
  ] as const)(
    "the timeout %s aborts a streamed model attempt that stalls, and the call is retried",
    async (name, ms, words) => {
      const model = new SlowModel();
      const { runtime, clock, events } = await setUp({ modelTimeouts: limits, retry });
      const run = await runtime.submit(caller(model), null, { streaming: true });
      await settle();
      if (name === "chunkMs") {
        await clock.advance(900);
        model.send(text("a"));
        await settle();
      }
      await clock.advance(ms - 1);
      expect(model.signals[0]?.aborted).toBe(false);
      await clock.advance(1);
      expect(model.signals[0]?.aborted).toBe(true);
      // The stalled stream wakes up too late.
      model.send(text("too late"), 0);
      await clock.advance(10);
      expect(model.signals).toHaveLength(2);
      model.send(finish, 1);
      const result = await run.result();
      expect(result.output).toBe("answered");
      expect(retries(await events(run.runId))).toEqual([
        `timeout: slow/m1 timed out: ${words} (modelTimeouts.${name})`,
      ]);
      // B3: the provider may have billed the attempt.
      expect(result.unreported.tokens).toBeGreaterThan(0);
    },
  );

  it("chunkMs of modelTimeouts counts from the last chunk, so that a slow but steady stream completes", async () => {
    const model = new SlowModel();
    const { runtime, clock } = await setUp({ modelTimeouts: limits, retry });
    const run = await runtime.submit(caller(model), null, { streaming: true });
    await settle();
    for (let chunk = 0; chunk < 10; chunk++) {
      model.send(text("a"));
      await clock.advance(299);
    }
    model.send(finish);
    expect((await run.result()).status).toBe("completed");
    expect(model.signals).toHaveLength(1);
  });

  it.each([true, false])(
    "totalMs of modelTimeouts ends an attempt that is not complete in time (streaming: %s)",
    async (streaming) => {
      const model = new SlowModel();
      const { runtime, clock } = await setUp({ modelTimeouts: limits, retry: { ...retry, maxRetries: 0 } });
      const run = await runtime.submit(caller(model), null, { streaming });
      await settle();
      for (let chunk = 0; chunk < 19; chunk++) {
        if (streaming) model.send(text("a"));
        await clock.advance(260);
      }
      expect(model.signals[0]?.aborted).toBe(false);
      if (streaming) model.send(text("a"));
      await clock.advance(60);
      const { status, error } = await run.result();
      expect(status).toBe("failed");
      expect(error).toMatchObject({
        code: "model_timeout",
        message: expect.stringContaining(
          "its answer was not complete within 5000 ms (modelTimeouts.totalMs)",
        ),
      });
    },
  );

  it("the modelTimeouts of an agent take precedence over those of its runtime, and null sets no limit", async () => {
    const model = new SlowModel();
    const { runtime, clock } = await setUp({ modelTimeouts: limits, retry });
    const own = caller(model, { firstChunkMs: null, totalMs: 60_000 });
    const run = await runtime.submit(own, null, { streaming: true });
    await settle();
    await clock.advance(59_999);
    expect(model.signals[0]?.aborted).toBe(false);
    model.send(finish);
    expect((await run.result()).status).toBe("completed");
  });

  it("the default modelTimeouts are finite", async () => {
    const model = new SlowModel();
    const { runtime, clock } = await setUp({ retry: { maxRetries: 0 } });
    const run = await runtime.submit(caller(model), null, { streaming: true });
    await settle();
    await clock.advance(300_000);
    expect((await run.result()).error?.message).toContain("(modelTimeouts.firstChunkMs)");
  });

  it.each([
    [
      { firstChunkMs: 0 },
      "invalid firstChunkMs 0 of modelTimeouts of openRuntime(): expected a finite number above 0, or null for no limit",
    ],
    [{ chunkMs: Number.NaN }, "invalid chunkMs NaN of modelTimeouts of openRuntime()"],
    [{ total: 5 }, "totalMs"],
  ])("openRuntime() refuses the modelTimeouts %j", async (modelTimeouts, message) => {
    await expect(setUp({ modelTimeouts: modelTimeouts as Partial<ModelTimeouts> })).rejects.toThrow(message);
  });
});
