import { setTimeout } from "node:timers/promises";
import { Fault, formatRunId, type Event, type RunHandle } from "../../../kernel/index.ts";
import { companyTask } from "./demo-company.ts";
import type { WorkerProcess } from "./demo-processes.ts";
import type { Stage } from "./demo-stage.ts";
import { DemoStory, type StoryLine } from "./demo-story.ts";

const demoRun = formatRunId("release-0-9");

/** Returns the address at which the page shows the company's run. */
export function runAddress({ url }: Pick<Stage, "url">): string {
  return `${url}runs/${demoRun}`;
}

/** Amount that the person adds when the run has used up its budget. */
const topUpUsd = 0.3;

export interface TellingOptions {
  readonly stage: Stage;
  readonly workers: readonly WorkerProcess[];
  /** Time that the person of the story takes to decide, in milliseconds. */
  readonly decisionMs: number;
  readonly print: (line: StoryLine) => Promise<void>;
}

/**
 * Starts the company's run and follows it to its end. Acts as the person, who approves actions and adds money, and
 * kills the worker that executes the run while `changelog` waits for an answer. Returns the handle of the run.
 */
export async function tell(options: TellingOptions): Promise<RunHandle> {
  const { runtime, agents } = options.stage;
  const person = { userId: "ada", streaming: true };
  const run = await runtime.submit(agents.lead, companyTask, { ...person, runId: demoRun });
  const telling = new Telling(options, run);
  await telling.follow();
  return run;
}

class Telling {
  readonly #options: TellingOptions;
  readonly #run: RunHandle;
  readonly #story = new DemoStory();
  readonly #decisions: Promise<void>[] = [];
  #hasWritten = false;
  #isKilled = false;

  constructor(options: TellingOptions, run: RunHandle) {
    this.#options = options;
    this.#run = run;
  }

  async follow(): Promise<void> {
    for await (const event of this.#run.events({ fromSeq: this.#story.seq + 1 }))
      if ("seq" in event) {
        for (const line of this.#story.add(event)) await this.#options.print(line);
        await this.#act(event);
      }
    await Promise.all(this.#decisions);
    if (!(await this.#isOutOfMoney())) return;
    await setTimeout(this.#options.decisionMs);
    if (await this.#isOutOfMoney()) await this.#run.topUp({ maxCostUsd: topUpUsd });
    await this.#grown();
    await this.follow();
  }

  async #isOutOfMoney(): Promise<boolean> {
    return (await this.#run.summary()).status === "budget_exhausted";
  }

  /** Resolves when the log has events that the story does not contain yet. */
  async #grown(): Promise<void> {
    const { records } = this.#options.stage;
    for (;;) {
      const changed = Promise.withResolvers<void>();
      const unsubscribe = records.onChange(() => changed.resolve());
      try {
        if ((await records.events.lastSeq(this.#run.runId)) > this.#story.seq) return;
        await changed.promise;
      } finally {
        unsubscribe();
      }
    }
  }

  async #act(event: Event): Promise<void> {
    if (event.type === "approval_request") this.#decisions.push(this.#approve(event.data.approvalId));
    this.#hasWritten ||=
      event.type === "tool_execution_end" && event.agentId === "changelog" && event.data.toolName === "write";
    if (
      !this.#isKilled &&
      this.#hasWritten &&
      event.type === "message_start" &&
      event.agentId === "changelog"
    )
      await this.#kill();
  }

  async #approve(approvalId: string): Promise<void> {
    await setTimeout(this.#options.decisionMs);
    try {
      await this.#run.approve(approvalId, { decision: "approved", by: "ada" });
    } catch (error) {
      // another person was faster on the page.
      if (!(error instanceof Fault) || (error.code !== "already_exists" && error.code !== "not_found"))
        throw error;
    }
  }

  /** Kills the worker that executes the run: the worker that sent the run's last request to the provider. */
  async #kill(): Promise<void> {
    const { stage, workers, print } = this.#options;
    const owner = stage.book.read(this.#run.runId).at(-1)?.worker;
    const victim = workers.find(({ name }) => name === owner);
    const survivor = workers.find(({ name }) => name !== owner);
    if (victim === undefined || survivor === undefined)
      throw new Fault("internal", `no worker of the demo has the name ${owner}`);
    this.#isKilled = true;
    const { pid, name: worker } = victim;
    await victim.kill();
    for (const line of this.#story.kill({ worker, pid, survivor: survivor.name }, Date.now()))
      await print(line);
  }
}
