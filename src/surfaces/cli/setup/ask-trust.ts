import type { TrustScope, Workspace } from "../../../workspace/workspace.ts";
import { type Terminal, printable } from "../terminal/terminal.ts";
import { Fault } from "../../../kernel/index.ts";

/**
 * Asks the person whether to trust the project of a workspace, if some of its files need trust. Without a terminal
 * no question is asked, and these files stay skipped.
 */
export async function askTrust(
  workspace: Workspace,
  terminal: Pick<Terminal, "canAsk" | "say" | "ask">,
): Promise<void> {
  const lines = guardedLines(workspace);
  if (lines.length === 0 || !terminal.canAsk) return;
  let scope: TrustScope;
  try {
    scope = await workspace.trustScope();
  } catch (error) {
    return terminal.say(`reeve: ${printable(Fault.from(error).message)}`);
  }
  for (const line of [...lines, ...scopeLines(scope)]) terminal.say(line);
  if (await isConfirmed(workspace.places.project, terminal))
    await workspace.trust({ hash: scope.hash, acceptUnresolved: true });
}

/** Returns one line for each part of the executed code that a trust decision cannot cover. */
export function scopeLines({ fetched, unresolved }: TrustScope): readonly string[] {
  return [
    ...fetched.map((reason) => `  not covered: ${printable(reason)}`),
    ...unresolved.map((reason) => `  cannot be checked: ${printable(reason)}`),
  ];
}

export async function isConfirmed(
  what: string,
  terminal: Pick<Terminal, "canAsk" | "say" | "ask">,
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

/** Returns one line for each part of the project that needs trust. */
export function guardedLines({ notices, guarded }: Workspace): readonly string[] {
  return guarded.map((path) => {
    const notice = notices.find((each) => each.path === path);
    return `  ${printable(path)}: ${printable(notice?.message.replace("; run reeve trust", "") ?? "it needs trust")}`;
  });
}
