import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { setTimeout } from "node:timers/promises";
import { packageRoot } from "../../../assembly/package-root.ts";
import { openRuntime } from "../../../assembly/open-runtime.ts";
import type { OrchestratorAgent } from "../../../assembly/agent-kinds.ts";
import { Gateway } from "../../../capabilities/gateway/gateway.ts";
import { loadAcpSdk } from "../../../capabilities/hire/hired-architecture.ts";
import { Sandbox } from "../../../capabilities/sandbox/sandbox.ts";
import { git, type GitPlace } from "../../../capabilities/worktrees/git.ts";
import { Fault, formatRunId, type Event, type RunHandle, type Runtime } from "../../../kernel/index.ts";
import { createServer, listen } from "../../server/index.ts";
import { mergeLines, mergeOf } from "../../view/merge-words.ts";
import type { OpenParts } from "../setup/open-parts.ts";
import { builtPage } from "../setup/page-folder.ts";
import type { ExitKind } from "../terminal/exit-code.ts";
import { paintFor, type Paint } from "../terminal/paint.ts";
import { printable, type Terminal } from "../terminal/terminal.ts";
import { hireCapUsd, hireCompany, hireTask, testCommand } from "./hire-company.ts";
import { HireProvider } from "./hire-provider.ts";
import { ledgerLines, ledgerOf, type DemoLedger } from "./demo-ledger.ts";
import { demoPrices } from "./demo-model.ts";
import { eventsOf, storyLine, wrapped } from "./demo-performance.ts";
import { writeProject } from "./demo-project.ts";
import { openFolder } from "./demo-stage.ts";
import { DemoStory } from "./demo-story.ts";
import { demoFiles } from "./demo-worker.ts";

export interface HireDemoOptions {
  readonly port: number;
  readonly paceMs: number;
  /** Whether the page is served after the story. */
  readonly stays: boolean;
  readonly keeps: boolean;
  readonly onError: (error: Fault) => void;
}

const hireRun = formatRunId("hire");

/** What the demo has opened. */
interface HireStage {
  readonly url: string;
  readonly store: string;
  readonly runtime: Runtime;
  readonly lead: OrchestratorAgent;
  readonly provider: HireProvider;
  /** The repository into which the work is merged. */
  readonly checkout: GitPlace;
  /** The reason why the agents run without a sandbox. `undefined` if they run in one. */
  readonly noSandbox: string | undefined;
}

/**
 * Runs the demo of hired agents: a lead hires two programs that do not belong to Reeve. Each program works in a
 * worktree, all three agents share one budget, and a person approves a command and the merge.
 */
export async function hireDemo(
  options: HireDemoOptions,
  terminal: Terminal,
  open: OpenParts,
): Promise<ExitKind> {
  const stage = await openHireStage(options, open);
  return new HirePerformance(stage, options, terminal).play();
}

async function openHireStage(
  { port, paceMs, keeps, onError }: HireDemoOptions,
  open: OpenParts,
): Promise<HireStage> {
  await loadAcpSdk("reeve demo --hire");
  const folder = await openFolder(keeps, open);
  // Homes of the agents and records of the worktrees belong to the demo, not to the person.
  process.env["REEVE_HOME"] = join(folder, "reeve-home");
  const { store, book, root } = demoFiles(folder);
  const checkout = { path: root };
  await mkdir(root);
  await writeProject(root);
  await commitAll(checkout);
  const noSandbox = await new Sandbox({ mode: "warn" }).problem(root);
  const provider = open.add(await HireProvider.open(paceMs));
  const upstream = { baseUrl: provider.url, apiKey: "the key that no agent sees", provider: "demo" };
  const gateway = open.add(await Gateway.open({ upstreams: { anthropic: upstream } }));
  const runtime = open.add(await openRuntime({ store, prices: demoPrices, closeGraceMs: 1_000 }));
  const sandbox = noSandbox === undefined ? "enforce" : "off";
  const trees = join(folder, "worktrees");
  const lead = hireCompany({ gateway, book, root, trees, paceMs, sandbox });
  const page = builtPage();
  // Only programs of this machine reach the server, and its agents reach only the folder of the demo.
  const server = createServer(runtime, {
    agents: [lead],
    tokens: null,
    ...(page !== undefined && { page }),
    onError,
  });
  const { url } = open.add(await listen(server, { port, closeGraceMs: 500 }));
  return { url: `${url}/`, store, runtime, lead, provider, checkout, noSandbox };
}

