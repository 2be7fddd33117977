import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
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
import { doHireWork, hireCapUsd, hirePrompt, preemptionFolders, type HireWorkData } from "./hire-work.ts";

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

/** The next command of the model: it writes a line. After an interruption it first looks whether the line exists. */
function nextCommand(messages: readonly Said[]): string | undefined {
  const last = messages.at(-1)?.content ?? [];
  const result = last.findLast(({ type }) => type === "tool_result")?.content;
  if (result === undefined) return messages.length === 1 ? write : look;
  if (result === "[interrupted]") return look;
  return result.includes("No such file") ? write : undefined;
}

/** The result of one store after all its processes have ended. */
interface Lived {
  readonly end: WorkerEnd;
  readonly problems: readonly string[];
}

/** The options of a place. */
interface PlaceOptions {
  readonly name: string;
  /** The agents work until the cap of all runs of the month stops them. */
  readonly isEndless?: boolean;
  /** Each run has a second hired agent, which takes the seat of the first one. */
  readonly isPreempted?: boolean;
}

/** Runs on one store whose processes are executed one after the other. */
class Place {
  readonly #name: string;
  readonly #folder: string;
  readonly #provider: HireProvider;
  readonly #isEndless: boolean;
  readonly #isPreempted: boolean;

  private constructor(options: PlaceOptions, folder: string, provider: HireProvider) {
    this.#name = options.name;
    this.#folder = folder;
    this.#provider = provider;
    this.#isEndless = options.isEndless === true;
    this.#isPreempted = options.isPreempted === true;
  }

  static async in<Value>(
    parent: string,
    options: PlaceOptions,
    work: (place: Place) => Promise<Value>,
  ): Promise<Value> {
    const folder = join(parent, options.name.replaceAll(" ", "-"));
    const provider = await HireProvider.open(options.isEndless === true);
    try {
      return await work(new Place(options, folder, provider));
    } finally {
      await provider.close();
    }
  }

  /** Number of requests that the provider has received. */
  get requests(): number {
    return this.#provider.requests;
  }

