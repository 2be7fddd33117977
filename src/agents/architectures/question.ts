import type { AgentSession, Dependencies, ResponseFormat, Transcript, UserPart } from "../../kernel/index.ts";
import { withoutFormat } from "../answer-format.ts";
import { askRole } from "./role-call.ts";

/** What an invocation is asked, with all it takes to understand it. Looked up once, when an architecture begins. */
export interface Question {
  readonly prompt: string;
  /** The conversation before it, as a model is to see it. */
  readonly before: Transcript;
  readonly attachments: readonly UserPart[];
  /** As the agent is told, with what its answer is to look like. */
  readonly instructions: string;
  /** The same without that: for work on the way to the answer. */
  readonly manner: string;
  readonly format: ResponseFormat | null;
}

export async function questionOf(
  session: AgentSession,
  deps: Dependencies,
  prompt: string,
): Promise<Question> {
  const { attachments, instructions } = session;
  const { outputFormat: format } = deps;
  const before = await deps.history.getPromptWindow(session.id);
  const manner = withoutFormat(instructions, format);
  return { prompt, before, attachments, instructions, manner, format };
}

export interface RoleDuty {
  readonly role: string;
  /** What the role is there for. */
  readonly duty: string;
  /** What it is to look at this time, question included. */
  readonly prompt: string;
}

/** One call to a role that works towards the answer: plans, judges, criticises. */
export function askHelper(
  session: AgentSession,
  deps: Dependencies,
  { before, attachments, manner }: Question,
  { role, duty, prompt }: RoleDuty,
): Promise<string> {
  const context = manner === "" ? "" : `\n\nThe agent you work for is told:\n${manner}`;
  return askRole(session, deps, { role, instructions: `${duty}${context}`, prompt, before, attachments });
}

/** One call to a role whose words may be the answer: as the agent is told, and in the form that is wanted. */
export function askAnswerer(
  session: AgentSession,
  deps: Dependencies,
  { before, attachments, instructions, format }: Question,
  { role, duty, prompt }: RoleDuty,
): Promise<string> {
  const told = instructions === "" ? duty : `${instructions}\n\n${duty}`;
  return askRole(session, deps, {
    role,
    instructions: told,
    prompt,
    before,
    attachments,
    ...(format && { format }),
  });
}

/** Parts of a prompt under their titles; empty ones are left out. */
export function titled(parts: Readonly<Record<string, string>>): string {
  return Object.entries(parts)
    .filter(([, text]) => text !== "")
    .map(([title, text]) => `# ${title}\n${text}`)
    .join("\n\n");
}
