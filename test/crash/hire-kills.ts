import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, inject } from "vitest";
import { absent } from "../../src/capabilities/files/error-code.ts";
import { formatRunId, toNanoUsd } from "../../src/kernel/index.ts";
import {
  traceRun,
  WorkerProcess,
  type Death,
  type WorkerEnd,
  type WorkerOrders,
} from "../../src/testing/index.ts";
import { doDuty } from "../../src/testing/worker-duty.ts";
import { answerJson, MockUpstream } from "../capabilities/gateway/mock-upstream.ts";
import { isFull } from "../effort.ts";
import { openCrashStore } from "./crash-store.ts";
import { everyWrite } from "./kill-points.ts";
import { doHireWork, hireCapUsd, hirePrompt, type HireWorkData } from "./hire-work.ts";

const script = new URL("hire-worker.mjs", inject("crashWorkers"));
const agent = fileURLToPath(new URL("demo-process.mjs", inject("crashWorkers")));
const capNanoUsd = toNanoUsd(hireCapUsd);
const boundMs = 120_000;

/** The command with the effect that must happen once, and the command that looks for it. */
const [write, look] = ["echo x >> effect.txt", "cat effect.txt 2>&1"];

interface Block {
  readonly type: string;
  readonly text?: string;
  readonly content?: string;
}
interface Said {
  readonly role: string;
  readonly content: readonly Block[];
}

/** A provider that bills each request at its output limit, as soon as the request has arrived. */
class HireProvider {
  billedNanoUsd = 0;
  requests = 0;
  readonly problems: string[] = [];
  readonly #isEndless: boolean;
  readonly #upstream: MockUpstream;

  private constructor(upstream: MockUpstream, isEndless: boolean) {
    this.#upstream = upstream;
    this.#isEndless = isEndless;
  }

  /** `isEndless`: the model asks for one command after the other. */
  static async open(isEndless: boolean): Promise<HireProvider> {
    const upstream = await MockUpstream.open(() => undefined);
    const provider = new HireProvider(upstream, isEndless);
    upstream.answer = ({ path, body }, response) =>
      path.endsWith("count_tokens")
        ? answerJson(response, { input_tokens: 3 })
        : provider.#answer(body.toString(), response);
    return provider;
  }

  get url(): string {
    return this.#upstream.url;
  }

  close(): Promise<void> {
    return this.#upstream.close();
  }

  #answer(body: string, response: Parameters<MockUpstream["answer"]>[1]): void {
    const { max_tokens: output_tokens, messages } = JSON.parse(body) as {
      readonly max_tokens: number;
      readonly messages: readonly Said[];
    };
    this.requests++;
    this.billedNanoUsd += output_tokens * 1_000_000;
    const prompts = body.split(hirePrompt).length - 1;
    if (prompts !== 1) this.problems.push(`the prompt is ${prompts} times in a request`);
    const call = (command: string): object => ({
      type: "tool_use",
      id: `call-${this.requests}`,
      name: "shell",
      input: { command },
    });
    const next = this.#isEndless ? write : nextCommand(messages);
    answerJson(response, {
      content: [next === undefined ? { type: "text", text: "Done." } : call(next)],
      usage: { input_tokens: 3, output_tokens },
    });
  }
}

/** The model writes the line, and after an interruption it looks before it does so again. */
function nextCommand(messages: readonly Said[]): string | undefined {
  const last = messages.at(-1)?.content ?? [];
  const result = last.findLast(({ type }) => type === "tool_result")?.content;
  if (result === undefined) return messages.length === 1 ? write : look;
  if (result === "[interrupted]") return look;
  return result.includes("No such file") ? write : undefined;
}

/** What became of a store. */
interface Lived {
  readonly end: WorkerEnd;
  readonly problems: readonly string[];
}

/** Runs whose processes live one after the other on one store. */
class Place {
  readonly #name: string;
  readonly #folder: string;
  readonly #provider: HireProvider;
  readonly #isEndless: boolean;

  private constructor(name: string, folder: string, provider: HireProvider, isEndless: boolean) {
    this.#name = name;
    this.#folder = folder;
    this.#provider = provider;
    this.#isEndless = isEndless;
  }

  /** `isEndless`: the agents work until the cap of all runs of the month stops them. */
  static async in<Value>(
    parent: string,
    { name, isEndless = false }: { readonly name: string; readonly isEndless?: boolean },
    work: (place: Place) => Promise<Value>,
  ): Promise<Value> {
    const folder = join(parent, name.replaceAll(" ", "-"));
    await mkdir(join(folder, "work"), { recursive: true });
    const provider = await HireProvider.open(isEndless);
    try {
      return await work(new Place(name, folder, provider, isEndless));
    } finally {
      await provider.close();
    }
  }

  /** Number of requests that the provider has received. */
  get requests(): number {
    return this.#provider.requests;
  }

