import { resolve } from "node:path";
import { memorySchema } from "../../../../capabilities/memory/index.ts";
import { Fault } from "../../../../kernel/index.ts";
import {
  planStoreUpgrade,
  sqlitePath,
  type StoreUpgradePlan,
  upgradeStore,
} from "../../../../runtime/index.ts";
import { defaultStore } from "../../setup/default-store.ts";
import { refuseLink } from "../../setup/own-store.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { byteWords, counted } from "../../terminal/format.ts";
import type { Terminal } from "../../terminal/terminal.ts";

export interface UpgradeOptions {
  readonly store: string;
  readonly dryRun?: boolean;
  readonly backedUp?: boolean;
  readonly json?: boolean;
}

const files = [memorySchema];

/** Upgrades a store to the storage format of this version, or prints what an upgrade would change. */
export async function upgradeCommand(
  { store, dryRun = false, backedUp = false, json = false }: UpgradeOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const path = sqlitePath(store);
  if (path !== undefined && backedUp)
    throw new Fault(
      "invalid_argument",
      "invalid --backed-up: the upgrade copies a SQLite file itself; omit the option",
    );
  if (path !== undefined && store === defaultStore) refuseLink(resolve(path));
  const plan = dryRun
    ? await planStoreUpgrade(store, { files })
    : await upgradeStore(store, {
        files,
        isBackedUp: backedUp,
        onStage: (stage) => {
          if (stage === "locked") terminal.say("The store is copied.");
          else if (stage === "copied") terminal.say("The copy is complete; the store is changed.");
        },
      });
  const lines = json ? [JSON.stringify({ ...plan, isDone: !dryRun })] : linesOf(plan, dryRun);
  for (const line of lines) await terminal.out(line);
  return "ok";
}

function linesOf(plan: StoreUpgradePlan, isPlan: boolean): readonly string[] {
  const { format, newest, changes } = plan;
  const where = plan.kind === "sqlite" ? plan.path : `schema ${plan.schema} of ${plan.address}`;
  if (changes.length === 0)
    return [
      `${where} has the stored format ${format}, which this version of Reeve writes. There is nothing to upgrade.`,
    ];
  return [
    isPlan
      ? `${where} has the stored format ${format}, and the upgrade changes it to format ${newest}:`
      : `${where} had the stored format ${format} and now has format ${newest}:`,
    ...changes.map((each) => `  ${each.format}  ${each.changes}`),
    ...(isPlan ? planned(plan) : done(plan)),
  ];
}

function planned(plan: StoreUpgradePlan): readonly string[] {
  if (plan.kind === "postgres") {
    const { workers, connections } = plan;
    return [
      "Write a backup with pg_dump first, then pass --backed-up.",
      ...(workers.length + connections === 0
        ? []
        : [
            `It is in use: ${counted(workers.length)} ${workers.length === 1 ? "worker" : "workers"}, ${counted(connections)} ${connections === 1 ? "connection" : "connections"}. End these processes first.`,
          ]),
      "Nothing was changed.",
    ];
  }
  const { backup, bytes, freeBytes, users } = plan;
  const pids = users?.map(({ pid }) => pid) ?? [];
  return [
    `A copy is written to ${backup} first. It needs up to ${byteWords(bytes)}, the upgrade as much again; ${byteWords(freeBytes)} are free.`,
    ...(pids.length === 0 ? [] : [`It is in use by process ${pids.join(", process ")}. End it first.`]),
    "Nothing was changed.",
  ];
}

function done(plan: StoreUpgradePlan): readonly string[] {
  if (plan.kind === "postgres") return [];
  return [
    `The copy of before is ${plan.backup}. Delete it when you no longer need it: it keeps texts that are erased from the store later.`,
  ];
}
