import { Fault } from "../../../kernel/index.ts";
import type { ExitKind } from "../terminal/exit-code.ts";
import { interrupted } from "../terminal/interrupted.ts";
import { portOption } from "../terminal/number-option.ts";
import { OpenParts } from "../setup/open-parts.ts";
import { printable, type Terminal } from "../terminal/terminal.ts";
import { Performance } from "./demo-performance.ts";
import { openStage, startWorkers } from "./demo-stage.ts";
import { runAddress } from "./demo-telling.ts";
import { hireDemo } from "./hire-demo.ts";
import { demoWorker } from "./demo-worker.ts";

export interface DemoOptions {
  /** Duration of an average model call in milliseconds. */
  readonly pace: string;
  readonly port: string;
  /** Whether the files of the demo are kept. */
  readonly keep?: boolean;
  /** Whether the server continues to run after the story. Default: `true` if a person watches and `CI` is not set. */
  readonly stay?: boolean;
  readonly exit?: boolean;
  /** Whether the company consists of hired agents (other programs). */
  readonly hire?: boolean;
  /** The folder of the demo. Set only in worker processes, which the demo starts itself. */
  readonly act?: string;
  /** The name of that worker. */
  readonly worker?: string;
  /** Whether this process acts as the demo agent, which speaks the Agent Client Protocol. */
  readonly agent?: boolean;
}

/**
 * Runs the demo: a server with the page, and two workers on one SQLite file. A company of agents works, and a
 * person approves actions and adds money. One worker is killed, and the other one finishes the run. The demo needs
 * no API key and no network.
 */
export async function demoCommand(options: DemoOptions, terminal: Terminal): Promise<ExitKind> {
  const { act, worker = "worker", keep: keeps = false } = options;
  const paceMs = paceOf(options.pace);
  if (act !== undefined) {
    await demoWorker({ folder: act, worker, paceMs });
    return "ok";
  }
  const stays = staysOpen(options, terminal);
  const port = portOption(options.port);
  const open = new OpenParts();
  const interrupt = interrupted(terminal).then((): ExitKind => "ok");
  const onError = (error: Fault): void => terminal.say(`reeve: ${printable(error.message)}`);
  try {
    if (options.hire === true) {
      const played = hireDemo({ port, paceMs, stays, keeps, onError }, terminal, open);
      return await Promise.race([played, interrupt]);
    }
    const stage = await openStage({ port, paceMs, keeps, onError }, open);
    await terminal.out(runAddress(stage));
    if (!stage.hasPage) terminal.say("The page is not built; run npm run build:page in the checkout.");
    const workers = await startWorkers(stage, paceMs, open);
    const performance = new Performance({ stage, workers, terminal, paceMs, stays, keeps });
    return await Promise.race([performance.play(), interrupt, ...workers.map((each) => each.failed())]);
  } finally {
    await open.close();
  }
}

function paceOf(text: string): number {
  const paceMs = text.trim() === "" ? Number.NaN : Number(text);
  if (Number.isFinite(paceMs) && paceMs >= 0) return paceMs;
  throw new Fault("invalid_argument", `invalid --pace ${text}: expected milliseconds from 0`);
}

/** Whether the server continues to run after the story. */
function staysOpen({ stay = false, exit = false }: DemoOptions, { isWatched, env }: Terminal): boolean {
  if (stay && exit)
    throw new Fault("invalid_argument", "--stay cannot be combined with --exit; use one of them");
  const isCi = env["CI"] !== undefined && env["CI"] !== "";
  return stay || (!exit && isWatched && !isCi);
}
