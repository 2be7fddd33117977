import { Fault, type HostedAgent, type AgentSession, type Dependencies } from "../../kernel/index.ts";
import { answerOf, hire } from "./hire.ts";
import { askAnswerer, askHelper, type Question, type RoleDuty } from "./question.ts";
import { formWanted, wholeQuestion, type Roster } from "./roster.ts";

/** Who does a piece of thinking for a team: the team's own agent, by one call to the model of that role; or an agent that is hired. */
export type Advisor = "self" | HostedAgent;

export interface AdvisorDuty extends RoleDuty {
  readonly by: Advisor;
  /** What is said is the answer. */
  readonly answers?: boolean;
}

/** One that is hired and comes to no answer stops whoever needs it. */
export async function advised(
  session: AgentSession,
  deps: Dependencies,
  question: Question,
  { by, answers = false, ...call }: AdvisorDuty,
): Promise<string> {
  if (by === "self") return (answers ? askAnswerer : askHelper)(session, deps, question, call);
  const { role, duty, prompt } = call;
  const input = { ...wholeQuestion({ ...question, prompt }, duty), ...(answers && formWanted(question)) };
  return answerOf(deps, role, await hire(deps, { worker: by, input }));
}

/** All who may be hired, as `Architecture.declaredWorkers` gives them. */
export function workersOf(
  where: string,
  { agents }: Roster,
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
