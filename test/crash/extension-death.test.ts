import { expect, test } from "vitest";
import { Agent, tool, type Extension } from "../../src/entries/index.ts";
import type { Event, ModelRequest, RunHandle } from "../../src/kernel/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { runWorkload, type Workload } from "../runtime/simulated-crash.ts";
import { deathsAt } from "../effort.ts";

/** What the code of the extension has done, by worker. */
interface Trace {
  readonly asked: string[];
  readonly answered: string[];
  readonly delivered: number[];
}

const newTrace = (): Trace => ({ asked: [], answered: [], delivered: [] });

/** An agent whose extension asks a person about the input and about the tool call. */
function agent({ asked, answered, delivered }: Trace): Agent {
  const asker: Extension = {
    name: "asker",
    setup(api) {
      api.on("input", async ({ text }, { ui }) => {
        asked.push("input");
        const answer = await ui.input("Which file?");
        answered.push(`input ${answer}`);
        return { action: "transform", input: `${text} ${answer}` };
      });
      api.on("tool_call", async (_event, { ui }) => {
        asked.push("tool_call");
        const isAllowed = await ui.confirm("Delete it?");
        answered.push(`tool_call ${isAllowed}`);
        return isAllowed ? undefined : { block: true, reason: "refused" };
      });
      api.on("tool_execution_end", ({ seq }) => void delivered.push(seq));
    },
  };
  const remove = tool({
    name: "remove",
    description: "Deletes a file",
    inputSchema: { type: "object", properties: {} },
    execute: () => "deleted",
  });
  const reply = ({ messages }: ModelRequest) =>
    messages.at(-1)?.role === "tool" ? "Done." : { toolCalls: [{ name: "remove", input: {}, callId: "c1" }] };
  const model = scriptedModel(Array.from({ length: 10 }, () => reply));
  return new Agent({ name: "clerk", model, tools: [remove], extensions: [asker] });
}

/** Answers every open question once. */
async function answerAll(handle: RunHandle, events: readonly Event[]): Promise<void> {
  const closed = new Set(
    events.flatMap((event) => (event.type === "approval_decision" ? [event.data.approvalId] : [])),
  );
  for (const event of events) {
    if (event.type !== "approval_request" || closed.has(event.data.approvalId)) continue;
    const { approvalId, kind } = event.data;
    const decision = { decision: "approved", ...(kind === "input" && { input: "a.txt" }) } as const;
    // An answer that the run has not read yet is refused as already answered.
    await handle.approve(approvalId, decision).catch(() => undefined);
  }
}

/** The events without those that a death adds: a repeated model call, its lost reservation and the recovery. */
const typesOf = (events: readonly Event[]): readonly string[] =>
  events
    .map(({ type }) => type)
    .filter((type) => !/^(?:task_(?:suspend|wake)|run_recover|message_start|budget_lost)$/u.test(type));

test("J1, J7: an extension that asks a person gets each answer once wherever its worker dies, and a recorded step runs no handler", async () => {
  const workload = (traces: Trace[]): Workload => ({
    agents: () => {
      const trace = newTrace();
      traces.push(trace);
      return [agent(trace)];
    },
    input: "Delete",
    options: { unknownPrice: "ignore" },
    interact: answerAll,
  });
  const calm = await runWorkload(workload([]));
  expect([calm.status, calm.output]).toEqual(["completed", "Done."]);
  const expected = typesOf(calm.events);
  expect(expected.filter((type) => type === "approval_request")).toHaveLength(2);
  for (let at = 2; at <= calm.writes; at++)
    for (const when of deathsAt(at)) {
      const traces: Trace[] = [];
      const { status, events, eventsAtCrash } = await runWorkload(workload(traces), { at, when });
      const place = `${when} write ${at}`;
      expect([place, status, typesOf(events)]).toEqual([place, "completed", expected]);
      const answers = new Set(traces.flatMap(({ answered }) => answered));
      expect([place, ...answers]).toEqual([place, "input a.txt", "tool_call true"]);
      const delivered = traces.flatMap((trace) => trace.delivered);
      expect([place, new Set(delivered).size]).toEqual([place, delivered.length]);
      // The second worker, whose trace is the last one, replays the steps that were recorded before the death.
      const known = new Set(eventsAtCrash.map(({ type }) => type));
      const second = known.has("run_end") ? [] : (traces.at(-1)?.asked ?? []);
      const repeated = [
        known.has("before_agent_start") && second.includes("input"),
        known.has("tool_execution_end") && second.includes("tool_call"),
      ];
      expect([place, ...repeated]).toEqual([place, false, false]);
    }
});
