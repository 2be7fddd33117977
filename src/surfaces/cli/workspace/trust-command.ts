import { Fault } from "../../../kernel/index.ts";
import { openWorkspace, type Workspace } from "../../../workspace.ts";
import type { ExitKind } from "../exit-code.ts";
import { printable, type Terminal } from "../terminal.ts";

export interface TrustCommandOptions {
  readonly yes?: boolean;
  readonly remove?: boolean;
}

/** Shows what of a project needs trust, and stores the user's decision. */
export async function trustCommand(
  path: string | undefined,
  { yes = false, remove = false }: TrustCommandOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const cwd = path ?? process.cwd();
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
  if (!yes) {
    if (!terminal.canAsk)
      throw new Fault(
        "invalid_argument",
        "there is no terminal to ask; use reeve trust --yes to trust the project as it is",
      );
    if (!(await isConfirmed(project, terminal))) return "denied";
  }
  await workspace.trust({ hash });
  terminal.say(`reeve: ${printable(project)} is trusted as it is now`);
  return "ok";
}

/**
 * Asks whether to trust the project of a workspace, if something needs trust and a person can be asked. Without a
 * terminal nothing is asked; the files stay skipped.
 */
export async function askTrust(workspace: Workspace, terminal: Terminal): Promise<void> {
  const lines = guardedLines(workspace);
  if (lines.length === 0 || !terminal.canAsk) return;
  const hash = await workspace.trustHash();
  for (const line of lines) terminal.say(line);
  if (await isConfirmed(workspace.places.project, terminal)) await workspace.trust({ hash });
}

async function isConfirmed(project: string, terminal: Terminal): Promise<boolean> {
  const answer = await terminal.ask(
    `These files of ${printable(project)} can run code or widen what agents may do. Trust them as they are now? [y/N] `,
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
