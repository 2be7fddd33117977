import {
  FatalError,
  object,
  shared,
  update,
  workflow,
  type DurableObject,
  type Workflow,
  type WorkflowContext,
} from "../../src/entries/workflow.ts";
import type { HostedAgent, JsonValue } from "../../src/kernel/index.ts";
import type { CallOptions } from "../../src/testing/served-call.ts";
import { programInput, type Command, type Program } from "./random-programs.ts";

/** What the messenger does for another run. */
interface Errand {
  readonly runId: string;
  readonly signal?: string;
  readonly promise?: string;
  readonly rejects?: boolean;
  readonly value: number;
}

/** What a handler of the object does. */
interface Work {
  readonly by: number;
  readonly body: Program;
}

/** The object that programs call. Its state is a sum. */
type Tally = DurableObject<
  number,
  {
    readonly add: { readonly input: (work: Work) => void; readonly output: number };
    readonly hold: { readonly input: (input: undefined) => void; readonly output: null };
    readonly get: { readonly input: (input: undefined) => void; readonly output: number };
  }
>;

/**
 * The workflow that executes a random program, the object that it calls, and the workflow that resolves its promises and
 * sends its signals.
 */
export function programWorkflows(
  callServer: (call: CallOptions) => Promise<unknown>,
): readonly [Workflow<JsonValue, number>, Tally, HostedAgent] {
  const messenger = workflow("messenger", async (ctx, input) => {
    const { runId, signal, promise, rejects = false, value } = input as unknown as Errand;
    if (signal !== undefined) await ctx.sendSignal(runId, signal, value, { id: signal });
    if (promise !== undefined && rejects) await ctx.rejectPromise(promise, new FatalError("no"));
    else if (promise !== undefined) await ctx.resolvePromise(promise, value);
    return value;
  });

  const count = async (
    ctx: WorkflowContext,
    name: string,
    { fails = 0, isFatal = false }: { readonly fails?: number; readonly isFatal?: boolean } = {},
  ): Promise<number> =>
    ctx.step(
      name,
      async ({ idempotencyKey, signal }) => {
        await callServer({
          name,
          key: idempotencyKey,
          body: { fails },
          signal,
        });
        if (isFatal) throw new FatalError(`${name} failed`);
        return 1;
      },
      { retry: { baseDelayMs: 1, maxDelayMs: 5, maxAttempts: 50 } },
    );

  const never = async (ctx: WorkflowContext, command: Command & { op: "race" }): Promise<number> => {
    if (command.never === "sleep") await ctx.sleep("1 hour");
    else if (command.never === "signal") await ctx.waitForSignal(`never ${command.name}`);
    else if (command.never === "object") {
      await ctx.object(tally, command.name).start.hold();
      await ctx.object(tally, command.name).hold();
    } else await ctx.promise().promise.result(ctx);
    return count(ctx, command.name);
  };

  const all = async (ctx: WorkflowContext, commands: Program): Promise<number> => {
    let sum = 0;
    for (const command of commands) {
      if (command.op === "again") return ctx.continueAsNew(["again", command.rest] as never);
      sum += await one(ctx, command);
    }
    return sum;
  };

  const branches = (
    programs: readonly Program[],
  ): Record<string, (ctx: WorkflowContext) => Promise<number>> =>
    Object.fromEntries(
      programs.map((each, index) => [`b${index}`, (own: WorkflowContext) => all(own, each)]),
    );

  const one = async (ctx: WorkflowContext, command: Command): Promise<number> => {
    switch (command.op) {
      case "count":
        return count(ctx, command.name, command);
      case "fatal":
        return count(ctx, command.name, { isFatal: true });
      case "sleep":
        await ctx.sleep(command.ms);
        return 0;
      case "values":
        ctx.publish("seen", { at: await ctx.now(), random: await ctx.random(), id: await ctx.uuid() });
        return 0;
      case "undo":
        await ctx.compensate(
          command.name,
          async ({ idempotencyKey }) => {
            await callServer({ name: command.name, key: idempotencyKey, body: {} });
          },
          { retry: { baseDelayMs: 1, maxDelayMs: 5, maxAttempts: 50 } },
        );
        return 0;
      case "parallel": {
        const values = await ctx.parallel(branches(command.branches));
        return Object.values(values).reduce((sum, value) => sum + value, 0);
      }
      case "map": {
        const { items, concurrency } = command;
        const settled = await ctx.map(items, (item, own) => all(own, item), { concurrency });
        return settled.reduce((sum, each) => sum + (each.status === "fulfilled" ? each.value : 100), 0);
      }
      case "race": {
        const body = (own: WorkflowContext): Promise<number> => all(own, command.body);
        const { value } = await ctx.race({ body, never: (own) => never(own, command) });
        // The calls that lost have been cancelled and have freed their key.
        if (command.never === "object") await ctx.object(tally, command.name).add({ by: 1, body: [] });
        return value;
      }
      case "any": {
        const fails = async (): Promise<number> => {
          throw new FatalError("this branch fails");
        };
        return (await ctx.any({ fails, body: (own) => all(own, command.body) })).value;
      }
      case "attempt":
        try {
          return await all(ctx, command.body);
        } catch (error) {
          ctx.check();
          if (!(error instanceof Error)) throw error;
          return 10 + (await all(ctx, command.otherwise));
        }
      case "timeout":
        return ctx.timeout("1 hour", (own) => all(own, command.body));
      case "shield":
        return ctx.uncancellable((own) => all(own, command.body));
      case "signal":
        return waitForSignal(ctx, command);
      case "promise":
        return waitForPromise(ctx, command);
      case "call": {
        const run = await ctx.start(program, programInput(command.body));
        const meanwhile = await all(ctx, command.meanwhile);
        return meanwhile + (await run.result(ctx));
      }
      case "send":
        await ctx.send(program, programInput(command.body), { delayMs: command.delayMs });
        return 0;
      case "object":
        return callObject(ctx, command);
      case "update":
        return handleUpdate(ctx, command);
      case "cancelled":
        await count(ctx, command.name);
        await ctx.waitForSignal(`never ${command.name}`);
        return 0;
      case "again":
        return 0;
    }
  };

  const waitForSignal = async (
    ctx: WorkflowContext,
    command: Command & { op: "signal" },
  ): Promise<number> => {
    const { signal, value, from } = command;
    if (from === "outside") return (await ctx.waitForSignal(signal)) as number;
    const run = await ctx.start(messenger, { runId: ctx.runId, signal, value });
    const received = (await ctx.waitForSignal(signal)) as number;
    await run.result(ctx);
    return received;
  };

  const waitForPromise = async (
    ctx: WorkflowContext,
    command: Command & { op: "promise" },
  ): Promise<number> => {
    const { id, promise } = ctx.promise();
    const { value, rejects } = command;
    const run = await ctx.start(messenger, { runId: ctx.runId, promise: id, value, rejects });
    await run.result(ctx);
    return (await promise.result(ctx)) as number;
  };

  const callObject = async (ctx: WorkflowContext, command: Command & { op: "object" }): Promise<number> => {
    const { key, by, body, how, meanwhile } = command;
    const calls = ctx.object(tally, key);
    switch (how) {
      case "call":
        return calls.add({ by, body });
      case "start": {
        const run = await calls.start.add({ by, body });
        return (await all(ctx, meanwhile)) + (await run.result(ctx));
      }
      case "send":
        await calls.send.add({ by, body }, { delayMs: by });
        return 0;
      case "read":
        await calls.get();
        return 0;
    }
  };

  const handleUpdate = async (ctx: WorkflowContext, command: Command & { op: "update" }): Promise<number> => {
    const { name, body } = command;
    const handled = await ctx.handleUpdate(
      update(name, { input: { type: "integer" }, output: { type: "integer" } } as const),
      async (value) => value + (await all(ctx, body)),
    );
    return handled?.status === "completed" ? handled.reply : 50;
  };

  const tally = object(
    "tally",
    { state: { type: "integer", default: 0 } as const },
    {
      add: async (ctx, input: JsonValue) => {
        const { by, body } = input as unknown as Work;
        ctx.setState(ctx.state + by);
        // A body without `again` uses no `continueAsNew`, which handlers do not have.
        const value = await all(ctx as unknown as WorkflowContext, body);
        ctx.setState(ctx.state + 1_000);
        return value;
      },
      hold: async (ctx) => {
        await ctx.waitForSignal("never");
        return null;
      },
      get: shared(async (ctx) => ctx.state),
    },
  ) as unknown as Tally;

  const program: Workflow<JsonValue, number> = workflow("program", async (ctx, input): Promise<number> => {
    const [mark, rest] = input as unknown as readonly [unknown, Program];
    // What `again` passes on.
    if (mark === "again") return 1_000 + (await all(ctx, rest));
    return all(ctx, input as unknown as Program);
  });
  return [program, tally, messenger];
}
