import type { AgentSession, Dependencies, ResponseFormat, Transcript, UserPart } from "../../kernel/index.ts";
import { instructionsFor, withoutFormat } from "../base/answer-format.ts";
import { askRole } from "./role-call.ts";

/**
 * The prompt of an invocation with everything that a role needs to work on it. It is loaded once, when an
 * architecture starts.
 */
export interface PromptContext {
  readonly prompt: string;
  /** The conversation before the prompt, as the model sees it. */
  readonly history: Transcript;
  /** Images and files that came with the prompt. */
  readonly attachments: readonly UserPart[];
  /** Instructions of the agent, including the description of the requested output format. */
  readonly instructions: string;
  /** Instructions of the agent without the description of the output format, for roles that do not write the answer. */
  readonly instructionsWithoutFormat: string;
  /** Output format that the caller requested. `null` means free text. */
  readonly format: ResponseFormat | null;
}

/** Loads the prompt context of an invocation, including its prompt window. */
export async function loadPromptContext(
  session: AgentSession,
  deps: Dependencies,
  prompt: string,
): Promise<PromptContext> {
  const { attachments, instructions } = session;
  const { outputFormat: format } = deps;
  const history = await deps.history.getPromptWindow(session.id);
  const instructionsWithoutFormat = withoutFormat(instructions, format);
  return { prompt, history, attachments, instructions, instructionsWithoutFormat, format };
}

/** One call to a model in a role. */
export interface RolePrompt {
  /** Name of the role. It selects the model. */
  readonly role: string;
  /** Instructions that say what the role does and in which form it replies. */
  readonly roleInstructions: string;
  /** The task of the role in this call, including the prompt of the invocation. */
  readonly prompt: string;
}

/**
 * Makes one model call in a role that supports the answer, such as planner, judge or critic. Returns the text of the
 * reply.
 */
export function askSupportingRole(
  session: AgentSession,
  deps: Dependencies,
  { history, attachments, instructionsWithoutFormat }: PromptContext,
  { role, roleInstructions, prompt }: RolePrompt,
): Promise<string> {
  const context =
    instructionsWithoutFormat === ""
      ? ""
      : `\n\nInstructions of the agent you work for:\n${instructionsWithoutFormat}`;
  return askRole(session, deps, {
    role,
    instructions: `${roleInstructions}${context}`,
    prompt,
    history,
    attachments,
  });
}

/**
 * Makes one model call in a role whose reply may be the final answer. The role gets the agent's instructions and
 * the requested output format. Returns the text of the reply.
 */
export function askAnsweringRole(
  session: AgentSession,
  deps: Dependencies,
  { history, attachments, instructions, format }: PromptContext,
  { role, roleInstructions, prompt }: RolePrompt,
): Promise<string> {
  const { model } = format === null ? deps : deps.scopeForWorker(role);
  const own = instructionsFor(model, instructions, format);
  const allInstructions = own === "" ? roleInstructions : `${own}\n\n${roleInstructions}`;
  return askRole(session, deps, {
    role,
    instructions: allInstructions,
    prompt,
    history,
    attachments,
    ...(format && { format }),
  });
}

/** Joins parts of a prompt, each under its title as a Markdown heading. Empty parts are left out. */
export function markdownSections(parts: Readonly<Record<string, string>>): string {
  return Object.entries(parts)
    .filter(([, text]) => text !== "")
    .map(([title, text]) => `# ${title}\n${text}`)
    .join("\n\n");
}
