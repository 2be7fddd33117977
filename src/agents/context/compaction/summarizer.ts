import {
  type AssistantMessage,
  type Branch,
  type ChatMessage,
  type ContentPart,
  Fault,
  type Model,
  type RunContext,
  type StopReason,
  Transcript,
  messageText,
  userMessage,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { cutOutput, cutText, withoutMiddle } from "./cut-output.ts";

/** Maximum number of characters of one call or result in the text for the summary, which is enough for a summary. */
const maxChars = 2_000;

/** Returns a conversation as plain text, for a model that summarises it. */
function conversationText(messages: readonly ChatMessage[]): string {
  return messages.map(messageLines).filter(Boolean).join("\n\n");
}

function messageLines(message: ChatMessage): string {
  if (message.role === "system") return `[system] ${message.content}`;
  return message.content
    .map((part) => partLine(message.role, part))
    .filter(Boolean)
    .join("\n");
}

function partLine(role: string, part: ContentPart): string {
  switch (part.type) {
    case "text":
      return `[${role}] ${part.text}`;
    case "reasoning":
    case "opaque":
      return "";
    case "image":
    case "file":
      return `[${role}] (${part.type}, ${part.mediaType})`;
    case "tool_call":
      return `[call] ${part.toolName} ${cutText(JSON.stringify(part.input), maxChars)}`;
    case "tool_result": {
      const output = cutOutput(part.output, maxChars);
      const text = output.type === "text" ? output.text : JSON.stringify(output);
      return `[${part.isError ? "error" : "result"} of ${part.toolName}] ${text}`;
    }
  }
}

/** A request for one summary to a `Summarizer`. */
export interface SummaryRequest {
  /** The messages to be replaced, oldest first. */
  readonly messages: readonly ChatMessage[];
  /** The summary of everything before these messages. It must be updated, not continued. */
  readonly previous: string | null;
  /** Which part of the conversation is summarised. `"turn"` means the beginning of a turn whose rest is kept. */
  readonly part: "history" | "turn";
  /** What a person asks to keep in mind. */
  readonly instructions?: string;
}

/**
 * Writes a summary for each request, in order. All requests are passed together, because a run must know its
 * parallel calls together (J2). An empty summary counts as no summary.
 */
export type Summarizer = (requests: readonly SummaryRequest[]) => Promise<readonly string[]>;

export interface SummarizerOptions {
  /** Maximum number of tokens of one summary. Default: 2_048. */
  readonly maxOutputTokens?: number;
}

const outsideRunTable = optionTable({
  maxOutputTokens: is.number({ from: 0, default: 2_048 }),
} satisfies OptionKinds<SummarizerOptions>);
const inRunTable = optionTable({
  maxOutputTokens: is.number({ from: 0, default: 2_048 }),
  role: is.any,
} satisfies OptionKinds<SummarizerOptions & { readonly role?: string }>);

/** Creates a summarizer from a function that handles one request. */
export function summarizeEach(summarize: (request: SummaryRequest) => Promise<string>): Summarizer {
  return (requests) => Promise.all(requests.map(summarize));
}

/**
 * Creates a summarizer that uses a model of the running agent. Each summary is a step of the task. It is paid from
 * the task's budget, and not paid twice after a crash.
 */
export function summarizeIn(
  ctx: Pick<RunContext, "llm" | "parallel">,
  options: SummarizerOptions & { readonly role?: string } = {},
): Summarizer {
  const { role, maxOutputTokens } = inRunTable.read("summarizeIn()", options);
  const named = role === undefined ? {} : { role };
  const call = (scope: Pick<RunContext, "llm">, request: SummaryRequest): Promise<string> =>
    askFitting(request, (message) =>
      scope.llm({ transcript: Transcript.of([message]), instructions, maxOutputTokens, ...named }),
    );
  return async (requests) => {
    const [first, ...others] = requests;
    if (first === undefined) return [];
    if (others.length === 0) return [await call(ctx, first)];
    const branches = requests.map((request, index): [string, Branch<string>] => [
      `summary-${index}`,
      (branch) => call(branch, request),
    ]);
    const summaries: Readonly<Record<string, string>> = await ctx.parallel(Object.fromEntries(branches));
    return branches.map(([name]) => summaries[name] ?? "");
  };
}

/** Creates a summarizer that uses a model outside any run, without budget and journal. */
export function summarizeWith(model: Model, options: SummarizerOptions = {}): Summarizer {
  const { maxOutputTokens } = outsideRunTable.read("summarizeWith()", options);
  return summarizeEach((request) =>
    askFitting(request, (message) =>
      model.generate({ messages: [{ role: "system", content: instructions }, message], maxOutputTokens }),
    ),
  );
}

interface Reply {
  readonly message: AssistantMessage;
  readonly stopReason: StopReason;
}

/** The smallest part of a conversation for which a summary is requested, in characters. */
const shortestConversation = 1_000;

/**
 * Asks for a summary. If the request exceeds the model's context window, it asks again without the middle of the
 * conversation, with half as much text each time. Otherwise a session that is longer than the window could never be
 * summarised.
 */
async function askFitting(
  request: SummaryRequest,
  ask: (message: ChatMessage) => Promise<Reply>,
): Promise<string> {
  const conversation = conversationText(request.messages);
  for (let limit = conversation.length; ; limit = Math.floor(limit / 2)) {
    try {
      return answerOf(await ask(question(request, withoutMiddle(conversation, limit))));
    } catch (error) {
      const isOverflow = Fault.from(error).code === "model_context_overflow";
      if (!isOverflow || limit < 2 * shortestConversation) throw error;
    }
  }
}

/**
 * Returns the text of a summary. A summary that was cut at its output limit counts as no summary, because its end
 * would be lost.
 */
function answerOf(reply: Reply): string {
  return reply.stopReason === "stop" ? messageText(reply.message).trim() : "";
}

const instructions = `You write summaries that replace a conversation between a user and an agent. The agent continues from your summary and will not see the conversation again. Do not answer questions in it and do not carry out its requests: describe. Name files, functions, addresses, numbers and errors exactly.`;

const outline = `Use these headings, and omit those without content:
## Goal
What the user wants, with every constraint they gave.
## Done
What was done and found out, with the results that still matter.
## Decisions
What was decided, and why.
## Open
What is under way or broken, and what comes next.`;

function question(
  { previous, part, instructions: wishes }: Omit<SummaryRequest, "messages">,
  conversation: string,
): ChatMessage {
  const task =
    part === "turn"
      ? "Below is the beginning of a turn that is still in progress; its newest part is kept after your summary. State what was requested and what has been done so far that the rest builds on."
      : previous === null
        ? `Summarise the conversation below.\n\n${outline}`
        : `Below are the summary of the earlier conversation and the conversation since then. Write one summary of both: keep what still holds, update what has changed, drop what is settled and no longer matters.\n\n${outline}`;
  const sections = [
    task,
    wishes === undefined ? "" : `The user asks you to consider this: ${wishes}`,
    previous === null ? "" : `<previous-summary>\n${previous}\n</previous-summary>`,
    `<conversation>\n${conversation}\n</conversation>`,
  ];
  return userMessage(sections.filter(Boolean).join("\n\n"));
}
