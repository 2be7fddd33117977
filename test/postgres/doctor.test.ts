import { expect, inject, test } from "vitest";
import { storeFindings } from "../../src/surfaces/cli/commands/doctor/store-findings.ts";
import { newSchema, openSchema, query } from "./schemas.ts";

test("reeve doctor reads format, size and clock of a PostgreSQL server, and creates no schema", async () => {
  const schema = newSchema();
  const address = `${inject("postgresUrl")}?schema=${schema}`;
  const absent = await storeFindings(address, false);
  expect(absent.findings.map(({ state }) => state)).toEqual(["ok", "note"]);
  expect(absent.findings[0]?.text).toMatch(/^PostgreSQL \d.* answers; the database has .* encoding UTF8\.$/u);
  expect(await query(`SELECT 1 FROM pg_namespace WHERE nspname = '${schema}'`)).toEqual([]);
  await (await openSchema(schema)).close();
  const { findings } = await storeFindings(address, false);
  expect(findings.map(({ state }) => state)).toEqual(["ok", "ok"]);
  expect(findings[1]?.text).toContain(`The store in the schema ${schema} has the stored format`);
});

test("reeve doctor names a PostgreSQL server that does not answer, without its password", async () => {
  const { findings } = await storeFindings("postgres://ann:hunter2@127.0.0.1:1/db", false);
  expect(findings).toEqual([
    {
      state: "error",
      text: expect.stringContaining("127.0.0.1:1/db") as string,
      fix: "pg_isready -h 127.0.0.1 -p 1",
    },
  ]);
  expect(JSON.stringify(findings)).not.toContain("hunter2");
});
