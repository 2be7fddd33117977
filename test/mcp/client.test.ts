import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { openRuntime } from "../../src/entries/index.ts";
import type { Delta, Event, Fault } from "../../src/kernel/index.ts";
import {
  mcpServer,
  mcpServers,
  type McpServers,
  type McpServersOptions,
  type ServerConfigs,
} from "../../src/assembly/mcp.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { caller, callOnce, everything, filesystem, lives, named } from "./live-servers.ts";

const open: { close(): Promise<void> }[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

function servers(configs: ServerConfigs, options: McpServersOptions = {}): McpServers {
  const opened = mcpServers(configs, options);
  open.push(opened);
  return opened;
}

async function runtimeHere() {
  const runtime = await openRuntime();
  open.push(runtime);
  return runtime;
}

async function folderHere(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "reeve-mcp-")));
  open.push({ close: () => rm(folder, { recursive: true, force: true, maxRetries: 10 }) });
  return folder;
}

it("McpServers starts no server before its first use, and ends the server programs at close()", async () => {
  const mcp = servers({ everything });
  expect(mcp.pid("everything")).toBeNull();
  await mcp.tools();
  const pid = mcp.pid("everything") ?? 0;
  expect(lives(pid)).toBe(true);
  await mcp.close();
  expect(lives(pid)).toBe(false);
  await expect(mcp.readResource("everything", "a://b")).rejects.toThrow("MCP server everything is closed");
});

it("`await using` ends the programs of McpServers at the end of the block", async () => {
  let pid = 0;
  {
    await using mcp = mcpServers({ everything });
    await mcp.tools();
    pid = mcp.pid("everything") ?? 0;
    expect(lives(pid)).toBe(true);
  }
  expect(lives(pid)).toBe(false);
});

it("tools() of McpServers names each tool mcp__<server>__<tool> and names its origin, also if the tool's name is unique", async () => {
  const mcp = servers({ everything, again: { ...everything, tools: ["echo"] } });
  const tools = await mcp.tools();
  expect(tools.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["mcp__everything__get-sum", "mcp__everything__echo", "mcp__again__echo"]),
  );
  expect(tools.filter(({ name }) => !name.startsWith("mcp__"))).toEqual([]);
  expect(named(tools, "mcp__again__echo").origin).toEqual({ server: "again", name: "echo" });
});

it("tools() of McpServers ignores the annotations of a server unless trustAnnotations is true", async () => {
  const mcp = servers({
    trusted: { ...everything, tools: ["echo"], trustAnnotations: true },
    distrusted: { ...everything, tools: ["echo"], trustAnnotations: false },
    unsaid: { ...everything, tools: ["echo"] },
  });
  const tools = await mcp.tools();
  const believed = { risk: "safe", destructive: false, concurrency: "parallel" };
  const ignored = { risk: "high", destructive: true, concurrency: "sequential" };
  expect(named(tools, "mcp__trusted__echo")).toMatchObject(believed);
  expect(named(tools, "mcp__distrusted__echo")).toMatchObject(ignored);
  expect(named(tools, "mcp__unsaid__echo")).toMatchObject(ignored);
});

it("a remote MCP tool returns text, structured content, images and files", async () => {
  const mcp = servers({ everything });
  const [runtime, agent] = [await runtimeHere(), caller(await mcp.tools())];
  expect(await callOnce(runtime, agent, "mcp__everything__get-sum", { a: 1, b: 2 })).toEqual({
    output: { type: "text", text: "The sum of 1 and 2 is 3." },
    isError: false,
  });
  expect(
    (await callOnce(runtime, agent, "mcp__everything__get-structured-content", { location: "Chicago" }))
      .output,
  ).toMatchObject({
    type: "json",
    value: { conditions: expect.any(String) as unknown },
  });
  const { output: image } = await callOnce(runtime, agent, "mcp__everything__get-tiny-image");
  expect(image).toMatchObject({
    type: "content",
    parts: [{ type: "text" }, { type: "image" }, { type: "text" }],
  });
  const { output: file } = await callOnce(runtime, agent, "mcp__everything__get-resource-reference", {
    resourceType: "Blob",
    resourceId: 1,
  });
  expect(file).toMatchObject({ parts: [{ type: "text" }, { type: "file" }, { type: "text" }] });
});

