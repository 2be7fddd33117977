import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject } from "vitest";
import { toNanoUsd } from "../../src/kernel/index.ts";
import { doDuty } from "../../src/testing/worker-duty.ts";
import { traceRun, WorkerProcess, type Death, type WorkerEnd } from "../../src/testing/index.ts";
import {
  answerEvents,
  answerJson,
  eventsOf,
  MockUpstream,
  type Received,
} from "../capabilities/gateway/mock-upstream.ts";
import { openCrashStore } from "./crash-store.ts";
import { everyWrite } from "./kill-points.ts";
import {
  doGatewayWork,
  firstEvent,
  gatewayCapUsd,
  gatewayRun,
  type GatewayWorkData,
} from "./gateway-work.ts";
import { casesOf, isFull } from "../effort.ts";

const script = new URL("gateway-worker.mjs", inject("crashWorkers"));
const capNanoUsd = toNanoUsd(gatewayCapUsd);

/** A provider with both protocols that bills each request at its output limit as soon as the request has arrived. */
class BillingProvider {
  billedNanoUsd = 0;
  /** Whether the next stream ends after its first event, and stays open. */
  stalls = false;
  readonly #upstream: MockUpstream;

  private constructor(upstream: MockUpstream) {
    this.#upstream = upstream;
  }

  static async open(): Promise<BillingProvider> {
    const upstream = await MockUpstream.open(() => undefined);
    const provider = new BillingProvider(upstream);
    upstream.answer = (received, response) => provider.#answer(received, response);
    return provider;
  }

  get url(): string {
    return this.#upstream.url;
  }

  close(): Promise<void> {
    return this.#upstream.close();
  }

  #answer({ path, body }: Received, response: Parameters<MockUpstream["answer"]>[1]): void {
    const { max_tokens, max_completion_tokens, stream } = JSON.parse(body.toString()) as {
      readonly max_tokens?: number;
      readonly max_completion_tokens?: number;
      readonly stream?: boolean;
    };
    if (path.endsWith("count_tokens")) return answerJson(response, { input_tokens: 3 });
    const output_tokens = max_tokens ?? max_completion_tokens ?? 0;
    this.billedNanoUsd += output_tokens * 1_000_000;
    if (path === "/v1/messages") {
      const usage = { input_tokens: 3, output_tokens };
      if (stream !== true) return answerJson(response, { type: "message", content: [], usage });
      const start = {
        type: "message_start",
        message: { content: [], usage: { input_tokens: 3, output_tokens: 1 } },
      };
      const delta = { type: "message_delta", delta: { stop_reason: "end_turn" }, usage };
      const named = [start, delta, { type: "message_stop" }].map(
        (event) => `event: ${event.type}\n${eventsOf(event)}`,
      );
      if (!this.stalls) return answerEvents(response, named.join(""));
      this.stalls = false;
      response.writeHead(200, { "content-type": "text/event-stream" }).write(named[0]);
      return;
    }
    const usage = { prompt_tokens: 3, completion_tokens: output_tokens };
    if (stream !== true) return answerJson(response, { choices: [{ message: { content: "hello" } }], usage });
    answerEvents(
      response,
      eventsOf({ choices: [{ delta: { content: "hello" } }] }, { choices: [], usage }, "[DONE]"),
    );
  }
}

/** Where a process dies: at a write, or in the middle of a stream. `null` means that it does not die. */
type End = Death | "in the middle of a stream" | null;

/** The result of one store after all its workers have ended. */
interface Lived {
  readonly ends: readonly WorkerEnd[];
  readonly problems: readonly string[];
  readonly billedUsd: number;
  readonly spentUsd: number;
  /** Number of requests with usage, and of those whose usage is unknown. */
  readonly answered: number;
  readonly lost: number;
}

type Work = Pick<GatewayWorkData, "isCapped" | "branches" | "maxTokens">;

