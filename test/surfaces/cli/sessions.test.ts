import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Agent, openRuntime, tool } from "../../../src/entries/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { reeve } from "./reeve-process.ts";

const weigh = tool({
  name: "weigh",
  description: "Weighs a parcel",
  inputSchema: { type: "object", properties: { parcel: { type: "string" } } } as const,
  execute: () => "2 kg \u001b[31m\u202e",
});

/** A store with two sessions of a clerk, and the command line on it. */
async function desk() {
  const folder = await mkdtemp(join(tmpdir(), "reeve-sessions-"));
  const store = `sqlite:${join(folder, "reeve.db")}` as const;
  const runtime = await openRuntime({ store });
  onTestFinished(async () => {
    await runtime.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  const model = scriptedModel([
    { toolCalls: [{ name: "weigh", input: { parcel: "blue" } }] },
    "It weighs 2 kg.",
    "Nothing else.",
    "Nothing.",
  ]);
  const agent = new Agent({ name: "clerk", model, tools: [weigh] });
  await agent.invoke("Weigh the blue parcel.", { runtime, sessionId: "ses_blue" });
  await agent.invoke("Anything else?", { runtime, sessionId: "ses_other" });
  const cli = (...args: string[]): ReturnType<typeof reeve> => reeve(["sessions", ...args, "--store", store]);
  return { runtime, cli, folder, agent };
}

test("reeve sessions lists, shows and finds conversations, without terminal codes", async () => {
  const { cli } = await desk();
  const { code, out } = await cli("list");
  expect([code, out.length]).toEqual([0, 2]);
  expect(out[1]).toMatch(/^ses_blue +\d.* ago +4 +clerk {2}Weigh the blue parcel\.$/u);
  const found = await cli("list", "--text", "blue", "--json");
  expect(found.out.map((line) => (JSON.parse(line) as { sessionId: string }).sessionId)).toEqual([
    "ses_blue",
  ]);
  expect((await cli("list", "--limit", "1")).talk).toContain("Only the newest 1 are shown");
  const shown = (await cli("show", "ses_blue")).out.join("\n");
  expect(shown).toMatch(
    /^user:\n {2}Weigh the blue parcel\.\nassistant:\n {2}-> weigh \{"parcel":"blue"\}\ntool:\n {2}<- weigh: 2 kg /u,
  );
  expect(shown).toContain("assistant:\n  It weighs 2 kg.");
  // oxlint-disable-next-line no-control-regex -- the codes that must not reach the terminal
  expect(shown).not.toMatch(/[\u001b\u202e]/u);
  const hits = await cli("search", "WEIGHS");
  expect([hits.code, hits.out]).toEqual([
    0,
    [expect.stringMatching(/^ses_blue {2}\S+ {2}It weighs 2 kg\.$/u)],
  ]);
  expect((await cli("search", "gold")).talk).toBe("No entry contains this text.\n");
});

test("reeve sessions renames a conversation, shows its branches, and deletes it", async () => {
  const { cli, runtime } = await desk();
  expect(await cli("rename", "ses_blue", "The blue one")).toMatchObject({ code: 0, out: ["ses_blue"] });
  expect((await cli("list", "--text", "blue one")).out[0]).toContain("The blue one");
  const [first] = await runtime.sessions.path("ses_blue");
  await runtime.sessions.move("ses_blue", first?.id ?? null);
  await runtime.sessions.label("ses_blue", first?.id ?? "", "start");
  const { out } = await cli("show", "ses_blue", "--tree");
  expect(out[0]).toMatch(/^\* \S+ \[start\] {2}user: Weigh the blue parcel\.$/u);
  expect(out.slice(1).every((line) => line.startsWith(" "))).toBe(true);
  expect(await cli("delete", "ses_blue", "ses_none")).toMatchObject({ code: 3, out: [] });
  expect(await runtime.sessions.get("ses_blue")).toBeDefined();
  expect(await cli("delete", "ses_blue", "--json")).toMatchObject({
    code: 0,
    out: ['{"sessionId":"ses_blue"}'],
  });
  expect(await runtime.sessions.get("ses_blue")).toBeUndefined();
});

test.each([
  ["show", "ses_none"],
  ["rename", "ses_none", "New"],
  ["delete", "ses_none"],
])("reeve sessions %s refuses an unknown option, and a session that does not exist", async (...args) => {
  const { cli } = await desk();
  expect(await cli(...args, "--nonsense")).toMatchObject({ code: 2, out: [] });
  const missing = await cli(...args, "--json");
  expect([missing.code, missing.out, missing.talk]).toEqual([3, [], expect.stringContaining("ses_none")]);
});

test("reeve sessions exports a session to a new file, imports it, and the agent continues the conversation", async () => {
  const { runtime, cli, folder, agent } = await desk();
  const file = join(folder, "blue.jsonl");
  const written = await cli("export", "ses_blue", "--output", file);
  expect([written.code, written.talk]).toEqual([0, `Wrote 4 entries of ses_blue to ${file}.\n`]);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const again = await cli("export", "ses_blue", "--output", file);
  expect([again.code, again.talk]).toEqual([2, expect.stringContaining("it exists; remove it")]);
  expect((await cli("export", "ses_blue")).out.join("\n")).toBe((await readFile(file, "utf8")).trimEnd());
  const imported = await cli("import", file, "--agent", "clerk", "--session", "ses_copy", "--json");
  expect([imported.code, JSON.parse(imported.out[0] ?? "")]).toEqual([
    0,
    { sessionId: "ses_copy", format: "pi", entries: 4, unread: 0, leftOut: 1 },
  ]);
  const place = { runId: null, taskId: null };
  const bare = (entries: readonly object[]) => entries.map((entry) => ({ ...entry, ...place }));
  expect(await runtime.sessions.path("ses_copy")).toEqual(bare(await runtime.sessions.path("ses_blue")));
  expect((await cli("import", file, "--agent", "clerk", "--session", "ses_copy")).code).toBe(2);
  await agent.invoke("And now?", { runtime, sessionId: "ses_copy" });
  expect(await runtime.sessions.path("ses_copy")).toHaveLength(6);
});

test("reeve sessions export --format html prints a page, and wrong files and formats are refused", async () => {
  const { cli, folder } = await desk();
  const page = (await cli("export", "ses_blue", "--format", "html")).out.join("\n");
  expect(page).toMatch(/^<!doctype html>[^]*Weigh the blue parcel\.[^]*<\/html>$/u);
  const refused = async (...args: string[]) => {
    const { code, talk } = await cli(...args);
    return [code, talk.trim()];
  };
  expect(await refused("export", "ses_blue", "--format", "pdf")).toEqual([
    2,
    expect.stringContaining('invalid --format "pdf": expected pi, html'),
  ]);
  expect(await refused("export", "ses_none")).toEqual([
    3,
    expect.stringContaining("session ses_none not found"),
  ]);
  const file = join(folder, "notes.txt");
  await writeFile(file, "hello");
  expect(await refused("import", file, "--agent", "clerk")).toEqual([
    2,
    expect.stringContaining("its first lines are none of pi, Claude Code or Codex"),
  ]);
  expect(await refused("import", join(folder, "none"), "--agent", "clerk")).toEqual([
    2,
    expect.stringContaining("cannot read"),
  ]);
  expect(await refused("import", file)).toEqual([2, expect.stringContaining("--agent")]);
});
