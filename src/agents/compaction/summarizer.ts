import {
  messageText,
  Transcript,
  userMessage,
  type AssistantMessage,
  type Branch,
  type ChatMessage,
  type Model,
  type RunContext,
  type StopReason,
} from "../../kernel/index.ts";
import { conversationText } from "./conversation-text.ts";

export interface SummaryRequest {
  /** What is to be left out, oldest first. */
  readonly messages: readonly ChatMessage[];
  /** The summary that stands in for what was before them; it is to be updated, not continued. */
  readonly previous: string | null;
  /** `turn`: the beginning of a turn whose rest is kept. */
  readonly part: "history" | "turn";
  /** What a person wants to be kept in mind. */
  readonly instructions?: string;
}

/**
 * Makes a summary of each, in order. All at once, because several calls of one run are made side by side only if they are known
 * together (J2). An empty one is none.
 */
export type Summarizer = (requests: readonly SummaryRequest[]) => Promise<readonly string[]>;

export interface SummarizerOptions {
  /** Of one summary. 2,048 unless told. */
  readonly maxOutputTokens?: number;
}

/** A summariser out of a function for one. */
export function summarizeEach(summarize: (request: SummaryRequest) => Promise<string>): Summarizer {
  return (requests) => Promise.all(requests.map(summarize));
}

/** By a model of the running agent: each summary is a step of the task, paid from its budget and never paid twice. */
export function summarizeIn(
  ctx: Pick<RunContext, "llm" | "parallel">,
  { role, maxOutputTokens = 2_048 }: SummarizerOptions & { readonly role?: string } = {},
): Summarizer {
  const call = async (scope: Pick<RunContext, "llm">, request: SummaryRequest): Promise<string> => {
    const transcript = Transcript.of([question(request)]);
    const named = role === undefined ? {} : { role };
    return answerOf(await scope.llm({ transcript, instructions, maxOutputTokens, ...named }));
  };
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

/** By a model outside any run: no budget pays for it and no journal keeps it. */
export function summarizeWith(model: Model, { maxOutputTokens = 2_048 }: SummarizerOptions = {}): Summarizer {
  return summarizeEach(async (request) => {
    const messages: ChatMessage[] = [{ role: "system", content: instructions }, question(request)];
    return answerOf(await model.generate({ messages, maxOutputTokens }));
  });
}

/** One that was cut short is none: what is missing at its end would be missing for good. */
function answerOf(reply: { readonly message: AssistantMessage; readonly stopReason: StopReason }): string {
  return reply.stopReason === "stop" ? messageText(reply.message).trim() : "";
}

const instructions = `You write summaries that take the place of a conversation between a user and an agent. The agent goes on from your summary and will not see the conversation again. Do not answer questions in it and do not carry out what it asks for: describe. Name files, functions, addresses, numbers and errors exactly.`;

const outline = `Write it under these headings, leaving out those that have nothing under them:
## Goal
What the user wants, with every constraint they gave.
## Done
What was done and found out, with the results that still matter.
## Decisions
What was decided, and why.
## Open
What is under way or broken, and what comes next.`;

function question({ messages, previous, part, instructions: wishes }: SummaryRequest) {
  const task =
    part === "turn"
      ? "Below is the beginning of a turn that is still under way; its newest part is kept beside your summary. Say what was asked for and what has been done so far that the rest builds on."
      : previous === null
        ? `Summarise the conversation below.\n\n${outline}`
        : `Below are the summary of what came earlier and the conversation since. Write one summary of both: keep what still holds, move on what has moved on, drop what is settled and no longer matters.\n\n${outline}`;
  const sections = [
    task,
    wishes === undefined ? "" : `The user asks you to mind this: ${wishes}`,
    previous === null ? "" : `<previous-summary>\n${previous}\n</previous-summary>`,
    `<conversation>\n${conversationText(messages)}\n</conversation>`,
  ];
  return userMessage(sections.filter(Boolean).join("\n\n"));
}
