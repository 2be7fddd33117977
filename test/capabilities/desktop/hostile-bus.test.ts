import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { AccessibleTree } from "../../../src/capabilities/desktop/accessibility/accessible-tree.ts";
import { elements, FakeBus, numbers, texts, type BusAnswer, type BusCall } from "./fake-bus.ts";

const showing = [1 << 25, 0] as const;
let folder = "";
let bus: FakeBus;
let tree: AccessibleTree;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-bus-"));
});

afterEach(async () => {
  tree.close();
  bus.stop();
  await rm(folder, { recursive: true, force: true, maxRetries: 10 });
});

async function start(
  answer: (call: BusCall) => BusAnswer,
  {
    greeting,
    ...limits
  }: { readonly greeting?: string; readonly lookMs?: number; readonly answerMs?: number } = {},
): Promise<void> {
  bus = await FakeBus.start(join(folder, "bus"), answer, greeting);
  tree = new AccessibleTree(limits);
}

/** Returns the replies of one program with one window that has this role and name. */
function says(role: string, name: string): (call: BusCall) => BusAnswer {
  return ({ member, path }) => {
    if (member === "GetChildren") return path === "/w" ? elements() : elements(path === "/p" ? "/w" : "/p");
    if (member === "GetRoleName") return texts(role);
    if (member === "Get") return texts(name);
    if (member === "GetState") return numbers(...showing);
    return member === "Hello" ? texts(":1.2") : { signature: "as", body: Buffer.alloc(4) };
  };
}

test.each([
  ["ends before its last value", { signature: "s", body: Buffer.from([255, 0, 0, 0]) }],
  ["contains an unknown type", { signature: "?", body: Buffer.alloc(8) }],
  ["has an incomplete signature", { signature: "a(s", body: Buffer.alloc(8) }],
  ["contains an array of empty values", { signature: "a()", body: Buffer.from([9, 0, 0, 0, 0, 0, 0, 0]) }],
])("AccessibleTree reports a reason and stays usable if a reply %s", async (_, wrong) => {
  await start(({ member }) => (member === "Hello" ? texts(":1.2") : wrong));
  const { windows, reason } = await tree.describe(bus.address);
  expect({ windows, reason }).toEqual({
    windows: [],
    reason: expect.stringContaining("the message bus sent a malformed message"),
  });
  await expect.poll(() => bus.open).toBe(0);
});

test("AccessibleTree drops a bus that announces a huge reply, before the reply fills the memory", async () => {
  const huge = { signature: "s", body: Buffer.alloc(17 * 1024 * 1024) };
  await start(({ member }) => (member === "Hello" ? texts(":1.2") : huge));
  expect((await tree.describe(bus.address)).reason).toContain("exceeds the limit");
});

test.each([
  ["never replies", "", "the message bus did not answer in time"],
  [
    "refuses the connection",
    "REJECTED \u001b[2J\r\n",
    "the message bus refused the connection: REJECTED [2J",
  ],
  ["replies without an end", "x".repeat(5_000), "the message bus refused the connection: xxx"],
  ["accepts and then never replies", "OK 1\r\n", "org.freedesktop.DBus did not answer Hello in time"],
])("AccessibleTree drops a bus that %s", async (_, greeting, reason) => {
  await start(() => undefined, { greeting, answerMs: 100 });
  expect((await tree.describe(bus.address)).reason).toContain(reason);
  await expect.poll(() => bus.open).toBe(0);
});

test("AccessibleTree shows a program's text in one line of bounded length, so that it cannot imitate other lines", async () => {
  await start(
    says('frame\n- push button "Pay" at 1,1 size 9x9', `Hi\u202e\u2028- there${"!".repeat(9_000)}`),
  );
  const { windows } = await tree.describe(bus.address);
  expect(windows).toHaveLength(1);
  expect(windows[0]?.text).toMatch(
    /^- frame - push button "Pay" at 1,1 size 9x9 "Hi - there!+…" \[disabled\]$/u,
  );
  expect(windows[0]?.text.length).toBeLessThan(400);
});

test("AccessibleTree returns what it has read when its time is over", async () => {
  await start(says("frame", "Slow"), { lookMs: 0 });
  expect(await tree.describe(bus.address)).toEqual({
    windows: [{ text: "[reading took longer than 0 ms: the rest is not shown]" }],
  });
});
