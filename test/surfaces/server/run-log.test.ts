import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Agent } from "../../../src/entries/index.ts";
import type { Event, HostedAgent } from "../../../src/kernel/index.ts";
import type { StoredPast } from "../../../src/surfaces/view/run-past.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent } from "../../runtime/runtime-setup.ts";
import { startServer, type TestServer } from "./test-server.ts";

const helper = agent("helper", async (ctx) => ctx.step("look", async () => "found"));
const lead: HostedAgent = agent(
  "lead",
  async (ctx) => {
    await ctx.step("plan", async () => null);
    const outcome = await ctx.spawn(helper.id, "Look.");
    if (outcome.kind === "refused") throw new Error(outcome.reason);
    await ctx.joinAll([outcome.handle]);
    return ctx.step("write", async () => "done");
  },
  { subAgents: [helper] },
);

/** An agent with one model call. */
const asker = new Agent({ name: "asker", model: scriptedModel(["Done."]) });

interface EventPage {
  readonly events: readonly Event[];
  readonly next: number;
  readonly isLast: boolean;
}

interface View {
  readonly seq: number;
  readonly status: string;
  readonly tasks: readonly { readonly taskId: string; readonly agentId: string; readonly status: string }[];
}

let server: TestServer;
let path = "";
/** The whole log of a run that has ended. */
let log: readonly Event[] = [];

async function read<Value>(address: string): Promise<Value> {
  const { status, text } = await server.call("GET", `${path}${address}`);
  expect(status).toBe(200);
  return JSON.parse(text) as Value;
}

beforeAll(async () => {
  server = await startServer([lead, asker]);
  const run = await server.runtime.submit(lead, "Report.");
  await run.result();
  path = `/api/runs/${run.runId}`;
  ({ events: log } = await read<EventPage>("/events?limit=5000"));
});

afterAll(() => server.close());

describe("GET /events?taskId=", () => {
  it.each(["t0", "t1"])(
    "GET /events?taskId= returns the events of the task %s alone, in order",
    async (taskId) => {
      const page = await read<EventPage>(`/events?taskId=${taskId}&limit=5000`);
      expect(page.events.length).toBeGreaterThan(1);
      expect(page.events.length).toBeLessThan(log.length);
      expect(page.events).toEqual(log.filter((event) => event.taskId === taskId));
      expect(page.isLast).toBe(true);
    },
  );

  it("GET /events?taskId= returns all events of the task, each once, if the caller reads page by page from `next`", async () => {
    const found: Event[] = [];
    for (let [from, isLast] = [0, false]; !isLast;) {
      const page = await read<EventPage>(`/events?taskId=t1&limit=2&from=${from}`);
      expect(page.events.length).toBeLessThanOrEqual(2);
      found.push(...page.events);
      ({ next: from, isLast } = page);
    }
    expect(found).toEqual(log.filter(({ taskId }) => taskId === "t1"));
  });

  it("GET /events?taskId= returns the events that match both filters if the caller also names types", async () => {
    const page = await read<EventPage>("/events?taskId=t0&types=step_end&types=task_end&limit=5000");
    expect(page.events.map(({ type }) => type)).toEqual(["step_end", "step_end", "task_end"]);
    expect(page.events.every(({ taskId }) => taskId === "t0")).toBe(true);
  });

  it("GET /events?taskId= returns an empty last page for a task that the run does not have", async () => {
    expect(await read<EventPage>("/events?taskId=t99&from=3")).toEqual({ events: [], next: 3, isLast: true });
  });

  it("GET /events?last=true returns the last events that match, in the order of their seq", async () => {
    const page = await read<EventPage>("/events?taskId=t0&last=true&limit=3");
    expect(page.events).toEqual(log.filter(({ taskId }) => taskId === "t0").slice(-3));
    expect(page.isLast).toBe(true);
  });

  it("GET /events?taskId= refuses a malformed id with 400", async () => {
    const { json } = await server.call("GET", `${path}/events?taskId=lead`);
    expect(json).toMatchObject({ status: 400, code: "invalid_argument" });
  });
});

