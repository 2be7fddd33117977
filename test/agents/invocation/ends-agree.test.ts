import { expect, it } from "vitest";
import { Agent, tool, type AgentOptions } from "../../../src/entries/index.ts";
import { rootTaskId, type Guardrail, type SubmitOptions } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { until } from "../../runtime/runtime-setup.ts";
import { company } from "../company.ts";

const look = tool({ name: "look", description: "", inputSchema: { type: "object" }, execute: () => "seen" });
const looks = { text: "Let me see.", toolCalls: [{ name: "look", input: {} }] };
const never: Guardrail = { name: "never", onInput: () => ({ decision: "block", reason: "no" }) };
const broken = Object.assign(new Error("no such model"), { status: 404 });

interface Case {
  readonly options?: Partial<AgentOptions>;
  readonly submit?: SubmitOptions;
}

const cases: Readonly<Record<string, Case>> = {
  completed: {},
  budget_exhausted: { submit: { budget: { maxTurns: 1 } } },
  max_turns: { options: { maxTurns: 1 } },
  guardrail_tripped: { options: { guardrails: [never] } },
  failed: { options: { model: scriptedModel([{ error: broken }]) } },
  max_output: { options: { model: scriptedModel([{ text: "half", stopReason: "length" }]) } },
};

it.each(Object.entries(cases))(
  "the last task_end of the root and run_end have the same status in a run that ends as %s",
  async (status, { options, submit }) => {
    const { run } = await company();
    const agent = new Agent({
      name: "scout",
      model: scriptedModel([looks, "done"]),
      tools: [look],
      ...options,
    });
    const { result, events } = await run(agent, "go", submit);
    const ends = events.flatMap((event) =>
      event.taskId === rootTaskId && (event.type === "task_end" || event.type === "run_end")
        ? [event.data.status]
        : [],
    );
    expect([result.status, ...ends]).toEqual([status, status, status]);
  },
);

it.each(["cancelled", "deadline_exceeded"])(
  "the last task_end of the root and run_end have the same status in a run that is stopped as %s",
  async (status) => {
    const { runtime, clock, ended } = await company();
    const model = scriptedModel([{ text: "late", delayMs: 1_000 }], { clock });
    const budget = status === "cancelled" ? {} : { deadlineMs: 500 };
    const run = await runtime.submit(new Agent({ name: "scout", model }), "go", { budget });
    await until(() => model.calls.length === 1);
    if (status === "cancelled") await run.cancel("enough");
    else await clock.advance(600);
    const { result, events } = await ended(run);
    const ends = events.flatMap((event) =>
      event.type === "task_end" || event.type === "run_end" ? [event.data.status] : [],
    );
    expect([result.status, ...ends]).toEqual([status, status, status]);
  },
);
