import { expect, test } from "vitest";
import { Agent } from "../../../../src/entries/index.ts";
import {
  auditLogger,
  contentTruncator,
  historyTruncator,
  injectionMarking,
  modelFallback,
  piiRedaction,
  type Layer,
} from "../../../../src/assembly/middleware.ts";
import { scriptedModel, type ScriptStep } from "../../../../src/testing/index.ts";
import { simpleTool, text } from "../../../runtime/runtime-setup.ts";
import { runWorkload, type Workload } from "../../../runtime/simulated-crash.ts";
import { httpError } from "./contexts.ts";

const secret = "bob@example.org";

/**
 * Two turns with one tool call each, then an answer. Counts the assistant messages, so that a replacement
 * worker continues at the right turn.
 */
const script: ScriptStep = ({ messages }) => {
  const turns = messages.filter(({ role }) => role === "assistant").length;
  if (turns >= 2) return { deltas: ["Write to bo", "b@example.org."] };
  return { toolCalls: [{ name: "look", callId: `c${turns}`, input: { turns, who: secret } }] };
};

function workload(world: string[], lines: string[], streaming: boolean): Workload {
  const layers: readonly Layer[] = [
    auditLogger({ log: { record: ({ action }) => void lines.push(action) } }),
    piiRedaction(),
    historyTruncator({ maxMessages: 20 }),
    injectionMarking(),
    modelFallback({ models: [scriptedModel(Array(9).fill(script))] }),
    contentTruncator({ maxChars: 40 }),
  ];
  const look = simpleTool({
    name: "look",
    execute: async (input) => {
      world.push(JSON.stringify(input));
      return text(`${secret} lives in Sens, where it rains and rains and rains`);
    },
  });
  const model = scriptedModel(Array.from({ length: 9 }, () => ({ error: httpError(401) })));
  return {
    agents: () => [new Agent({ name: "clerk", model, tools: [look], middleware: layers })],
    input: "Find Bob",
    submit: { streaming },
    options: { unknownPrice: "ignore" },
  };
}

test.for([false, true])(
  "J7: a run with middleware has the same result wherever its worker dies, and no event contains personal data (streaming: %s)",
  async (streaming) => {
    const [calmWorld, calmLines]: [string[], string[]] = [[], []];
    const calm = await runWorkload(workload(calmWorld, calmLines, streaming));
    expect(calm).toMatchObject({ status: "completed", output: "Write to [EMAIL]." });
    expect(calmWorld).toEqual(['{"turns":0,"who":"[EMAIL]"}', '{"turns":1,"who":"[EMAIL]"}']);
    for (let at = 2; at <= calm.writes; at++) {
      for (const when of ["before", "after"] as const) {
        const [world, lines]: [string[], string[]] = [[], []];
        const life = await runWorkload(workload(world, lines, streaming), { at, when });
        expect({ at, when, status: life.status, output: life.output }).toEqual({
          at,
          when,
          status: "completed",
          output: calm.output,
        });
        const ended = life.events.flatMap(({ type, data }) => (type === "tool_execution_end" ? [data] : []));
        const kept = calm.events.flatMap(({ type, data }) => (type === "tool_execution_end" ? [data] : []));
        expect(ended).toEqual(kept);
        expect(JSON.stringify(life.events)).not.toContain(secret);
        // J6: at most the tool call that was in flight repeats.
        expect(world.length - calmWorld.length).toBeLessThanOrEqual(1);
        // At most two audit lines repeat: the line of the call and the line of the agent run around it.
        expect(lines.length - calmLines.length).toBeLessThanOrEqual(2);
      }
    }
  },
);