async function commitAll(checkout: GitPlace): Promise<void> {
  await git(checkout, ["init", "--quiet", "--initial-branch=main"]);
  await git(checkout, ["config", "user.name", "Ada"]);
  await git(checkout, ["config", "user.email", "ada@example.com"]);
  await git(checkout, ["add", "."]);
  await git(checkout, ["commit", "--quiet", "--message=tally 0.8.2"]);
}

/** Shows the demo in the terminal: an introduction, the story, the ledger, the checkout, and commands to try next. */
class HirePerformance {
  readonly #stage: HireStage;
  readonly #options: HireDemoOptions;
  readonly #terminal: Terminal;
  readonly #paint: Paint;
  readonly #width: number;
  readonly #decisions: Promise<void>[] = [];

  constructor(stage: HireStage, options: HireDemoOptions, terminal: Terminal) {
    this.#stage = stage;
    this.#options = options;
    this.#terminal = terminal;
    this.#paint = paintFor(terminal.isWatched, terminal.env);
    this.#width = terminal.columns ?? Number.POSITIVE_INFINITY;
  }

  /** Plays the demo. If the server continues to run afterwards, the promise never resolves. */
  async play(): Promise<ExitKind> {
    const { runtime, lead } = this.#stage;
    await this.#introduce();
    const run = await runtime.submit(lead, hireTask, { runId: hireRun, userId: "ada", streaming: true });
    await this.#tell(run);
    const isRight = [await this.#settle(run), await this.#inspect(run)].every(Boolean);
    await this.#next();
    return this.#options.stays ? new Promise<never>(() => undefined) : isRight ? "ok" : "internal";
  }

  async #introduce(): Promise<void> {
    const { url, checkout, noSandbox } = this.#stage;
    await this.#out(`${url}runs/${hireRun}`);
    if (builtPage() === undefined)
      this.#terminal.say("The page is not built; run npm run build:page in the checkout.");
    await this.#out("");
    await this.#out(this.#paint.bold(hireTask));
    await this.#text(
      `The employees are programs that Reeve does not run itself: the demo agent, which speaks the Agent Client Protocol as Claude Code, Codex and others do. Each works in a worktree of ${checkout.path}, and calls its model through a gateway of Reeve. All may spend $${hireCapUsd.toFixed(2)} together. The models are scripted, and nothing leaves this machine.`,
    );
    if (noSandbox === undefined)
      await this.#text(
        "Sandbox: each employee writes only its worktree and its home, and reaches only the gateway.",
      );
    else {
      await this.#text(`NO SANDBOX: ${printable(noSandbox)}`, this.#paint.yellow);
      await this.#text(
        'The employees of this demo run with your permissions, because their commands are scripted. Agents that you hire are refused here unless you set sandbox: "off".',
        this.#paint.yellow,
      );
    }
    await this.#out("");
  }

  /** Prints the story, and gives the approvals of the person. */
  async #tell(run: RunHandle): Promise<void> {
    const story = new DemoStory();
    const style = { paint: this.#paint, width: this.#width };
    for await (const event of run.events()) {
      if (!("seq" in event)) continue;
      for (const line of story.add(event)) await this.#out(storyLine(line, style));
      if (event.type === "approval_request") await this.#ask(run, event);
    }
    await Promise.all(this.#decisions);
  }

  async #ask(
    run: RunHandle,
    { data: { approvalId, kind, input } }: Event<"approval_request">,
  ): Promise<void> {
    const merge = kind === "merge" ? mergeOf(input) : null;
    for (const line of merge === null ? [] : mergeLines(merge))
      await this.#out(`${" ".repeat(23)}${this.#diffed(printable(line))}`);
    this.#decisions.push(this.#approve(run, approvalId));
  }

  #diffed(line: string): string {
    const style = line.startsWith("+")
      ? this.#paint.green
      : line.startsWith("-")
        ? this.#paint.red
        : this.#paint.dim;
    return style(line);
  }

  async #approve(run: RunHandle, approvalId: string): Promise<void> {
    await setTimeout(2 * this.#options.paceMs);
    try {
      await run.approve(approvalId, { decision: "approved", by: "ada" });
    } catch (error) {
      // Another person was faster on the page.
      if (!(error instanceof Fault) || (error.code !== "already_exists" && error.code !== "not_found"))
        throw error;
    }
  }

  /** Prints the cost of each employee, and compares it with the provider's book. Returns whether both agree. */
  async #settle(run: RunHandle): Promise<boolean> {
    const { requests, billedUsd } = this.#stage.provider;
    const ledger = await ledgerOf(eventsOf(run));
    const { status } = await run.summary();
    await this.#out("");
    await this.#out(this.#paint.bold("The ledger, from the event log"));
    for (const line of ledgerLines(ledger)) await this.#out(line);
    await this.#out("");
    const hiredUsd = spentByEmployees(ledger);
    const isSame = Math.abs(hiredUsd - billedUsd) < 1e-9;
    const isBelow = ledger.total.usd <= hireCapUsd;
    const words = isSame
      ? `The provider of the employees received ${requests} requests and billed $${billedUsd.toFixed(6)}, as the ledger says.`
      : `The books differ: the provider of the employees billed $${billedUsd.toFixed(6)}, and the ledger says $${hiredUsd.toFixed(6)}.`;
    await this.#text(words, isSame ? this.#paint.green : this.#paint.red);
    return isSame && isBelow && status === "completed";
  }

  /** Runs the tests in the checkout. Returns whether they pass and the checkout is clean. */
  async #inspect(run: RunHandle): Promise<boolean> {
    const { checkout } = this.#stage;
    const [, ...args] = testCommand.split(" ");
    const options = { cwd: checkout.path, env: { ...process.env, NODE_TEST_CONTEXT: "" } };
    const tests = await promisify(execFile)(process.execPath, args, options).then(
      () => true,
      (error: { readonly code?: unknown }) => {
        if (error.code !== 1) throw error;
        return false;
      },
    );
    const changes = await git(checkout, ["status", "--porcelain"]);
    const isClean = changes.text === "";
    const isMerged = (await run.summary()).status === "completed";
    const isRight = tests && isClean && isMerged;
    await this.#text(
      isRight
        ? "The checkout has the work of both, its tests pass, and nothing else in it has changed."
        : `The checkout: tests ${tests ? "pass" : "fail"}; ${isClean ? "no" : "some"} other changes.`,
      isRight ? this.#paint.green : this.#paint.red,
    );
    return isRight;
  }

  async #next(): Promise<void> {
    const { stays, keeps } = this.#options;
    const { url, store, checkout } = this.#stage;
    const commands: readonly (readonly [string, string])[] = [
      ...(stays
        ? ([
            [`${url}runs/${hireRun}`, "the run on the page"],
            ["Ctrl+C", "stops the server"],
          ] as const)
        : ([["npx reeve demo --hire --stay", "the same, with the page until Ctrl+C"]] as const)),
      ...(stays || keeps
        ? ([
            [`npx reeve show ${hireRun} --store ${store}`, "the run"],
            [`git -C ${checkout.path} log --graph`, "the work of both, merged"],
          ] as const)
        : []),
      ["npx reeve init --company", "a lead and the agents that are installed here, with a budget"],
      [relative(process.cwd(), join(packageRoot, "docs/guides/hire.md")), "Claude Code, Codex and others"],
    ];
    await this.#out("");
    await this.#out(this.#paint.bold("Next"));
    for (const [command, what] of commands) {
      await this.#out(`  ${command}`);
      await this.#out(this.#paint.dim(`      ${what}`));
    }
  }

  async #text(text: string, style: (line: string) => string = this.#paint.dim): Promise<void> {
    for (const line of wrapped(text, Math.min(this.#width, 100) - 4)) await this.#out(`  ${style(line)}`);
  }

  #out(line: string): Promise<void> {
    return this.#terminal.out(line);
  }
}

/** What the hired agents have spent. */
function spentByEmployees({ view }: DemoLedger): number {
  const hired = [...view.tasks].filter(({ depth }) => depth > 0);
  return hired.reduce((sum, { own }) => sum + (own.costUsd ?? 0), 0);
}
