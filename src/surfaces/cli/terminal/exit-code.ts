import type { FaultCode, RunResult } from "../../../kernel/index.ts";

/** The exit codes of the command line. Each kind of end has the same number in every command. */
export const exitCodes = {
  ok: { code: 0, means: "success" },
  tampered: {
    code: 1,
    means: "an event log does not verify, code does not match a journal, or reeve doctor found an error",
  },
  usage: { code: 2, means: "the arguments are invalid" },
  notFound: { code: 3, means: "the store or the run does not exist" },
  unreadable: { code: 4, means: "the store cannot be read: locked, damaged, deleted, or of another version" },
  internal: { code: 5, means: "an internal error of Reeve" },
  busy: { code: 6, means: "a run that has not ended prevents it" },
  unavailable: { code: 7, means: "a program, package or server that the command needs is missing" },
  denied: { code: 8, means: "the action is not allowed, or the person declined" },
  failed: { code: 10, means: "the run failed; --resume continues from where it stopped" },
  max_turns: { code: 11, means: "the run used up its turns" },
  budget_exhausted: { code: 12, means: "the run used up its budget" },
  deadline_exceeded: { code: 13, means: "the run ran out of time" },
  guardrail_tripped: { code: 14, means: "a guardrail stopped the run" },
  paused: { code: 15, means: "the run is paused" },
  cancelled: { code: 16, means: "the run was cancelled" },
  max_output: { code: 17, means: "the answer was cut at the model's output limit" },
  gate_failed: { code: 20, means: "a gate of an experiment failed" },
  incomplete: { code: 21, means: "cases of an experiment failed to run, or have no result" },
} as const;

export type ExitKind = keyof typeof exitCodes;

const byFault: { readonly [Code in FaultCode]?: ExitKind } = {
  invalid_argument: "usage",
  already_exists: "usage",
  not_found: "notFound",
  agent_busy: "busy",
  dependency_missing: "unavailable",
  agent_not_found: "unavailable",
  engine_unavailable: "unavailable",
  engine_mismatch: "usage",
  permission_denied: "denied",
  store_unavailable: "unreadable",
  store_read_only: "unreadable",
  store_full: "unreadable",
  store_corrupt: "unreadable",
  store_lost: "unreadable",
  version_mismatch: "unreadable",
};

export function exitKindOf(code: FaultCode): ExitKind {
  return byFault[code] ?? "internal";
}

/**
 * Returns the exit kind for the result of a run. A run that fails because this machine lacks something has no
 * separate exit code.
 */
export function exitKindOfRun({ status, error }: Pick<RunResult, "status" | "error">): ExitKind {
  if (status === "failed" && error?.code === "dependency_missing") return "unavailable";
  return status === "completed" ? "ok" : status;
}

/** Returns the end of a command's help: exit codes and examples. */
export function exitCodesAnd(...examples: readonly string[]): string {
  return `\n${exitCodeTable()}\n\nExamples:\n${examples.map((example) => `  $ ${example}`).join("\n")}`;
}

export function exitCodeTable(): string {
  const lines = Object.values(exitCodes).map(({ code, means }) => `  ${String(code).padStart(2)}  ${means}`);
  return `Exit codes:\n${lines.join("\n")}`;
}
