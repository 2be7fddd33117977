import type { Command } from "commander";
import type { UpgradeOptions } from "../commands/store/upgrade-command.ts";
import { defaultStore } from "../setup/default-store.ts";
import { exitCodeTable, type ExitKind } from "../terminal/exit-code.ts";
import type { Terminal } from "../terminal/terminal.ts";

const upgradeHelp = `
Changes a store of an earlier version of Reeve into the format that this version reads and writes. Every process that uses
the store has to end first. With --dry-run the command prints what would change, and changes nothing.

A SQLite file is copied first, to PATH.format-N.backup, and then changed in one transaction: if the process dies, or the
disk is full, the store is as before. A file of openMemory() is upgraded likewise.

For PostgreSQL, write a backup yourself, for example with pg_dump, and pass --backed-up. The schema is changed in one
transaction.

${exitCodeTable()}

Examples:
  $ reeve store upgrade --dry-run
  $ reeve store upgrade
  $ reeve store upgrade --store postgres://HOST/DATABASE --backed-up
  $ reeve store upgrade --dry-run --json | jq -r .changes[].changes`;

/** Adds the commands for stores. */
export function addStoreCommands(
  program: Command,
  terminal: Terminal,
  onEnd: (kind: ExitKind) => void,
): void {
  const store = program.command("store").description("upgrade a store of an earlier version");
  store
    .command("upgrade")
    .description("change a store into the format of this version, with a copy of it")
    .option("--store <address>", "the store, as sqlite:PATH or postgres://HOST/DATABASE", defaultStore)
    .option("--dry-run", "print what would change, and change nothing")
    .option("--backed-up", "there is a backup of the PostgreSQL database")
    .option("--json", "print one JSON object")
    .addHelpText("after", upgradeHelp)
    .action(async (options: UpgradeOptions) => {
      const { upgradeCommand } = await import("../commands/store/upgrade-command.ts");
      onEnd(await upgradeCommand(options, terminal));
    });
}
