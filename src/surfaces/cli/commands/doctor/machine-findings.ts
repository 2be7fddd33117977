import { accessSync, constants, existsSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, resolve } from "node:path";
import { unsupportedNode } from "../../../../assembly/node-version.ts";
import { packageVersion } from "../../../../assembly/package-root.ts";
import { BrowserSession } from "../../../../capabilities/browser/index.ts";
import { reeveHome } from "../../../../capabilities/files/reeve-home.ts";
import { Sandbox } from "../../../../capabilities/sandbox/sandbox.ts";
import type { Settings } from "../../../../workspace/workspace.ts";
import { byteWords, shellWord } from "../../terminal/format.ts";
import { sentence, type Found } from "./finding.ts";

/** The version of Node. */
export function nodeFindings(): readonly Found[] {
  const { node } = process.versions;
  const problem = unsupportedNode(node);
  const where = `${process.platform} ${process.arch}`;
  if (problem === undefined)
    return [{ state: "ok", text: `Reeve ${packageVersion()} runs on Node ${node}, ${where}.` }];
  return [{ state: "error", text: sentence(problem), fix: "nvm install 24" }];
}

/** The beginning of 2025. If the clock of a machine shows an earlier time, it was reset. */
const earliest = Date.UTC(2025, 0);

/** Checks the clock of this machine. `newest` is the newest time that the store has recorded. */
export function clockFindings(now: number, newest: number | null): readonly Found[] {
  const fix = "sudo timedatectl set-ntp true";
  const shown = new Date(now).toISOString();
  if (now < earliest)
    return [
      {
        state: "error",
        text: `The clock says ${shown}, which is in the past; calls of providers fail.`,
        fix,
      },
    ];
  if (newest !== null && newest > now + 60_000)
    return [
      {
        state: "warning",
        text: `The clock says ${shown}, but the newest run of the store is from ${new Date(newest).toISOString()}; schedules and deadlines are late.`,
        fix,
      },
    ];
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return [{ state: "ok", text: `The clock says ${shown}, and the time zone is ${zone}.` }];
}

/** Free disk space in bytes: below the first value runs are at risk, below the second the next run probably fails. */
const [lowBytes, tooLowBytes] = [1_000_000_000, 100_000_000];

/** Checks the free space and the rights at the place of the store and of the user's files. */
export async function diskFindings(storePath: string | undefined): Promise<readonly Found[]> {
  const found: Found[] = [];
  const folder = existingFolder(dirname(storePath ?? resolve("x")));
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  const text = `${byteWords(free)} are free in ${folder}.`;
  const fix = `df -h ${shellWord(folder)}`;
  if (free < tooLowBytes) found.push({ state: "error", text: `Only ${text}`, fix });
  else if (free < lowBytes) found.push({ state: "warning", text: `Only ${text}`, fix });
  else found.push({ state: "ok", text });
  if (storePath !== undefined && !isWritable(folder))
    found.push({
      state: "error",
      text: `The folder ${folder} cannot be written, so no run is stored there.`,
      fix: "reeve run --store sqlite:PATH",
    });
  const home = existingFolder(reeveHome());
  if (!isWritable(home))
    found.push({
      state: "warning",
      text: `${home} cannot be written, so decisions of trust and the list of your stores are not kept.`,
      fix: "export REEVE_HOME=PATH",
    });
  return found;
}

function existingFolder(path: string): string {
  let folder = path;
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  return folder;
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** The parts of the machine that some tools of agents need. */
interface Needed {
  readonly settings: Settings;
  /** Returns the agents that name a tool. They cannot be created if the tool is unavailable. */
  readonly agentsWith: (tool: string) => readonly string[];
}

/** Checks the sandbox for shell commands. The check starts bubblewrap with an empty command. */
export async function sandboxFindings({ settings, agentsWith }: Needed): Promise<readonly Found[]> {
  const { sandbox: mode = "enforce" } = settings;
  if (mode === "off")
    return [
      {
        state: "warning",
        text: 'The setting "sandbox" is off, so shell commands of agents run with all your permissions.',
        fix: "reeve config sandbox",
      },
    ];
  const folder = process.cwd();
  if (dirname(folder) === folder)
    return [
      {
        state: "warning",
        text: `The sandbox offers no shell in ${folder}, because every program of the machine is in that folder.`,
        fix: "cd PROJECT",
      },
    ];
  const problem = await new Sandbox({ mode: "enforce" }).problem(folder);
  if (problem === undefined)
    return [{ state: "ok", text: "Shell commands of agents run in a sandbox of bubblewrap." }];
  const named = agentsWith("bash");
  const who =
    named.length === 0 ? "Agents with all tools have no shell" : `Agents that need it: ${named.join(", ")}`;
  return [
    {
      state: named.length === 0 ? "warning" : "error",
      text: `${sentence(problem)} ${who}.`,
      fix: "sudo apt-get install bubblewrap",
    },
  ];
}

/** Checks that Chromium and its driver, which the browser tools need, are installed. Neither of them is started. */
export async function browserFindings({ settings, agentsWith }: Needed): Promise<readonly Found[]> {
  const problem = await new BrowserSession(settings.browser ?? {}).problem();
  if (problem === undefined) return [{ state: "ok", text: "A browser and its driver are installed." }];
  const named = agentsWith("browser");
  const fix = problem.includes("playwright-core")
    ? "npm install playwright-core"
    : "sudo apt-get install chromium";
  if (named.length > 0)
    return [{ state: "error", text: `${sentence(problem)} Agents that need it: ${named.join(", ")}.`, fix }];
  return [{ state: "note", text: `${sentence(problem)} Only the tools of the browser need it.`, fix }];
}

/** The default ports of `reeve serve` and of its gateway. */
const ports = [
  { port: 4711, what: "reeve serve", fix: "reeve serve --port 0" },
  { port: 4712, what: "the gateway of reeve serve", fix: "reeve serve --gateway-port 0" },
];

/** Checks whether the default ports are free on this machine. */
export async function portFindings(wanted = ports): Promise<readonly Found[]> {
  const taken: Found[] = [];
  for (const { port, what, fix } of wanted) {
    const problem = await portProblem(port);
    if (problem !== undefined)
      taken.push({ state: "warning", text: `Port ${port}, which ${what} uses, ${problem}.`, fix });
  }
  const free = wanted.map(({ port }) => port).join(" and ");
  return taken.length > 0 ? taken : [{ state: "ok", text: `The ports ${free} of reeve serve are free.` }];
}

function portProblem(port: number): Promise<string | undefined> {
  return new Promise((done) => {
    const server = createServer();
    server.once("error", ({ code = "" }: NodeJS.ErrnoException) =>
      done(
        code === "EADDRINUSE" ? "is in use, perhaps by another reeve serve" : `cannot be opened (${code})`,
      ),
    );
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => server.close(() => done(undefined)));
  });
}
