import { Agent, tool } from "../../../src/entries/index.ts";
import { formatRunId, messageText, type SessionEntry } from "../../../src/kernel/index.ts";
import { z } from "zod";
import { workload } from "../workload.ts";

interface World {
  readonly wrong: string[];
}

const kinds = ["none", "run", "permanent"] as const;

/**
 * Runs whose texts are kept for ever, with the run, or not at all. The model of the workload knows which texts may still be there. The
 * output of a run is always kept.
 */
export const retention = workload<World>("retention", (seed) => {
  const secretOf = (kind: string): string => `secret-${kind}-${seed}`;
  return {
    world: () => ({ wrong: [] }),
    runtime: { suspendAfterMs: seed % 2 === 0 ? 5 : 2_000, unknownPrice: "ignore" },
    agents: ({ call, model }) => {
      const look = tool({
        name: "look",
        description: "Looks something up.",
        inputSchema: z.object({ word: z.string() }),
        execute: ({ word }, { idempotencyKey: key }) => call("look", () => `found ${word}`, { key }),
      });
      const clerk = model(({ messages }) => {
        const first = messages.find(({ role }) => role === "user");
        const word = first === undefined ? "" : messageText(first);
        return messages.some(({ role }) => role === "tool")
          ? "It is there."
          : { toolCalls: [{ name: "look", input: { word } }] };
      });
      return [new Agent({ name: "clerk", model: clerk, tools: [look] })];
    },
    load: async ({ runtime, submit, world }) => {
      for (const kind of kinds) {
        const options = { sessionId: `session-${kind}`, runId: formatRunId(kind), retention: kind };
        const run = await submit("clerk", secretOf(kind), options);
        const { status } = await run.result();
        if (status !== "completed") continue;
        const isKept = kind === "permanent";
        const session = await runtime.sessions.get(`session-${kind}`);
        const path = session === undefined ? [] : await runtime.sessions.path(`session-${kind}`);
        const has = path.some((entry) => textOf(entry).includes(secretOf(kind)));
        if (has !== isKept) world.wrong.push(`the session of ${kind} ${has ? "has" : "has not"} the text`);
      }
    },
    check: ({ runs, world }) => {
      const wrong = [...world.wrong];
      for (const { run, events } of runs) {
        const kind = run.runId.slice("run_".length);
        if (run.status !== "completed") continue;
        const has = JSON.stringify(events).includes(secretOf(kind));
        const title = JSON.stringify(run).includes(secretOf(kind));
        if (kind === "none" && (has || title)) wrong.push(`the run ${kind} has kept its text`);
        if (kind !== "none" && !has) wrong.push(`the run ${kind} has lost its text`);
      }
      return wrong;
    },
  };
});

function textOf(entry: SessionEntry): string {
  return entry.type === "message" ? messageText(entry.message) : "";
}
