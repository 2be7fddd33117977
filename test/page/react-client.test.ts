import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Agent } from "../../src/assembly/agent.ts";
import { openRuntime } from "../../src/assembly/open-runtime.ts";
import { tool } from "../../src/capabilities/index.ts";
import { openStore } from "../../src/entries/index.ts";
import { createServer, listen, type Listening } from "../../src/surfaces/server/index.ts";
import { endlessModel } from "../surfaces/protocols/endless-model.ts";
import { removeBrowser, startBrowser } from "./chromium.ts";

const echo = new Agent({
  name: "echo",
  model: endlessModel(() => ({ deltas: ["Hel", "lo."] })),
});
const send = tool({
  name: "send",
  description: "Sends a letter.",
  inputSchema: { type: "object" },
  needsApproval: true,
  execute: () => "sent",
});
const clerk = new Agent({
  name: "clerk",
  model: endlessModel(({ messages }) =>
    messages.at(-1)?.role === "tool" ? "Done." : { toolCalls: [{ name: "send", input: {} }] },
  ),
  tools: [send],
});

const folder = mkdtempSync(join(tmpdir(), "reeve-react-"));
let browser: Browser;
let page: Page;
let close: () => Promise<void>;
let port = 0;
const problems: string[] = [];

/** Starts the server with the application as its page. Returns a function that stops it. */
async function serve(): Promise<() => Promise<void>> {
  const store = await openStore(`sqlite:${join(folder, "reeve.db")}`);
  const runtime = await openRuntime({ store });
  const limits = { changesMs: 20 };
  const server = createServer(runtime, {
    agents: [echo, clerk],
    tokens: null,
    page: join(folder, "app"),
    limits,
  });
  const listening: Listening = await listen(server, { port, closeGraceMs: 0 });
  ({ port } = listening);
  return async () => {
    await listening.close();
    await runtime.close();
    await store.close();
  };
}

beforeAll(async () => {
  const bundle = await rolldown({
    input: fileURLToPath(new URL("react-app.ts", import.meta.url)),
    platform: "browser",
    transform: { define: { "process.env.NODE_ENV": '"production"' } },
  });
  await bundle.write({ file: join(folder, "app/app.js"), format: "esm" });
  await bundle.close();
  writeFileSync(
    join(folder, "app/index.html"),
    '<!doctype html><title>React</title><div id="app"></div><script type="module" src="/app.js"></script>',
  );
  close = await serve();
  browser = await startBrowser();
  page = await (await browser.newContext()).newPage();
  page.on("pageerror", (error) => problems.push(error.message));
  await page.goto(`http://127.0.0.1:${port}/`);
});

afterAll(async () => {
  await close();
  await browser.close();
  removeBrowser();
  rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
});

const shown = (name: string) => page.getByTestId(name);

test("the React hook useRun() shows the events and the result of a run, and useRuns() lists the run", async () => {
  await shown("runs").getByText("0 runs").waitFor();
  await page.getByRole("button", { name: "Start echo" }).click();
  await shown("result").getByText("Hello.").waitFor();
  await page.getByRole("heading", { name: "completed" }).waitFor();
  await shown("runs").getByText("1 runs").waitFor();
  const events = (await shown("events").textContent()) ?? "";
  expect(events.split(" ")).toEqual(events.split(" ").map((_seq, index) => String(index)));
  await page.getByRole("list", { name: "Conversation" }).getByText("message").nth(1).waitFor();
  expect(problems).toEqual([]);
});

test("the React hook useInbox() counts a question, and useRun() follows the approved run over a restart of the server", async () => {
  await page.getByRole("button", { name: "Start clerk" }).click();
  await page.getByRole("button", { name: "Approve" }).waitFor();
  await shown("inbox").getByText("1 questions").waitFor();
  await close();
  await shown("connected").getByText("lost").waitFor();
  close = await serve();
  await shown("connected").getByText("connected").waitFor();
  await page.getByRole("button", { name: "Approve" }).click();
  await shown("result").getByText("Done.").waitFor();
  const events = ((await shown("events").textContent()) ?? "").split(" ").map(Number);
  expect(events).toEqual(events.map((_seq, index) => index));
  expect(problems).toEqual([]);
});

test("the React hook useRun() says why a run cannot be shown", async () => {
  await page.getByRole("button", { name: "Show a missing run" }).click();
  await page.getByRole("alert").getByText("run_missing").waitFor();
  expect(problems).toEqual([]);
});
