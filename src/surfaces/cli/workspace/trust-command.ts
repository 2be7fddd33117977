import { resolve } from "node:path";
import { Fault } from "../../../kernel/index.ts";
import { openWorkspace, type Workspace } from "../../../workspace.ts";
import type { ExitKind } from "../exit-code.ts";
import { acceptStore, disownStore, whyForeign } from "../own-store.ts";
import { refuseAbsent } from "../stored-runs.ts";
import { printable, type Terminal } from "../terminal.ts";

export interface TrustCommandOptions {
  readonly yes?: boolean;
  readonly remove?: boolean;
  readonly store?: string;
}

/** Shows what of a project, or which store, needs trust, and stores the user's decision. */
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
  const hash = await workspace.trustHash();
  for (const line of guardedLines(workspace)) await terminal.out(line);
  const stores = await foreignStores([cwd, project]);
  for (const { address, reason } of stores) await terminal.out(storeLine(address, reason));
  if (!yes && !(await isConfirmed(project, terminal, { isRequired: true }))) return "denied";
  await workspace.trust({ hash });
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
  terminal.say(`reeve: ${printable(address)} is accepted; reeve run and reeve serve drive its runs`);
  return "ok";
}

/** The stores of folders that no command of the user created. */
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

/**
 * Asks whether to trust the project of a workspace, if something needs trust and a person can be asked. Without a
 * terminal nothing is asked; the files stay skipped.
 */
export async function askTrust(workspace: Workspace, terminal: Terminal): Promise<void> {
  const lines = guardedLines(workspace);
  if (lines.length === 0 || !terminal.canAsk) return;
  const hash = await workspace.trustHash().catch(() => undefined);
  // The notices of the workspace say why the project cannot be trusted.
  if (hash === undefined) return;
  for (const line of lines) terminal.say(line);
  if (await isConfirmed(workspace.places.project, terminal)) await workspace.trust({ hash });
}

async function isConfirmed(
  what: string,
  terminal: Terminal,
  { isRequired = false }: { readonly isRequired?: boolean } = {},
): Promise<boolean> {
  if (isRequired && !terminal.canAsk)
    throw new Fault(
      "invalid_argument",
      "there is no terminal to ask; use reeve trust --yes to trust it as it is",
    );
  const answer = await terminal.ask(
    `These files of ${printable(what)} can run code or widen what agents may do. Trust them as they are now? [y/N] `,
  );
  return /^y(?:es)?$/iu.test(answer?.trim() ?? "");
}

/** One line for each part of the project that needs trust. */
function guardedLines({ notices, guarded }: Workspace): readonly string[] {
  return guarded.map((path) => {
    const notice = notices.find((each) => each.path === path);
    return `  ${printable(path)}: ${printable(notice?.message.replace("; run reeve trust", "") ?? "it needs trust")}`;
  });
}
