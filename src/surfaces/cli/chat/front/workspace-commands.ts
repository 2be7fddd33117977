import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Fault, visibleLine } from "../../../../kernel/index.ts";
import { memoryLimits } from "../../../../workspace/files/memory/memory-file.ts";
import { askTrust } from "../../setup/ask-trust.ts";
import { themeNames } from "../screen/theme.ts";
import { sessionOf, type ChatCommand, type Desk } from "./desk.ts";

/** Commands for the files of the workspace and for the settings of the surface. */
export const workspaceCommands: readonly ChatCommand[] = [
  {
    name: "skills",
    takes: "",
    about: "list skills, prompt templates and commands of extensions",
    run: listSkills,
  },
  {
    name: "mcp",
    takes: "",
    about: "list the MCP servers of this folder, with their tools",
    run: (desk) => own(desk, ["mcp", "list"]),
  },
  {
    name: "memory",
    takes: "",
    about: "show MEMORY.md and USER.md, which the agents of your profile or home folder remember",
    run: showMemory,
  },
  { name: "reload", takes: "", about: "read the files of the workspace again", run: reload },
  { name: "trust", takes: "", about: "look at what needs trust in this folder, and decide", run: trust },
  {
    name: "doctor",
    takes: "",
    about: "check this machine, the workspace and the store",
    run: (desk) => own(desk, ["doctor"], { usesStore: true }),
  },
  {
    name: "export",
    takes: "FILE.jsonl | FILE.html",
    about: "write this conversation to a file",
    run: exportSession,
  },
  {
    name: "copy",
    takes: "",
    about: "copy the last answer to the clipboard of the terminal",
    run: async ({ conversation, copy, say }) => {
      const last = conversation.model.items.findLast(
        ({ item }) => item.kind === "answer" && item.text !== "",
      )?.item;
      if (last?.kind !== "answer") return say("There is no answer to copy yet.");
      copy(last.text);
      say("Copied.");
    },
  },
  {
    name: "theme",
    takes: `[${themeNames.join("|")}]`,
    about: "choose the colours; REEVE_THEME keeps the choice",
    run: chooseTheme,
  },
];

function localOf(
  { server, conversation: _shown }: Desk,
  command: string,
): NonNullable<Desk["server"]["local"]> {
  if (server.local !== undefined) return server.local;
  throw new Fault(
    "unsupported",
    `/${command} works on the files of this machine, and this conversation is with a server; use it without --url`,
  );
}

async function listSkills({ client, conversation, say }: Desk): Promise<void> {
  const { commands } = await client.get("/api/agents/{name}/commands", {
    params: { name: conversation.agent },
  });
  const kinds = { command: "command of an extension", prompt: "prompt template", skill: "skill" } as const;
  const lines = commands.map(({ name, description, kind }) => `/${name}  ${description} (${kinds[kind]})`);
  say(
    lines.length === 0
      ? "The agent has no skills, prompt templates or commands of extensions."
      : lines.join("\n"),
  );
}

async function showMemory(desk: Desk): Promise<void> {
  const { home, profile } = localOf(desk, "memory").workspace.places;
  const folder = profile?.folder ?? home;
  const texts = await Promise.all(
    Object.keys(memoryLimits).map(async (name) => {
      try {
        const path = join(folder, name);
        return `${path}\n${(await readFile(path, "utf8")).trimEnd()}`;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
        throw error;
      }
    }),
  );
  desk.say(
    texts.filter((text) => text !== "").join("\n\n") ||
      `There is no MEMORY.md or USER.md in ${folder} yet. With the setting memoryReviewEvery, reviews write them.`,
  );
}

async function reload(desk: Desk): Promise<void> {
  await localOf(desk, "reload").reload();
  await desk.readCommands();
  desk.say("The files of the workspace were read again. The next turn uses them.");
}

async function trust(desk: Desk): Promise<void> {
  const local = localOf(desk, "trust");
  const { workspace } = local;
  if (workspace.isTrusted) return desk.say("This folder is trusted as it is now.");
  await askTrust(workspace, {
    canAsk: true,
    say: (line) => desk.say(line),
    ask: async (question) => (await desk.ask(question)) ?? null,
  });
  if (!workspace.isTrusted) return desk.say("This folder stays untrusted.");
  await local.reload();
  desk.say("This folder is trusted now.");
}

async function exportSession(desk: Desk, file: string): Promise<void> {
  localOf(desk, "export");
  if (file.startsWith("-") || !/\.(?:jsonl|html?)$/iu.test(file))
    throw new Fault(
      "invalid_argument",
      `invalid file ${JSON.stringify(file)}: expected a name that ends with .jsonl or .html and does not begin with "-"`,
    );
  const { sessionId } = sessionOf(desk.conversation);
  const format = /\.html?$/iu.test(file) ? ["--format", "html"] : [];
  const args = ["sessions", "export", sessionId, ...format, "--output", file];
  await own(desk, args, { usesStore: true, mayFail: false });
  desk.say(`Written: ${visibleLine(file)}`);
}

async function chooseTheme({ pick, setTheme, say }: Desk, wanted: string): Promise<void> {
  const name =
    wanted === ""
      ? await pick({ title: "Which colours?", choices: themeNames.map((value) => ({ value, label: value })) })
      : themeNames.find((each) => each === wanted);
  if (name !== undefined) return setTheme(name);
  if (wanted !== "") say(`invalid theme ${wanted}: expected one of ${themeNames.join(", ")}`, "bad");
}

/**
 * Runs another command of `reeve` in a separate process, and shows its output. If `mayFail` is `true`, an exit code
 * other than 0 is no error.
 */
async function own(
  desk: Desk,
  args: readonly string[],
  { usesStore = false, mayFail = true } = {},
): Promise<void> {
  localOf(desk, args[0] ?? "");
  const words = [
    process.argv[1] ?? "",
    ...args,
    ...(usesStore ? ["--store", desk.server.local?.store ?? ""] : []),
  ];
  const profile = desk.server.local?.profile;
  const env = { ...process.env, ...(profile !== undefined && { REEVE_PROFILE: profile }) };
  await new Promise<void>((resolve, reject) => {
    const options = { env, maxBuffer: 2 ** 24, timeout: 120_000 };
    execFile(process.execPath, words, options, (error, stdout, stderr) => {
      const said = `${stdout}${stderr}`.trimEnd();
      const isAnswer = error === null || (mayFail && typeof error.code === "number");
      if (said !== "" && isAnswer) desk.say(said, error === null ? "plain" : "hold");
      if (isAnswer) resolve();
      else reject(said === "" ? error : new Fault("invalid_argument", said.replace(/^reeve: /u, "")));
    });
  });
}
