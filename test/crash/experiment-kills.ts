import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inject } from "vitest";
import type { TrialResult } from "../../src/experiments/index.ts";
import { toNanoUsd, type JsonValue } from "../../src/kernel/index.ts";
import { CountingServer, WorkerProcess, type Answering, type CallBook } from "../../src/testing/index.ts";
import { doDuty } from "../../src/testing/worker-duty.ts";
import { Random } from "../capabilities/gateway/random-exchange.ts";
import { doExperimentWork, experimentSeats, resultsIn, type ExperimentWorkData } from "./experiment-work.ts";
import { modelAnswer } from "./workload.ts";

const script = new URL("experiment-worker.mjs", inject("crashWorkers"));

/** The model calls a tool and answers by the case. The judge gives a grade by the answer. */
const answering: Answering = ({ name, body }) => {
  if (name === "measure") return { body: gradeOf(JSON.stringify(body)) / 10 };
  if (name !== "model") return { body: { did: name, with: body } };
  const text = JSON.stringify(body);
  const messages = (body as readonly JsonValue[]).length;
  if (text.includes("How good is")) return modelAnswer(messages, { text: String(gradeOf(text)) });
  if (text.includes('"tool_result"') || text.includes('"role":"tool"'))
    return modelAnswer(messages, { text: `Answer ${gradeOf(text)}` });
  return modelAnswer(messages, { calls: [{ name: "look", input: { at: caseIn(text) } }] });
};

/** Returns the case, or the answer, to which a text belongs. */
function caseIn(text: string): string {
  return /Case \d+|case-\d+|Answer \d/u.exec(text)?.[0] ?? "";
}

/** A number from 0 to 9 that depends on the text alone. */
function gradeOf(text: string): number {
  let sum = 0;
  for (const character of text.match(/Case \d+|Answer \d|case-\d+/gu)?.join() ?? "")
    sum = (sum * 31 + character.charCodeAt(0)) % 9_973;
  return sum % 10;
}

/** What the experiment has done in one store. */
interface Lived {
  readonly table: readonly (readonly unknown[])[];
  readonly costNanoUsd: number;
  readonly unreportedNanoUsd: number;
  readonly status: string;
  readonly takeOvers: number;
  /** Number of calls by name, subject and length of the conversation. */
  readonly calls: ReadonlyMap<string, number>;
}

async function livedIn(file: string, book: CallBook): Promise<Lived> {
  const { results, costUsd, unreportedUsd, status, takeOvers } = await resultsIn(file);
  const calls = new Map<string, number>();
  for (const { name, body } of book.calls) {
    const length = Array.isArray(body) ? body.length : 0;
    const call = `${name} ${caseIn(JSON.stringify(body))} ${length}`;
    calls.set(call, (calls.get(call) ?? 0) + 1);
  }
  return {
    table: results.map(rowOf).toSorted(([one = ""], [other = ""]) => (String(one) < String(other) ? -1 : 1)),
    costNanoUsd: toNanoUsd(costUsd ?? 0),
    unreportedNanoUsd: toNanoUsd(unreportedUsd),
    status,
    takeOvers,
    calls,
  };
}

function rowOf({ caseId, status, output, error, turns, scores, costUsd }: TrialResult): readonly unknown[] {
  const judged = Object.entries(scores).map(([name, { score, error: failure }]) => [name, score, failure]);
  // An unreported call is part of the cost of its trial, so that costs are compared for the whole run.
  return [caseId, status, output, error, turns, (costUsd ?? 0) > 0, judged];
}

/**
 * Runs an experiment without an interruption, and again on two workers that are killed at random while it runs. Returns what differs.
 */
