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
import { doGatewayWork, gatewayCapUsd, gatewayRun, type GatewayWorkData } from "./gateway-work.ts";
import { isFull } from "../effort.ts";

const script = new URL("gateway-worker.mjs", inject("crashWorkers"));
const capNanoUsd = toNanoUsd(gatewayCapUsd);

/** A provider of both wires that bills each request at its output limit, as soon as the request has arrived. */
class BillingProvider {
  billedNanoUsd = 0;
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
      return answerEvents(response, named.join(""));
    }
    const usage = { prompt_tokens: 3, completion_tokens: output_tokens };
    if (stream !== true) return answerJson(response, { choices: [{ message: { content: "hello" } }], usage });
    answerEvents(
      response,
      eventsOf({ choices: [{ delta: { content: "hello" } }] }, { choices: [], usage }, "[DONE]"),
    );
  }
}

/** One store: workers of one life each, and what they were billed. */
async function liveOut(
  folder: string,
  name: string,
  deaths: readonly (Death | null)[],
  isCapped: boolean,
): Promise<{ readonly ends: readonly WorkerEnd[]; readonly problems: readonly string[] }> {
  const provider = await BillingProvider.open();
  const file = join(folder, `${name}.db`);
  const ends: WorkerEnd[] = [];
  try {
    for (const [life, death] of deaths.entries()) {
      const server = { url: provider.url, caller: `${name} ${life}` };
      const data = { url: provider.url, isCapped } satisfies GatewayWorkData;
      const orders = { file, workload: "gateway", data, death, server };
      // A life that is not killed needs no process of its own.
      if (death === null) ends.push({ kind: "finished", ...(await doDuty(orders, doGatewayWork)) });
      else ends.push(await WorkerProcess.start(script, orders, join(folder, "compiled")).endWithin(120_000));
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
      return { ends, problems: problems.map((problem) => `${name}: ${problem}`) };
    } finally {
      await store.close();
    }
  } finally {
    await provider.close();
  }
}

function everyWrite(count: number): readonly Death[] {
  return Array.from({ length: count }, (_, index) => index + 1).flatMap((at) => [
    { at, when: "before" as const },
    { at, when: "after" as const },
  ]);
}

/** Writes of the first half, alternately before and after them. Timing decides how many a process makes. */
function someWrites(count: number, few: number): readonly Death[] {
  return Array.from({ length: few }, (_, index) => ({
    at: Math.ceil((count * (index + 1)) / (2 * few)),
    when: index % 2 === 0 ? ("after" as const) : ("before" as const),
  }));
}

/**
 * Kills a process with a gateway at `few` of its writes, in `npm run test:full` at every write, and
 * returns what is wrong with what the provider billed and the run spent. `isCapped`: caps per agent and per month stop the
 * program in place of the budget of its run.
 */
export async function budgetProblems(
  few: number,
  { isCapped = false }: { readonly isCapped?: boolean } = {},
): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-gateway-"));
  try {
    const whole = await liveOut(folder, "whole", [null], isCapped);
    expect(whole.problems).toEqual([]);
    const kinds = whole.ends.flatMap((end) => (end.kind === "finished" ? end.kinds : []));
    const points = isFull ? everyWrite(kinds.length) : someWrites(kinds.length, few);
    const problems: string[] = [];
    let killed = 0;
    for (const death of points) {
      const name = `${death.when} ${death.at}`;
      const { ends, problems: found } = await liveOut(folder, name, [death, null], isCapped);
      problems.push(...found, ...ends.flatMap((end) => (end.kind === "failed" ? [end.reason] : [])));
      if (ends[0]?.kind === "killed") killed++;
    }
    expect(killed).toBeGreaterThanOrEqual(few - 1);
    return problems;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
