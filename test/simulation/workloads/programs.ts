import { Fault, formatRunId, type RunHandle } from "../../../src/kernel/index.ts";
import { programWorkflows } from "../../scale/program-workflows.ts";
import { predict, programInput, randomProgram, type Predicted } from "../../scale/random-programs.ts";
import { workload } from "../workload.ts";

interface World {
  /** The keys that each counter has counted. */
  readonly counted: Map<string, Set<string>>;
  /** Number of requests by key. */
  readonly requests: Map<string, number>;
  /** The replies to updates, by name. */
  readonly replies: Map<string, number | string>;
  readonly states: Map<string, number>;
  end: string;
}

/** A random program of nested steps, branches, races, sleeps, signals, promises, objects, updates, children and compensations. */
export const programs = workload<World>(
  "programs",
  (seed, steps) => {
    const commands = randomProgram(seed).slice(0, steps);
    const expected = predict(commands);
    const runId = formatRunId(`program-${seed}`);
    const last = commands.at(-1);
    const cancelledAfter =
      last?.op === "cancelled" && expected.status === "cancelled" ? last.name : undefined;
    return {
      world: () => ({
        counted: new Map(),
        requests: new Map(),
        replies: new Map(),
        states: new Map(),
        end: "",
      }),
      runtime: { suspendAfterMs: seed % 2 === 0 ? 5 : 2_000 },
      agents: ({ call, world }) =>
        programWorkflows(({ name, key = "", body }) =>
          call(name, () => count(world, name, key, body as { readonly fails?: number }), { key }),
        ),
      load: async ({ runtime, world, sleep }) => {
        const [program, tally] = programWorkflows(() =>
          Promise.reject(new Error("a client executes no step")),
        );
        const run = await runtime.start(program, programInput(commands), { runId });
        for (const [name, value] of expected.signals) await run.signal(name, value, { id: name });
        const replies = [...expected.updates].map(async ([name, { value }]) => {
          world.replies.set(name, await replyOf(run, name, value));
        });
        if (cancelledAfter !== undefined) {
          while (!world.counted.has(cancelledAfter)) await sleep(100);
          await run.cancel("the load cancels it");
        }
        const { status, output } = await run.result();
        world.end = status === "completed" ? `completed ${JSON.stringify(output)}` : status;
        await Promise.all(replies);
        for (;;) {
          const { runs } = await runtime.list({
            status: ["pending", "running", "waiting", "paused"],
            limit: 1,
          });
          if (runs.length === 0) break;
          await sleep(1_000);
        }
        for (const key of expected.states.keys())
          world.states.set(key, await runtime.object(tally, key).state());
      },
      check: ({ world }) => {
        const counted = [...world.counted].flatMap(([name, keys]) => [...keys].map(() => name)).toSorted();
        const wrong = differences(expected, world);
        const end = endOf(expected);
        if (world.end !== end) wrong.push(`the program ends as ${world.end}, and its model as ${end}`);
        const model = expected.counted.toSorted().join(" ");
        if (counted.join(" ") !== model) wrong.push(`it counts ${counted.join(" ")}\n  the model: ${model}`);
        return wrong;
      },
    };
  },
  (seed) => randomProgram(seed).length,
);

function count(world: World, name: string, key: string, { fails = 0 }: { readonly fails?: number }): null {
  const request = (world.requests.get(key) ?? 0) + 1;
  world.requests.set(key, request);
  if (request <= fails) throw Object.assign(new Error(`${name} is unavailable`), { status: 503 });
  const keys = world.counted.get(name) ?? new Set<string>();
  world.counted.set(name, keys.add(key));
  return null;
}

function differences({ states, updates }: Predicted, world: World): string[] {
  const wrong: string[] = [];
  for (const [key, state] of states)
    if (world.states.get(key) !== state)
      wrong.push(`the state of ${key} is ${world.states.get(key)}, and in the model ${state}`);
  for (const [name, { reply }] of updates)
    if (String(world.replies.get(name)) !== String(reply))
      wrong.push(`the reply to ${name} is ${world.replies.get(name)}, and in the model ${reply}`);
  return wrong;
}

/** Sends an update twice, beside one that its schema refuses. Returns the reply. */
async function replyOf(run: RunHandle<unknown>, name: string, value: number): Promise<number | string> {
  const sent = [
    run.update(name, "wrong", { id: `${name} wrong` }),
    run.update(name, value, { id: name }),
    run.update(name, value, { id: name }),
  ];
  const [wrong, ...replies] = (await Promise.allSettled(sent)).map((each) =>
    each.status === "fulfilled" ? (each.value as number) : Fault.from(each.reason).code,
  );
  // A wrong update that arrives after the right one has no reply.
  if (wrong !== "invalid_argument" && wrong !== "not_found") return `${wrong} to a wrong value`;
  const [reply = "nothing", again] = replies;
  if (reply !== again) return `${reply} and then ${again}`;
  // The error of a step of the handler, or of a run that it has called.
  return reply === "fatal" || reply === "child_failed" ? "failed" : reply;
}

function endOf({ status, value }: Predicted): string {
  return status === "completed" ? `completed ${value}` : status;
}
