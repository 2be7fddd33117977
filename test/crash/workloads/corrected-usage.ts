import { Fault, formatRunId, type Model, type RunHandle, type Runtime } from "../../../src/kernel/index.ts";
import { loop, servedAgent } from "../served-agent.ts";
import { lengthOf, modelAnswer, type Workload } from "../workload.ts";

const runId = formatRunId("corrected-usage");
/** The usage of a request with one message. */
const usage = { inputTokens: 10, outputTokens: 5 };

/** The connection of the first call of each process ends, so that its usage is unknown. */
function cutOnce(model: Model): Model {
  let isCut = false;
  return {
    ...model,
    generate: async (request, options) => {
      if (isCut) return model.generate(request, options);
      isCut = true;
      throw new Error("socket hang up");
    },
  };
}

/** Corrects every unreported call of the run. A call that an earlier process corrected is refused. */
async function correctAll(runtime: Runtime, run: RunHandle): Promise<void> {
  for await (const event of run.events({ types: ["budget_lost"], follow: false })) {
    if (event.type !== "budget_lost") continue;
    await runtime.correctUsage(runId, event.data.reservationId, usage).catch((error: unknown) => {
      if (!Fault.is(error) || error.code !== "already_exists") throw error;
    });
  }
}

/** B3: a call is lost, and a caller corrects its charge after the run has ended. */
export const correctedUsage: Workload = {
  agents: (server) => {
    const agent = servedAgent(server, { name: "billed", run: (ctx) => loop(ctx, "bill it") });
    const { main } = agent.models ?? {};
    if (main === undefined) throw new Error("a served agent has a model");
    return [{ ...agent, models: { main: cutOnce(main) }, retry: { baseDelayMs: 1 } }];
  },
  drive: async ({ runtime, store, agent }) => {
    const run = await runtime.submit(agent, "go", { runId });
    await run.result();
    await correctAll(runtime, run);
    for (;;) {
      const changed = Promise.withResolvers<void>();
      const unsubscribe = store.onChange(() => changed.resolve());
      const { unreported } = await run.result();
      if (unreported.tokens > 0) await changed.promise;
      unsubscribe();
      if (unreported.tokens === 0) return [runId];
    }
  },
  outputs: ["billed"],
  world: {
    branches: 1,
    answering: ({ body }) => modelAnswer(lengthOf(body), { text: "billed" }),
    ignore: ["retry_start", "retry_end"],
  },
};
