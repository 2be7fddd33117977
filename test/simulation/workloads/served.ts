import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { SimulationClient, SimulationSite } from "../../../src/entries/testing.ts";
import { canonicalJson, type JsonValue, type RunId } from "../../../src/kernel/index.ts";
import { CallBook } from "../../../src/testing/counting-server.ts";
import { traceRun } from "../../../src/testing/run-trace.ts";
import type { CallOptions, ServerAddress } from "../../../src/testing/index.ts";
import { composedWorkloads } from "../../crash/composed-workloads.ts";
import { lifeWorkloads } from "../../crash/life-workloads.ts";
import { objectWorkloads } from "../../crash/object-workloads.ts";
import { sagaWorkloads } from "../../crash/saga-workloads.ts";
import { thinkerWorkloads } from "../../crash/thinker-workloads.ts";
import { workflowWorkloads } from "../../crash/workflow-workloads.ts";
import { price, type Workload as CrashWorkload } from "../../crash/workload.ts";
import { workloads as basicWorkloads } from "../../crash/workloads/index.ts";
import { workload, type Workload } from "../workload.ts";

interface World {
  readonly book: CallBook;
  /** The outputs of the runs that the work returns, with their status. */
  readonly ends: { readonly status: string; readonly output: JsonValue }[];
}

/** Time after which a call without an answer is made again. */
const againAfterMs = 200;

/** A work that creates a client of its own, which prints, and one that counts signals in two reads, so that a signal counts twice that is taken between them. */
const left: ReadonlySet<string> = new Set(["adoption", "failedBranches"]);

/**
 * The works of the crash tests, one for each seed in turn: `basics` of the runtime, `composed` of agents with extensions, compaction,
 * teams and channels, `thinkers` with each architecture, and `flows` of durable functions, objects and compensations. They say in
 * advance what the runs must return.
 */
export const servedWorkloads: readonly Workload[] = [
  served("basics", basicWorkloads),
  served("composed", { ...composedWorkloads, ...lifeWorkloads }),
  served("thinkers", thinkerWorkloads),
  served("flows", { ...workflowWorkloads, ...sagaWorkloads, ...objectWorkloads }),
];

function served(group: string, all: Readonly<Record<string, CrashWorkload>>): Workload {
  const names = Object.keys(all).filter((name) => all[name]?.context === undefined && !left.has(name));
  return workload<World>(group, (seed) => {
    const name = names[seed % names.length] as string;
    const { agents, drive, outputs, runtime, world } = all[name] as CrashWorkload;
    const stop = new AbortController();
    return {
      world: () => ({ book: new CallBook("", world.answering), ends: [] }),
      runtime: { ...runtime, prices: { find: () => price } },
      agents: (site) => agents(addressOf(site)),
      load: async (client) => {
        const { store, runtime: fleet, world: seen } = client;
        const [agent, ...others] = agents(addressOf(client));
        if (agent === undefined) throw new Error(`${name} has no agent`);
        const visit = world.visitor?.({ store, signal: stop.signal }).catch((error: unknown) => {
          if (!stop.signal.aborted) throw error;
        });
        const runIds = await drive({ runtime: fleet, store, agent, others, pinned: (_, mint) => mint() });
        for (const runId of runIds) seen.ends.push(await endOf(client, runId));
        stop.abort();
        await visit;
      },
      check: ({ runs, world: { book, ends } }) => {
        const wrong: string[] = [];
        let recorded = 0;
        for (const { run } of runs) {
          const { usage, unreported } = run;
          recorded += usage.inputTokens + usage.outputTokens + unreported.tokens;
        }
        if (book.billed.tokens > recorded)
          wrong.push(`${name}: ${book.billed.tokens} tokens are billed, and ${recorded} recorded`);
        const found = ends.map(({ output }) => output);
        if (world.mayExhaust !== true && !isWithin(outputs, found))
          wrong.push(`${name}: the outputs are ${JSON.stringify(ends)}, and not ${JSON.stringify(outputs)}`);
        return wrong;
      },
    };
  });
}

/** The counting server, as the code of a simulated process reaches it. A call without an answer is made again. */
function addressOf({ name, call, sleep, world }: SimulationSite<World>): ServerAddress {
  const { book } = world;
  const send = async (
    options: CallOptions,
  ): Promise<{ readonly receipt: string; readonly answer: JsonValue }> => {
    const key = options.key ?? `${options.scope ?? ""} ${digest(options.body)}`;
    const made = { name: options.name, key, body: options.body, caller: name };
    const receipt = digest({ name: made.name, key, body: made.body });
    let isBilled = false;
    for (;;) {
      const answer = await call(
        options.name,
        () => {
          const said = book.answering({ ...made, receipt });
          // The runtime does not see that a call is made again here.
          const bill = isBilled ? undefined : said.bill;
          isBilled = true;
          book.note({ ...made, receipt, billed: bill ?? { tokens: 0, usd: 0 } });
          return said;
        },
        { ...(options.key !== undefined && { key: options.key }), body: options.body },
      ).catch(() => undefined);
      if (answer === undefined) {
        await sleep(againAfterMs);
        continue;
      }
      await answer.hold?.(book);
      const { fail } = answer;
      if (fail === undefined) return { receipt, answer: answer.body };
      throw Object.assign(new Error(`${options.name}: the counting server answered ${fail}`), {
        ...(fail !== "cut" && { status: fail }),
      });
    }
  };
  return { url: "", caller: name, send };
}

async function endOf({ store }: SimulationClient<World>, runId: RunId): Promise<World["ends"][number]> {
  const trace = await traceRun(store, runId);
  return { status: trace?.status ?? "missing", output: trace?.output ?? null };
}

/** Whether a value has everything that is expected, and possibly more members of objects. */
function isWithin(expected: unknown, found: unknown): boolean {
  if (typeof expected !== "object" || expected === null) return isDeepStrictEqual(expected, found);
  if (typeof found !== "object" || found === null) return false;
  if (Array.isArray(expected) && (!Array.isArray(found) || found.length !== expected.length)) return false;
  return Object.entries(expected).every(([key, value]) =>
    isWithin(value, (found as Readonly<Record<string, unknown>>)[key]),
  );
}

function digest(value: JsonValue): string {
  return createHash("sha256").update(canonicalJson(value)).digest("hex").slice(0, 20);
}
