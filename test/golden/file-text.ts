import { DatabaseSync } from "node:sqlite";

interface Row {
  readonly [column: string]: unknown;
}

/**
 * Dumps a SQLite file as SQL statements that recreate it, one row per statement. The dump does not depend on the file's
 * physical layout.
 */
export function textOfFile(path: string): string {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const pragma = (name: string): string =>
      `PRAGMA ${name} = ${String(Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0])};`;
    const schema = database
      .prepare("SELECT name, type, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
      .all();
    const made = schema.filter(({ name }) => !String(name).startsWith("sqlite_"));
    const tables = made.filter(({ type }) => type === "table").map(({ name }) => String(name));
    const rows = [...tables, "sqlite_sequence"].flatMap((table) => rowsOf(database, table));
    return [
      pragma("application_id"),
      pragma("user_version"),
      ...made.map(({ sql }) => `${String(sql)};`),
      ...rows,
      "",
    ].join("\n");
  } finally {
    database.close();
  }
}

function rowsOf(database: DatabaseSync, table: string): readonly string[] {
  const columns = database.prepare(`PRAGMA table_info(${table})`).all() as readonly Row[];
  const quoted = columns.map(({ name }) => `quote("${String(name)}")`).join(" || ', ' || ");
  const keys = columns.filter(({ pk }) => pk !== 0).map(({ name }) => `"${String(name)}"`);
  const order = keys.length === 0 ? "1" : keys.join(", ");
  return database
    .prepare(`SELECT ${quoted} AS row FROM ${table} ORDER BY ${order}`)
    .all()
    .map(({ row }) => `INSERT INTO ${table} VALUES (${String(row)});`);
}

/** Recreates a SQLite file from its SQL text. */
export function fileOfText(path: string, text: string): void {
  const database = new DatabaseSync(path);
  try {
    database.exec(`BEGIN;\n${text}\nCOMMIT;`);
  } finally {
    database.close();
  }
}

/** Format number of a file, which increases whenever the content of files changes. */
export function formatOf(text: string): number {
  return Number(/^PRAGMA user_version = (\d+);$/mu.exec(text)?.[1]);
}
