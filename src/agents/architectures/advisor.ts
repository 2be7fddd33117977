import { Fault, type HostedAgent, type AgentSession, type Dependencies } from "../../kernel/index.ts";
import { requireAnswer, runWorker } from "./run-worker.ts";
import {
  askAnsweringRole,
  askSupportingRole,
  type PromptContext,
  type RolePrompt,
} from "./prompt-context.ts";
import { requestedOutput, workerBrief, type TeamMembers } from "./team-members.ts";

/** Who does a piece of thinking for a team: the team's own agent, by one call to the model of that role; or an agent that is hired. */
export type Advisor = "self" | HostedAgent;

export interface AdvisorRequest extends RolePrompt {
  readonly by: Advisor;
  /** What is said is the answer. */
  readonly answers?: boolean;
}

/** One that is hired and comes to no answer stops whoever needs it. */
export async function askAdvisor(
  session: AgentSession,
  deps: Dependencies,
  promptContext: PromptContext,
  { by, answers = false, ...call }: AdvisorRequest,
): Promise<string> {
  if (by === "self")
    return (answers ? askAnsweringRole : askSupportingRole)(session, deps, promptContext, call);
  const { role, duty, prompt } = call;
  const input = {
    ...workerBrief({ ...promptContext, prompt }, duty),
    ...(answers && requestedOutput(promptContext)),
  };
  return requireAnswer(deps, role, await runWorker(deps, { worker: by, input }));
}

/** All who may be hired, as `Architecture.declaredWorkers` gives them. */
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
        `${where} has a ${role} and an agent of that name: give the agent another`,
      );
    workers[role] = by;
  }
  return workers;
}
