import type { Store } from "../kernel/index.ts";

/** The part of an assertion library the contract suites use; that of vitest fits. */
export interface Assertion {
  toBe(expected: unknown): void;
  toEqual(expected: unknown): void;
  toBeUndefined(): void;
  readonly rejects: { toMatchObject(expected: object): Promise<void> };
}

/** What a contract suite is handed, so that `reeve/testing` needs no test runner. */
export interface ContractHarness {
  readonly test: (name: string, body: () => Promise<void>) => void;
  readonly expect: (actual: unknown) => Assertion;
  /** A new, empty store for each test. */
  readonly open: () => Promise<Store>;
}
