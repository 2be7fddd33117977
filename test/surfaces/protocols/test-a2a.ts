import {
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  type Client,
} from "@a2a-js/sdk/client";
import {
  Role,
  TaskState,
  type Artifact,
  type SendMessageRequest,
  type StreamResponse,
  type Task,
} from "@a2a-js/sdk";

/** A `fetch` that sends a token. */
function fetchWith(token: string | null): typeof fetch {
  return (input, init) =>
    fetch(input, {
      ...init,
      headers: {
        ...(init?.headers as Record<string, string> | undefined),
        ...(token !== null && { authorization: `Bearer ${token}` }),
      },
    });
}

/** The client of the SDK, which finds the agent by its card. */
export function clientOf(url: string, agent: string, token: string | null): Promise<Client> {
  const fetchImpl = fetchWith(token);
  const factory = new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
      transports: [new JsonRpcTransportFactory({ fetchImpl })],
      cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
    }),
  );
  return factory.createFromUrl(url, `/a2a/${agent}/.well-known/agent-card.json`);
}

type Part = NonNullable<SendMessageRequest["message"]>["parts"][number];

export function textPart(value: string): Part {
  return { content: { $case: "text", value }, metadata: undefined, filename: "", mediaType: "" };
}

export function dataPart(value: unknown): Part {
  return { content: { $case: "data", value }, metadata: undefined, filename: "", mediaType: "" };
}

/** A message of the client. */
export function message(
  messageId: string,
  content: string | readonly Part[],
  {
    contextId = "",
    taskId = "",
    ...configuration
  }: { contextId?: string; taskId?: string; returnImmediately?: boolean; historyLength?: number } = {},
): SendMessageRequest {
  return {
    tenant: "",
    message: {
      messageId,
      contextId,
      taskId,
      role: Role.ROLE_USER,
      parts: typeof content === "string" ? [textPart(content)] : [...content],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    },
    configuration: {
      acceptedOutputModes: [],
      taskPushNotificationConfig: undefined,
      returnImmediately: false,
      ...configuration,
    },
    metadata: undefined,
  };
}

/** The task of an answer. Fails if the answer is a message. */
export function taskOf(answer: object): Task {
  if (!("status" in answer)) throw new Error("the answer is no task");
  return answer as Task;
}

export function stateOf({ status }: Task): string {
  return TaskState[status?.state ?? -1] ?? "none";
}

export function textOf(artifact: Artifact | undefined): string {
  return (artifact?.parts ?? [])
    .map(({ content }) => (content?.$case === "text" ? content.value : ""))
    .join("");
}

/** What a client that folds a stream holds at its end: the task with the updates applied. */
export function folded(updates: readonly StreamResponse[]): Task {
  let task: Task | undefined;
  for (const { payload } of updates) {
    if (payload?.$case === "task") task = structuredClone(payload.value);
    if (task === undefined) throw new Error("the stream does not begin with a task");
    if (payload?.$case === "statusUpdate") {
      task.status = payload.value.status;
      task.metadata = payload.value.metadata;
    }
    if (payload?.$case === "artifactUpdate") {
      const { artifact, append } = payload.value;
      if (artifact === undefined) continue;
      const at = task.artifacts.findIndex(({ artifactId }) => artifactId === artifact.artifactId);
      const known = task.artifacts[at];
      if (known === undefined) task.artifacts.push(structuredClone(artifact));
      else if (append) known.parts.push(...artifact.parts);
      else task.artifacts[at] = structuredClone(artifact);
    }
  }
  if (task === undefined) throw new Error("the stream is empty");
  return task;
}

export async function collected<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}
