import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { HttpAgent, type Message } from "@ag-ui/client";
import { lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { eventually, textsOf, TestChat, transportTo } from "../surfaces/protocols/test-chat.ts";

const script = fileURLToPath(new URL("chat-worker.mjs", inject("crashWorkers")));
let folder: string;
let child: ChildProcess | undefined;
let port = 0;

async function start(mode: "hang" | "hold"): Promise<void> {
  child = spawn(process.execPath, [script, join(folder, "reeve.db"), String(port), mode], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [printed] = (await once(child.stdout as NonNullable<typeof child.stdout>, "data")) as [Buffer];
  port = Number(printed.toString());
}

async function kill(): Promise<void> {
  child?.kill("SIGKILL");
  if (child?.exitCode === null && child.signalCode === null) await once(child, "exit");
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-chats-"));
});
afterAll(async () => {
  await kill();
  await rm(folder, { recursive: true, force: true, maxRetries: 10 });
});

function chatOf(id: string): TestChat {
  return new TestChat({
    id,
    transport: transportTo({ url: `http://127.0.0.1:${port}`, token: "none" }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
}

/** Returns the texts and results of AG-UI messages. */
function contents(messages: readonly Message[]): readonly string[] {
  return messages.map(({ role, content }) => `${role}: ${typeof content === "string" ? content : ""}`);
}

test("clients of the AI SDK and AG-UI continue after the server is killed during an answer, a tool and an approval", async () => {
  await start("hang");
  const chats = { talk: chatOf("talk"), dig: chatOf("dig"), send: chatOf("send") };
  const sending = Object.entries(chats).map(([text, chat]) => chat.sendMessage({ text }));
  const agent = new HttpAgent({ url: `http://127.0.0.1:${port}/api/ag-ui/clerk`, threadId: "ag" });
  agent.addMessage({ id: "m1", role: "user", content: "talk" });
  const running = agent.runAgent().catch(() => undefined);
  await eventually(
    () =>
      textsOf(chats.talk.lastMessage).join() === "Half " &&
      textsOf(chats.dig.lastMessage).join() === "I look." &&
      chats.send.status === "ready" &&
      contents(agent.messages).at(-1) === "assistant: Half ",
  );
  // The client of AG-UI does not handle the rejection of its own reader when a connection breaks.
  agent.abortRun();
  await running;
  await kill();
  await Promise.all(sending);
  expect([chats.talk.status, chats.dig.status]).toEqual(["error", "error"]);

  await start("hold");
  const resuming = [chats.talk.resumeStream(), chats.dig.resumeStream()];
  await eventually(() => chats.talk.status !== "error" && chats.dig.status !== "error");
  const again = agent.runAgent();
  child?.kill("SIGUSR2");
  await Promise.all([...resuming, again]);
  expect(chats.talk.messages.map((message) => textsOf(message).join())).toEqual(["talk", "Half of it."]);
  expect(chats.dig.messages.map((message) => textsOf(message).join())).toEqual([
    "dig",
    "I look.,It is done.",
  ]);
  const asked = chats.send.lastMessage?.parts.find(({ type }) => type === "tool-send");
  const { id } = (asked as unknown as { readonly approval: { readonly id: string } }).approval;
  await chats.send.addToolApprovalResponse({ id, approved: true });
  await eventually(() => chats.send.status === "ready" && textsOf(chats.send.lastMessage).length === 2);
  expect(textsOf(chats.send.lastMessage)).toEqual(["I look.", "It is done."]);
  expect(contents(agent.messages)).toEqual(["user: talk", "assistant: Half of it."]);
  for (const sessionId of ["talk", "dig", "send", "ag"]) {
    const runs = await fetch(`http://127.0.0.1:${port}/api/runs?sessionId=${sessionId}`);
    const page = (await runs.json()) as { readonly runs: readonly { readonly status: string }[] };
    expect(page.runs.map(({ status }) => status)).toEqual(["completed"]);
  }
});
