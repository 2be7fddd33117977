import { spawn } from "node:child_process";
import { once } from "node:events";
import { Fault } from "../../../kernel/index.ts";
import { packageRoot } from "../../../assembly/package-root.ts";
import { listen } from "../../server/index.ts";
import type { ExitKind } from "../terminal/exit-code.ts";
import { columns } from "../terminal/format.ts";
import { interrupted } from "../terminal/interrupted.ts";
import { portOption } from "../terminal/number-option.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { DocumentFiles, startPage } from "./document-files.ts";
import { documentServer } from "./document-server.ts";

/** Options of `reeve docs`. */
export interface DocsOptions {
  readonly port: string;
  readonly open: boolean;
  readonly list?: boolean;
  readonly print?: boolean;
}

/** Serves the documents of the installed package on loopback, prints one of them, or lists them. */
export async function docsCommand(
  name: string | undefined,
  { port: givenPort, open, list = false, print = false }: DocsOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const port = portOption(givenPort);
  if (list && name !== undefined)
    throw new Fault("invalid_argument", `--list takes no page; use reeve docs ${name} --print`);
  const files = new DocumentFiles(packageRoot);
  const path = name === undefined ? startPage : files.find(name);
  if (list) {
    for (const line of columns(files.pages().map((page) => [nameOf(page.path), page.title, page.about])))
      await terminal.out(line);
    return "ok";
  }
  if (print) {
    await terminal.out(files.text(path).trimEnd());
    return "ok";
  }
  const listening = await listen(documentServer(files), { port });
  try {
    const stopping = interrupted(terminal);
    const address = `${listening.url}/${path}`;
    await terminal.out(address);
    terminal.say("Serves the documents of this version until Ctrl-C.");
    if (open) await openInBrowser(address, terminal);
    await stopping;
  } finally {
    await listening.close();
  }
  return "ok";
}

function nameOf(path: string): string {
  return path.replace(/(?:\/README)?\.md$/u, "");
}

/** Opens an address in the browser, if a person uses this machine. */
async function openInBrowser(address: string, terminal: Terminal): Promise<void> {
  const { isWatched, env } = terminal;
  const hasScreen =
    process.platform !== "linux" || Boolean(env["DISPLAY"]) || Boolean(env["WAYLAND_DISPLAY"]);
  if (!isWatched || !hasScreen || env["CI"] !== undefined) return;
  const [program = "", ...before] = openers[process.platform] ?? ["xdg-open"];
  const started = spawn(program, [...before, address], { stdio: "ignore", detached: true });
  try {
    await once(started, "spawn");
    started.unref();
  } catch (error) {
    terminal.say(`No browser opened (${program}: ${(error as Error).message}). Open the address above.`);
  }
}

const openers: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ["open"],
  win32: ["cmd", "/c", "start", ""],
};
