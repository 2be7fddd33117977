import type { Store } from "../../kernel/index.ts";

/** The part of an assertion library that the contract suites use. Vitest's `expect` satisfies it. */
export interface Assertion {
  toBe(expected: unknown): void;
  toEqual(expected: unknown): void;
  toBeUndefined(): void;
  readonly rejects: { toMatchObject(expected: object): Promise<void> };
}

/**
 * The test functions and the store that a contract suite receives. They are parameters so that
 * `reeve/testing/contracts` depends on no test runner.
 */
export interface ContractHarness {
  readonly test: (name: string, body: () => Promise<void>) => void;
  readonly expect: (actual: unknown) => Assertion;
  /** Opens a new, empty store. Each test calls it once. */
  readonly open: () => Promise<Store>;
  /**
   * Opens the store of the current test a second time, as another process would do. If only one process can use the
   * store, returns the same store object.
   */
  readonly reopen: () => Promise<Store>;
  /**
   * Makes the store of the current test lose the registration of a worker (L12), for example by deleting its lock
   * file. If absent, registrations cannot be lost.
   */
  readonly loseWorker?: (workerId: string) => Promise<void>;
}
