import { describe, expect, test } from "vitest";
import { inboxSettings } from "../../src/kernel/index.ts";
import { sha256 } from "../../src/runtime/process/sha256.ts";
import { systemClock, systemEventLoop } from "../../src/runtime/process/system-sources.ts";
import { SimulatedDatabase } from "../../src/runtime/stores/simulated/database.ts";
import { simulatedStore, type SimulatedStore } from "../../src/runtime/stores/simulated/store.ts";
import { storeContracts } from "../../src/testing/contracts/index.ts";
import { SeededRandom } from "../../src/testing/simulation/seeded-random.ts";

/** A database to which stores are connected without a network. */
class Site {
  readonly database: SimulatedDatabase;
  readonly #stores = new Map<string, SimulatedStore>();

  constructor() {
    this.database = new SimulatedDatabase({
      clock: systemClock,
      hash: sha256,
      onChange: (client, change) => {
        for (const [name, { noticed }] of this.#stores) if (name !== client) noticed(change);
      },
      onTail: (client, tail) => this.#stores.get(client)?.tailNoticed(tail),
    });
  }

  open(): SimulatedStore["store"] {
    const client = `client-${this.#stores.size + 1}`;
    const opened = simulatedStore({
      link: { client, send: (request) => this.database.perform(request) },
      clock: systemClock,
      eventLoop: systemEventLoop,
      random: new SeededRandom(client),
      hash: sha256,
      inbox: inboxSettings(),
      every: (ms, call) => {
        const timer = setInterval(call, ms).unref();
        return () => clearInterval(timer);
      },
      // Polling announces changes that the suites do not expect.
      pollMs: 600_000,
    });
    this.#stores.set(client, opened);
    return opened.store;
  }
}

for (const [name, contract] of Object.entries(storeContracts)) {
  describe(`simulated store, ${name}`, () => {
    let site = new Site();
    const open = async () => (site = new Site()).open();
    const loseWorker = async (workerId: string): Promise<void> => site.database.forgetWorker(workerId);
    contract({ test, expect, open, reopen: async () => site.open(), loseWorker });
  });
}
