import type { AuditEntry } from "../../../../kernel/index.ts";
import { auditLog } from "../../../../runtime/index.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { findRunId } from "../../setup/find-run.ts";
import { withStore, type StoreOptions } from "../../setup/stored-runs.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";

export interface AuditLogOptions extends StoreOptions {
  readonly full?: boolean;
  readonly outside?: boolean;
  readonly json?: boolean;
}

/** Prints who did what in a run. */
export function printAudit(name: string, options: AuditLogOptions, terminal: Terminal): Promise<ExitKind> {
  const { full = false, outside: outsideOnly = false, json = false } = options;
  return withStore(options, terminal, async (store): Promise<ExitKind> => {
    const runId = await findRunId(store, name, options.store);
    for await (const entry of auditLog(store).read(runId, { full, outsideOnly }))
      await terminal.out(json ? JSON.stringify(entry) : textLine(entry));
    if (!full) terminal.say("Texts over 500 characters are shortened; --full prints them whole.");
    return "ok";
  });
}

function textLine({ seq, at, taskId, actor, fromOutside, action, details }: AuditEntry): string {
  const who = fromOutside ? actor : `${actor}/${taskId}`;
  const time = new Date(at).toISOString();
  return [String(seq).padStart(5), time, printable(who), action, printable(JSON.stringify(details))].join(
    "  ",
  );
}
