import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import type { McpServer, SessionUpdate, ToolCallUpdate } from "@agentclientprotocol/sdk";
import { openEditor, select, textOf, type Editor } from "./editor.ts";
import { env, setUp, type Script } from "./model-server.ts";

const writes: Script = (request) =>
  request === 1
    ? { tool: "write", input: { path: "plan.txt", content: "Paint it.\n" } }
    : { text: "I have written it." };

async function newSession({ agent }: Editor, cwd: string): Promise<string> {
  return (await agent.request("session/new", { cwd, mcpServers: [] })).sessionId;
}

function prompt({ agent }: Editor, sessionId: string, text: string) {
  return agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
}

function callsIn(updates: readonly SessionUpdate[]): readonly ToolCallUpdate[] {
  return updates.flatMap((update) =>
    update.sessionUpdate === "tool_call" || update.sessionUpdate === "tool_call_update" ? [update] : [],
  );
}

describe("reeve acp", () => {
  test("reeve acp answers a prompt with updates of text and tool calls, lists the session and replays it when it is loaded", async () => {
    const { folder, url, requests } = await setUp((request) =>
      request === 1 ? { tool: "read", input: { path: "notes.txt" } } : { text: `Answer ${request}.` },
    );
    const editor = await openEditor({ cwd: folder, env: env(url) });
    expect(editor.initialized).toMatchObject({
      protocolVersion: 1,
      agentInfo: { name: "reeve" },
      agentCapabilities: { loadSession: true, promptCapabilities: { image: true, embeddedContext: true } },
    });
    const sessionId = await newSession(editor, folder);
    await editor.seen(({ sessionUpdate }) => sessionUpdate === "available_commands_update");
    expect(await prompt(editor, sessionId, "Which colour?")).toEqual({ stopReason: "end_turn" });
    expect(textOf(editor.updates, "agent_message_chunk")).toBe("Answer 2.");
    const [started, ended] = callsIn(editor.updates);
    expect(started).toMatchObject({
      title: "read notes.txt",
      name: "read",
      kind: "read",
      status: "in_progress",
      locations: [{ path: join(folder, "notes.txt") }],
      rawInput: { path: "notes.txt" },
    });
    expect(ended).toMatchObject({
      toolCallId: started?.toolCallId,
      status: "completed",
      content: [{ type: "content", content: { type: "text", text: "The lamp is green." } }],
    });
    expect(editor.updates).toContainEqual(
      expect.objectContaining({ sessionUpdate: "session_info_update", title: "Which colour?" }),
    );
    // A second prompt of the session continues its conversation.
    await prompt(editor, sessionId, "And then?");
    expect(JSON.stringify(requests[2])).toContain("Answer 2.");

    const other = await openEditor({ cwd: folder, env: env(url) });
    const { sessions } = await other.agent.request("session/list", { cwd: folder });
    expect(sessions).toMatchObject([{ sessionId, cwd: folder, title: "Which colour?" }]);
    await other.agent.request("session/load", { sessionId, cwd: folder, mcpServers: [] });
    expect(textOf(other.updates, "user_message_chunk")).toBe("Which colour?And then?");
    expect(textOf(other.updates, "agent_message_chunk")).toBe("Answer 2.Answer 3.");
    expect(callsIn(other.updates).map(({ status }) => status)).toEqual(["pending", "completed"]);
    expect(await other.leave()).toBe(0);
    expect(await editor.leave()).toBe(0);
  });

  test("reeve acp asks the editor for permission with a diff, and does what the user of the editor decides", async () => {
    const { folder, url, requests } = await setUp((request) =>
      request % 2 === 1
        ? { tool: "write", input: { path: "plan.txt", content: `Paint it ${request}.\n` } }
        : { text: "Done." },
    );
    let answer = "reject";
    const decide: Parameters<typeof openEditor>[0]["decide"] = (request) => select(answer)(request);
    const editor = await openEditor({
      cwd: folder,
      env: env(url),
      args: ["--tools", "all", "--sandbox", "off"],
      decide,
    });
    const sessionId = await newSession(editor, folder);
    await prompt(editor, sessionId, "Write a plan.");
    const path = join(folder, "plan.txt");
    const [asked] = editor.asked;
    expect(asked).toMatchObject({
      sessionId,
      options: [{ kind: "allow_once" }, { kind: "allow_always" }, { kind: "reject_once" }],
      toolCall: {
        title: "write plan.txt",
        kind: "edit",
        locations: [{ path }],
        content: [{ type: "diff", path, oldText: null, newText: "Paint it 1.\n" }, { type: "content" }],
      },
    });
    const calls = callsIn(editor.updates);
    expect(calls.map(({ status }) => status)).toEqual(["in_progress", "pending", "failed"]);
    expect(calls[0]?.toolCallId).toBe(asked?.toolCall.toolCallId);
    await expect(readFile(path, "utf8")).rejects.toThrow("ENOENT");
    expect(JSON.stringify(requests[1])).toContain("rejected it in the editor");

    answer = "allow";
    await prompt(editor, sessionId, "Write it.");
    expect(await readFile(path, "utf8")).toBe("Paint it 3.\n");
    answer = "always";
    await prompt(editor, sessionId, "Again.");
    expect(editor.asked).toHaveLength(3);
    answer = "reject";
    await prompt(editor, sessionId, "And again.");
    expect(editor.asked).toHaveLength(3);
    expect(await readFile(path, "utf8")).toBe("Paint it 7.\n");
  });

  test("reeve acp asks for permission again if a later prompt of the session leads to the same call", async () => {
    const input = { path: "plan.txt", content: "Paint it.\n" };
    const { folder, url } = await setUp((request) =>
      request % 2 === 1 ? { tool: "write", input } : { text: "Done." },
    );
    const args = ["--tools", "all", "--sandbox", "off"];
    const editor = await openEditor({ cwd: folder, env: env(url), args });
    const sessionId = await newSession(editor, folder);
    await prompt(editor, sessionId, "Write a plan.");
    await prompt(editor, sessionId, "Write it again.");
    expect(editor.asked.length).toBe(2);
  });

  test("reeve acp cancels the run of a prompt, also while its user is asked for permission", async () => {
    const { folder, url, asked } = await setUp((request) =>
      request === 2 ? { tool: "write", input: { path: "x", content: "" } } : undefined,
    );
    const questions = Promise.withResolvers<void>();
    const editor = await openEditor({
      cwd: folder,
      env: env(url),
      args: ["--tools", "all", "--sandbox", "off"],
      decide: async () => {
        questions.resolve();
        return new Promise(() => undefined);
      },
    });
    const sessionId = await newSession(editor, folder);
    const first = prompt(editor, sessionId, "Never answered.");
    await asked(1);
    await expect(prompt(editor, sessionId, "Too early.")).rejects.toMatchObject({
      data: { code: "agent_busy" },
    });
    await editor.agent.notify("session/cancel", { sessionId });
    expect(await first).toEqual({ stopReason: "cancelled" });
    const second = prompt(editor, sessionId, "Write.");
    await questions.promise;
    await editor.agent.notify("session/cancel", { sessionId });
    expect(await second).toEqual({ stopReason: "cancelled" });
    await editor.agent.notify("session/cancel", { sessionId });
  });

  test("reeve acp cancels a prompt whose request is cancelled before it is handled", async () => {
    const { folder, url, requests } = await setUp((request) =>
      request === 1 ? { text: "Hello." } : undefined,
    );
    const editor = await openEditor({ cwd: folder, env: env(url) });
    const sessionId = await newSession(editor, folder);
    await prompt(editor, sessionId, "Hello?");
    const messages = [
      {
        id: "late",
        method: "session/prompt",
        params: { sessionId, prompt: [{ type: "text", text: "Never mind." }] },
      },
      { method: "$/cancel_request", params: { requestId: "late" } },
    ];
    const answered = new Promise<string>((resolve) => {
      editor.process.stdout?.on("data", (piece: Buffer) => {
        if (String(piece).includes('"id":"late"')) resolve(String(piece));
      });
    });
    // One write, so that both messages arrive together.
    const lines = messages.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    editor.process.stdin?.write(lines.join(""));
    expect(await answered).toContain('{"stopReason":"cancelled"}');
    expect(requests).toHaveLength(1);
  });

  test("reeve acp shows everything of a session whose process was killed, and /resume continues its run without a repeated call", async () => {
    const { folder, url, requests, asked } = await setUp((request) => {
      if (request === 1) return { text: "Hello." };
      if (request === 2) return { tool: "read", input: { path: "notes.txt" } };
      return request === 3 ? undefined : { text: "It is green." };
    });
    const killed = await openEditor({ cwd: folder, env: env(url) });
    const sessionId = await newSession(killed, folder);
    await prompt(killed, sessionId, "Hi.");
    const lost = prompt(killed, sessionId, "Which colour?").catch((error: unknown) => error);
    await asked(3);
    killed.process.kill("SIGKILL");
    await once(killed.process, "exit");
    expect(await lost).toBeInstanceOf(Error);

    const editor = await openEditor({ cwd: folder, env: env(url) });
    await editor.agent.request("session/load", { sessionId, cwd: folder, mcpServers: [] });
    expect(textOf(editor.updates, "user_message_chunk")).toBe("Hi.Which colour?");
    expect(callsIn(editor.updates).at(-1)).toMatchObject({ status: "completed" });
    expect(textOf(editor.updates, "agent_message_chunk")).toMatch(
      /^Hello\.\s+\[run_\S+ has not ended\. Send \/resume/u,
    );
    expect(requests).toHaveLength(3);
    editor.updates.length = 0;
    expect(await prompt(editor, sessionId, "/resume")).toEqual({ stopReason: "end_turn" });
    expect(textOf(editor.updates, "agent_message_chunk")).toBe("It is green.");
    expect(callsIn(editor.updates)).toEqual([]);
    expect(requests).toHaveLength(4);
    await expect(prompt(editor, sessionId, "/resume")).rejects.toThrow("nothing to resume");
  });

  test("reeve acp repeats a question that a killed process had asked, and continues with a message of the user", async () => {
    const { folder, url, requests } = await setUp(writes);
    const args = ["--tools", "all", "--sandbox", "off"];
    const questions = Promise.withResolvers<void>();
    const killed = await openEditor({
      cwd: folder,
      env: env(url),
      args,
      decide: async () => {
        questions.resolve();
        return new Promise(() => undefined);
      },
    });
    const sessionId = await newSession(killed, folder);
    const lost = prompt(killed, sessionId, "Write a plan.").catch((error: unknown) => error);
    await questions.promise;
    killed.process.kill("SIGKILL");
    await lost;

    const editor = await openEditor({ cwd: folder, env: env(url), args, decide: select("allow") });
    await editor.agent.request("session/load", { sessionId, cwd: folder, mcpServers: [] });
    expect(editor.asked).toEqual([]);
    expect(await prompt(editor, sessionId, "In blue, please.")).toEqual({ stopReason: "end_turn" });
    expect(editor.asked).toHaveLength(1);
    expect(await readFile(join(folder, "plan.txt"), "utf8")).toBe("Paint it.\n");
    expect(JSON.stringify(requests[1])).toContain("In blue, please.");
    expect(textOf(editor.updates, "user_message_chunk")).toBe("Write a plan.");
  });

  test("reeve acp passes images, links and embedded files to the model", async () => {
    const { folder, url, requests } = await setUp(() => ({ text: "Seen." }));
    const editor = await openEditor({ cwd: folder, env: env(url) });
    const sessionId = await newSession(editor, folder);
    await editor.agent.request("session/prompt", {
      sessionId,
      prompt: [
        { type: "text", text: "Compare " },
        { type: "resource_link", name: "notes.txt", uri: `file://${folder}/notes.txt` },
        { type: "text", text: " with this." },
        { type: "resource", resource: { uri: "file:///a.md", text: "# A heading" } },
        { type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" },
      ],
    });
    const sent = JSON.stringify(requests[0]);
    expect(sent).toContain(`Compare [notes.txt](file://${folder}/notes.txt) with this.`);
    expect(sent).toContain("# A heading");
    expect(sent).toContain("data:image/png;base64,iVBORw0KGgo=");
    await expect(
      editor.agent.request("session/prompt", {
        sessionId,
        prompt: [{ type: "audio", data: "", mimeType: "audio/wav" }],
      }),
    ).rejects.toMatchObject({ data: { code: "unsupported" } });
    await expect(prompt(editor, sessionId, " ")).rejects.toMatchObject({ code: -32_602 });
  });

  test("reeve acp sends messages that are longer than the buffer of the pipe", async () => {
    const text = "A long story. ".repeat(200_000);
    const { folder, url } = await setUp(() => ({ text }));
    const editor = await openEditor({ cwd: folder, env: env(url) });
    const sessionId = await newSession(editor, folder);
    await prompt(editor, sessionId, "Tell me a story.");
    editor.updates.length = 0;
    await editor.agent.request("session/load", { sessionId, cwd: folder, mcpServers: [] });
    expect(textOf(editor.updates, "agent_message_chunk")).toBe(text);
    expect(await editor.leave()).toBe(0);
  });

  test("reeve acp refuses what does not exist or is not supported, with the code of the fault, and continues to serve", async () => {
    const { folder, url } = await setUp((request) => (request === 1 ? { error: 401 } : { text: "Fine." }));
    const editor = await openEditor({ cwd: folder, env: env(url) });
    const { agent } = editor;
    const refusals = [
      [agent.request("session/new", { cwd: "relative", mcpServers: [] }), "invalid_argument"],
      [agent.request("session/new", { cwd: join(folder, "none"), mcpServers: [] }), "invalid_argument"],
      [agent.request("session/new", { cwd: `${folder}\0`, mcpServers: [] }), "invalid_argument"],
      [agent.request("session/list", { cwd: `${folder}\0` }), "invalid_argument"],
      [agent.request("session/load", { sessionId: "ses_none", cwd: folder, mcpServers: [] }), "not_found"],
      [agent.request("session/prompt", { sessionId: "ses_none", prompt: [] }), "not_found"],
      [
        agent.request("session/new", {
          cwd: folder,
          mcpServers: [{ type: "sse", name: "old", url: "http://127.0.0.1:1", headers: [] }],
        }),
        "unsupported",
      ],
    ] as const;
    for (const [request, code] of refusals) await expect(request).rejects.toMatchObject({ data: { code } });
    const sessionId = await newSession(editor, folder);
    await expect(agent.request("session/set_mode", { sessionId, modeId: "none" })).rejects.toMatchObject({
      data: { code: "invalid_argument" },
    });
    await expect(prompt(editor, sessionId, "Hi.")).rejects.toMatchObject({ data: { status: "failed" } });
    expect(await prompt(editor, sessionId, "Hi again.")).toEqual({ stopReason: "end_turn" });
    expect(editor.talk()).toContain("waiting for an editor");
  });

  test("reeve acp deletes a session of a folder that it has listed, and keeps an open session if loading it again fails", async () => {
    const { folder, url } = await setUp((request) => ({ text: `Answer ${request}.` }));
    const other = join(folder, "other");
    await mkdir(other);
    const editor = await openEditor({ cwd: folder, env: env(url) });
    const sessionId = await newSession(editor, other);
    await prompt(editor, sessionId, "Hello?");
    for (const cwd of [folder, join(folder, "missing")])
      await expect(
        editor.agent.request("session/load", { sessionId, cwd, mcpServers: [] }),
      ).rejects.toMatchObject({ message: expect.stringContaining("does not exist") as string });
    expect(await prompt(editor, sessionId, "Still there?")).toEqual({ stopReason: "end_turn" });

    const later = await openEditor({ cwd: folder, env: env(url) });
    const list = () => later.agent.request("session/list", { cwd: other });
    expect((await list()).sessions).toMatchObject([{ sessionId }]);
    await later.agent.request("session/delete", { sessionId });
    expect((await list()).sessions).toEqual([]);
  });

  test("reeve acp reads its files again on SIGHUP, says what is wrong with them, and continues to serve", async () => {
    const { folder, url, requests } = await setUp(() => ({ text: "Green." }));
    const editor = await openEditor({ cwd: folder, env: env(url) });
    const sessionId = await newSession(editor, folder);
    await mkdir(join(folder, ".reeve"), { recursive: true });
    await writeFile(join(folder, ".reeve/settings.json"), '{ "maxTurns": "many" }');
    const said = once(editor.process.stderr ?? editor.process, "data");
    editor.process.kill("SIGHUP");
    await said;
    expect(editor.talk()).toMatch(/the files were not read again: .*maxTurns.*settings\.json/u);
    expect(await prompt(editor, sessionId, "Which colour?")).toEqual({ stopReason: "end_turn" });
    expect(requests).toHaveLength(1);
    expect(await editor.leave()).toBe(0);
  });

  test("reeve acp offers agents, templates and the editor's MCP servers, and prints what extensions report only to stderr", async () => {
    const { folder, url, requests } = await setUp((request) =>
      request === 1 ? { tool: "mcp__own__hello", input: {} } : { text: "Greeted." },
    );
    const home = join(folder, "home");
    await mkdir(join(home, "extensions"), { recursive: true });
    await writeFile(
      join(home, "extensions/noise.ts"),
      `console.log("noise"); process.stdout.write("more noise\\n"); export default { name: "noise" };`,
    );
    await writeFile(
      join(home, "extensions/broken.mjs"),
      'export default () => { throw new Error("no key"); };',
    );
    await writeFile(
      join(home, "extensions/loud.mjs"),
      `export default (api) => api.on("input", (_event, ctx) => ctx.ui.notify("Mind the gap."));`,
    );
    await mkdir(join(home, "agents"), { recursive: true });
    await mkdir(join(folder, ".reeve/prompts"), { recursive: true });
    await writeFile(
      join(home, "agents/poet.md"),
      "---\ndescription: Writes verse\ntools: [read, mcp__*]\n---\nYou write verse.\n",
    );
    await writeFile(join(folder, ".reeve/prompts/greet.md"), "Greet $1 in verse.\n");
    const dist = join(inject("builtPackage"), "dist");
    await writeFile(
      join(folder, "server.mjs"),
      `import { mcpServer } from ${JSON.stringify(join(dist, "entries/mcp.js"))};
       import { tool } from ${JSON.stringify(join(dist, "entries/index.js"))};
       const inputSchema = { type: "object", properties: {} };
       const hello = tool({ name: "hello", description: "Greets", inputSchema, execute: () => "hello" });
       const server = await mcpServer({ name: "own", tools: [hello] });
       await server.serveStdio().closed;
       await server.close();`,
    );
    const editor = await openEditor({
      cwd: folder,
      env: { ...env(url), REEVE_HOME: home },
      decide: select("allow"),
    });
    const own: McpServer = {
      name: "own",
      command: process.execPath,
      args: [join(folder, "server.mjs")],
      env: [],
    };
    const { sessionId, modes } = await editor.agent.request("session/new", {
      cwd: folder,
      mcpServers: [own],
    });
    expect(modes).toMatchObject({
      currentModeId: "assistant",
      availableModes: expect.arrayContaining([{ id: "poet", name: "poet", description: "Writes verse" }]),
    });
    await editor.seen(
      (update) =>
        update.sessionUpdate === "available_commands_update" &&
        ["resume", "greet"].every((name) => update.availableCommands.some((each) => each.name === name)),
    );
    await editor.agent.request("session/set_mode", { sessionId, modeId: "poet" });
    expect(await prompt(editor, sessionId, "/greet Ann")).toEqual({ stopReason: "end_turn" });
    expect(editor.asked).toMatchObject([{ toolCall: { title: "mcp__own__hello", kind: "other" } }]);
    expect(callsIn(editor.updates).at(-1)).toMatchObject({ status: "completed" });
    const sent = JSON.stringify(requests[0]);
    expect(sent).toContain("Greet Ann in verse.");
    expect(sent).toContain("You write verse.");
    expect(await editor.leave()).toBe(0);
    expect(editor.talk()).toContain("noise");
    expect(editor.talk()).toMatch(/^reeve: run_\S+: extension broken failed in setup: no key$/mu);
    expect(editor.talk()).toMatch(/^reeve: run_\S+: extension loud: Mind the gap\.$/mu);
    expect(editor.talk()).not.toContain("does not read");
  });
});
