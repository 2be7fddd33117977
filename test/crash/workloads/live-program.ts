import {
  formatAgentId,
  formatRunId,
  type AttemptContext,
  type JsonValue,
} from "../../../src/kernel/index.ts";
import { callServer, type ServerAddress } from "../../../src/testing/served-call.ts";
import { lengthOf, modelAnswer, type Workload } from "../workload.ts";

const runId = formatRunId("live-program");
/** Enough for two attempts of four calls each, so that a program that starts again and again is stopped. */
const maxTokens = 700;

/** A paid call of the program. Each attempt has keys of its own, because none of its calls is replayed. */
function callOf(attempt: AttemptContext, server: ServerAddress, name: string): Promise<JsonValue> {
  const request = { provider: "crash", model: "crash", inputTokens: 20, maxOutputTokens: 20 };
  return attempt.metered<JsonValue>(request, async () => {
    const key = `${attempt.idempotencyKey}/${attempt.number}/${name}`;
    const { answer, ...reply } = await callServer(server, { name: "model", key, body: ["hello"] });
    const { usage } = answer as unknown as { usage: { inputTokens: number; outputTokens: number } };
    return { value: { ...reply, name }, usage };
  });
}

/** A program whose paid calls run at the same time. A crash ends the program, and the next owner starts it again. */
export const liveProgram: Workload = {
  agents: (server) => [
    {
      id: formatAgentId({ name: "employee" }),
      budget: { maxTokens },
      run: (ctx) =>
        ctx.attempt("program", async (attempt) => {
          await callOf(attempt, server, "plan");
          const calls = ["left", "middle", "right"].map((name) => callOf(attempt, server, name));
          await Promise.all(calls);
          return "done";
        }),
    },
  ],
  drive: async ({ runtime, agent }) => {
    const run = await runtime.submit(agent, "go", { runId });
    await run.result();
    return [runId];
  },
  outputs: ["done"],
  world: {
    branches: 3,
    sideBySide: true,
    mayExhaust: true,
    answering: ({ body }) => modelAnswer(lengthOf(body), { text: "paid" }),
  },
};
