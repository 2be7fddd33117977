import type { AgentSession, Dependencies, ResponseFormat, Transcript, UserPart } from "../../kernel/index.ts";
import { withoutFormat } from "../answer-format.ts";
import { askRole } from "./role-call.ts";

/** What an invocation is asked, with all it takes to understand it. Looked up once, when an architecture begins. */
export interface PromptContext {
  readonly prompt: string;
  /** The conversation before it, as a model is to see it. */
  readonly history: Transcript;
  readonly attachments: readonly UserPart[];
  /** As the agent is told, with what its answer is to look like. */
  readonly instructions: string;
  /** The same without that: for work on the way to the answer. */
  readonly instructionsWithoutFormat: string;
  readonly format: ResponseFormat | null;
}

export async function loadPromptContext(
  session: AgentSession,
  deps: Dependencies,
  prompt: string,
): Promise<PromptContext> {
  const { attachments, instructions } = session;
  const { outputFormat: format } = deps;
  const history = await deps.history.getPromptWindow(session.id);
  const instructionsWithoutFormat = withoutFormat(instructions, format);
  return {
    prompt,
    history: history,
    attachments,
    instructions,
    instructionsWithoutFormat: instructionsWithoutFormat,
    format,
  };
}

export interface RolePrompt {
  readonly role: string;
  /** What the role is there for. */
  readonly duty: string;
  /** What it is to look at this time, question included. */
  readonly prompt: string;
}

/** One call to a role that works towards the answer: plans, judges, criticises. */
export function askSupportingRole(
  session: AgentSession,
  deps: Dependencies,
  { history, attachments, instructionsWithoutFormat }: PromptContext,
  { role, duty, prompt }: RolePrompt,
): Promise<string> {
  const context =
    instructionsWithoutFormat === ""
      ? ""
      : `\n\nThe agent you work for is told:\n${instructionsWithoutFormat}`;
  return askRole(session, deps, {
    role,
    instructions: `${duty}${context}`,
    prompt,
    history: history,
    attachments,
  });
}

/** One call to a role whose words may be the answer: as the agent is told, and in the form that is wanted. */
export function askAnsweringRole(
  session: AgentSession,
  deps: Dependencies,
  { history, attachments, instructions, format }: PromptContext,
  { role, duty, prompt }: RolePrompt,
): Promise<string> {
  const allInstructions = instructions === "" ? duty : `${instructions}\n\n${duty}`;
  return askRole(session, deps, {
    role,
    instructions: allInstructions,
    prompt,
    history: history,
    attachments,
    ...(format && { format }),
  });
}

/** Parts of a prompt under their titles; empty ones are left out. */
export function markdownSections(parts: Readonly<Record<string, string>>): string {
  return Object.entries(parts)
    .filter(([, text]) => text !== "")
    .map(([title, text]) => `# ${title}\n${text}`)
    .join("\n\n");
}
