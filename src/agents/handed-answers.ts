import {
  jsonText,
  messageText,
  textOf,
  toolCallsOf,
  type AgentSession,
  type ChatMessage,
  type HostedAgent,
  type Tool,
  type ToolOutput,
} from "../kernel/index.ts";
import { isBlank } from "./architectures/answer-text.ts";

/** The answer of a child, with the name by which its parent knows it. */
export interface HandedAnswer {
  readonly name: string;
  readonly text: string;
}

/** The hand-off tools of this process, with the name of their agent. */
const handoffs = new WeakMap<Tool, string>();

export function markHandoff(tool: Tool, name: string): Tool {
  handoffs.set(tool, name);
  return tool;
}

/**
 * B5: the output of a stopped agent: what it said last, and what its children have answered since. `from` is the index
 * of the first message that counts.
 */
export function outputWithAnswers(
  said: string,
  { tools = [] }: Pick<HostedAgent, "tools">,
  { messages, settled }: AgentSession,
  from: number,
): string {
  const names = new Map(tools.flatMap((tool) => nameOf(tool)));
  if (names.size === 0) return said;
  let answers: HandedAnswer[] = [];
  const add = (toolName: string, output: ToolOutput, isError = false): void => {
    const name = names.get(toolName);
    if (name !== undefined && !isError) answers.push({ name, text: outputText(output) });
  };
  let last: ChatMessage | undefined;
  for (let index = from; index < messages.length; index++) {
    last = messages.at(index);
    if (last?.role === "assistant" && !isBlank(messageText(last))) answers = [];
    if (last?.role === "tool")
      for (const { toolName, output, isError } of last.content) add(toolName, output, isError);
  }
  // The run was stopped during these calls.
  if (last?.role === "assistant")
    for (const [index, { toolName }] of toolCallsOf(last).entries()) {
      const result = settled[index];
      if (result !== undefined) add(toolName, result.output, result.isError);
    }
  return joinAnswers(said, answers);
}

/** One answer stands alone. Several have the names of the children before them. */
export function joinAnswers(said: string, answers: readonly HandedAnswer[]): string {
  const [first] = answers;
  const texts = answers.map(({ name, text }) => `${name}: ${text}`);
  const handed = answers.length === 1 && first !== undefined ? [first.text] : texts;
  return [said, ...handed].filter((text) => !isBlank(text)).join("\n\n");
}

function nameOf(tool: Tool): readonly (readonly [string, string])[] {
  const name = handoffs.get(tool);
  return name === undefined ? [] : [[tool.name, name]];
}

export function outputText(output: ToolOutput): string {
  if (output.type === "text") return output.text;
  return output.type === "json" ? jsonText(output.value) : textOf(output.parts);
}
