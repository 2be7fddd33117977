import { expect, it } from "vitest";
import { workflow } from "../../../src/entries/workflow.ts";
import { formatTopicId, type RunContext, type Store } from "../../../src/kernel/index.ts";
import { agent, settle, setUp, until } from "../runtime-setup.ts";

type Method = (...values: never[]) => unknown;

/** Makes the calls of one method wait until `open` is called, as the calls of a store on a network wait. */
function hold<Part extends object>(
  part: Part,
  name: keyof Part,
): { reached: () => boolean; open: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const method = part[name] as Method;
  let isReached = false;
  const held = async (...values: never[]): Promise<unknown> => {
    isReached = true;
    await promise;
    return method.apply(part, values);
  };
  part[name] = held as Part[keyof Part];
  return { reached: () => isReached, open: resolve };
}

const news = formatTopicId({ type: "news", source: "desk" });

const cases: readonly {
  readonly title: string;
  readonly read: (store: Store) => ReturnType<typeof hold>;
  readonly call: (ctx: RunContext, target: string) => Promise<unknown>;
}[] = [
  {
    title: "ctx.sendSignal reads the run",
    read: ({ journal }) => hold(journal, "summary"),
    call: (ctx, target) => ctx.sendSignal(target, "news", 1),
  },
  {
    title: "ctx.emit reads the followers",
    read: ({ topics }) => hold(topics, "followers"),
    call: (ctx) => ctx.emit(news, 1),
  },
];

it.each(cases)("a run is not released while $title and another branch sleeps", async ({ read, call }) => {
  const { clock, runtime, store } = await setUp({ suspendAfterMs: 0 });
  const other = await runtime.submit(
    agent("other", async (ctx) => void (await ctx.waitForSignal("end"))),
    null,
  );
  const done: string[] = [];
  const caller = agent("caller", async (ctx) => {
    await ctx.parallel({
      long: (own) => own.sleep(3_600_000),
      short: async (own) => {
        await call(own, other.runId);
        done.push(await own.step("after", async () => "after"));
      },
    });
  });
  await settle();
  const held = read(store);
  const run = await runtime.submit(caller, null);
  await until(held.reached);
  await clock.advance(1);
  await settle();
  held.open();
  await until(() => done.length === 1);
  await until(async () => (await run.summary()).status === "waiting");
  await clock.advance(3_600_000);
  expect((await run.result()).status).toBe("completed");
  expect(done[0]).toBe("after");
  await runtime.close();
});

it("the result of a workflow reads only the last of its events, however many there are", async () => {
  const { runtime, store } = await setUp();
  store.events.keep = () => {
    throw new Error("the events of the run were read");
  };
  const run = await runtime.start(
    workflow("loud", async (ctx) => ctx.step("speak", () => "done")),
    null,
  );
  expect(await run.result()).toMatchObject({ status: "completed", output: "done", steps: [] });
});
