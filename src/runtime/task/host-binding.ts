import { Fault } from "../../kernel/index.ts";
import type { TaskRunner } from "./task-runner.ts";

/**
 * Throws `unsupported` if the engine may move the run to another worker although it has left something on this
 * machine. `what` names it.
 */
export function refuseSlices({ worker }: TaskRunner, what: string): void {
  const { kind, hostsPrograms = false } = worker.engine?.() ?? { kind: null, hostsPrograms: true };
  if (hostsPrograms) return;
  throw new Fault(
    "unsupported",
    `${what} cannot run on the engine ${JSON.stringify(kind)}, which takes a run from its worker after a while; use the local engine, which is the default`,
    { details: { engine: kind } },
  );
}

/**
 * L21: makes only workers of this machine claim the run, from its next commit on. `program` is the name of the
 * program that leaves something on this machine.
 */
export function bindToHost({ worker, state, journal }: TaskRunner, what: string, program: string): void {
  const { host } = worker;
  if (state.host === undefined) journal.emit({ type: "run_bind", data: { host, program } });
  else if (state.host !== host)
    throw new Fault(
      "unsupported",
      `${what} cannot run on machine ${host}: the run is bound to ${state.host}, which has what was left there; start a worker there`,
      { details: { host: state.host } },
    );
}
