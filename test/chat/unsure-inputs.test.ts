import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Agent } from "../../src/assembly/agent.ts";
import { openRuntime } from "../../src/assembly/open-runtime.ts";
import type { ModelCallOptions, ModelRequest, ModelStreamPart } from "../../src/kernel/index.ts";
import { RouteClient } from "../../src/surfaces/client/route-client.ts";
import { Conversation } from "../../src/surfaces/cli/chat/client/conversation.ts";
import { ownPlace } from "../../src/surfaces/cli/chat/client/server-place.ts";
import { createServer } from "../../src/surfaces/server/server.ts";
import { ScriptedModel } from "../../src/testing/scripted-model.ts";

/** A model whose first call waits until it is let go. */
class HeldModel extends ScriptedModel {
  readonly #go: Promise<void>;

  constructor(go: Promise<void>) {
    super(["One.", "Two.", "Three.", "Four."]);
    this.#go = go;
  }

  override async *stream(request: ModelRequest, options: ModelCallOptions): AsyncIterable<ModelStreamPart> {
    const stopped = Promise.withResolvers<never>();
    options.signal?.addEventListener("abort", () => stopped.reject(options.signal?.reason));
    await Promise.race([this.#go, stopped.promise]);
    yield* super.stream(request, options);
  }
}

/** A chat with a server that can be started again, and a network that loses requests or their answers. */
async function openChat() {
  const folder = await mkdtemp(join(tmpdir(), "reeve-unsure-"));
  const go = Promise.withResolvers<void>();
  const model = new HeldModel(go.promise);
  const agent = new Agent({ name: "host", model, tools: [] });
  const start = async () => {
    const runtime = await openRuntime({
      store: `sqlite:${join(folder, "reeve.db")}`,
      unknownPrice: "ignore",
      closeGraceMs: 0,
    });
    return { runtime, server: createServer(runtime, { agents: [agent], tokens: null }) };
  };
  let running = await start();
  const stop = async (): Promise<void> => {
    await running.server.drain();
    await running.runtime.close();
  };
  let loses: "request" | "answer" | undefined;
  const client = new RouteClient({
    url: "http://localhost",
    fetch: async (request) => {
      const isInput = /\/(?:steer|follow-up|runs)$/u.test(new URL(request.url).pathname);
      const lost = request.method === "POST" && isInput ? loses : undefined;
      if (lost !== undefined) loses = undefined;
      if (lost === "request") throw new Error("lost");
      const response = await ownPlace(running.server).fetch(request);
      if (lost === "answer") throw new Error("lost");
      return response;
    },
  });
  const happened: string[] = [];
  const conversation = new Conversation({
    client,
    agent: "host",
    onOpen: () => undefined,
    onChange: () => undefined,
    onItem: ({ type }) => void happened.push(type),
  });
  onTestFinished(async () => {
    conversation.close();
    await stop();
    await rm(folder, { recursive: true, force: true });
  });
  return {
    conversation,
    model,
    client,
    happened,
    go: () => go.resolve(),
    lose: (lost: "request" | "answer"): void => void (loses = lost),
    restart: async (): Promise<void> => {
      await stop();
      running = await start();
    },
    /** Waits until the agent has finished, and returns the inputs that it has read in all runs. */
    read: async (): Promise<readonly string[]> => {
      const { signal } = new AbortController();
      await conversation.untilIdle(signal);
      const { runs } = await client.get("/api/runs", { query: { limit: 50 } });
      expect(runs.map(({ endedAt }) => endedAt)).not.toContain(null);
      return conversation.model.items.flatMap(({ item }) => (item.kind === "user" ? [item.text] : []));
    },
  };
}

describe("a chat input whose answer is lost", () => {
  test.for([
    { kind: "steering", lost: "answer" },
    { kind: "follow-up", lost: "answer" },
    { kind: "steering", lost: "request" },
  ] as const)(
    "a chat that sends $kind again after a lost $lost and a restart of the server delivers the input once",
    async ({ kind, lost }) => {
      const chat = await openChat();
      const { conversation } = chat;
      const send = (): Promise<void> =>
        kind === "steering" ? conversation.send("faster") : conversation.followUp("faster");
      await conversation.send("Work");
      chat.lose(lost);
      await expect(send()).rejects.toMatchObject({ code: "offline" });
      await chat.restart();
      await send();
      chat.go();
      expect(await chat.read()).toEqual(["Work", "faster"]);
      // After its delivery, the same text is a new input.
      await conversation.send("faster");
      expect(await chat.read()).toEqual(["Work", "faster", "faster"]);
    },
  );

  test.for([
    { lost: "answer", end: "has read it and completed" },
    { lost: "request", end: "has completed" },
    { lost: "answer", end: "was cancelled" },
    { lost: "request", end: "was cancelled" },
  ] as const)(
    "a chat that sends steering again after a lost $lost delivers it once, if the run $end meanwhile",
    async ({ lost, end }) => {
      const chat = await openChat();
      const { conversation, client } = chat;
      await conversation.send("Work");
      const { runId = "" } = conversation.model;
      chat.lose(lost);
      await expect(conversation.send("faster")).rejects.toMatchObject({ code: "offline" });
      await expect.poll(() => chat.happened.includes("run_steer") || lost === "request").toBe(true);
      if (end === "was cancelled")
        await client.post("/api/runs/{runId}/cancel", { params: { runId }, body: {} });
      else chat.go();
      await expect.poll(() => conversation.model.isWorking).toBe(false);
      chat.go();
      await conversation.send("faster");
      expect(await chat.read()).toEqual(["Work", "faster"]);
      const { runs } = await client.get("/api/runs", { query: { limit: 50 } });
      expect(runs).toHaveLength(end === "has read it and completed" ? 1 : 2);
    },
  );

  test("a chat that sends a prompt again after a lost answer follows the run that it has started", async () => {
    const chat = await openChat();
    const { conversation } = chat;
    chat.lose("answer");
    await expect(conversation.send("Work")).rejects.toMatchObject({ code: "offline" });
    await chat.restart();
    await conversation.send("Work");
    chat.go();
    expect(await chat.read()).toEqual(["Work"]);
    expect(chat.model.calls).toHaveLength(1);
  });
});
