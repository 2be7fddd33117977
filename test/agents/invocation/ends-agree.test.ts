import { expect, it } from "vitest";
import { llmJudge } from "../../../src/entries/guardrails.ts";
import { Agent, tool, type AgentOptions, type Architecture } from "../../../src/entries/index.ts";
import {
  messageText,
  rootTaskId,
  Transcript,
  userMessage,
  type Guardrail,
  type SubmitOptions,
} from "../../../src/kernel/index.ts";
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

const wrongCounts: Architecture = {
  name: "own",
  declaredWorkers: () => ({}),
  async *run(session, deps, prompt) {
    for (const question of [prompt, "And?"]) {
      const { message } = await deps.ctx.llm({ transcript: Transcript.of([userMessage(question)]) });
      session.output = messageText(message);
    }
    session.turns = 42;
    yield* [];
  },
};

const priced = { inputTokens: 100, outputTokens: 10, cacheReadTokens: 40 };
const answers = [
  { text: "one", usage: priced },
  { text: "two", usage: priced },
];
const worker = (): Agent => new Agent({ name: "worker", model: scriptedModel(answers.slice(1)) });
const hires = { toolCalls: [{ name: "ask_worker", input: { task: "Look." } }], usage: priced };

const counted: Readonly<Record<string, () => Agent>> = {
  "an architecture that counts wrongly": () =>
    new Agent({ name: "scout", model: scriptedModel(answers), architecture: wrongCounts }),
  "a guardrail that calls a model": () =>
    new Agent({
      name: "scout",
      model: scriptedModel(answers.slice(1)),
      guardrails: [
        llmJudge({
          criteria: "Be kind.",
          model: scriptedModel([{ text: '{"verdict":"accept"}', usage: priced }]),
          stages: { output: "block" },
        }),
      ],
    }),
  "an agent that works for it": () =>
    new Agent({
      name: "scout",
      model: scriptedModel([hires, ...answers.slice(1)]),
      tools: [worker().asTool({ name: "ask_worker" })],
    }),
};

it.each(Object.entries(counted))(
  "agent_end has the turns and the usage of the result in a run of %s",
  async (_what, create) => {
    const { run } = await company({ prices: { find: () => ({ inputUsd: 1e-6, outputUsd: 2e-6 }) } });
    const { result, events } = await run(create(), "go");
    const { turns, usage } = result;
    expect(result.status).toBe("completed");
    expect(turns).toBeGreaterThan(1);
    const [end] = events.flatMap((event) =>
      event.type === "agent_end" && event.taskId === rootTaskId ? [event.data] : [],
    );
    expect(end).toMatchObject({ turns, usage });
  },
);