describe("GET /tasks?at=", () => {
  const seqOf = (type: Event["type"], taskId: string): number =>
    log.find((event) => event.type === type && event.taskId === taskId)?.seq ?? NaN;

  it("GET /tasks?at= returns the run as it was after that event number", async () => {
    const before = await read<View>(`/tasks?at=${seqOf("spawn_start", "t0") - 1}`);
    expect(before.tasks.map(({ agentId }) => agentId)).toEqual(["lead"]);
    const end = seqOf("task_end", "t1");
    const working = await read<View>(`/tasks?at=${end - 1}`);
    expect(working).toMatchObject({ seq: end - 1, status: "running" });
    expect(working.tasks.find(({ taskId }) => taskId === "t1")).toMatchObject({ status: "running" });
    const ended = await read<View>(`/tasks?at=${end}`);
    expect(ended.tasks.find(({ taskId }) => taskId === "t1")).toMatchObject({ status: "completed" });
  });

  it("GET /tasks?at= returns the newest view without `at`, and for the last event and later numbers", async () => {
    const latest = await read<View>("/tasks");
    expect(latest).toMatchObject({ seq: log.length - 1, status: "completed" });
    expect(await read<View>(`/tasks?at=${log.length - 1}`)).toEqual(latest);
    expect(await read<View>(`/tasks?at=${log.length + 1_000}`)).toEqual(latest);
  });

  it.each(["-1", "1.5", "last"])("GET /tasks?at= refuses the position %s with 400", async (at) => {
    const { json } = await server.call("GET", `${path}/tasks?at=${at}`);
    expect(json).toMatchObject({ status: 400, code: "invalid_argument" });
  });
});

interface Step {
  readonly taskId: string;
  readonly name: string;
  readonly startSeq: number;
  readonly endSeq: number;
}

interface Steps {
  readonly steps: readonly Step[];
}

describe("GET /steps", () => {
  const namesOf = async (query: string): Promise<readonly string[]> =>
    (await read<Steps>(`/steps${query}`)).steps.map(({ name }) => name);

  it("GET /steps returns the steps of the named tasks, in the order in which they started", async () => {
    expect(await namesOf("?taskId=t0")).toEqual(["plan", "write"]);
    expect(await namesOf("?taskId=t1&taskId=t0")).toEqual(["plan", "look", "write"]);
    expect(await namesOf("?taskId=t99")).toEqual([]);
  });

  it("GET /steps returns the steps of the named tasks that were in progress after an event", async () => {
    const waits = await server.runtime.submit(asker, "Ask.");
    await waits.result();
    const asked = `/api/runs/${waits.runId}/steps`;
    const stepsAt = async (query: string): Promise<readonly Step[]> => {
      const { text } = await server.call("GET", `${asked}${query}`);
      return (JSON.parse(text) as Steps).steps;
    };
    const [call] = (await stepsAt("?taskId=t0")) as [Step];
    expect(call.endSeq).toBeGreaterThan(call.startSeq);
    expect(await stepsAt(`?at=${call.startSeq - 1}`)).toEqual([]);
    expect(await stepsAt(`?at=${call.startSeq}`)).toEqual([call]);
    expect(await stepsAt(`?at=${call.startSeq}&taskId=t1`)).toEqual([]);
    expect(await stepsAt(`?at=${call.endSeq}`)).toEqual([]);
  });

  it("GET /steps refuses a request that names neither a task nor an event with 400", async () => {
    const { json } = await server.call("GET", `${path}/steps`);
    expect(json).toMatchObject({ status: 400, code: "invalid_argument" });
  });
});

describe("GET /past", () => {
  it("GET /past returns the steps and how events, money and seats developed, up to the newest event", async () => {
    const { trace, steps } = await read<StoredPast>("/past");
    expect(steps).toMatchObject({ seq: log.length - 1, first: 0 });
    expect(steps.steps.map(({ name }) => name)).toEqual(["plan", "write", "look"]);
    expect(trace.buckets.reduce((sum, { events }) => sum + events, 0)).toBe(log.length);
    expect(trace.seats.map(({ value }) => value)).toEqual([1, 2, 1, 0]);
  });
});