it("a remote MCP tool tells the model what to fix, whether Reeve or the server found the problem", async () => {
  const folder = await folderHere();
  const mcp = servers({ everything, files: filesystem(folder) });
  const [runtime, agent] = [await runtimeHere(), caller(await mcp.tools())];
  expect(await callOnce(runtime, agent, "mcp__everything__get-sum", { a: "one", b: 2 })).toEqual({
    output: { type: "text", text: expect.stringContaining("a must be number") as unknown },
    isError: true,
  });
  const outside = await callOnce(runtime, agent, "mcp__files__read_text_file", { path: "/etc/passwd" });
  expect(outside).toMatchObject({
    isError: true,
    output: { text: expect.stringContaining("Access denied") as unknown },
  });
});

it("an agent reads and writes files through the MCP filesystem server", async () => {
  const folder = await folderHere();
  await mkdir(join(folder, "notes"));
  await writeFile(join(folder, "notes", "a.txt"), "first");
  const mcp = servers({ files: { ...filesystem(folder), trustAnnotations: true } });
  const [runtime, agent] = [await runtimeHere(), caller(await mcp.tools())];
  const path = join(folder, "notes", "b.txt");
  await callOnce(runtime, agent, "mcp__files__write_file", { path, content: "second" });
  expect(await readFile(path, "utf8")).toBe("second");
  const { output } = await callOnce(runtime, agent, "mcp__files__list_directory", {
    path: join(folder, "notes"),
  });
  expect(JSON.stringify(output)).toContain("[FILE] a.txt\\n[FILE] b.txt");
  expect(named(await mcp.tools(), "mcp__files__write_file")).toMatchObject({
    risk: "high",
    destructive: true,
  });
  expect(named(await mcp.tools(), "mcp__files__read_text_file")).toMatchObject({
    risk: "safe",
    destructive: false,
  });
});

it("readers of a run receive the progress of a remote MCP tool", async () => {
  const mcp = servers({ everything });
  const [runtime, agent] = [await runtimeHere(), caller(await mcp.tools())];
  const input = { duration: 0.05, steps: 2 };
  const run = await runtime.submit(agent, {
    toolName: "mcp__everything__trigger-long-running-operation",
    input,
  });
  const shown: (Event | Delta)[] = [];
  for await (const event of run.events()) if (event.type === "tool_execution_update") shown.push(event);
  // The last update may be missing, because the result follows it at once (E2).
  expect(shown[0]).toMatchObject({ update: { progress: 1, total: 2 } });
});

it("cancelling a run stops its remote MCP call, and the server keeps running", async () => {
  const mcp = servers({ everything });
  const [runtime, agent] = [await runtimeHere(), caller(await mcp.tools())];
  const input = { duration: 600, steps: 60_000 };
  const run = await runtime.submit(agent, {
    toolName: "mcp__everything__trigger-long-running-operation",
    input,
  });
  for await (const event of run.events()) if (event.type === "tool_execution_update") break;
  await run.cancel("enough");
  expect((await run.result()).status).toBe("cancelled");
  const { output } = await callOnce(runtime, agent, "mcp__everything__echo", { message: "still here" });
  expect(output).toEqual({ type: "text", text: "Echo: still here" });
});

