import { Fault, type HostedAgent, type AgentSession, type Dependencies } from "../../kernel/index.ts";
import { requireAnswer, runWorker } from "../team/run-worker.ts";
import {
  askAnsweringRole,
  askSupportingRole,
  type PromptContext,
  type RolePrompt,
} from "../context/prompt-context.ts";
import { requestedOutput, workerBrief, type TeamMembers } from "../team/team-members.ts";

/**
 * Who fills a role of a team, such as judge or coordinator. `"self"` makes one call to the model that the team's
 * own agent has for the role. An agent is spawned as a worker.
 */
export type Advisor = "self" | HostedAgent;

/** A request to an advisor: the prompt of a role, and who fills it. */
export interface AdvisorRequest extends RolePrompt {
  /** The agent to spawn, or `"self"` for a call to the team's own model. */
  readonly by: Advisor;
  /**
   * Whether the reply is the answer of the invocation. The reply then follows the requested output format. Default:
   * `false`.
   */
  readonly answers?: boolean;
}

/** Asks an advisor and returns the text of its reply. Throws if a spawned advisor ends without an answer. */
export async function askAdvisor(
  session: AgentSession,
  deps: Dependencies,
  promptContext: PromptContext,
  { by, answers = false, ...call }: AdvisorRequest,
): Promise<string> {
  if (by === "self")
    return (answers ? askAnsweringRole : askSupportingRole)(session, deps, promptContext, call);
  const { role, roleInstructions, prompt } = call;
  const input = {
    ...workerBrief({ ...promptContext, prompt }, roleInstructions),
    ...(answers && requestedOutput(promptContext)),
  };
  return requireAnswer(deps, role, await runWorker(deps, { worker: by, input }));
}

/**
 * Returns every agent that a team may spawn, by name, for `Architecture.declaredWorkers`: its members and the advisors
 * that are agents.
 */
export function teamWorkers(
  where: string,
  { agents }: TeamMembers,
  advisors: Readonly<Record<string, Advisor | undefined>>,
): Readonly<Record<string, HostedAgent>> {
  const workers: Record<string, HostedAgent> = { ...agents };
  for (const [role, by] of Object.entries(advisors)) {
    if (by === undefined || by === "self") continue;
    if (role in workers)
      throw new Fault(
        "invalid_argument",
        `${where} has a ${role} and a member named "${role}": give the member another name`,
      );
    workers[role] = by;
  }
  return workers;
}
