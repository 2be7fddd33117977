import { openRuntime } from "../../assembly/open-runtime.ts";
import type { Agent } from "../../assembly/agent.ts";
import { memoryStore, sha256, sha256Hex } from "../../runtime/index.ts";
import {
  canonicalJson,
  Fault,
  formatRunId,
  is,
  nearestJson,
  optionTable,
  readProperty,
  type JsonValue,
  type Model,
  type ModelRequest,
  type ModelResponse,
  type OptionKinds,
  type Runtime,
  type Store,
} from "../../kernel/index.ts";
import { dyingStore, type Death } from "../../testing/dying-store.ts";
import type { ScorerFunction } from "../contract.ts";
import { namedKinds, namedScorer, type NamedOptions } from "./named-scorer.ts";

/** Options of `survivesKills`. */
export interface SurvivesKillsOptions extends NamedOptions {
  /**
   * The agent that answers the case again. Its tools are executed, and a call that is interrupted by a kill is
   * executed twice.
   */
  readonly agent: Agent;
  /**
   * The model that the agent uses for this: a scripted or a recorded model, such as `replayModel(file)`. In each
   * trial it receives each request once; if a request is repeated after a kill, it gets the same answer.
   */
  readonly model: Model;
  /**
   * Number of kills. Each kill happens in a separate run. The kills are distributed over the writes to the store in
   * a run. Default: 5.
   */
  readonly kills?: number;
}

const killTable = optionTable({
  ...namedKinds,
  agent: is.any,
  model: is.withMethods(["generate", "stream"], 'use model: replayModel("./recorded.json")'),
  kills: is.integer({ from: 1, to: 1_000, default: 5 }),
} satisfies OptionKinds<SurvivesKillsOptions>);

/**
 * Scores the fraction of kills after which another worker ends the case with the same status and output as without
 * a kill. The case is answered in separate runs in memory: a worker is killed by a store that stops answering.
 */
export function survivesKills(options: SurvivesKillsOptions): ScorerFunction {
  const { name = "survivesKills", agent, model, kills } = killTable.read("survivesKills()", options);
  if (typeof readProperty(agent, "with") !== "function" || model === undefined)
    throw new Fault(
      "invalid_argument",
      `survivesKills() needs an agent and a scripted or recorded model: use survivesKills({ agent: triage, model: replayModel("./recorded.json") })`,
    );
  return namedScorer(name, async ({ input }) => {
    const own = agent.with({ model: remembering(model) });
    const whole = await answer(own, input as JsonValue, { at: Number.POSITIVE_INFINITY, when: "before" });
    const failed: string[] = [];
    const count = Math.min(kills, whole.writes);
    for (let kill = 1; kill <= count; kill++) {
      const at = Math.ceil((whole.writes * kill) / count);
      const death: Death = { at, when: kill % 2 === 0 ? "before" : "after" };
      const { end } = await answer(own, input as JsonValue, death);
      if (end !== whole.end) failed.push(`a kill ${death.when} write ${at}: ${end} instead of ${whole.end}`);
    }
    const reason = failed.length === 0 ? `survived ${count} kills` : failed.join("; ");
    return { score: 1 - failed.length / count, reason, metadata: { kills: count, writes: whole.writes } };
  });
}

/** The end of one run, and the number of writes of its first worker. */
interface Ended {
  readonly end: string;
  readonly writes: number;
}

const runId = formatRunId("killed");

/** Lets a worker answer that is killed at a write. If it was killed, another worker ends the run. */
async function answer(agent: Agent, input: JsonValue, death: Death): Promise<Ended> {
  const real = memoryStore({ hash: sha256 });
  const dead = Promise.withResolvers<"dead">();
  const mortal = dyingStore(real, { ...death, die: () => dead.resolve("dead") });
  const one = live(mortal, "one", agent, input);
  const ended = await Promise.race([one.then(({ end }) => end), dead.promise]);
  if (ended !== "dead") {
    const { writes } = mortal;
    // The worker may die while it closes, when the run has ended.
    await Promise.race([one.then(({ runtime }) => runtime.close()), dead.promise]);
    return { end: ended, writes };
  }
  await real.leases.dismiss("one");
  const two = await live(real, "two", agent, input);
  await two.runtime.close();
  return { end: two.end, writes: mortal.writes };
}

/**
 * Ignores errors: a killed worker may notice that another worker has taken over its run, which is no problem of the
 * case.
 */
function onError(): void {}

/**
 * Opens a worker and submits the case, or finds it in the store. If the worker is killed, the promise never
 * settles.
 */
async function live(
  store: Store,
  workerId: string,
  agent: Agent,
  input: JsonValue,
): Promise<{ readonly end: string; readonly runtime: Runtime }> {
  const options = { store, workerId, keepAlive: false, unknownPrice: "ignore", pollMs: 5, onError } as const;
  const runtime = await openRuntime(options);
  const run = await runtime.submit(agent, input, { runId });
  const { status, output } = await run.result();
  return { end: `${status} with ${canonicalJson(output)}`, runtime };
}

/** Returns a model that gives the same answer to equal requests. */
function remembering(model: Model): Model {
  const replies = new Map<string, Promise<ModelResponse>>();
  const generate = (
    request: ModelRequest,
    options?: Parameters<Model["generate"]>[1],
  ): Promise<ModelResponse> => {
    const key = sha256Hex(canonicalJson(nearestJson(request)));
    const known = replies.get(key) ?? model.generate(request, options);
    replies.set(key, known);
    return known;
  };
  return {
    provider: model.provider,
    modelId: model.modelId,
    generate,
    async *stream(request, options) {
      yield { type: "finish", ...(await generate(request, options)) };
    },
  };
}
