import type { AgentContext } from "@agentclientprotocol/sdk";
import { expect, it } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { tool } from "../../../src/capabilities/index.ts";
import { Fault, parseSessionId, type Mail } from "../../../src/kernel/index.ts";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import { memoryStore, sha256 } from "../../../src/runtime/index.ts";
import { AcpSession } from "../../../src/surfaces/protocols/acp/acp-session.ts";
import { endlessModel } from "./endless-model.ts";
import { eventually } from "./test-chat.ts";

const send = tool({
  name: "send",
  description: "Sends a letter.",
  inputSchema: { type: "object", properties: {} },
  needsApproval: true,
  execute: () => "sent",
});
const agent = new Agent({
  name: "clerk",
  model: endlessModel(({ messages }) =>
    messages.at(-1)?.role === "tool" ? "Done." : { toolCalls: [{ name: "send", input: {} }] },
  ),
  tools: [send],
});

/** A session whose editor answers every question with `outcome`, over a store that refuses mail of one type. */
async function openSession(refused: Mail["body"]["type"], outcome: object | Promise<object>) {
  const store = memoryStore({ hash: sha256 });
  const put = store.mailbox.put.bind(store.mailbox);
  const broken: { isStore: boolean; pipe?: RegExp } = { isStore: true };
  store.mailbox.put = async (mail, scope) => {
    if (broken.isStore && mail.body.type === refused)
      throw new Fault("store_unavailable", "the disk is away");
    return put(mail, scope);
  };
  const runtime = await openRuntime({ store });
  const shown: string[] = [];
  const lines: string[] = [];
  const client = {
    request: async () => ({ outcome: await outcome }),
    notify: async (_method: string, update: unknown) => {
      const line = JSON.stringify(update);
      if (broken.pipe?.test(line) === true) throw new Error("EPIPE");
      shown.push(line);
    },
  };
  const session = new AcpSession({
    sessionId: parseSessionId("talk"),
    cwd: "/",
    folder: {
      root: "/",
      runtime,
      agents: [{ name: "clerk" }],
      commands: [],
      agentName: "clerk",
      isAgentChosen: false,
      agent: async () => ({ agent, metadata: {} }),
      expand: async (input) => input,
      whenResumed: async () => {},
    },
    client: client as unknown as AgentContext,
    closed: new AbortController().signal,
    log: (line) => void lines.push(line),
  });
  return { session, runtime, shown, lines, broken };
}

const prompt = [{ type: "text", text: "Write to bob" }] as const;

it("a session of an editor continues, and says so, if the store does not accept the cancel of a question", async () => {
  const { session, runtime, shown, lines, broken } = await openSession("cancel", { outcome: "cancelled" });
  const answer = session.prompt(prompt, new AbortController().signal);
  await eventually(() => shown.some((each) => each.includes("the run was not cancelled: the disk is away")));
  expect(lines).toEqual(["the run was not cancelled: the disk is away"]);
  broken.isStore = false;
  await session.cancel();
  expect(await answer).toEqual({ stopReason: "cancelled" });
  await runtime.close();
});

it("a session of an editor continues if the store does not accept the cancel of a request, and the pipe is broken", async () => {
  const { session, runtime, lines, broken } = await openSession("cancel", new Promise(() => {}));
  const abort = new AbortController();
  const answer = session.prompt(prompt, abort.signal);
  await eventually(async () => (await runtime.list()).runs[0]?.status === "waiting");
  broken.pipe = /./u;
  abort.abort();
  await eventually(() => lines.length === 2);
  expect(lines[0]).toBe("the run was not cancelled: the disk is away");
  session.announce();
  await eventually(() => lines.length === 3);
  expect(lines[2]).toBe("the editor has not received the commands: EPIPE");
  broken.isStore = false;
  delete broken.pipe;
  await session.cancel();
  expect(await answer).toEqual({ stopReason: "cancelled" });
  await runtime.close();
});

it("a session of an editor continues if the answer to a question is not stored and the pipe does not accept the error", async () => {
  const selected = { outcome: "selected", optionId: "allow" };
  const { session, runtime, lines, broken } = await openSession("approval", selected);
  broken.pipe = /The answer was not stored/u;
  const answer = session.prompt(prompt, new AbortController().signal);
  await eventually(() => lines.length > 0);
  expect(lines).toEqual(["EPIPE"]);
  await session.cancel();
  expect(await answer).toEqual({ stopReason: "cancelled" });
  await runtime.close();
});