export async function experimentProblems({
  cases,
  kills,
  seed,
}: ExperimentWorkData & { readonly kills: number; readonly seed: number }): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-experiment-"));
  const server = await CountingServer.open();
  const workers: WorkerProcess[] = [];
  try {
    const whole = server.book("whole", answering);
    const data = { cases };
    const orders = { workload: "experiment", death: null, data };
    const wholeFile = join(folder, "whole.db");
    await doDuty(
      { ...orders, file: wholeFile, server: { url: whole.url, caller: "whole" } },
      doExperimentWork,
    );
    const expected = await livedIn(wholeFile, whole);

    const random = new Random(seed);
    // From this number of calls on no call is answered until a worker is killed, so that the work is not done before.
    let due = { calls: 0, killed: Promise.resolve() };
    const book = server.book("killed", (call) => ({
      ...answering(call),
      hold: ({ calls }) => (calls.length >= due.calls ? due.killed : Promise.resolve()),
    }));
    const file = join(folder, "killed.db");
    const start = (life: number): WorkerProcess =>
      WorkerProcess.start(
        script,
        { ...orders, file, server: { url: book.url, caller: `worker ${life}` } },
        join(folder, "compiled"),
      );
    workers.push(start(0), start(1));
    // More calls than are in flight, so that each life records something, and in all fewer than the work needs.
    const between = Math.max(1, Math.floor((cases * 5) / (kills + 1)) - experimentSeats - 1);
    for (let kill = 0; kill < kills; kill++) {
      const wanted = book.calls.length + experimentSeats + 1 + random.below(between);
      const { promise, resolve } = Promise.withResolvers<void>();
      due = { calls: wanted, killed: promise };
      await book.until((calls) => calls.length >= wanted);
      // Only the owner of the run makes calls.
      const owner = Number(book.calls.at(-1)?.caller.split(" ")[1]);
      const victim = random.below(5) > 0 ? owner : workers.findIndex((worker) => !worker.isOver);
      workers[victim]?.signal("SIGKILL");
      await workers[victim]?.endWithin(60_000);
      due = { calls: Number.POSITIVE_INFINITY, killed: promise };
      resolve();
      workers.push(start(workers.length));
    }
    const ends = await Promise.all(workers.map((worker) => worker.endWithin(300_000)));
    const actual = await livedIn(file, book);
    const failures = ends.flatMap((end) =>
      end.kind === "failed" && !end.reason.includes("SIGKILL") ? [end.reason] : [],
    );
    return [...failures, ...problemsOf(expected, actual)];
  } finally {
    for (const worker of workers) worker.signal("SIGKILL");
    await Promise.all(workers.map((worker) => worker.ended));
    await server.close();
    await rm(folder, { recursive: true, force: true });
  }
}

function problemsOf(expected: Lived, actual: Lived): readonly string[] {
  const repeated = [...actual.calls].reduce(
    (sum, [call, count]) => sum + Math.max(0, count - (expected.calls.get(call) ?? 0)),
    0,
  );
  const missing = [...expected.calls].filter(([call, count]) => (actual.calls.get(call) ?? 0) < count);
  const unknown = [...actual.calls.keys()].filter((call) => !expected.calls.has(call));
  const added = actual.costNanoUsd - expected.costNanoUsd;
  return [
    ...(actual.takeOvers > 0 ? [] : ["no worker has taken the run over"]),
    ...(actual.status === "completed" ? [] : [`the run is ${actual.status}`]),
    ...(JSON.stringify(actual.table) === JSON.stringify(expected.table)
      ? []
      : [`the table differs: ${JSON.stringify(actual.table)} instead of ${JSON.stringify(expected.table)}`]),
    ...missing.map(([call]) => `the run lacks a call: ${call}`),
    ...unknown.map((call) => `the uninterrupted run did not call ${call}`),
    ...(repeated <= actual.takeOvers * experimentSeats
      ? []
      : [`${repeated} calls were repeated after ${actual.takeOvers} take-overs`]),
    ...(added === actual.unreportedNanoUsd
      ? []
      : [`it cost ${added} more, of which ${actual.unreportedNanoUsd} are unreported`]),
  ];
}
