import fc from "fast-check";
import { expect, it } from "vitest";
import {
  formatAgentId,
  formatTaskId,
  stepAt,
  Supervision,
  unlimitedBudget,
  type JsonValue,
  type TaskRecord,
} from "../../src/kernel/index.ts";
import { RunState } from "../../src/runtime/run-state.ts";
import { Waits, type Wait } from "../../src/runtime/waits.ts";
import { FakeClock } from "../../src/testing/index.ts";

type Move =
  | { readonly type: "resolve"; readonly name: number }
  | { readonly type: "wait"; readonly name: number }
  /** The oldest waiter that has something records it. */
  | { readonly type: "record"; readonly name: number }
  | { readonly type: "leave"; readonly name: number }
  /** The process dies: waiters are gone, the state is folded again. */
  | { readonly type: "die" };

const moves = fc.array(
  fc.oneof(
    fc.record({
      type: fc.constantFrom("resolve" as const, "wait" as const, "record" as const, "leave" as const),
      name: fc.integer({ min: 0, max: 1 }),
    }),
    fc.constant({ type: "die" as const }),
  ),
  { maxLength: 14 },
);

const taskId = formatTaskId(0);

function rootTask(): TaskRecord {
  const agentId = formatAgentId({ name: "tester" });
  const supervision = Supervision.root(agentId, { ids: { next: () => "a" } }).toJSON();
  return {
    taskId,
    agentId,
    parentId: null,
    supervision,
    budget: unlimitedBudget,
    input: null,
    messages: [],
    userId: null,
    metadata: {},
    streaming: false,
    onParentEnd: "wait",
    onPause: "suspend",
    tools: null,
  };
}

interface Waiting {
  readonly wait: Wait;
  readonly place: number;
  value: JsonValue | undefined;
}

/** Plays the moves; what each recorded wait got, by name, in the order of recording. */
async function play(sequence: readonly Move[]): Promise<{ got: JsonValue[][]; sent: JsonValue[][] }> {
  const state = new RunState("refuse");
  state.apply({ tasks: [{ type: "create", task: rootTask() }] }, 0);
  let waits = new Waits(new FakeClock(), state);
  let waiting: Waiting[] = [];
  const [got, sent]: JsonValue[][][] = [
    [[], []],
    [[], []],
  ];
  let steps = 0;
  for (const move of sequence) {
    if (move.type === "die") {
      waits.forget();
      waits = new Waits(new FakeClock(), state);
      waiting = [];
      continue;
    }
    const name = `signal ${move.name}`;
    const [first] = waiting.filter(({ place }) => place === move.name);
    if (move.type === "resolve") {
      const value = `${move.name}.${sent?.[move.name]?.length}`;
      sent?.[move.name]?.push(value);
      state.apply({ resolves: [{ taskId, wait: name, value }] }, 0);
      waits.serve(taskId, name);
    } else if (move.type === "wait") {
      const each: Waiting = { wait: waits.wait(taskId, name), place: move.name, value: undefined };
      void each.wait.came.then((value) => (each.value = value));
      waiting.push(each);
    } else if (move.type === "leave") {
      first?.wait.leave();
      waiting = waiting.filter((each) => each !== first);
    } else {
      const served = waiting.find(({ place, value }) => place === move.name && value !== undefined);
      if (served?.value === undefined) continue;
      const { value } = served;
      waiting = waiting.filter((each) => each !== served);
      got?.[move.name]?.push(value);
      const outcome = { kind: "ok", value: { value } } as const;
      const step = { taskId, address: stepAt("", steps++), kind: "wait", name, digest: "", outcome } as const;
      state.apply({ steps: [step] }, 0);
      waits.taken(taskId, name);
    }
    await Promise.resolve();
  }
  return { got: got ?? [], sent: sent ?? [] };
}

it("gives every value to one recorded wait, in the order in which they came, whoever dies or leaves (W1, W2)", async () => {
  await fc.assert(
    fc.asyncProperty(moves, async (sequence) => {
      const { got, sent } = await play(sequence);
      for (const [name, values] of got.entries()) expect(values).toEqual(sent[name]?.slice(0, values.length));
    }),
    { numRuns: 10_000 },
  );
}, 60_000);
