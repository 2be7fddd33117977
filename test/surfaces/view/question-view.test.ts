import { afterAll, expect, test } from "vitest";
import { Agent, tool } from "../../../src/entries/index.ts";
import { rootTaskId, type Event, type RunHandle } from "../../../src/kernel/index.ts";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import { droppedAt, isUnanswered } from "../../../src/surfaces/view/question-log.ts";
import { RunFold } from "../../../src/surfaces/view/run-fold.ts";
import { scriptedModel } from "../../../src/testing/index.ts";

const runtime = await openRuntime({ store: "memory:", unknownPrice: "ignore" });
afterAll(() => runtime.close());

const publish = tool({
  name: "publish",
  description: "Publishes a version",
  inputSchema: { type: "object", properties: {} },
  needsApproval: true,
  execute: async () => "published",
});

/** Computes the view from the events of a run, up to an event of a type or to the end. */
async function read(run: RunHandle, fold: RunFold, last: Event["type"]): Promise<void> {
  for await (const event of run.events({ fromSeq: fold.seq + 1 })) {
    if (!("seq" in event)) continue;
    fold.add(event);
    if (event.type === last) return;
  }
}

test("the view closes the question of an agent that ended without an answer, and opens it when the agent continues", async () => {
  const model = scriptedModel([{ toolCalls: [{ name: "publish", input: {} }] }, "Done."]);
  const agent = new Agent({ name: "release", model, tools: [publish] });
  const run = await runtime.submit(agent, "Publish.");
  const fold = new RunFold();
  const facts = (): object => {
    const view = fold.view();
    const { questions, asked, tasks } = view;
    const open = [...asked].filter((question) => isUnanswered(question, view)).length;
    return { questions, open, asked: asked.size, ofTask: tasks.get(rootTaskId)?.questions };
  };
  await read(run, fold, "approval_request");
  expect(facts()).toEqual({ questions: 1, open: 1, asked: 1, ofTask: 1 });
  await run.cancel("not today");
  await read(run, fold, "run_end");
  expect(facts()).toEqual({ questions: 0, open: 0, asked: 1, ofTask: 1 });
  const view = fold.view();
  expect([...view.asked].map((question) => droppedAt(question, view))).toEqual([view.endedAt]);
  await run.resume();
  // The end of the log is not the end of the run until the order was read.
  await expect
    .poll(
      async () => {
        await read(run, fold, "approval_request");
        return facts();
      },
      { timeout: 60_000 },
    )
    .toEqual({ questions: 1, open: 1, asked: 1, ofTask: 1 });
  const [question] = fold.view().asked;
  await run.approve(question?.request.approvalId ?? "", { decision: "approved" });
  await read(run, fold, "run_end");
  expect(facts()).toEqual({ questions: 0, open: 0, asked: 1, ofTask: 0 });
});
