import { CancellationError, Fault, type QueuedInput, type RunHandle } from "../../../../kernel/index.ts";
import { withRuns } from "../../setup/idle-engine.ts";
import { findRunId } from "../../setup/find-run.ts";
import type { StoreOptions } from "../../setup/stored-runs.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { positiveInteger } from "../../terminal/number-option.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";
import { shortText } from "../../terminal/format.ts";

export interface WithdrawCommandOptions extends StoreOptions {
  readonly wait: string;
  readonly json?: boolean;
}

/** Withdraws an input that no task of a run has read. If no input is named, lists the waiting inputs. */
export function withdrawInput(
  name: string,
  input: string | undefined,
  options: WithdrawCommandOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const seconds = positiveInteger("--wait", options.wait);
  return withRuns(options, terminal, async (store, runtime): Promise<ExitKind> => {
    const runId = await findRunId(store, name, options.store);
    const run = (await runtime.find(runId))?.as("person");
    if (run === undefined) throw new Fault("not_found", `run ${runId} was deleted`);
    if (input === undefined) return listInputs(run, options, terminal);
    const inputId = await inputOf(run, input);
    const left = new AbortController();
    const stop = terminal.onInterrupt(() => left.abort());
    const signal = AbortSignal.any([left.signal, AbortSignal.timeout(seconds * 1_000)]);
    try {
      const isWithdrawn = await run.withdrawInput(inputId, { signal });
      await terminal.out(
        options.json === true ? JSON.stringify({ runId: run.runId, inputId, isWithdrawn }) : inputId,
      );
      if (isWithdrawn) return "ok";
      terminal.say(
        `Input ${printable(inputId)} came too late to withdraw: it was read, or ${run.runId} has ended.`,
      );
      return "notFound";
    } catch (error) {
      if (!signal.aborted || !(error instanceof CancellationError)) throw error;
      terminal.say(
        `No process that executes ${run.runId} has answered. The command is stored; the same command asks again.`,
      );
      return "unavailable";
    } finally {
      stop();
    }
  });
}

async function listInputs(
  run: RunHandle,
  { json = false }: WithdrawCommandOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const queued = await run.queuedInput();
  for (const each of queued) await terminal.out(json ? JSON.stringify(each) : inputLine(each));
  if (queued.length === 0) terminal.say(`No input of ${run.runId} waits to be read.`);
  return "ok";
}

function inputLine({ inputId, taskId, kind, input }: QueuedInput): string {
  return `${printable(inputId)}  ${taskId}  ${kind === "steer" ? "steering" : "follow-up"}  ${shortText(input)}`;
}

/**
 * Returns the id of the only queued input whose id begins with `start`. If no queued input matches, returns `start`
 * itself.
 */
async function inputOf(run: RunHandle, start: string): Promise<string> {
  const queued = await run.queuedInput();
  if (queued.some(({ inputId }) => inputId === start)) return start;
  const [only, ...others] = queued.filter(({ inputId }) => inputId.startsWith(start));
  if (only === undefined) return start;
  if (others.length === 0) return only.inputId;
  throw new Fault(
    "invalid_argument",
    `${others.length + 1} queued inputs of ${run.runId} begin with ${printable(start)}; pass more characters, reeve withdraw ${run.runId} lists them`,
  );
}
