import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { env, setUp } from "../surfaces/cli/model-server.ts";
import { reeve } from "../surfaces/cli/reeve-process.ts";
import { lacksTmux, openTerminal } from "./terminal.ts";

describe.skipIf(lacksTmux)("reeve watch", () => {
  test("a person finds a run, answers its question, steers, pauses, tops up and cancels it, and reads the agent's conversation", async () => {
    const { folder, url, asked } = await setUp((request) =>
      request === 1 ? { tool: "write", input: { path: "made.txt", content: "one" } } : undefined,
    );
    const place = { cwd: folder, env: env(url) };
    const chat = await openTerminal({ size: "80x24", ...place });
    await chat.reeve("chat", "--tools", "all", "--sandbox", "off");
    await chat.shows(/gpt-4o/u);
    await chat.submit("Write a file");
    await chat.shows(/→ y {2}Yes/u);

    const watch = await openTerminal({ size: "200x50", ...place });
    await watch.reeve("watch");
    await watch.shows(/1 at work · 1 questions wait for you/u);
    await watch.shows(/→ assistant run_\S+ Waits for \S+ · /u);
    await watch.press("Enter");
    const chart = await watch.shows(/→ assistant t0 waits for/u);
    expect(chart).toMatch(/\? assistant May it call write\?/u);
    await watch.press("a");
    await watch.shows(/→ y {2}Yes/u);
    await watch.press("y");
    await asked(2);
    expect(existsSync(join(folder, "made.txt"))).toBe(true);
    // The question that was answered elsewhere disappears.
    await chat.lacks(/→ y {2}Yes/u);
    await watch.press("Enter");
    await watch.shows(/❯ Write a file[^]*✓ write made\.txt/u);
    await watch.press("Escape");
    await watch.shows(/→ assistant t0/u);
    await watch.press("t");
    await watch.shows(/How much is added to t0/u);
    await watch.type("0.25");
    await watch.press("Enter");
    await watch.shows(/Added 0\.25 to t0/u);
    await watch.press("s");
    await watch.shows(/What should t0 read/u);
    await watch.type("be brief");
    await watch.press("Enter");
    await chat.shows(/↳ next turn: be brief/u);
    await chat.press("C-t");
    await chat.shows(/→ assistant t0 gpt-4o · \$/u);
    await chat.press("Escape");
    await chat.lacks(/→ assistant t0/u);
    await watch.press("c");
    await watch.shows(/Cancel the whole run/u);
    await watch.press("y");
    await watch.shows(/Cancelled · \$/u);
    await chat.shows(/stopped it: cancelled at the terminal/u);
    await watch.press("Escape");
    await watch.shows(/0 at work · 0 questions/u);
    await watch.press("q");
    await watch.shows(/ended 0/u);
  });
});

test("reeve watch without a terminal names the commands that print the same once", async () => {
  const { code, talk } = await reeve(["watch"]);
  expect(talk).toContain("reeve watch needs a terminal on which it can draw; reeve tree RUN and reeve ps");
  expect(code).toBe(2);
});
