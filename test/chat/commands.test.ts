import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { chatCommands } from "../../src/surfaces/cli/chat/front/chat-commands.ts";
import { keyRows, readKeys, usualKeys, type KeyMap } from "../../src/surfaces/cli/chat/front/keys.ts";
import { env, setUp } from "../surfaces/cli/model-server.ts";
import { casesOf } from "../effort.ts";
import { repository } from "../gates/run-node.ts";
import { lacksTmux, openTerminal } from "./terminal.ts";

test("the documentation page of the chat names every command and every key", async () => {
  const page = await readFile(join(repository, "docs/guides/chat.md"), "utf8");
  expect(chatCommands.filter(({ name }) => !page.includes(`\`/${name}`)).map(({ name }) => name)).toEqual([]);
  const actions = keyRows(usualKeys).map(([, about]) => /\((\w+)\)$/u.exec(about)?.[1]);
  expect(actions.filter((name) => name !== undefined && !page.includes(`\`${name}\``))).toEqual([]);
});

/** Reads `keybindings.json` with a text. */
async function keysOf(text: string): Promise<KeyMap> {
  const { folder } = await setUp(() => ({ text: "" }));
  await writeFile(join(folder, "keybindings.json"), text);
  const home = process.env["REEVE_HOME"];
  process.env["REEVE_HOME"] = folder;
  try {
    return await readKeys();
  } finally {
    process.env["REEVE_HOME"] = home;
  }
}

test("keybindings.json changes the keys of the chat actions that it names", async () => {
  expect(await keysOf(`{"queue": "ctrl+q", "open": ["f2"]}`)).toEqual({
    ...usualKeys,
    queue: ["ctrl+q"],
    open: ["f2"],
  });
});

test.for([
  { text: "{", problem: "is not JSON" },
  { text: `{"qeue": "ctrl+q"}`, problem: "qeue is no action; use queue" },
  { text: `{"queue": "control-q"}`, problem: `"control-q" of queue is no key such as ctrl+o` },
])("keybindings.json with $text is refused", async ({ text, problem }) => {
  await expect(keysOf(text)).rejects.toThrow(problem);
});

const extension = `export default {
  name: "desk",
  setup(api) {
    api.registerCommand({ name: "leave", description: "Leaves", run: (args, context) => context.shutdown() });
    api.registerCommand({ name: "fresh", description: "Starts anew", run: (args, context) => context.newSession() });
    api.registerCommand({ name: "crash", description: "Crashes", run: () => void setTimeout(() => { throw new Error("crashed"); }, 0) });
    api.registerCommand({ name: "wave", description: "Waves", run: (args, { ui }) => ui.notify("waved at " + args) });
    api.on("turn_start", () => { throw new Error("no turn for me"); });
  },
};`;

/** How often a person changes the size of the terminal. */
const changes = casesOf(200, 40);