it("an MCP call fails if the server sends neither a result nor progress for timeoutMs", async () => {
  const clock = new FakeClock();
  const mcp = servers({ everything: { ...everything, timeoutMs: 5_000 } }, { clock });
  const [runtime, agent] = [await runtimeHere(), caller(await mcp.tools())];
  const input = { duration: 600, steps: 1 };
  const run = await runtime.submit(agent, {
    toolName: "mcp__everything__trigger-long-running-operation",
    input,
  });
  for await (const event of run.events()) if (event.type === "tool_execution_start") break;
  while (clock.pending === 0) await new Promise(setImmediate);
  await clock.advance(5_001);
  const { output } = await run.result();
  expect(output).toMatchObject({
    isError: true,
    output: {
      text: "tool trigger-long-running-operation of MCP server everything sent neither a result nor progress for 5000 ms",
    },
  });
});

it("the call after an MCP server was killed starts the server again, and the killed call says that it may have been executed", async () => {
  const mcp = servers({ everything });
  const [runtime, agent] = [await runtimeHere(), caller(await mcp.tools())];
  const first = mcp.pid("everything") ?? 0;
  const input = { duration: 600, steps: 60_000 };
  const run = await runtime.submit(agent, {
    toolName: "mcp__everything__trigger-long-running-operation",
    input,
  });
  for await (const event of run.events()) if (event.type === "tool_execution_update") break;
  process.kill(first, "SIGKILL");
  const { output } = await run.result();
  expect(output).toMatchObject({
    isError: true,
    output: {
      text: expect.stringMatching(/was lost during tool .* may or may not have been executed/) as unknown,
    },
  });
  expect((await callOnce(runtime, agent, "mcp__everything__echo", { message: "back" })).output).toEqual({
    type: "text",
    text: "Echo: back",
  });
  expect(mcp.pid("everything")).not.toBe(first);
});

it("starts of an MCP server that fail are retried with growing delays, then fail with the server's standard error", async () => {
  const clock = new FakeClock();
  const crash = { command: process.execPath, args: ["-e", "console.error('no licence'); process.exit(3)"] };
  const mcp = servers({ crash }, { clock, backoff: { attempts: 4, baseMs: 100, maxMs: 150 } });
  const begun = clock.now();
  const failures: Fault[] = [];
  const listing = mcp.tools().catch((error: Fault) => failures.push(error));
  // The program is real; only the delays between the starts follow the fake clock.
  while (failures.length === 0) {
    await new Promise(setImmediate);
    if (clock.pending === 1) await clock.advance(10);
  }
  await listing;
  expect(failures[0]?.message).toMatch(/^MCP server crash did not start: .*no licence$/);
  // The delays are 0, 100 and 150 ms, in addition to the time that the programs themselves take.
  expect(clock.now() - begun).toBeGreaterThanOrEqual(250);
});

it("the error for an MCP server over HTTP that refuses the connection names its address and the reason", async () => {
  // The port is free: its server has been closed.
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  const url = `http://127.0.0.1:${port}/mcp?token=abc123`;
  const mcp = servers({ desk: { url } }, { backoff: { attempts: 1 } });
  const fault = await mcp.tools().then(
    () => undefined,
    (error: Fault) => error,
  );
  expect(fault?.message).not.toContain("abc123");
  expect(fault).toMatchObject({
    code: "tool_failed",
    message: expect.stringMatching(
      new RegExp(
        `^MCP server desk at http://127\\.0\\.0\\.1:${port}/mcp did not start a session: .*ECONNREFUSED`,
        "u",
      ),
    ) as unknown,
  });
});

