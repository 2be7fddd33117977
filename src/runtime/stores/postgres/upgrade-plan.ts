import type { FormatChange } from "../codec/stored-format.ts";

/** What the upgrade of a schema would do. */
export interface SchemaUpgradePlan {
  /** Host, port and database, without the password. */
  readonly address: string;
  readonly schema: string;
  readonly format: number;
  /** The format that this version of Reeve writes. */
  readonly newest: number;
  /** The changes from each format to the next. Empty if the schema has the newest format. */
  readonly changes: readonly FormatChange[];
  /** The live workers, which prevent the upgrade. */
  readonly workers: readonly string[];
  /** Number of connections of other processes to the schema, as far as the server knows them. They prevent the upgrade. */
  readonly connections: number;
}

export interface SchemaUpgradeOptions {
  /** Whether the person has a backup. Without a backup the upgrade is refused. */
  readonly isBackedUp: boolean;
}
