import type { TestProject } from "vitest/node";
import { PostgresServer } from "./server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** URL of the PostgreSQL server that the test files of a project share. Each file uses a schema of its own. */
    readonly postgresUrl: string;
  }
}

/** Starts one PostgreSQL server for all test files of a project, and ends it after them. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await PostgresServer.start();
  project.provide("postgresUrl", server.url);
  return () => server.stop();
}
