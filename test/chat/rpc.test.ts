import { execFile, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import type { JsonObject } from "../../src/kernel/index.ts";
import { repository } from "../gates/run-node.ts";
import { env, setUp } from "../surfaces/cli/model-server.ts";
import { main, reeve } from "../surfaces/cli/reeve-process.ts";

const lacksPython = spawnSync("python3", ["--version"]).status !== 0;
if (lacksPython)
  process.stderr.write("\nTHE TEST OF THE PYTHON CLIENT IS SKIPPED: python3 cannot be started\n\n");

/** A program that talks with `reeve chat --mode rpc`. */
function startRpc(cwd: string, url: string, ...args: readonly string[]) {
  const stdin = new PassThrough();
  const lines: JsonObject[] = [];
  const arrivals = new EventTarget();
  const ended = reeve(["chat", "--mode", "rpc", ...args], {
    cwd,
    env: env(url),
    terminal: {
      put: (text) => {
        lines.push(JSON.parse(text) as JsonObject);
        arrivals.dispatchEvent(new Event("line"));
      },
      peer: { lines: stdin, isReading: async () => true },
    },
  });
  // A test that fails leaves no command behind.
  onTestFinished(async () => {
    stdin.end();
    await ended;
  });
  return {
    lines,
    send: (line: string | JsonObject) =>
      void stdin.write(`${typeof line === "string" ? line : JSON.stringify(line)}\n`),
    /** Resolves with the first line that matches. */
    line: async (matches: (line: JsonObject) => boolean): Promise<JsonObject> => {
      for (;;) {
        const found = lines.find(matches);
        if (found !== undefined) return found;
        await once(arrivals, "line");
      }
    },
    end: async (): Promise<number> => {
      stdin.end();
      return (await ended).code;
    },
  };
}

describe("reeve chat --mode rpc", () => {
  test("a program on reeve chat --mode rpc can steer, queue, abort, fork, switch and compact, and wrong lines get an error", async () => {
    const { folder, url, asked } = await setUp((request) =>
      request === 2 ? undefined : { text: `Answer ${request}` },
    );
    const chat = startRpc(folder, url);
    const answer = async (id: number): Promise<JsonObject> => chat.line((line) => line["id"] === id);
    await chat.line(({ type }) => type === "ready");
    chat.send("no json");
    chat.send({ id: 1, type: "promt" });
    chat.send({ id: 2, type: "prompt", input: "Hello", text: "x" });
    expect(await answer(1)).toMatchObject({
      error: {
        code: "invalid_argument",
        message: expect.stringContaining("expected one of prompt, ") as unknown,
      },
    });
    expect(await answer(2)).toMatchObject({
      error: { message: 'unknown field "text" of prompt: expected id, type, input' },
    });
    expect(chat.lines).toContainEqual({
      type: "response",
      id: null,
      error: expect.objectContaining({ code: "not_json" }) as unknown,
    });
    const wrong = [5, true, {}, { text: "Hello" }, [], ["Hello"], [{ type: "text" }], "", null];
    for (const [index, input] of wrong.entries()) {
      chat.send({ id: 20 + index, type: index % 2 === 0 ? "prompt" : "follow_up", input });
      expect(await answer(20 + index)).toMatchObject({
        error: {
          code: "invalid_argument",
          message: expect.stringContaining("expected a text that is not empty, or content parts") as unknown,
        },
      });
    }
    chat.send({ id: 14, type: "approve", decision: "approved" });
    expect(await answer(14)).toMatchObject({
      error: { message: "approve lacks the approvalId; the state lists the open questions" },
    });
    chat.send({ id: 13, type: "approve", approvalId: "one\u2028two\u2029" });
    expect(await answer(13)).toMatchObject({ error: { message: expect.stringContaining("one") as unknown } });
    chat.send({ id: 3, type: "prompt", input: "Hello" });
    await chat.line(({ type }) => type === "idle");
    expect(chat.lines.filter(({ type }) => type === "event").length).toBeGreaterThan(5);
    chat.send({ id: 4, type: "prompt", input: "Work" });
    await asked(2);
    chat.send({ id: 5, type: "steer", input: "faster" });
    const image = { type: "image", mediaType: "image/png", source: { kind: "base64", data: "iVBORw==" } };
    const withImage = [{ type: "text", text: "then rest" }, image];
    chat.send({ id: 6, type: "follow_up", input: withImage });
    chat.send({ id: 7, type: "state" });
    expect(await answer(7)).toMatchObject({
      result: {
        isWorking: true,
        queue: [
          { kind: "steer", input: "faster" },
          { kind: "follow_up", input: withImage },
        ],
      },
    });
    chat.send({ id: 8, type: "abort" });
    expect(await answer(8)).toMatchObject({ result: { restored: ["faster", withImage] } });
    await expect.poll(() => chat.lines.filter(({ type }) => type === "idle").length).toBe(2);
    chat.send({ id: 9, type: "fork" });
    const forked = (await answer(9))["result"] as JsonObject;
    const first = (await chat.line(({ type, sessionId }) => type === "session" && sessionId !== null))[
      "sessionId"
    ];
    expect(forked["sessionId"]).not.toBe(first);
    chat.send({ id: 12, type: "switch", sessionId: "" });
    expect(await answer(12)).toMatchObject({ error: { code: "invalid_argument" } });
    chat.send({ id: 10, type: "switch", sessionId: first ?? null });
    expect(await answer(10)).toMatchObject({ result: { sessionId: first, isWorking: false } });
    chat.send({ id: 11, type: "compact" });
    expect(await answer(11)).toMatchObject({ result: { runId: expect.stringContaining("run_") as unknown } });
    expect(await chat.end()).toBe(0);
  });

  test("a program on reeve chat --mode rpc approves a call with edited arguments, and the call is made with them", async () => {
    const { folder, url } = await setUp((request) =>
      request === 1
        ? { tool: "write", input: { path: "made.txt", content: "as asked" } }
        : { text: "Written." },
    );
    const chat = startRpc(folder, url, "--tools", "all", "--sandbox", "off");
    await chat.line(({ type }) => type === "ready");
    chat.send({ id: 1, type: "prompt", input: "Write" });
    const { question } = await chat.line(({ type }) => type === "question");
    const { approvalId = null } = question as JsonObject;
    const input = { path: "made.txt", content: "as edited" };
    chat.send({ id: 2, type: "approve", approvalId, decision: "approved", input });
    await chat.line(({ id }) => id === 2);
    await expect
      .poll(() => chat.lines.some(({ event }) => JSON.stringify(event ?? null).includes('"run_end"')))
      .toBe(true);
    expect(await readFile(join(folder, "made.txt"), "utf8")).toBe("as edited");
    expect(await chat.end()).toBe(0);
  });

  test.skipIf(lacksPython)(
    "the Python client of 100 lines asks, approves a call and prints the conversation through reeve chat --mode rpc",
    async () => {
      const { folder, url } = await setUp((request) =>
        request === 1
          ? { tool: "write", input: { path: "haiku.txt", content: "green lamp\n" } }
          : { text: "It is written." },
      );
      const client = join(repository, "examples/recipes/chat-rpc.py");
      expect((await readFile(client, "utf8")).split("\n").length).toBeLessThanOrEqual(101);
      const command = [process.execPath, main, "chat", "--mode", "rpc", "--tools", "all", "--sandbox", "off"];
      const { stdout } = await promisify(execFile)("python3", [client, ...command, "--", "Write a haiku"], {
        cwd: folder,
        env: { ...process.env, ...env(url) },
      });
      expect(await readFile(join(folder, "haiku.txt"), "utf8")).toBe("green lamp\n");
      expect(stdout).toMatch(
        /> Write a haiku\n\? write \{.*\}\n= write ok\nIt is written\.\nsession ses_\S+: \$0\.007\n/u,
      );
    },
  );
});
