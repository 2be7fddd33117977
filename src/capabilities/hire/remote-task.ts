import { readProperty, type FilePart, type JsonObject, type JsonValue } from "../../kernel/index.ts";

/** A task of a remote agent, as far as the client reads it. */
export interface RemoteTask {
  readonly id: string;
  readonly contextId: string;
  readonly state: string;
  /** The message of the status as a text. */
  readonly said: string;
  /** Identifies the status, so that a question is not taken for the next one. */
  readonly mark: string;
  /** Ids of the messages that the task shows. */
  readonly messageIds: readonly string[];
  readonly text: string;
  readonly files: readonly FilePart[];
}

/** The states in which a task changes no more. */
export const endStates: ReadonlySet<string> = new Set([
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_REJECTED",
]);

/** Reads a task of an answer. `undefined` if the value is none. */
export function readTask(value: unknown): RemoteTask | undefined {
  const id = readProperty(value, "id");
  const status = readProperty(value, "status");
  const state = readProperty(status, "state");
  if (typeof id !== "string" || typeof state !== "string") return undefined;
  const message = readProperty(status, "message");
  const contents = listOf(readProperty(value, "artifacts")).map((artifact) =>
    contentOf(readProperty(artifact, "parts")),
  );
  const marks = [readProperty(status, "timestamp"), readProperty(message, "messageId")];
  return {
    id,
    contextId: textIn(value, "contextId"),
    state,
    said: contentOf(readProperty(message, "parts")).text,
    mark: JSON.stringify([state, ...marks.map((each) => each ?? null)]),
    messageIds: listOf(readProperty(value, "history")).map((each) => textIn(each, "messageId")),
    text: contents
      .map(({ text }) => text)
      .filter((text) => text !== "")
      .join("\n\n"),
    files: contents.flatMap(({ files }) => files),
  };
}

interface Content {
  readonly text: string;
  readonly files: readonly FilePart[];
}

/** The texts and files of the parts of a message or an artifact. */
export function contentOf(parts: unknown): Content {
  let text = "";
  const files: FilePart[] = [];
  for (const part of listOf(parts)) {
    const said = readProperty(part, "text");
    const data = readProperty(part, "data");
    const url = readProperty(part, "url");
    const raw = readProperty(part, "raw");
    const mediaType = textIn(part, "mediaType") || "application/octet-stream";
    const name = textIn(part, "filename");
    const filename = name === "" ? {} : { filename: name };
    if (typeof said === "string") text += said;
    else if (data !== undefined) text += JSON.stringify(data);
    else if (typeof url === "string")
      files.push({ type: "file", mediaType, source: { kind: "url", url }, ...filename });
    else if (typeof raw === "string")
      files.push({ type: "file", mediaType, source: { kind: "base64", data: raw }, ...filename });
  }
  return { text, files };
}

export function textIn(value: unknown, name: string): string {
  const found = readProperty(value, name);
  return typeof found === "string" ? found : "";
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** What a remote task records with `attempt.keep`, each before what it describes takes effect. */
export type RemoteRecord =
  /** A message is about to be sent. A later attempt looks for it before it sends it again. */
  | { readonly type: "send"; readonly messageId: string; readonly contextId: string; readonly text: string }
  /** The task that the last message has started. */
  | { readonly type: "task"; readonly id: string; readonly contextId: string }
  /** The answer to the question with this mark is about to be sent. */
  | { readonly type: "reply"; readonly messageId: string; readonly mark: string; readonly text: string }
  /** The last message has its answer. */
  | { readonly type: "answer"; readonly text: string; readonly files: readonly FilePart[] };

/** A message that was sent, and what is known about it. */
export interface RemoteExchange {
  readonly messageId: string;
  readonly contextId: string;
  readonly text: string;
  taskId: string | null;
  /** The last reply to a question of the task. */
  reply: Extract<RemoteRecord, { type: "reply" }> | null;
  answer: Extract<RemoteRecord, { type: "answer" }> | null;
}

/** Adds what attempts have recorded to the exchanges that came before them. */
export function exchangesOf(before: readonly RemoteExchange[], kept: readonly JsonValue[]): RemoteExchange[] {
  const exchanges = structuredClone([...before]);
  for (const record of kept as readonly unknown[] as readonly RemoteRecord[]) {
    const last = exchanges.at(-1);
    if (record.type === "send") exchanges.push(newExchange(record));
    else if (last === undefined) continue;
    else if (record.type === "task")
      exchanges.splice(-1, 1, { ...last, taskId: record.id, contextId: record.contextId });
    else last[record.type] = record as never;
  }
  return exchanges;
}

export function newExchange({
  messageId,
  contextId,
  text,
}: Pick<RemoteExchange, "messageId" | "contextId" | "text">): RemoteExchange {
  return { messageId, contextId, text, taskId: null, reply: null, answer: null };
}

/** A message of the user on the wire. */
export function wireMessage(
  messageId: string,
  parts: readonly JsonObject[],
  place: { readonly contextId: string; readonly taskId?: string },
): JsonObject {
  return { messageId, role: "ROLE_USER", parts, ...place };
}
