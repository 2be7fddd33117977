import { guardedLines, isConfirmed, scopeLines } from "../../setup/ask-trust.ts";
import { resolve } from "node:path";
import { Fault } from "../../../../kernel/index.ts";
import { openWorkspace } from "../../../../workspace/workspace.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { acceptStore, disownStore, whyForeign } from "../../setup/own-store.ts";
import { refuseAbsent } from "../../setup/stored-runs.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";

export interface TrustCommandOptions {
  readonly yes?: boolean;
  readonly remove?: boolean;
  readonly store?: string;
}

/** Shows the parts of a project, or the store, that need trust, and stores the user's decision. */
export async function trustCommand(
  path: string | undefined,
  options: TrustCommandOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const { store } = options;
  if (store === undefined) return trustProject(path ?? process.cwd(), options, terminal);
  if (path !== undefined)
    throw new Fault("invalid_argument", "PATH and --store cannot be combined; use one of them");
  refuseAbsent(store);
  return trustStore(store, options, terminal);
}

async function trustProject(
  cwd: string,
  { yes = false, remove = false }: TrustCommandOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  await using workspace = await openWorkspace({ cwd, trust: "never" });
  const { project } = workspace.places;
  if (remove) {
    const wasTrusted = await workspace.distrust();
    terminal.say(
      `reeve: ${printable(project)} ${wasTrusted ? "is not trusted any more" : "was not trusted"}`,
    );
    return "ok";
  }
  const scope = await workspace.trustScope();
  for (const line of [...guardedLines(workspace), ...scopeLines(scope)]) await terminal.out(line);
  const stores = await foreignStores([cwd, project]);
  for (const { address, reason } of stores) await terminal.out(storeLine(address, reason));
  if (!yes && !(await isConfirmed(project, terminal, { isRequired: true }))) return "denied";
  await workspace.trust({ hash: scope.hash, acceptUnresolved: terminal.canAsk });
  for (const { address } of stores) await acceptStore(address);
  terminal.say(`reeve: ${printable(project)} is trusted as it is now`);
  return "ok";
}

async function trustStore(
  address: string,
  { yes = false, remove = false }: TrustCommandOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  if (remove) {
    const wasOwn = await disownStore(address);
    terminal.say(`reeve: ${printable(address)} ${wasOwn ? "is not yours any more" : "was not yours"}`);
    return "ok";
  }
  const reason = await whyForeign(address);
  if (reason === undefined) {
    terminal.say(`reeve: ${printable(address)} is yours already`);
    return "ok";
  }
  await terminal.out(storeLine(address, reason));
  if (!yes && !(await isConfirmed(address, terminal, { isRequired: true }))) return "denied";
  await acceptStore(address);
  terminal.say(`reeve: ${printable(address)} is accepted; reeve run and reeve serve execute its runs`);
  return "ok";
}

/** Returns the stores of folders that were not created by a command of the user. */
async function foreignStores(
  folders: readonly string[],
): Promise<readonly { readonly address: string; readonly reason: string }[]> {
  const paths = new Set(folders.map((folder) => resolve(folder, ".reeve/reeve.db")));
  const found: { address: string; reason: string }[] = [];
  for (const path of paths) {
    const address = `sqlite:${path}`;
    const reason = await whyForeign(address);
    if (reason !== undefined) found.push({ address, reason });
  }
  return found;
}

function storeLine(address: string, reason: string): string {
  return `  ${printable(address.slice("sqlite:".length))}: a store needs trust, because ${printable(reason)}`;
}