/** Runs workers one after the other on one store. Returns their bills. */
async function liveOut(folder: string, name: string, deaths: readonly End[], work: Work): Promise<Lived> {
  const provider = await BillingProvider.open();
  const file = join(folder, `${name}.db`);
  const ends: WorkerEnd[] = [];
  try {
    for (const [life, death] of deaths.entries()) {
      const server = { url: provider.url, caller: `${name} ${life}` };
      const isCut = death === "in the middle of a stream";
      const data = { url: provider.url, ...work, saysEvents: isCut } satisfies GatewayWorkData;
      const orders = { file, workload: "gateway", data, death: isCut ? null : death, server };
      // A life that is not killed needs no process of its own.
      if (death === null) {
        ends.push({ kind: "finished", ...(await doDuty(orders, doGatewayWork)) });
        continue;
      }
      provider.stalls = isCut;
      const worker = WorkerProcess.start(script, orders, join(folder, "compiled"));
      if (isCut) await worker.hasSaid(firstEvent).finally(() => worker.signal("SIGKILL"));
      const end = await worker.endWithin(120_000);
      ends.push(isCut ? { kind: "killed", write: death } : end);
    }
    const store = await openCrashStore(file);
    try {
      const trace = await traceRun(store, gatewayRun);
      const spent = trace?.money?.spent.nanoUsd ?? 0;
      const { billedNanoUsd: billed } = provider;
      const problems = [
        ...(trace?.status === "budget_exhausted" ? [] : [`the run is ${trace?.status}`]),
        ...(billed <= capNanoUsd ? [] : [`billed ${billed} of ${capNanoUsd}`]),
        ...(spent >= billed ? [] : [`spent ${spent}, billed ${billed}`]),
        ...(spent <= capNanoUsd ? [] : [`spent ${spent} of ${capNanoUsd}`]),
        ...(billed > 0 ? [] : ["nothing was billed"]),
      ];
      const calls = trace?.events.flatMap(({ type }) => (type === "metered_call" ? [type] : [])) ?? [];
      const lost = trace?.events.filter(({ type }) => type === "budget_lost").length ?? 0;
      return {
        ends,
        problems: problems.map((problem) => `${name}: ${problem}`),
        billedUsd: billed / 1e9,
        spentUsd: spent / 1e9,
        answered: calls.length,
        lost,
      };
    } finally {
      await store.close();
    }
  } finally {
    await provider.close();
  }
}

/** Returns writes of the first half, alternately with a death before and after them. */
function someWrites(count: number, few: number): readonly Death[] {
  return Array.from({ length: few }, (_, index) => ({
    at: Math.ceil((count * (index + 1)) / (2 * few)),
    when: index % 2 === 0 ? ("after" as const) : ("before" as const),
  }));
}

/**
 * Kills a process with a gateway at a few of its writes, or with `npm run test:full` at every write. Returns the
 * contradictions between what the provider billed and what the run spent. With `isCapped`, caps per agent and per month
 * stop the program instead of the budget of its run.
 */
export async function budgetProblems(
  few: number,
  { isCapped = false }: { readonly isCapped?: boolean } = {},
): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-gateway-"));
  // The cap pays for 60 requests in the full run, else for 30.
  const work = { isCapped, branches: 20, maxTokens: casesOf(10, 20) };
  try {
    const whole = await liveOut(folder, "whole", [null], work);
    expect(whole.problems).toEqual([]);
    const kinds = whole.ends.flatMap((end) => (end.kind === "finished" ? end.kinds : []));
    const points = isFull ? [...everyWrite(kinds.length)] : [...someWrites(kinds.length, few)];
    const problems: string[] = [];
    let killed = 0;
    for (const [index, death] of points.entries()) {
      const name = `${index} ${death.when} ${death.at}`;
      const { ends, problems: found } = await liveOut(folder, name, [death, null], work);
      problems.push(...found, ...ends.flatMap((end) => (end.kind === "failed" ? [end.reason] : [])));
      if (ends[0]?.kind === "killed") killed++;
      // Timing decides how many writes a process makes for the same requests.
      else if (!isFull && death.at > 1) points.push({ ...death, at: death.at >> 1 });
    }
    expect(killed).toBeGreaterThanOrEqual(few);
    return problems;
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** The writes of the first request of a run: its reservation, and its settlement. */
const [reserving, settling] = [6, 7];

/**
 * Kills a process with one open request at each stage of the request. A cap pays for six requests. Returns for each
 * stage what was billed and spent, and how many requests were answered and lost.
 */
export async function requestPoints(): Promise<readonly (readonly [string, object])[]> {
  const points: readonly (readonly [string, End])[] = [
    ["before its reservation", { at: reserving, when: "before" }],
    ["after its reservation", { at: reserving, when: "after" }],
    ["in the middle of its stream", "in the middle of a stream"],
    ["before its settlement", { at: settling, when: "before" }],
    ["after its settlement", { at: settling, when: "after" }],
  ];
  const work = { isCapped: false, branches: 1, maxTokens: 100 };
  const folder = await mkdtemp(join(tmpdir(), "reeve-gateway-"));
  try {
    return await Promise.all(
      points.map(async ([name, end]) => {
        const { ends, problems, ...money } = await liveOut(folder, name, [end, null], work);
        expect([ends.map(({ kind }) => kind), problems]).toEqual([["killed", "finished"], []]);
        return [name, money] as const;
      }),
    );
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** What `requestPoints` returns if nothing is lost and nothing is paid twice. */
export const exactMoney = [
  ["before its reservation", { billedUsd: 0.6, spentUsd: 0.6, answered: 6, lost: 0 }],
  // It did not leave, which no one knows.
  ["after its reservation", { billedUsd: 0.5, spentUsd: 0.6, answered: 5, lost: 1 }],
  ["in the middle of its stream", { billedUsd: 0.6, spentUsd: 0.6, answered: 5, lost: 1 }],
  ["before its settlement", { billedUsd: 0.6, spentUsd: 0.6, answered: 5, lost: 1 }],
  ["after its settlement", { billedUsd: 0.6, spentUsd: 0.6, answered: 6, lost: 0 }],
];