describe.skipIf(lacksTmux)("the commands of reeve chat in a terminal", () => {
  test("a person moves in the tree of a chat, forks, rewinds a file, names, exports and picks a conversation", async () => {
    const { folder, url } = await setUp((request) =>
      request === 2
        ? { tool: "write", input: { path: "notes.txt", content: "red\n" } }
        : { text: `Answer ${request}` },
    );
    const home = join(folder, "home");
    const terminal = await openTerminal({
      size: "80x24",
      cwd: folder,
      env: { ...env(url), REEVE_HOME: home },
    });
    await terminal.reeve("chat", "--tools", "all", "--sandbox", "off");
    await terminal.shows(/gpt-4o/u);
    await terminal.submit("First question");
    await terminal.shows(/Answer 1[^]*Done/u);
    await terminal.submit("Change the notes");
    await terminal.shows(/→ y {2}Yes/u);
    await terminal.press("y");
    await terminal.shows(/Answer 3[^]*Done/u);
    expect(await readFile(join(folder, "notes.txt"), "utf8")).toBe("red\n");

    await terminal.submit("/rewind");
    await terminal.shows(/Restore the files as they were at which entry/u);
    await terminal.type("First");
    await terminal.press("Enter");
    await terminal.shows(/Restore 1 file as shown/u, /-red\n\s+\+The lamp is green\./u);
    await terminal.press("y");
    await terminal.shows(/Restored: 1/u);
    expect(await readFile(join(folder, "notes.txt"), "utf8")).toBe("The lamp is green.\n");

    await terminal.submit("/tree");
    await terminal.shows(/❯ Change the notes/u);
    await terminal.type("Answer 1");
    await terminal.press("Enter");
    await terminal.shows(/Continue after it/u);
    await terminal.press("c");
    await terminal.shows(/The conversation continues here/u, { lacks: /Change the notes/u });

    await terminal.submit("/name Lamps");
    await terminal.shows(/This conversation is now Lamps/u);
    await terminal.submit("/fork");
    await terminal.shows(/Copy the conversation/u);
    await terminal.press("Enter");
    await terminal.shows(/This is a copy; the original is\s+ses_/u);
    await terminal.submit("/export copy.jsonl");
    await terminal.shows(/Written: copy\.jsonl/u);
    expect(await readFile(join(folder, "copy.jsonl"), "utf8")).toContain("First question");
    await terminal.submit("/resume");
    await terminal.shows(/Which conversation/u);
    await terminal.type("Lamps");
    await terminal.press("Enter");
    await terminal.shows(/Answer 1/u);
    await terminal.submit("/context");
    await terminal.shows(/tokens of 128,000/u);
    await terminal.submit("/budget");
    await terminal.shows(/No run of this conversation was followed|turns {3}at most/u);
  });

  test("the composer of a chat accepts extension commands, prompt templates, shell commands and files, and shows notices", async () => {
    const { folder, url, requests } = await setUp(() => ({ text: "Seen." }));
    const reeve = join(folder, ".reeve");
    await mkdir(join(reeve, "prompts"), { recursive: true });
    await mkdir(join(reeve, "extensions"), { recursive: true });
    await writeFile(
      join(reeve, "prompts/review.md"),
      "---\ndescription: Reviews\n---\nReview $ARGUMENTS please.",
    );
    await writeFile(join(reeve, "extensions/desk.ts"), extension);
    const home = join(folder, "home");
    const terminal = await openTerminal({
      size: "200x50",
      cwd: folder,
      env: { ...env(url), REEVE_HOME: home, EDITOR: "printf 'from the editor' >" },
    });
    await terminal.reeve("trust", "--yes");
    await terminal.shows(/ended 0/u);
    await terminal.reeve("chat");
    await terminal.shows(/gpt-4o/u);
    await terminal.type("/wa");
    await terminal.shows(/\/wave\s+Waves/u);
    await terminal.press("Escape");
    // Escape and another key that follows at once are one key with Alt.
    await terminal.lacks(/\/wave\s+Waves/u);
    await terminal.press("C-c");
    await terminal.submit("/wave Ann");
    await terminal.shows(/extension desk: waved at Ann/u);
    await terminal.submit("!echo from the shell");
    await terminal.shows(/\$ echo from the shell\s*\n\s*from the shell/u);
    await terminal.submit("!!head -c 60000 /dev/zero | tr '\\0' x");
    await terminal.shows(/x{50}\s*\n\s*\[10000 more bytes\]/u);
    await terminal.type("See @no");
    await terminal.shows(/→ notes\.txt/u);
    await terminal.press("Tab");
    await terminal.shows(/See @notes\.txt/u);
    await terminal.press("Enter");
    await terminal.shows(/Seen\.[^]*Done/u, /extension desk failed in turn_start: no turn for me/u);
    expect(JSON.stringify(requests[0])).toContain(
      String.raw`$ echo from the shell\nfrom the shell\n\nSee @notes.txt`,
    );
    await terminal.submit("/review the lamp");
    await terminal.shows(/Seen\.[^]*Done[^]*Seen\.[^]*Done/u);
    expect(JSON.stringify(requests[1])).toContain("Review the lamp please.");
    await terminal.press("C-g");
    await terminal.shows(/from the editor/u);
    await terminal.press("C-c");
    await terminal.press("C-r");
    await terminal.shows(/Which earlier text/u);
    await terminal.type("wave");
    await terminal.press("Enter");
    await terminal.shows(/─\n \/wave Ann/u);
    await terminal.press("C-c");
    await terminal.submit("/fresh");
    await terminal.lacks(/Seen\./u);
    await terminal.submit("Look anew");
    await terminal.shows(/❯ Look anew[^]*Seen\.[^]*Done/u);
    await terminal.submit("/leave");
    await terminal.shows(/Continue with: reeve chat --session ses_[^]*ended 0/u);
    await terminal.reeve("chat", "--continue");
    await terminal.shows(/❯ Look anew[^]*Seen\./u, { lacks: /See @notes/u });
    // A crash gives the terminal back: what is typed is seen, and Enter is Enter.
    await terminal.submit("/crash");
    await terminal.shows(/Error: crashed[^]*ended 1/u);
    await terminal.type("echo $((6 * 7)) echoed");
    await terminal.press("Enter");
    await terminal.shows(/^42 echoed/mu);
  });

  test("/compact, /top-up and /trust of a chat work, and Ctrl+Z suspends the chat until fg", async () => {
    const { folder, url } = await setUp((request) =>
      request === 1 ? { tool: "read", input: { path: "notes.txt" } } : { text: `Answer ${request}` },
    );
    const home = join(folder, "home");
    await mkdir(join(folder, ".reeve/extensions"), { recursive: true });
    await writeFile(join(folder, ".reeve/extensions/desk.ts"), extension);
    await mkdir(join(home, "agents"), { recursive: true });
    const brief = "model: openai-compatible/gpt-4o\ntools: [read]\nbudget: { maxTurns: 1 }";
    await writeFile(join(home, "agents/brief.md"), `---\n${brief}\n---\nYou are brief.`);
    const variables = { ...env(url), REEVE_HOME: home };
    const terminal = await openTerminal({ size: "200x50", cwd: folder, env: variables });
    // The shell of the terminal stops and continues programs only with job control.
    await terminal.type("set -m");
    await terminal.press("Enter");
    await terminal.reeve("chat", "--agent", "brief");
    await terminal.shows(/[Tt]rust/u);
    await terminal.type("n");
    await terminal.press("Enter");
    await terminal.shows(/gpt-4o · \$0/u);
    await terminal.submit("One");
    await terminal.shows(/used up; \/top-up adds to it/u);
    await terminal.submit("/top-up 3 turns");
    await terminal.shows(/Added 3 turns to run_[^]*Answer 2[^]*Done/u);
    // A run that is complete stays so.
    await terminal.submit("/top-up 0.50");
    await terminal.shows(/Added \$0\.50 to run_[^]*has ended for another reason/u);
    await terminal.submit("/compact keep the numbers");
    await terminal.shows(/The conversation was compacted/u);
    await terminal.type("a draft");
    await terminal.shows(/\n a draft/u);
    await terminal.press("C-z");
    await terminal.shows(/Stopped|suspended/u);
    await terminal.type("echo $((6 * 7)) echoed");
    await terminal.press("Enter");
    await terminal.shows(/^42 echoed/mu);
    await terminal.type("fg");
    await terminal.press("Enter");
    await terminal.shows(/─\n a draft/u, { lacks: /has not continued/u });
    await terminal.press("C-c");
    await terminal.submit("/trust");
    await terminal.shows(/Trust them as they are now\?/u);
    await terminal.type("y");
    await terminal.shows(/> y/u);
    await terminal.press("Enter");
    await terminal.shows(/This folder is trusted now/u);
    await terminal.submit("/trust");
    await terminal.shows(/This folder is trusted as it is now/u);
  });

  test(`a chat keeps 5,000 pasted lines as one draft, and a growing answer survives ${changes} changes of the terminal size`, async () => {
    const { folder, url, requests } = await setUp((request) =>
      request === 1 ? { text: "Read." } : { text: `${"word 漢字 e\u0301 👩‍👩‍👧 ".repeat(1_000)}end.` },
    );
    const terminal = await openTerminal({ size: "80x24", cwd: folder, env: env(url) });
    await terminal.reeve("chat");
    await terminal.shows(/gpt-4o/u);
    const lines = Array.from({ length: 5_000 }, (_, at) => `line ${at}`).join("\n");
    await terminal.paste(lines);
    await terminal.shows(/\[paste #1 \+5000 lines\]/u);
    await terminal.press("Enter");
    await terminal.shows(/Read\.[^]*Done/u);
    expect(JSON.stringify(requests[0])).toContain("line 4999");
    await terminal.submit("Go on");
    for (let at = 0; at < changes; at++) await terminal.resize(4 + ((at * 7) % 100), 3 + (at % 30));
    await terminal.resize(80, 24);
    await terminal.shows(/end\.[^]*Done/u);
  });
});
