import type { TestProject } from "vitest/node";
import { preparedOnce } from "../shared-setup.ts";
import { PostgresServer } from "./server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** URL of the PostgreSQL server that the test files of all projects share. Each file uses a schema of its own. */
    readonly postgresUrl: string;
  }
}

/** Starts one PostgreSQL server for all test files, and ends it after them. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { value, remove } = await preparedOnce("PostgreSQL", async () => {
    const server = await PostgresServer.start();
    return { value: server.url, remove: () => server.stop() };
  });
  project.provide("postgresUrl", value);
  return remove;
}
