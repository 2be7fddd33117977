import { Fault } from "../../../kernel/index.ts";

/**
 * The format of the stores of version 0.1.0. It is the first format that later versions can open or migrate; stores
 * of earlier formats are refused. Until 0.1.0 is released, every change to the stored data increments it and needs
 * no migration.
 */
export const firstPromisedFormat = 32;

/** A step from one store format to the next. A released step never changes; later changes need a further step. */
interface FormatStep {
  /** What changes, in words for the person who upgrades a store, such as `runs have labels`. */
  readonly changes: string;
  /** SQL statements for SQLite. `SELECT 1;` if only the content of new rows differs. */
  readonly sqlite: string;
  /** SQL statements for PostgreSQL, with `{name}` for a table of the store. */
  readonly postgres: string;
}

/** The steps after the first promised format. The first step leads to `firstPromisedFormat + 1`. */
export const formatSteps: readonly FormatStep[] = [];

/** The store formats that a version of Reeve can open or upgrade. */
export interface KnownFormats {
  /** The oldest format that can be upgraded. */
  readonly oldest: number;
  /** The format that this version reads and writes. */
  readonly newest: number;
}

/** A description of a format change, with the script that makes it. */
interface Migration {
  readonly changes: string;
  readonly script: string;
}

/** Tables whose format is known. */
export interface FormattedTables {
  /** The oldest format that can be upgraded. */
  readonly oldest: number;
  /** The migrations from each format to the next. The first one starts at `oldest`. */
  readonly migrations: readonly Migration[];
}

export function knownFormats({ oldest, migrations }: FormattedTables): KnownFormats {
  return { oldest, newest: oldest + migrations.length };
}

/** A store whose format was read. */
export interface FoundFormat {
  /** Names the store in errors: a path, or a schema with its server. */
  readonly where: string;
  readonly format: number;
  /** Advice for a person with a store that cannot be read, such as `move it away or open another file`. */
  readonly otherwise: string;
}

/** Throws `version_mismatch` if this version of Reeve can neither open nor upgrade a store of the format. */
export function refuseUnknownFormat(
  { where, format, otherwise }: FoundFormat,
  { oldest, newest }: KnownFormats,
): void {
  if (format >= oldest && format <= newest) return;
  const reads = oldest === newest ? `format ${newest}` : `formats ${oldest} to ${newest}`;
  const problem =
    format > newest
      ? `has the stored format ${format} of a newer version of Reeve, and this version reads ${reads}; update reeve, or open another store`
      : `has the stored format ${format} of a development version of Reeve, and this version reads ${reads}. Its runs may not have ended: let them end with the version of Reeve that wrote them; then ${otherwise}`;
  throw new Fault("version_mismatch", `${where} ${problem}`, { details: { format, oldest, newest } });
}

/** Throws `version_mismatch` if the store must be upgraded before it is opened, or has an unknown format. */
export function refuseOtherFormat(found: FoundFormat, formats: KnownFormats, upgrade: string): void {
  refuseUnknownFormat(found, formats);
  const { where, format } = found;
  const { newest } = formats;
  if (format === newest) return;
  throw new Fault(
    "version_mismatch",
    `${where} has the stored format ${format}, and this version of Reeve writes format ${newest}; stop the processes that use it, then upgrade it with ${upgrade}`,
    { details: { format, ...formats } },
  );
}

/** A change of the store from one format to the next. */
export interface FormatChange {
  readonly format: number;
  readonly changes: string;
}

/** Returns all changes that bring a store of a format to the newest one. */
export function formatChanges(
  { oldest, migrations }: FormattedTables,
  from: number,
): readonly FormatChange[] {
  return migrations
    .map(({ changes }, index) => ({ format: oldest + index + 1, changes }))
    .filter(({ format }) => format > from);
}