it("the error for an MCP server over HTTP that answers with an error status names its address and the status", async () => {
  const server = createServer((_request, response) => response.writeHead(502).end("bad gateway"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  open.push({ close: async () => void server.close() });
  const { port } = server.address() as AddressInfo;
  const mcp = servers({ desk: { url: `http://127.0.0.1:${port}/mcp` } }, { backoff: { attempts: 1 } });
  await expect(mcp.tools()).rejects.toThrow(
    new RegExp(`^MCP server desk at http://127\\.0\\.0\\.1:${port}/mcp did not start a session: .*502`, "u"),
  );
});

it("the missing program of an MCP server is reported without a retry", async () => {
  const mcp = servers({ ghost: { command: "no-such-program-here" } });
  await expect(mcp.tools()).rejects.toMatchObject({
    code: "dependency_missing",
    message: expect.stringContaining('the program "no-such-program-here" does not exist') as unknown,
  });
});

it("an optional MCP server that does not start is left out with a warning", async () => {
  const warnings: string[] = [];
  const ghost = { command: "no-such-program-here", optional: true };
  const mcp = servers({ ghost, everything }, { onWarning: ({ message }) => warnings.push(message) });
  expect((await mcp.tools()).map(({ name }) => name)).toContain("mcp__everything__echo");
  expect(warnings).toEqual([expect.stringContaining("MCP server ghost did not start")]);
});

it("McpServers reads resources and prompts", async () => {
  const mcp = servers({ everything });
  const [first] = await mcp.resources();
  expect(first).toMatchObject({ server: "everything", mimeType: "text/markdown" });
  const read = await mcp.readResource("everything", first?.uri ?? "");
  expect(read).toMatchObject([{ type: "text", text: expect.stringContaining("#") as unknown }]);
  expect((await mcp.resourceTemplates()).map(({ uriTemplate }) => uriTemplate)).toContain(
    "demo://resource/dynamic/text/{resourceId}",
  );
  expect((await mcp.prompts("everything")).map(({ name }) => name)).toContain("args-prompt");
  expect(await mcp.prompt("everything", "args-prompt", { city: "Oslo" })).toMatchObject([
    { role: "user", content: [{ type: "text", text: expect.stringContaining("Oslo") as unknown }] },
  ]);
  await expect(mcp.readResource("everything", "demo://nowhere")).rejects.toThrow(
    /refused resource demo:\/\/nowhere/,
  );
  await expect(mcp.prompts("unknown")).rejects.toThrow(
    "there is no MCP server named unknown; configured: everything",
  );
});

it("resourceTools() lets a model list and read resources", async () => {
  const mcp = servers({ everything });
  expect(mcp.resourceTools()).toMatchObject([
    { name: "list_mcp_resources", risk: "safe" },
    { name: "read_mcp_resource", risk: "high", destructive: false },
  ]);
  const [runtime, agent] = [await runtimeHere(), caller(mcp.resourceTools() as never)];
  const { output } = await callOnce(runtime, agent, "list_mcp_resources", { server: "everything" });
  const [resource] = (output as unknown as { value: { server: string; uri: string }[] }).value;
  const read = await callOnce(runtime, agent, "read_mcp_resource", { ...resource });
  expect(read).toMatchObject({ isError: false, output: { type: "text" } });
});

it("a question of an MCP server is asked as an approval, and the answer goes to the server", async () => {
  const mcp = servers({ everything });
  const [runtime, agent] = [await runtimeHere(), caller(await mcp.tools())];
  const run = await runtime.submit(agent, {
    toolName: "mcp__everything__trigger-elicitation-request",
    input: {},
  });
  for await (const event of run.events({ types: ["approval_request"] })) {
    if (event.type !== "approval_request") continue;
    expect(event.data).toMatchObject({
      toolName: "mcp__everything__trigger-elicitation-request",
      reason: "MCP server everything asks: Please provide inputs for the following fields:",
      input: { requestedSchema: { type: "object" } },
    });
    await run.approve(event.data.approvalId, { decision: "approved", input: { name: "Ada Lovelace" } });
    break;
  }
  expect(JSON.stringify((await run.result()).output)).toContain("Ada Lovelace");
});

it.for(["denied", "skipped"] as const)(
  "an MCP server learns that a person has %s its question",
  async (decision) => {
    const mcp = servers({ everything });
    const [runtime, agent] = [await runtimeHere(), caller(await mcp.tools())];
    const run = await runtime.submit(agent, {
      toolName: "mcp__everything__trigger-elicitation-request",
      input: {},
    });
    for await (const event of run.events({ types: ["approval_request"] })) {
      if (event.type !== "approval_request") continue;
      await run.approve(event.data.approvalId, { decision });
      break;
    }
    const said = JSON.stringify((await run.result()).output);
    expect(said).toContain(decision === "denied" ? "declined" : "cancelled");
  },
);

it("J6: an MCP call that the next process repeats gets the recorded answer, and the person is not asked twice", async () => {
  const folder = await folderHere();
  const store = `sqlite:${join(folder, "reeve.db")}` as const;
  const mcp = servers({ everything });
  const agent = caller(await mcp.tools());
  const first = await openRuntime({ store });
  const run = await first.submit(agent, {
    toolName: "mcp__everything__trigger-elicitation-request",
    input: {},
  });
  let approvalId = "";
  for await (const event of run.events({ types: ["approval_request"] })) {
    if (event.type === "approval_request") ({ approvalId } = event.data);
    break;
  }
  await first.close();
  const second = await openRuntime({ store });
  open.unshift(second);
  second.register(agent);
  const found = await second.find(run.runId);
  await found?.approve(approvalId, { decision: "approved", input: { name: "Grace Hopper" } });
  const result = await found?.result();
  expect(JSON.stringify(result?.output)).toContain("Grace Hopper");
  const types: string[] = [];
  for await (const event of found?.events() ?? []) types.push(event.type);
  expect(types.filter((type) => type === "approval_request")).toHaveLength(1);
});

it("close() of McpServers during a start leaves no program behind", async () => {
  const mcp = mcpServers({ everything });
  const listing = mcp.tools();
  await mcp.close();
  await expect(listing).rejects.toThrow(/is closed/);
  expect(mcp.pid("everything")).toBeNull();
});

it.for([
  { what: "is gone", status: null, expected: [] },
  { what: "has forgotten the session", status: 404, expected: [] },
  {
    what: "refuses to end the session",
    status: 500,
    expected: [expect.stringMatching(/^MCP server own at http\S+ did not end its session: .*500/u)],
  },
])("close() of McpServers resolves if a server over HTTP $what", async ({ status, expected }) => {
  const own = await mcpServer({ name: "own" });
  const http = createServer((request, response) => {
    if (request.method === "DELETE" && status !== null) response.writeHead(status).end();
    else own.handle(request, response);
  }).listen(0, "127.0.0.1");
  await once(http, "listening");
  const stop = (): void => (http.closeAllConnections(), void http.close());
  open.push({ close: async () => (stop(), own.close()) });
  const warnings: string[] = [];
  const { port } = http.address() as AddressInfo;
  const mcp = mcpServers(
    { own: { url: `http://127.0.0.1:${port}/mcp` } },
    { onWarning: ({ message }) => warnings.push(message) },
  );
  await mcp.tools();
  if (status === null) stop();
  await mcp.close();
  expect(warnings).toEqual(expected);
});

it("close() of McpServers resolves if the program of a server was killed", async () => {
  const mcp = mcpServers({ everything });
  await mcp.tools();
  process.kill(mcp.pid("everything") ?? 0, "SIGKILL");
  await mcp.close();
  expect(mcp.pid("everything")).toBeNull();
});

it("close() of McpServers resolves with a warning if a server over HTTP does not answer in time", async () => {
  const own = await mcpServer({ name: "own" });
  const clock = new FakeClock();
  const http = createServer((request, response) => {
    if (request.method === "DELETE") void clock.advance(5_000);
    else own.handle(request, response);
  }).listen(0, "127.0.0.1");
  await once(http, "listening");
  open.push({ close: async () => (http.closeAllConnections(), void http.close(), own.close()) });
  const warnings: string[] = [];
  const { port } = http.address() as AddressInfo;
  const mcp = mcpServers(
    { own: { url: `http://127.0.0.1:${port}/mcp` } },
    { clock, onWarning: ({ message }) => warnings.push(message) },
  );
  await mcp.tools();
  await mcp.close();
  expect(warnings).toEqual([expect.stringContaining("the server did not answer within 5000 ms")]);
});
