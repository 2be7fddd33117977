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
} from "../../kernel/index.ts";
import { isBlank } from "../base/answer-text.ts";

/** The answer of a child, with the name by which its parent knows it. */
export interface HandedAnswer {
  readonly name: string;
  readonly text: string;
}

/**
 * Key under which a tool stores the agent behind it. It is a symbol, which is copied when a caller spreads the tool
 * to change one of its fields.
 */
const handoff = Symbol("handoff");

interface HandoffTarget {
  /** Name by which the model knows the agent. */
  readonly name: string;
  readonly agent: HostedAgent;
}

interface HandoffTool extends Tool {
  readonly [handoff]: HandoffTarget;
}

/** Marks a tool that passes its calls to an agent. */
export function markHandoff(tool: Tool, target: HandoffTarget): Tool {
  const marked: HandoffTool = { ...tool, [handoff]: target };
  return marked;
}

/** Returns the agents to which tools of the list pass their calls. */
export function agentsBehind(tools: readonly Tool[]): readonly HostedAgent[] {
  return tools.flatMap((tool) => targetOf(tool)?.agent ?? []);
}

/**
 * Returns the agent behind a tool. For a tool that represents another one, as in `toolSearch`, returns the agent
 * behind that tool.
 */
function targetOf(tool: Tool): HandoffTarget | undefined {
  if (handoff in tool) return (tool as HandoffTool)[handoff];
  const { represents } = tool;
  return represents === undefined || represents === tool ? undefined : targetOf(represents);
}

/**
 * B5: returns the output of a stopped agent: its last text, with the answers of its children that came later.
 * `from` is the index of the first message to read.
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

/**
 * Joins answers of children to a text. A single answer stands alone; several have the names of the children before
 * them.
 */
export function joinAnswers(said: string, answers: readonly HandedAnswer[]): string {
  const [first] = answers;
  const texts = answers.map(({ name, text }) => `${name}: ${text}`);
  const handed = answers.length === 1 && first !== undefined ? [first.text] : texts;
  return [said, ...handed].filter((text) => !isBlank(text)).join("\n\n");
}

function nameOf(tool: Tool): readonly (readonly [string, string])[] {
  const target = targetOf(tool);
  return target === undefined ? [] : [[tool.name, target.name]];
}

export function outputText(output: ToolOutput): string {
  if (output.type === "text") return output.text;
  return output.type === "json" ? jsonText(output.value) : textOf(output.parts);
}
