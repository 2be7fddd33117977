import {
  Fault,
  jsonText,
  messageText,
  totalTokens,
  type ChatMessage,
  type Recorded,
  type RecordedRequest,
  type ToolOutput,
} from "../../../../kernel/index.ts";
import { readRequest, sha256 } from "../../../../runtime/index.ts";
import { CallList, callEvents, requestGaps } from "../../../view/model-calls.ts";
import { findRunId } from "../../setup/find-run.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { columns, counted, duration, shortText } from "../../terminal/format.ts";
import { withStore } from "../../setup/stored-runs.ts";
import { printable, shownText, type Terminal } from "../../terminal/terminal.ts";
import type { ReportOptions } from "./show-run.ts";

/** Maximum number of calls that are listed. */
const mostCalls = 1_000;

/** Prints the request of one model call. If `wanted` is `true`, prints a list of the run's model calls. */
export function showRequest(
  name: string,
  wanted: string | true,
  { json = false, ...options }: ReportOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  return withStore(options, terminal, async (store): Promise<ExitKind> => {
    const runId = await findRunId(store, name, options.store);
    if (wanted === true) {
      const list = new CallList(mostCalls);
      for await (const event of store.events.read(runId))
        if (callEvents.some((type) => type === event.type)) list.add(event);
      const lines = json ? list.calls.map((call) => JSON.stringify(call)) : callLines(list);
      for (const line of lines) await terminal.out(line);
      return "ok";
    }
    if (!/^\d{1,15}$/u.test(wanted))
      throw new Fault(
        "invalid_argument",
        `invalid --request ${JSON.stringify(wanted)}: expected the number of a model call; reeve show ${name} --request lists them`,
      );
    const request = await readRequest(store, sha256, { runId, seq: Number(wanted) });
    for (const line of json ? [JSON.stringify(request)] : requestLines(request)) await terminal.out(line);
    return "ok";
  });
}

function callLines({ calls, hasEarlier }: CallList): readonly string[] {
  const rows = calls.map(({ seq, taskId, agentId, role, model, durationMs, usage, retries }) => [
    String(seq),
    taskId,
    printable(agentId),
    role,
    printable(model ?? "-"),
    usage === null
      ? "no answer"
      : `${counted(usage.inputTokens)} in, ${counted(usage.cacheReadTokens)} cached`,
    durationMs === null ? "" : duration(durationMs),
    retries === 0 ? "" : `attempt ${retries + 1}`,
  ]);
  return [...(hasEarlier ? [`(the last ${mostCalls} calls)`] : []), ...columns(rows)];
}

function requestLines(request: RecordedRequest): readonly string[] {
  const { seq, taskId, agentId, role, model, at, settings, contextWindow, reply, tools } = request;
  const window = contextWindow === null ? "" : ` of ${counted(contextWindow)}`;
  const facts = columns([
    ["call", `${seq}, task ${taskId}, ${printable(agentId)}, role ${printable(role)}`],
    ["model", printable(model ?? "unknown")],
    ["sent", new Date(at).toISOString()],
    ...(reply === null
      ? []
      : [
          [
            "tokens",
            `${counted(reply.usage.inputTokens)}${window} in, ${counted(reply.usage.cacheReadTokens)} cached; ${counted(totalTokens(reply.usage))} in all`,
          ],
        ]),
    ...(Object.keys(settings).length === 0 ? [] : [["settings", printable(JSON.stringify(settings))]]),
  ]);
  return [
    ...facts,
    ...requestGaps(request).map((gap) => `note: ${gap}`),
    "",
    "instructions",
    ...partLines(request.instructions, (text) => [shownText(text)]),
    "",
    "tools",
    ...partLines(tools, (list) =>
      list.flatMap(({ name, description, inputSchema }) => [
        `${printable(name)}: ${shortText(description)}`,
        `  ${printable(JSON.stringify(inputSchema))}`,
      ]),
    ),
    "",
    "messages",
    ...partLines(request.messages, (messages) => messages.flatMap(messageLines)),
  ];
}

function partLines<Value>(
  part: Recorded<Value>,
  lines: (value: Value) => readonly string[],
): readonly string[] {
  if (part.state !== "recorded") return [`  (${part.state === "erased" ? "erased" : "not recorded"})`];
  const found = lines(part.value).filter((line) => line !== "");
  return found.length === 0 ? ["  (none)"] : found.map((line) => indented(line));
}

function indented(text: string): string {
  return text.replaceAll(/^/gmu, "  ");
}

function messageLines(message: ChatMessage): readonly string[] {
  const { role, content } = message;
  const said = messageText(message);
  const lines = said === "" ? [] : [`${role}: ${shownText(said)}`];
  if (typeof content === "string") return lines;
  for (const part of content) {
    if (part.type === "tool_call")
      lines.push(`${role} calls ${printable(part.toolName)} ${printable(JSON.stringify(part.input))}`);
    else if (part.type === "tool_result")
      lines.push(`result of ${printable(part.toolName)}: ${shownText(outputText(part.output))}`);
    else if (part.type !== "text") lines.push(`${role}: (${part.type})`);
  }
  return lines;
}

function outputText(output: ToolOutput): string {
  if (output.type === "text") return output.text;
  if (output.type === "json") return jsonText(output.value);
  return output.parts.map((part) => (part.type === "text" ? part.text : `(${part.type})`)).join("\n");
}
