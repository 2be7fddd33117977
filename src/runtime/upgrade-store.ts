import { Fault } from "../kernel/index.ts";
import { sqlitePath } from "./open-store.ts";
import { explainMissingDriver } from "./stores/postgres/missing-driver.ts";
import type { SchemaUpgradePlan } from "./stores/postgres/upgrade-plan.ts";
import type { FileSchema } from "./stores/sqlite/db/migrate.ts";
import type { FileUpgradePlan, UpgradeStage } from "./stores/sqlite/upgrade-file.ts";

/** What the upgrade of a store would do, or has done. */
export type StoreUpgradePlan =
  | ({ readonly kind: "sqlite" } & FileUpgradePlan)
  | ({ readonly kind: "postgres" } & SchemaUpgradePlan);

export interface StoreUpgradeOptions {
  /** Other files of Reeve that may be at the address of a SQLite file, such as files of memories. */
  readonly files: readonly FileSchema[];
}

/** Returns what an upgrade of a store to the newest stored format would do. It changes nothing. */
export async function planStoreUpgrade(
  address: string,
  { files }: StoreUpgradeOptions,
): Promise<StoreUpgradePlan> {
  const path = sqlitePath(address);
  if (path !== undefined) {
    const { planFileUpgrade } = await import("./stores/sqlite/upgrade-file.ts");
    const { storeSchema } = await import("./stores/sqlite/db/schema.ts");
    return { kind: "sqlite", ...(await planFileUpgrade(path, [storeSchema, ...files])) };
  }
  refuseOtherAddress(address);
  const { planSchemaUpgrade, storeTableSet } = await loadPostgres();
  return { kind: "postgres", ...(await planSchemaUpgrade(address, storeTableSet)) };
}

/**
 * Upgrades a store to the newest stored format, while no process uses it. A SQLite file is copied first. A schema of PostgreSQL is
 * upgraded only if the person says that it has a backup.
 */
export async function upgradeStore(
  address: string,
  {
    files,
    isBackedUp,
    onStage,
  }: StoreUpgradeOptions & {
    readonly isBackedUp: boolean;
    readonly onStage: (stage: UpgradeStage) => void;
  },
): Promise<StoreUpgradePlan> {
  const path = sqlitePath(address);
  if (path !== undefined) {
    const { upgradeFile } = await import("./stores/sqlite/upgrade-file.ts");
    const { storeSchema } = await import("./stores/sqlite/db/schema.ts");
    return { kind: "sqlite", ...(await upgradeFile(path, [storeSchema, ...files], onStage)) };
  }
  refuseOtherAddress(address);
  const { upgradeSchema, storeTableSet } = await loadPostgres();
  return { kind: "postgres", ...(await upgradeSchema(address, storeTableSet, { isBackedUp })) };
}

function refuseOtherAddress(address: string): void {
  if (/^postgres(?:ql)?:/u.test(address)) return;
  throw new Fault(
    "invalid_argument",
    `invalid store ${JSON.stringify(address)}: expected "sqlite:PATH" or "postgres://HOST/DATABASE"`,
  );
}

async function loadPostgres() {
  const upgrade = await import("./stores/postgres/upgrade-schema.ts").catch(explainMissingDriver);
  const { storeTableSet } = await import("./stores/postgres/db/migrate.ts");
  return { ...upgrade, storeTableSet };
}
