import {
  describeValue,
  Fault,
  type CompactSessionOptions,
  type HostedAgent,
  type SessionCompaction,
  type SessionSummary,
  type SubmitOptions,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { hostedAgent, type WorkerContext } from "../process/worker-context.ts";

const optionsOfRun = optionTable({ instructions: is.text() } satisfies OptionKinds<CompactSessionOptions>);

/** Whether the caller passes a summary, so that no run needs to write one. */
export function hasSummary(options: SessionCompaction | CompactSessionOptions): options is SessionCompaction {
  const value: unknown = options;
  return typeof value === "object" && value !== null && ("summary" in value || "firstKeptEntryId" in value);
}

/** Checks the options of a run that compacts a session, and returns its instructions. */
export function checkCompaction(options: CompactSessionOptions): { readonly instructions?: string } {
  const { instructions } = optionsOfRun.read("sessions.compact()", options);
  if (instructions === undefined) return {};
  if (typeof instructions === "string" && instructions.trim() !== "") return { instructions };
  throw new Fault(
    "invalid_argument",
    `invalid instructions ${describeValue(instructions)} of sessions.compact(): expected a text that is not empty; omit them for a compaction without instructions`,
  );
}

/**
 * Returns what a compaction of a session needs: the agent of the session, and a submission in the name of its
 * owner.
 */
export function compactionOf(
  worker: WorkerContext,
  { sessionId, agentId, userId, tenantId }: SessionSummary,
): { readonly agent: HostedAgent; readonly submission: SubmitOptions } {
  const agent = hostedAgent(worker, agentId);
  const { compactionBudget: budget } = agent;
  if (budget === undefined)
    throw new Fault(
      "unsupported",
      `agent ${agentId} cannot compact session ${sessionId}: it has no model, or was created with compaction: false; pass a summary to sessions.compact(), or change the option`,
    );
  const submission = {
    sessionId,
    budget,
    ...(userId !== null && { userId }),
    ...(tenantId !== null && { tenantId }),
  };
  return { agent, submission };
}