  /** A life in a process of its own. */
  start(runs: readonly string[], death: Death | null): Promise<WorkerEnd> {
    const cache = process.env["NODE_COMPILE_CACHE"] ?? join(this.#folder, "compiled");
    return WorkerProcess.start(script, this.#orders(runs, death), cache).endWithin(boundMs);
  }

  /** A life in this process, which is not killed. */
  async live(runs: readonly string[]): Promise<WorkerEnd> {
    return { kind: "finished", ...(await doDuty(this.#orders(runs, null), doHireWork)) };
  }

  /** The names of the events of hired agents, and what is wrong with the runs after their last life. */
  async look(
    runs: readonly string[],
  ): Promise<{ readonly hired: readonly string[]; readonly problems: string[] }> {
    const store = await openCrashStore(this.#file);
    try {
      const traces = await Promise.all(runs.map((name) => traceRun(store, formatRunId(name))));
      const spent = traces.reduce((sum, trace) => sum + (trace?.money?.spent.nanoUsd ?? 0), 0);
      const { billedNanoUsd: billed } = this.#provider;
      const status = this.#isEndless ? "budget_exhausted" : "completed";
      const effects = await this.#effects();
      const problems = [
        ...this.#provider.problems,
        ...traces.flatMap((trace) => (trace?.status === status ? [] : [`a run is ${trace?.status}`])),
        ...(billed <= capNanoUsd ? [] : [`billed ${billed} of ${capNanoUsd}`]),
        ...(spent >= billed ? [] : [`spent ${spent}, billed ${billed}`]),
        ...(spent <= capNanoUsd ? [] : [`spent ${spent} of ${capNanoUsd}`]),
        ...(billed > 0 ? [] : ["nothing was billed"]),
        ...(this.#isEndless || effects === 1 ? [] : [`the effect happened ${effects} times`]),
      ];
      const events = traces.flatMap((trace) => trace?.events ?? []);
      return {
        hired: events.flatMap(({ type, data }) => (type === "architecture_event" ? [data.name] : [])),
        problems: problems.map((problem) => `${this.#name}: ${problem}`),
      };
    } finally {
      await store.close();
    }
  }

  get #file(): string {
    return join(this.#folder, "store.db");
  }

  /** Number of lines that the agent has written. */
  async #effects(): Promise<number> {
    const text = await readFile(join(this.#folder, "work", "effect.txt"), "utf8").catch(absent);
    return (text ?? "").split("x\n").length - 1;
  }

  #orders(runs: readonly string[], death: Death | null): WorkerOrders {
    const { url } = this.#provider;
    const folder = join(this.#folder, "work");
    const data = { url, agent, folder, runs, isCapped: this.#isEndless } satisfies HireWorkData;
    return { file: this.#file, workload: "hire", data, death, server: { url, caller: this.#name } };
  }
}

/** Calls a function with a folder for stores and for the homes of the hired agents. */
async function inFolder<Value>(work: (folder: string) => Promise<Value>): Promise<Value> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-hires-"));
  const home = process.env["REEVE_HOME"];
  process.env["REEVE_HOME"] = join(folder, "reeve");
  try {
    return await work(folder);
  } finally {
    process.env["REEVE_HOME"] = home;
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

const run = "hire";

/** One store: a process that is killed at a write, and one that ends the run. `null`: one process without a kill. */
function killedAt(parent: string, death: Death | null): Promise<Lived> {
  const name = nameOf(death);
  return Place.in(parent, { name }, async (place) => {
    const end = death === null ? await place.live([run]) : await place.start([run], death);
    const before = place.requests;
    if (death !== null) await place.live([run]);
    const { hired, problems } = await place.look([run]);
    const isResumed = before > 0 && place.requests > before;
    const isSaid = hired.includes("prompt_continued") || hired.includes("prompt_resent");
    if (isResumed && !isSaid) problems.push(`${name}: the log does not say that the prompt was resumed`);
    if (end.kind === "failed") problems.push(`${name}: ${end.reason}`);
    return { end, problems };
  });
}

/** One store: two processes with a run each under one cap, of which one is killed at a write, and one that ends both runs. */
function oneOfTwoKilledAt(parent: string, death: Death | null): Promise<Lived> {
  const name = nameOf(death);
  const runs = ["first", "second"];
  return Place.in(parent, { name, isEndless: true }, async (place) => {
    const [end, other] = await Promise.all([place.start(["first"], death), place.start(["second"], null)]);
    await place.live(runs);
    const { problems } = await place.look(runs);
    for (const each of [end, other]) if (each.kind === "failed") problems.push(`${name}: ${each.reason}`);
    return { end, problems };
  });
}

function nameOf(death: Death | null): string {
  return death === null ? "whole" : `${death.when} ${death.at}`;
}

type KilledAt = (parent: string, death: Death | null) => Promise<Lived>;

async function sweep(killed: KilledAt, few: readonly Death[]): Promise<readonly string[]> {
  return inFolder(async (folder) => {
    const points = isFull ? everyWrite(await writesOf(killed, folder)) : few;
    const lives: Lived[] = [];
    for (const death of points) lives.push(await killed(folder, death));
    // Timing decides whether a process reaches its last writes.
    expect(lives.filter(({ end }) => end.kind === "killed").length).toBeGreaterThanOrEqual(few.length);
    return lives.flatMap(({ problems }) => problems);
  });
}

/** Number of writes of a process that is not killed. */
async function writesOf(killed: KilledAt, folder: string): Promise<number> {
  const { end, problems } = await killed(folder, null);
  expect(problems).toEqual([]);
  return end.kind === "finished" ? end.kinds.length : 0;
}

/**
 * Kills a process with a hired agent, whose prompt needs one command, at a few of its writes, in `npm run test:full` at every
 * write. Returns what is wrong: a command that was executed twice or never, a prompt that was sent twice or without an event,
 * and money.
 */
export function promptProblems(few: readonly Death[]): Promise<readonly string[]> {
  return sweep(killedAt, few);
}

/**
 * Kills one of two processes, each with a hired agent, under one cap at a few of its writes, in `npm run test:full` at every
 * write. Returns what is wrong with what the provider billed and the runs spent.
 */
export function sharedCapProblems(few: readonly Death[]): Promise<readonly string[]> {
  return sweep(oneOfTwoKilledAt, few);
}
