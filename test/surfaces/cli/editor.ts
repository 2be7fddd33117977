import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import {
  client,
  ndJsonStream,
  PROTOCOL_VERSION,
  type ClientConnection,
  type ClientContext,
  type InitializeResponse,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import { onTestFinished } from "vitest";
import { main } from "./reeve-process.ts";

type Decide = (request: RequestPermissionRequest) => Promise<RequestPermissionResponse>;

interface EditorOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  readonly decide?: Decide;
}

/** An editor: the client of the ACP SDK, connected to `reeve acp` in a process of its own. */
export interface Editor {
  readonly agent: ClientContext;
  readonly process: ChildProcess;
  readonly initialized: InitializeResponse;
  readonly updates: SessionUpdate[];
  readonly asked: RequestPermissionRequest[];
  /** What the process has written to stderr. */
  readonly talk: () => string;
  /** Resolves when an update matches. */
  readonly seen: (matches: (update: SessionUpdate) => boolean) => Promise<void>;
  /** Closes the connection as an editor does, and returns the exit code. */
  readonly leave: () => Promise<number | null>;
}

export const select =
  (optionId: string): Decide =>
  async () => ({ outcome: { outcome: "selected", optionId } });

export async function openEditor({
  cwd,
  env,
  args = [],
  decide = select("reject"),
}: EditorOptions): Promise<Editor> {
  const child = spawn(process.execPath, [main, "acp", ...args], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const ended = once(child, "close");
  let talk = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (talk += text));
  const updates: SessionUpdate[] = [];
  const asked: RequestPermissionRequest[] = [];
  let watchers: { matches: (update: SessionUpdate) => boolean; resolve: () => void }[] = [];
  const app = client({ name: "test" })
    .onNotification("session/update", ({ params: { update } }) => {
      updates.push(update);
      for (const { resolve } of watchers.filter(({ matches }) => matches(update))) resolve();
      watchers = watchers.filter(({ matches }) => !matches(update));
    })
    .onRequest("session/request_permission", async ({ params }) => {
      asked.push(params);
      return decide(params);
    });
  const output = Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>;
  const connection: ClientConnection = app.connect(ndJsonStream(Writable.toWeb(child.stdin), output));
  const { agent } = connection;
  onTestFinished(() => {
    connection.close();
    child.kill("SIGKILL");
  });
  const initialized = await agent.request("initialize", {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: {},
  });
  return {
    agent,
    process: child,
    initialized,
    updates,
    asked,
    talk: () => talk,
    seen: (matches) =>
      updates.some(matches)
        ? Promise.resolve()
        : new Promise((resolve) => {
            watchers.push({ matches, resolve });
          }),
    leave: async () => {
      child.stdin.end();
      const [code] = (await ended) as [number | null];
      return code;
    },
  };
}

/** The text of the chunks of a kind, joined. */
export function textOf(updates: readonly SessionUpdate[], kind: SessionUpdate["sessionUpdate"]): string {
  return updates
    .flatMap((update) =>
      update.sessionUpdate === kind &&
      "content" in update &&
      update.content !== null &&
      !Array.isArray(update.content)
        ? [update.content?.type === "text" ? update.content.text : `<${update.content?.type}>`]
        : [],
    )
    .join("");
}
