import type { MaybePromise } from "../../kernel/index.ts";

/** What a memory needs of its file: statements, all or nothing, waiting for locks. Its calls are over when they return. */
export interface MemoryFile {
  run(sql: string, ...values: SqlValue[]): number;
  insert(sql: string, ...values: SqlValue[]): number;
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- nobody else can say what a query returns
  get<Row extends object>(sql: string, ...values: SqlValue[]): Row | undefined;
  all<Row extends object>(sql: string, ...values: SqlValue[]): Row[];
  transaction<Result>(kind: "IMMEDIATE" | "DEFERRED", work: () => Result): Result;
  patiently<Result>(work: () => Result): MaybePromise<Result>;
  close(): void;
}

type SqlValue = string | number | null;