  /** Starts a separate process that executes the runs. */
  async start(runs: readonly string[], death: Death | null): Promise<WorkerEnd> {
    await this.#makeFolders(runs);
    const cache = process.env["NODE_COMPILE_CACHE"] ?? join(this.#folder, "compiled");
    return WorkerProcess.start(script, this.#orders(runs, death), cache).endWithin(boundMs);
  }

  /** Executes the runs in this process, which is not killed. */
  async live(runs: readonly string[]): Promise<WorkerEnd> {
    await this.#makeFolders(runs);
    return { kind: "finished", ...(await doDuty(this.#orders(runs, null), doHireWork)) };
  }

  /**
   * Returns the names of the events of hired agents and of seats, and what is wrong with the runs after their last
   * process has ended.
   */
  async look(runs: readonly string[]): Promise<{
    readonly hired: readonly string[];
    readonly seats: readonly string[];
    readonly problems: string[];
  }> {
    const store = await openCrashStore(this.#file);
    try {
      const traces = await Promise.all(runs.map((name) => traceRun(store, formatRunId(name))));
      const spent = traces.reduce((sum, trace) => sum + (trace?.money?.spent.nanoUsd ?? 0), 0);
      const { billedNanoUsd: billed } = this.#provider;
      const status = this.#isEndless ? "budget_exhausted" : "completed";
      const most = this.#isPreempted ? runs.length * capNanoUsd : capNanoUsd;
      const folders = this.#folders(runs);
      const effects = await Promise.all(folders.map(effectsIn));
      const problems = [
        ...this.#provider.problems,
        ...traces.flatMap((trace) => (trace?.status === status ? [] : [`a run is ${trace?.status}`])),
        ...(billed <= most ? [] : [`billed ${billed} of ${most}`]),
        ...(spent >= billed ? [] : [`spent ${spent}, billed ${billed}`]),
        ...(spent <= most ? [] : [`spent ${spent} of ${most}`]),
        ...(billed > 0 ? [] : ["nothing was billed"]),
        ...effects.flatMap((count, index) =>
          this.#isEndless || count === 1
            ? []
            : [`the effect happened ${count} times in ${basename(folders[index] ?? "")}`],
        ),
      ];
      const events = traces.flatMap((trace) => trace?.events ?? []);
      return {
        seats: events.map(({ type }) => type).filter((type) => type.startsWith("seat_")),
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

  /** The folders in which the agents of the runs work. */
  #folders(runs: readonly string[]): readonly string[] {
    if (!this.#isPreempted) return [this.#work];
    return runs.flatMap((name) => preemptionFolders.map((folder) => join(this.#work, name, folder)));
  }

  get #work(): string {
    return join(this.#folder, "work");
  }

  async #makeFolders(runs: readonly string[]): Promise<void> {
    for (const folder of this.#folders(runs)) await mkdir(folder, { recursive: true });
  }

  #orders(runs: readonly string[], death: Death | null): WorkerOrders {
    const { url } = this.#provider;
    const data = {
      url,
      agent,
      folder: this.#work,
      runs,
      isCapped: this.#isEndless,
      isPreempted: this.#isPreempted,
    } satisfies HireWorkData;
    return { file: this.#file, workload: "hire", data, death, server: { url, caller: this.#name } };
  }
}

/** Number of lines that an agent has written. */
async function effectsIn(folder: string): Promise<number> {
  const text = await readFile(join(folder, "effect.txt"), "utf8").catch(absent);
  return (text ?? "").split("x\n").length - 1;
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

/**
 * Uses one store: a process that is killed at a write, and then a process that ends the run. `null` means one process
 * without a kill.
 */
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

/**
 * Uses one store: two processes with one run each under a common cap. One process is killed at a write, and then a third
 * process ends both runs.
 */
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

/**
 * Uses one store: two processes with one run each. In each, a hired agent loses its seat to another agent after its
 * command. One process is killed at a write, and then a third process ends both runs.
 */
function onePreemptedKilledAt(parent: string, death: Death | null): Promise<Lived> {
  const name = nameOf(death);
  const runs = ["first", "second"];
  return Place.in(parent, { name, isPreempted: true }, async (place) => {
    const [end, other] = await Promise.all([place.start(["first"], death), place.start(["second"], null)]);
    await place.live(runs);
    const { problems, seats } = await place.look(runs);
    for (const each of [end, other]) if (each.kind === "failed") problems.push(`${name}: ${each.reason}`);
    if (death === null && !seats.includes("seat_recall")) problems.push(`${name}: no agent lost its seat`);
    return { end, problems };
  });
}

function nameOf(death: Death | null): string {
  return death === null ? "whole" : `${death.when} ${death.at}`;
}

type KilledAt = (parent: string, death: Death | null) => Promise<Lived>;

async function sweep(killed: KilledAt, few: readonly Death[]): Promise<readonly string[]> {
  return inFolder(async (folder) => {
    const points: Death[] = isFull ? [...everyWrite(await writesOf(killed, folder))] : [...few];
    const lives: Lived[] = [];
    for (const [index, death] of points.entries()) {
      const life = await killed(join(folder, String(index)), death);
      lives.push(life);
      // Timing decides how many writes one of two processes has before the money is spent.
      if (!isFull && life.end.kind === "finished" && death.at > 2)
        points.push({ ...death, at: death.at - 2 });
    }
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
 * Kills a process with a hired agent at a few of its writes, or with `npm run test:full` at every write. The agent's
 * prompt needs one command. Returns what is wrong: a command that was executed twice or never, a prompt that was sent
 * twice or without an event, or wrong amounts of money.
 */
export function promptProblems(few: readonly Death[]): Promise<readonly string[]> {
  return sweep(killedAt, few);
}

/**
 * Kills one of two processes that each have a hired agent under a common cap, at a few of its writes, or with `npm run
 * test:full` at every write. Returns the contradictions between what the provider billed and what the runs spent.
 */
export function sharedCapProblems(few: readonly Death[]): Promise<readonly string[]> {
  return sweep(oneOfTwoKilledAt, few);
}

/**
 * Kills one of two processes, at a few of its writes, or with `npm run test:full` at every write. In each process a
 * hired agent loses its seat to another agent. Returns what is wrong: a command that was executed twice or never, a run
 * that does not end, or wrong amounts of money.
 */
export function preemptionProblems(few: readonly Death[]): Promise<readonly string[]> {
  return sweep(onePreemptedKilledAt, few);
}
