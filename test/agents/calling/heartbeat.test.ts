import { describe, expect, test } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { messageText, reportsNothing, type Runtime } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { settle } from "../../runtime/runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";
import { hour, runsOf, scheduleBench } from "../../runtime/schedules/bench.ts";

removeStoresAfterEach();

/** The texts of a session, as a reader sees them. */
async function texts(runtime: Runtime, sessionId: string): Promise<string[]> {
  const found: string[] = [];
  for (const entry of await runtime.sessions.path(sessionId))
    if (entry.type === "message") found.push(messageText(entry.message));
  return found;
}

describe("reportsNothing()", () => {
  test("reportsNothing() accepts the phrase alone, in any case, with quotation marks, emphasis or a final mark", () => {
    for (const text of [
      "nothing to report",
      " Nothing to report.\n",
      '"nothing to report"',
      "**Nothing  to\nreport!**",
      "NOTHING TO REPORT",
    ])
      expect([text, reportsNothing(text)]).toEqual([text, true]);
  });

  test("reportsNothing() refuses every answer with another word", () => {
    for (const text of [
      "",
      "nothing",
      "Nothing to report, except that the disk is full.",
      "There is nothing to report",
      "nothing to report nothing to report",
      `nothing to report${" ".repeat(300)}`,
      null,
      { text: "nothing to report" },
    ])
      expect([text, reportsNothing(text)]).toEqual([text, false]);
  });
});

describe("a heartbeat", () => {
  test("a heartbeat whose answer reports nothing leaves no entry in the session, and a heartbeat that reports something does", async () => {
    const { runtime, clock } = await scheduleBench({ unknownPrice: "ignore" });
    const answers = ["Nothing to report.", "The disk is full.", "nothing to report"];
    const model = scriptedModel(answers);
    const watcher = new Agent({ name: "watcher", model });
    await runtime.schedules.create({
      name: "pulse",
      agent: watcher,
      input: "Check the disk.",
      everyMs: hour,
      sessionId: "ops",
      heartbeat: true,
    });
    for (let beat = 0; beat < 3; beat++) {
      await clock.advance(hour);
      await settle();
    }
    const runs = await runsOf(runtime, "pulse");
    expect(runs.map(({ status }) => status)).toEqual(["completed", "completed", "completed"]);
    const asked = "Check the disk.\n\nIf there is nothing to report, answer only: nothing to report";
    expect(await texts(runtime, "ops")).toEqual([asked, "The disk is full."]);
    // The model of the last beat has seen only what was delivered.
    expect(JSON.stringify(model.calls.at(-1)?.messages)).not.toContain("Nothing to report.");
    // The run itself keeps its answer.
    const quiet = await runtime.find(runs[0]?.runId ?? "");
    expect((await quiet?.result())?.output).toBe("Nothing to report.");
  });

  test("a run that is no heartbeat keeps an answer that reports nothing in its session", async () => {
    const { runtime } = await scheduleBench({ unknownPrice: "ignore" });
    const watcher = new Agent({ name: "watcher", model: scriptedModel(["nothing to report"]) });
    await (await runtime.submit(watcher, "Check the disk.", { sessionId: "ops" })).result();
    expect(await texts(runtime, "ops")).toEqual(["Check the disk.", "nothing to report"]);
  });

  test("submit() with heartbeat leaves no entry in the session if the answer reports nothing", async () => {
    const { runtime } = await scheduleBench({ unknownPrice: "ignore" });
    const watcher = new Agent({ name: "watcher", model: scriptedModel(["nothing to report", "hello"]) });
    const sessionId = "ops";
    await (await runtime.submit(watcher, "Anything?", { sessionId, heartbeat: true })).result();
    await (await runtime.submit(watcher, "Hi", { sessionId })).result();
    expect(await texts(runtime, "ops")).toEqual(["Hi", "hello"]);
  });
});

test.each(twoStores)(
  "a heartbeat whose answer reports nothing leaves no entry in the session in a %s store",
  async (_name, prepare) => {
    const open = await prepare();
    const answers = ["nothing to report", "hello"];
    const watcher = new Agent({ name: "watcher", model: scriptedModel(answers) });
    const sessionId = "ops";
    const first = await createRuntime({ store: await open(), unknownPrice: "ignore" });
    const run = await first.submit(watcher, "Anything?", { sessionId, heartbeat: true });
    expect((await run.result()).output).toBe("nothing to report");
    await first.close();
    const second = await createRuntime({ store: await open(), unknownPrice: "ignore" });
    expect(await second.sessions.get(sessionId)).toBeUndefined();
    await (await second.submit(watcher, "Hi", { sessionId })).result();
    expect(await texts(second, sessionId)).toEqual(["Hi", "hello"]);
    expect(await second.sessions.unsent(sessionId)).toEqual([]);
    await second.close();
  },
);
