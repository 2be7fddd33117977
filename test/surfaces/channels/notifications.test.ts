import { expect, onTestFinished, test } from "vitest";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import { sha256 } from "../../../src/runtime/index.ts";
import { sqliteStore } from "../../../src/runtime/stores/sqlite/store.ts";
import { createChannels, telegramChannel } from "../../../src/surfaces/server/index.ts";
import { channelAgent } from "../../../src/testing/contracts/index.ts";
import { botToken, FakeTelegram } from "./fake-telegram.ts";
import { secret, SignedProgram } from "./signed-program.ts";
import { newPath, startHost } from "./test-host.ts";

test("channel notifications report each run that waits for a person or has ended once, also if no server was open meanwhile", async () => {
  const [path, telegram, program] = [
    await newPath(),
    await FakeTelegram.start(),
    await SignedProgram.start(),
  ];
  onTestFinished(() => {
    telegram.close();
    program.close();
  });
  const notifications = [
    {
      name: "hooks",
      to: { url: program.url, secret, allowPrivate: true },
      users: ["ann"],
      agents: ["echo"],
    },
    { name: "desk", to: { channel: "telegram", conversation: "1" }, on: ["ended"] as const },
    { name: "never", to: { channel: "telegram", conversation: "1" }, tenants: ["acme"] },
  ];
  const channel = (): ReturnType<typeof telegramChannel> =>
    telegramChannel({ token: botToken, apiUrl: telegram.url });
  const agent = channelAgent();
  const first = await startHost(path, channel(), { agents: [agent], notifications });
  const asked = await first.runtime.submit(agent, "ask one", { userId: "ann" });
  await first.runtime.submit(agent, "two", { userId: "bob" });
  await program.until(() => program.received.length === 1);
  expect(program.received[0]).toMatchObject({
    kind: "notification",
    text: `echo waits for a person (echo): ${asked.runId}`,
    data: {
      cause: "waiting",
      runId: asked.runId,
      agent: "echo",
      userId: "ann",
      tenantId: null,
      kind: "confirm",
    },
  });
  await telegram.until(() => telegram.sent.length === 1);
  expect(telegram.sent[0]?.text).toContain("echo has ended with the status completed: run_");
  await first.close();

  // The run ends in a process without notifications, and another one begins and ends there.
  const store = await sqliteStore({ path, hash: sha256 });
  const runtime = await openRuntime({ store });
  runtime.register(agent);
  const [open] = (await runtime.approvals()).approvals;
  const run = await runtime.find(asked.runId);
  await run?.approve(open?.approvalId ?? "", { decision: "approved" });
  await run?.result();
  const other = await runtime.submit(agent, "three", { userId: "ann" });
  await other.result();
  // Its question is answered before a notifier looks.
  const quick = await runtime.submit(agent, "ask four", { userId: "ann" });
  const [question] = await quick.untilPersonIsNeeded();
  await quick.approve(question?.approvalId ?? "", { decision: "approved" });
  await quick.result();
  await runtime.close();

  let refusals = 2;
  program.status = () => (refusals-- > 0 ? 503 : 200);
  const second = await startHost(path, channel(), { agents: [agent], notifications });
  await program.until(() => program.received.length === 5);
  const told = program.received.slice(1).map(({ data }) => data);
  expect(told).toHaveLength(4);
  for (const { runId } of [asked, other, quick])
    expect(told).toContainEqual(expect.objectContaining({ cause: "ended", runId, status: "completed" }));
  expect(told).toContainEqual(expect.objectContaining({ cause: "waiting", runId: quick.runId }));
  await telegram.until(() => telegram.sent.length === 4);
  // Later looks repeat nothing.
  const last = await second.runtime.submit(agent, "five", { userId: "ann" });
  await program.until(() => program.received.length >= 6);
  expect(program.received[5]).toMatchObject({ data: { runId: last.runId } });
  expect([program.received.length, program.repeated]).toEqual([6, 0]);
});

test("createChannels() refuses notifications to unknown channels, with short secrets, or with unknown causes and names", async () => {
  const store = await sqliteStore({ path: await newPath(), hash: sha256 });
  const runtime = await openRuntime({ store });
  onTestFinished(() => runtime.close());
  const agents = [channelAgent()];
  for (const [rule, message] of [
    [{ name: "a", to: { channel: "none", conversation: "1" } }, /it does not exist/u],
    [{ name: "a", to: { url: "https://x.example", secret: "short" } }, /at least 32/u],
    [{ name: "a", to: { url: "file:///etc/passwd", secret } }, /http or https/u],
    [{ name: "A!", to: { url: "https://x.example", secret } }, /lower-case/u],
    [{ name: "a", to: { url: "https://x.example", secret }, on: ["end" as "ended"] }, /waiting or ended/u],
  ] as const)
    expect(() => createChannels(runtime, { store, agents, channels: [], notifications: [rule] })).toThrow(
      message,
    );
});
